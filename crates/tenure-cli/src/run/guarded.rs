//! A program under a guard, as tenure sees it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pipe::pipe;
use rustix::process::{Pid, Signal, WaitOptions, getpgrp, kill_process, waitpid};
use rustix::time::Timespec;

use super::tree::End;
use crate::guard::{self, Lines, Order, Report, Start, Ward};

/// Longest time for a guard and its program to start: far longer than a busy machine takes for three processes.
const LONGEST_START: Duration = Duration::from_secs(5);

/// The guard of one program.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Pid,
    orders: File,
    reports: Lines,
    deadline: Duration,
    /// `None` where no control group can be had.
    ward: Option<Ward>,
}

impl Guarded {
    /// Starts a guard for `command`, which says what the program is and what of the environment it shall not have. The program
    /// does not run yet.
    ///
    /// # Errors
    ///
    /// The system's own, when nothing was started.
    pub(crate) fn prepare(command: &Command, own_group: bool) -> io::Result<Self> {
        let (orders, to_guard) = pipe()?;
        let (from_guard, reports) = pipe()?;
        fcntl_setfd(&to_guard, FdFlags::CLOEXEC)?;
        fcntl_setfd(&from_guard, FdFlags::CLOEXEC)?;
        fcntl_setfl(&from_guard, OFlags::NONBLOCK)?;
        let ward = Ward::create()?;
        let group = (!own_group).then(getpgrp);
        let mut guard = Command::new("/proc/self/exe");
        guard
            .arg0("tenure-guard")
            .args(guard::arguments(orders.as_raw_fd(), reports.as_raw_fd(), group, ward.as_ref().map(Ward::group)))
            .arg(command.get_program())
            .args(command.get_args())
            .process_group(0);
        for (name, _) in command.get_envs().filter(|(_, value)| value.is_none()) {
            guard.env_remove(name);
        }
        let child = guard.spawn()?;
        drop((orders, reports));
        if let Some(ward) = &ward {
            ward.keep_to_ourselves()?;
        }
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let guard = pid.ok_or_else(|| io::Error::other("the system gave a process the number 0"))?;
        Ok(Self { guard, orders: File::from(to_guard), reports: Lines::of(from_guard), deadline: Duration::ZERO, ward })
    }

    /// Whether it is still there, as far as can be seen: it may have been killed while it waited.
    pub(crate) fn is_there(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut pipe = [PollFd::from_borrowed_fd(self.reports.as_fd(), PollFlags::IN)];
        matches!(poll(&mut pipe, Some(&at_once)), Ok(0))
    }

    /// Begins the term, and returns when the program runs.
    ///
    /// # Errors
    ///
    /// The system's own, when the program was not started.
    pub(super) fn start(&mut self, start: &Start) -> io::Result<Pid> {
        let begun = self.begin(start);
        match &begun {
            Ok(_) => {
                // Beside the program, which need not wait for it.
                if let Some(Err(error)) = self.ward.as_mut().map(Ward::start_warden) {
                    tracing::warn!(%error, "there is no warden: what leaves the program outlives tenure and its guard");
                }
            }
            Err(_) => {
                let _ = kill_process(self.guard, Signal::KILL);
                let _ = waitpid(Some(self.guard), WaitOptions::empty());
            }
        }
        begun
    }

    fn begin(&mut self, start: &Start) -> io::Result<Pid> {
        self.deadline = start.deadline;
        self.orders.write_all(start.line().as_bytes())?;
        fcntl_setfl(&self.orders, OFlags::NONBLOCK)?;
        let until = Instant::now() + LONGEST_START;
        loop {
            match self.report() {
                Some(Report::Started(pid)) => {
                    return Pid::from_raw(pid).ok_or_else(|| io::Error::other("the guard told a process number of 0"));
                }
                Some(Report::NotStarted(errno)) => return Err(io::Error::from_raw_os_error(errno)),
                Some(_) => return Err(io::Error::other("the guard told an end before a start")),
                None => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            let left = Timespec { tv_sec: 0, tv_nsec: left.min(Duration::from_millis(100)).subsec_nanos().into() };
            match poll(&mut [PollFd::from_borrowed_fd(self.reports.as_fd(), PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !self.reports.fill()? {
                return Err(io::Error::other("the guard ended before the program ran"));
            }
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.guard
    }

    /// The warden's number, if there is one.
    pub(super) fn warden(&self) -> Option<Pid> {
        self.ward.as_ref()?.warden()
    }

    /// Tells the guard that the term lasts until `deadline`.
    pub(super) fn prolong(&mut self, deadline: Duration) {
        // A guard that is gone is noticed elsewhere. One that is frozen fills the pipe, which must not stop this process: a
        // line this short is written whole or not at all, and the next one says more.
        if deadline > self.deadline && self.orders.write_all(Order::Deadline(deadline).line().as_bytes()).is_ok() {
            self.deadline = deadline;
        }
    }

    /// How the program ended, if the guard has told by now, and whether the deadline came before.
    pub(super) fn end(&mut self) -> (Option<End>, bool) {
        let _ = self.reports.fill();
        let (mut end, mut overdue) = (None, false);
        while let Some(report) = self.report() {
            match report {
                Report::Ended(told) => end = Some(told),
                Report::Overdue => overdue = true,
                Report::Started(_) | Report::NotStarted(_) => {}
            }
        }
        (end, overdue)
    }

    fn report(&mut self) -> Option<Report> {
        Report::parse(&self.reports.next()?)
    }
}
