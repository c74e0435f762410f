//! The warden: a last process of the same program for the case that tenure and its guard are killed in the same moment.
//!
//! It hears that through a pipe which both hold open, and kills the control group of the program. It is there only where such
//! a group can be had, starts beside the program and not before it, and takes the group away in the end.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::pipe;
use rustix::process::Pid;

use super::cgroup::Cgroup;
use crate::exit;

/// Time between two rounds of killing.
const ROUND: Duration = Duration::from_millis(1);

/// Longest time to wait for what the kernel does not let die, as in a dead file system.
const LONGEST_BURIAL: Duration = Duration::from_secs(10);

/// A control group, and the pipe whose end says that nobody else looks after it.
#[derive(Debug)]
pub(crate) struct Ward {
    group: Cgroup,
    watch: Option<OwnedFd>,
    /// Held by this process and by the guard; the kernel closes it when they end.
    alive: OwnedFd,
    warden: Option<Pid>,
}

impl Ward {
    /// `None` where no control group can be had.
    ///
    /// # Errors
    ///
    /// The system's own.
    pub(crate) fn create() -> io::Result<Option<Self>> {
        let Some(group) = Cgroup::create() else { return Ok(None) };
        let (watch, alive) = pipe()?;
        fcntl_setfd(&watch, FdFlags::CLOEXEC)?;
        Ok(Some(Self { group, watch: Some(watch), alive, warden: None }))
    }

    pub(crate) fn group(&self) -> &Cgroup {
        &self.group
    }

    /// To be called when the guard has the pipe, so that nobody else gets it.
    pub(crate) fn keep_to_ourselves(&self) -> io::Result<()> {
        Ok(fcntl_setfd(&self.alive, FdFlags::CLOEXEC)?)
    }

    /// Starts the warden.
    ///
    /// # Errors
    ///
    /// The system's own; the program is as safe as without it.
    pub(crate) fn start_warden(&mut self) -> io::Result<()> {
        let Some(watch) = self.watch.take() else { return Ok(()) };
        let child = Command::new("/proc/self/exe")
            .arg0("tenure-warden")
            .arg(super::WARDEN)
            .arg(self.group.path())
            .stdin(Stdio::from(watch))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        self.warden = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(())
    }

    /// The warden's number, once there is one.
    pub(crate) fn warden(&self) -> Option<Pid> {
        self.warden
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        // Where the program has left nothing behind. Else the warden does it, which hears of the end now.
        self.group.remove();
    }
}

/// What the warden does.
pub(super) fn watch(mut arguments: impl Iterator<Item = OsString>) -> u8 {
    let Some(directory) = arguments.next() else { return exit::FAILED };
    let group = Cgroup::at(directory);
    if super::outlive_stop_signals().is_err() {
        return exit::FAILED;
    }
    super::be_known_as(c"tenure-warden");
    // Nothing is ever written: this returns when nobody holds the other end any more.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    let begun = Instant::now();
    while !group.remove() && begun.elapsed() < LONGEST_BURIAL {
        let _ = group.kill();
        thread::sleep(ROUND);
    }
    exit::YES
}
