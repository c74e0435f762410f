//! The program and all that it starts, as the guard sees them: everything below it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::pipe;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, wait, waitpid};

use super::cgroup::Cgroup;
use super::orders::Environment;
use super::stage::{self, Stage};
use crate::run::descendants;
use crate::run::tree::End;

/// A stage that waits for its term.
pub(super) struct Waiting {
    stage: Pid,
    word: File,
    errors: File,
    own_group: bool,
    cgroup: Option<Cgroup>,
}

pub(super) struct Tree {
    program: Pid,
    /// Whether the program leads a process group of its own.
    own_group: bool,
    cgroup: Option<Cgroup>,
    end: Option<End>,
    alive: bool,
}

/// Time between two rounds of killing.
const ROUND: Duration = Duration::from_micros(500);

impl Waiting {
    /// Starts what will be `program`, in the process group `group`, or in one of its own for 0, and in `cgroup`, if there is
    /// one.
    pub(super) fn start(program: &[OsString], group: i32, cgroup: Option<Cgroup>) -> io::Result<Self> {
        let (word, to_stage) = pipe()?;
        let (errors, to_errors) = pipe()?;
        fcntl_setfd(&to_stage, FdFlags::CLOEXEC)?;
        fcntl_setfd(&errors, FdFlags::CLOEXEC)?;
        let stage = Stage {
            guard: getpid(),
            word: word.as_raw_fd(),
            errors: to_errors.as_raw_fd(),
            group,
            cgroup: cgroup.as_ref(),
        };
        let mut command = Command::new("/proc/self/exe");
        command.args(stage.arguments()).args(program);
        // Under its own name from the beginning: the stage is nothing that lasts.
        if let Some(name) = program.first() {
            command.arg0(name);
        }
        let pid = i32::try_from(command.spawn()?.id()).ok().and_then(Pid::from_raw);
        let stage = pid.ok_or_else(|| io::Error::other("the system gave a process the number 0"))?;
        Ok(Self { stage, word: to_stage.into(), errors: errors.into(), own_group: group == 0, cgroup })
    }

    /// Lets it become the program, and returns when that runs.
    pub(super) fn begin(mut self, environment: &Environment) -> io::Result<Tree> {
        self.word.write_all(stage::word(environment).as_bytes())?;
        let mut error = String::new();
        // Ends when the stage has become the program, or is gone.
        self.errors.read_to_string(&mut error)?;
        match error.parse() {
            Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
            Err(_) => {
                let Self { stage, own_group, cgroup, .. } = self;
                Ok(Tree { program: stage, own_group, cgroup, end: None, alive: true })
            }
        }
    }

    /// There is no term: nothing is left of it.
    pub(super) fn give_up(self) {
        let Self { stage, cgroup, word, .. } = self;
        drop(word);
        let _ = waitpid(Some(stage), WaitOptions::empty());
        if let Some(cgroup) = cgroup {
            cgroup.remove();
        }
    }
}

impl Tree {
    pub(super) fn program(&self) -> Pid {
        self.program
    }

    /// How the program itself ended, once it has.
    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Takes note of processes that have ended.
    pub(super) fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => self.end = Some(End::of(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                // No child is left, and this process inherits every orphan below it: that is proof.
                Err(_) => {
                    self.alive = false;
                    return;
                }
            }
        }
    }

    /// Kills everything, and returns when nothing is left, however long the kernel takes.
    pub(super) fn kill_all(&mut self) {
        while self.alive {
            // The number means this group for as long as the program was not taken note of.
            if self.own_group && self.end.is_none() {
                let _ = kill_process_group(self.program, Signal::KILL);
            }
            if let Some(cgroup) = &self.cgroup {
                let _ = cgroup.kill();
            }
            descendants::visit(&HashSet::new(), None, |found| {
                let _ = found.signal(Signal::KILL);
            });
            self.reap();
            if self.alive {
                thread::sleep(ROUND);
                self.reap();
            }
        }
    }
}

/// Something to read comes whenever a child has ended.
pub(super) fn word_of_children() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(Signal::CHILD.as_raw(), sender)?;
    Ok(receiver)
}

/// Takes out what came.
pub(super) fn drain(mut receiver: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!(receiver.read(&mut bytes), Ok(1..)) {}
}
