//! A program and everything that it starts.

use std::collections::HashSet;
use std::io;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};

use super::descendants;
use super::guarded::Guarded;
use crate::guard::Start;

/// The processes of one term: a program, and what it starts.
#[derive(Debug)]
pub(crate) struct Tree {
    program: Pid,
    /// What stands between this process and the program; `None` when it is this process's own child.
    guard: Option<Guarded>,
    /// Whether the guard is gone.
    unguarded: bool,
    /// Whether the program leads a process group of its own.
    own_group: bool,
    /// Children that are none of the program's: those that `exec` left to this process, and the warden.
    strangers: HashSet<Pid>,
    end: Option<End>,
    alive: bool,
    asked_to_stop: bool,
    killing: bool,
    /// Whether the guard killed it at the deadline.
    overdue: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With this exit code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

/// Time between two rounds of killing while waiting for the kernel to carry the last one out.
const ROUND: Duration = Duration::from_micros(500);

impl Tree {
    /// Starts `command`, which leads a process group of its own if `own_group` says so, as a child of this process.
    ///
    /// # Errors
    ///
    /// The system's own, when nothing was started.
    pub(crate) fn start(command: &mut Command, own_group: bool) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let strangers = descendants::children_of_this_process();
        if own_group {
            command.process_group(0);
        }
        // Not waited for through the handle: one loop takes note of all processes that end, inherited ones too.
        let child = command.spawn()?;
        let program = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let program = program.ok_or_else(|| io::Error::other("the system gave a process the number 0"))?;
        Ok(Self::of(program, None, own_group, strangers))
    }

