//! The stage between the guard and the program: it ties its life to the guard's, and becomes the program.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::cgroup::Cgroup;
use crate::exit;
use crate::run::descriptors;

/// The arguments with which the stage of the guard `guard` is started; it says on the descriptor `errors` why it did not
/// become the program, and nothing when it did.
pub(super) fn arguments(guard: Pid, errors: i32, cgroup: Option<&Cgroup>) -> [OsString; 5] {
    let [guard, errors] = [guard.as_raw_pid(), errors].map(|number| number.to_string().into());
    let cgroup = cgroup.map(|cgroup| cgroup.path().into()).unwrap_or_default();
    [super::STAGE.into(), guard, errors, cgroup, super::PROGRAM.into()]
}

/// Never comes back when all goes well.
pub(super) fn become_program(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let mut number = || arguments.next()?.into_string().ok()?.parse::<i32>().ok();
    let (Some(guard), Some(errors)) = (number(), number()) else { return exit::FAILED };
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
    let error = Command::new(name).args(program).exec();
    let _ = errors.write_all(error.raw_os_error().unwrap_or_default().to_string().as_bytes());
    exit::FAILED
}
