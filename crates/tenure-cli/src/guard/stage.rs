//! The stage between the guard and the program: it ties its life to the guard's, waits for the term, and becomes the program.
//!
//! All that takes time is done before the term begins.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setpgid};

use super::cgroup::Cgroup;
use super::orders::Environment;
use crate::exit;
use crate::run::descriptors;

/// How the stage of a guard is started.
pub(super) struct Stage<'a> {
    pub(super) guard: Pid,
    /// The descriptor where it hears what the program is told: the word to begin.
    pub(super) word: i32,
    /// The descriptor where it says why it did not become the program, and nothing when it did.
    pub(super) errors: i32,
    /// The process group that the program shall be in, or 0 for one of its own.
    pub(super) group: i32,
    pub(super) cgroup: Option<&'a Cgroup>,
}

impl Stage<'_> {
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let numbers = [self.guard.as_raw_pid(), self.word, self.errors, self.group];
        let cgroup = self.cgroup.map(|cgroup| cgroup.path().into()).unwrap_or_default();
        let numbers = numbers.map(|number| number.to_string().into());
        [super::STAGE.into()].into_iter().chain(numbers).chain([cgroup, super::PROGRAM.into()]).collect()
    }
}

/// The word to begin.
pub(super) fn word(environment: &Environment) -> String {
    // Strings only.
    serde_json::to_string(environment).unwrap_or_default() + "\n"
}

/// Never comes back when all goes well.
pub(super) fn become_program(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let mut number = || arguments.next()?.into_string().ok()?.parse::<i32>().ok();
    let (Some(guard), Some(word), Some(errors), Some(group)) = (number(), number(), number(), number()) else {
        return exit::FAILED;
    };
    let Ok(word) = File::open(descriptors::path(word)) else { return exit::FAILED };
    let Ok(mut errors) = File::options().write(true).open(descriptors::path(errors)) else { return exit::FAILED };
    descriptors::keep_to_ourselves();
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    // A guard that died before that was heard will not be heard of any more.
    if tied.is_err() || getppid().map(Pid::as_raw_pid) != Some(guard) {
        return exit::FAILED;
    }
    if let Some(cgroup) = arguments.next().filter(|path| !path.is_empty()) {
        // One that takes no processes is as good as none.
        let _ = Cgroup::at(cgroup).enter();
    }
    let mut program = arguments.skip_while(|argument| argument == super::PROGRAM);
    let Some(name) = program.next() else { return exit::FAILED };
    let mut command = Command::new(name);
    command.args(program);
    let mut line = String::new();
    // There is no term, and there will be none.
    if !BufReader::new(word).read_line(&mut line).is_ok_and(|count| count > 0) {
        return exit::YES;
    }
    let Ok(environment) = serde_json::from_str::<Environment>(&line) else { return exit::FAILED };
    // Only now: what a terminal sends to the group is not for a stage.
    if setpgid(None, Pid::from_raw(group)).is_err() {
        return exit::FAILED;
    }
    let error = command.envs(environment).exec();
    let _ = errors.write_all(error.raw_os_error().unwrap_or_default().to_string().as_bytes());
    exit::FAILED
}