    /// Starts the program of `guard`, which is told `start`.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) fn start_guarded(mut guard: Guarded, own_group: bool, start: &Start) -> io::Result<Self> {
        let mut strangers = descendants::children_of_this_process();
        strangers.remove(&guard.pid());
        let program = guard.start(start)?;
        strangers.extend(guard.warden());
        Ok(Self::of(program, Some(guard), own_group, strangers))
    }

    fn of(program: Pid, guard: Option<Guarded>, own_group: bool, strangers: HashSet<Pid>) -> Self {
        Self {
            program,
            guard,
            unguarded: false,
            own_group,
            strangers,
            end: None,
            alive: true,
            asked_to_stop: false,
            killing: false,
            overdue: false,
        }
    }

    /// Tells the guard, if there is one, when all must be dead.
    pub(crate) fn prolong(&mut self, deadline: Duration) {
        if let Some(guard) = &mut self.guard {
            guard.prolong(deadline);
        }
    }

    /// How the program itself ended, once it has.
    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether any process of the tree is left, as far as was taken note of.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Whether it was asked to stop.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.asked_to_stop
    }

    /// Whether it is being killed.
    pub(crate) fn is_killing(&self) -> bool {
        self.killing
    }

    /// Whether the guard killed it at the deadline, since this process did not in time.
    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// Takes note of processes that have ended. What comes to light meanwhile is killed too, if the tree is.
    pub(crate) fn reap(&mut self) {
        // What lives now came after it.
        if !self.alive {
            while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
            return;
        }
        loop {
            let ended = wait(WaitOptions::NOHANG);
            // What the guard told came before its own end.
            if let Some((end, overdue)) = self.guard.as_mut().map(Guarded::end) {
                self.end = self.end.or(end);
                self.overdue |= overdue;
                self.killing |= overdue;
            }
            match ended {
                Ok(Some((pid, status))) if self.guard.is_none() && pid == self.program => {
                    self.end = Some(End::of(status))
                }
                Ok(Some((pid, _))) if self.guard.as_ref().is_some_and(|guard| guard.pid() == pid) => self.lose_guard(),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // No child is left. As this process inherits every orphan below it, that is proof: nothing is left.
                Err(_) => {
                    self.end = self.end.or(Some(End::Signal(Signal::KILL.as_raw())));
                    self.alive = false;
                    return;
                }
            }
        }
        let waits = if self.guard.is_some() { !self.unguarded } else { self.end.is_none() };
        self.alive = waits || self.strangers.is_empty() || self.finds_any();
        if self.alive && (self.killing || self.unguarded) {
            self.signal(Signal::KILL);
        }
    }

    /// A guard ends after everything below it, or took the program with it: what that had started is here now.
    fn lose_guard(&mut self) {
        self.unguarded = true;
        if self.end.is_none() {
            tracing::error!("the guard was killed, and so the program was");
            self.end = Some(End::Signal(Signal::KILL.as_raw()));
        }
    }

    /// Asks every process of the tree to stop. A stopped one is woken up for it.
    pub(crate) fn ask_to_stop(&mut self, signal: Signal) {
        self.asked_to_stop = true;
        self.signal(signal);
        self.signal(Signal::CONT);
    }

    /// Takes it that every process of the tree has been asked to stop by somebody else.
    pub(crate) fn was_asked_to_stop(&mut self) {
        self.asked_to_stop = true;
    }

    /// Kills every process of the tree; [`reap`](Self::reap) catches those that are being started right now.
    pub(crate) fn kill(&mut self) {
        self.killing = true;
        self.signal(Signal::KILL);
        self.reap();
        // With nothing left to guard it would end by itself, if it is not frozen.
        if let (Some(guard), true, false) = (&self.guard, self.alive && !self.unguarded, self.finds_any()) {
            let _ = kill_process(guard.pid(), Signal::KILL);
        }
    }

    /// Kills every process of the tree, and returns when none is left or `longest` is over. Blocks the thread: for when
    /// nothing may happen before the tree is gone.
    pub(crate) fn kill_and_wait(&mut self, longest: Duration) {
        let start = Instant::now();
        self.kill();
        while self.alive && start.elapsed() < longest {
            thread::sleep(ROUND);
            self.kill();
        }
    }

    /// Sends `signal` to every process of the tree.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = self.group();
        if let Some(group) = group {
            said(kill_process_group(group, signal).map_err(io::Error::from), signal);
        }
        descendants::visit(&self.strangers, self.guard_alive(), |found| {
            if group.is_none() || found.group != group {
                said(found.signal(signal), signal);
            }
        });
    }

    /// Sends `signal` to the program alone.
    pub(crate) fn signal_program(&self, signal: Signal) {
        if self.end.is_none() {
            said(kill_process(self.program, signal).map_err(io::Error::from), signal);
        }
    }

    /// The group, as long as its number is sure to mean it: the number is the program's, kept until that is waited for.
    fn group(&self) -> Option<Pid> {
        (self.own_group && self.guard.is_none() && self.end.is_none()).then_some(self.program)
    }

    fn guard_alive(&self) -> Option<Pid> {
        self.guard.as_ref().filter(|_| !self.unguarded).map(Guarded::pid)
    }

    fn finds_any(&self) -> bool {
        let mut any = false;
        descendants::visit(&self.strangers, self.guard_alive(), |_| any = true);
        any
    }
}

impl End {
    pub(crate) fn of(status: WaitStatus) -> Self {
        match status.exit_status() {
            Some(code) => Self::Code(u8::try_from(code).unwrap_or(u8::MAX)),
            None => Self::Signal(status.terminating_signal().unwrap_or(Signal::KILL.as_raw())),
        }
    }

    /// The exit code that passes it on.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => crate::exit::of_signal(signal),
        }
    }

    /// The signal, if one ended it.
    pub(crate) fn signal(self) -> Option<i32> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

/// A process that is gone needs no signal; one that may not be signalled runs under another user.
fn said(result: io::Result<()>, signal: Signal) {
    if let Err(error) = result
        && error.raw_os_error() != Some(Errno::SRCH.raw_os_error())
    {
        tracing::error!(%error, ?signal, "a process of the program cannot be signalled");
    }
}
