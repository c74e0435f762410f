//! What is going on in a run: the program, if one runs, and what signals have asked for.
//!
//! The session belongs to one task; the election's driver, in another, only sees whether the program is alive.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tenure::{CancellationToken, Term};
use tokio::sync::{Notify, watch};

use super::guarded::Guarded;
use super::outcome::Outcome;
use super::plan::Plan;
use super::signals::Received;
use super::tree::{End, Tree};
use crate::guard::Start;
use crate::serve::{Candidacy, Site};

pub(crate) struct Session {
    pub(crate) plan: Plan,
    /// Where others may ask how things stand.
    site: Option<Site>,
    /// Ends the campaign.
    pub(crate) shutdown: CancellationToken,
    /// The guard of the term to come.
    ready: RefCell<Option<Guarded>>,
    tree: RefCell<Option<Tree>>,
    term: RefCell<Option<Term>>,
    alive: watch::Sender<bool>,
    changed: Notify,
    leave: Notify,
    /// The first signal that asked tenure to stop.
    stop: Cell<Option<Signal>>,
    passed_on: RefCell<HashSet<i32>>,
    urgent: Cell<u32>,
    /// How the program ended, if it did so before anything asked it to.
    ended_leading: Cell<Option<End>>,
    not_started: RefCell<Option<Outcome>>,
    /// Somebody asked this very term to end.
    resigned: Cell<bool>,
}

/// What is known of the program right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// How it ended, once it has.
    pub(crate) end: Option<End>,
    /// Whether it or anything it started is left.
    pub(crate) alive: bool,
    pub(crate) killing: bool,
}

impl Session {
    pub(crate) fn new(plan: Plan, site: Option<Site>) -> Self {
        Self {
            plan,
            site,
            resigned: Cell::new(false),
            shutdown: CancellationToken::new(),
            ready: RefCell::new(None),
            tree: RefCell::new(None),
            term: RefCell::new(None),
            alive: watch::Sender::new(false),
            changed: Notify::new(),
            leave: Notify::new(),
            stop: Cell::new(None),
            passed_on: RefCell::default(),
            urgent: Cell::new(0),
            ended_leading: Cell::new(None),
            not_started: RefCell::new(None),
        }
    }

    /// Whether anything of the program is left, for others to follow.
    pub(crate) fn alive(&self) -> watch::Receiver<bool> {
        self.alive.subscribe()
    }

    /// What others are told, if anybody may ask.
    pub(crate) fn candidacy(&self) -> Option<&Arc<Candidacy>> {
        self.site.as_ref().map(Site::candidacy)
    }

    /// Notes that this term ends because somebody asked for it.
    pub(crate) fn resign(&self) {
        self.resigned.set(true);
    }

    pub(crate) fn has_resigned(&self) -> bool {
        self.resigned.get()
    }

    /// Starts a guard for the next term, if one is wanted: what takes time is done when the term comes. One that cannot be
    /// started now is tried again then.
    pub(crate) fn prepare(&self) {
        let mut ready = self.ready.borrow_mut();
        if self.plan.guard && ready.is_none() {
            *ready = Guarded::prepare(&self.plan.program(), self.plan.own_group).ok();
        }
    }

    /// Starts the program of `term`, under its guard if it has one.
    ///
    /// # Errors
    ///
    /// The system's own, when nothing was started.
    pub(crate) fn start(&self, start: &Start, term: Term) -> std::io::Result<()> {
        self.ended_leading.set(None);
        self.resigned.set(false);
        let mut program = self.plan.program();
        let tree = if self.plan.guard {
            let guard = match self.ready.take().filter(Guarded::is_there) {
                Some(guard) => guard,
                None => Guarded::prepare(&program, self.plan.own_group)?,
            };
            Tree::start_guarded(guard, self.plan.own_group, start)?
        } else {
            Tree::start(program.envs(start.environment.iter().map(|(name, value)| (name, value))), self.plan.own_group)?
        };
        *self.tree.borrow_mut() = Some(tree);
        *self.term.borrow_mut() = Some(term);
        self.alive.send_replace(true);
        Ok(())
    }

    /// The program was not started, and why.
    pub(crate) fn not_started(&self, outcome: Outcome) {
        *self.not_started.borrow_mut() = Some(outcome);
    }

    pub(crate) fn take_not_started(&self) -> Option<Outcome> {
        self.not_started.borrow_mut().take()
    }

    /// What is known of the last program that was started.
    pub(crate) fn program(&self) -> Option<Program> {
        let tree = self.tree.borrow();
        let tree = tree.as_ref()?;
        Some(Program { end: tree.end(), alive: tree.is_alive(), killing: tree.is_killing() })
    }

    /// Whether anything of a program is left.
    pub(crate) fn is_program_alive(&self) -> bool {
        self.program().is_some_and(|program| program.alive)
    }

    /// Whether the guard killed the program at the deadline.
    pub(crate) fn is_overdue(&self) -> bool {
        self.tree.borrow().as_ref().is_some_and(Tree::is_overdue)
    }

    /// Waits for news of the program.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing; one task at a time may wait.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The first signal that asked tenure to stop.
    pub(crate) fn stop(&self) -> Option<Signal> {
        self.stop.get()
    }

    /// The program ended by itself while this candidate led.
    pub(crate) fn set_ended_leading(&self, end: End) {
        self.ended_leading.set(Some(end));
    }

    pub(crate) fn ended_leading(&self) -> Option<End> {
        self.ended_leading.get()
    }

    /// Ends the run without giving the lease back.
    pub(crate) fn leave(&self) {
        self.leave.notify_one();
    }

    /// Waits for the run to be ended that way.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn leaving(&self) {
        self.leave.notified().await;
    }

    /// Asks the program and what it started to stop, unless they were asked before.
    pub(crate) fn ask_to_stop(&self, signal: Signal) {
        self.with_tree(|tree| {
            if !tree.is_asked_to_stop() {
                tree.ask_to_stop(signal);
            }
        });
    }

    /// Tells the guard, if there is one, when all must be dead.
    pub(crate) fn prolong(&self, deadline: Duration) {
        if let Some(tree) = &mut *self.tree.borrow_mut() {
            tree.prolong(deadline);
        }
    }

    /// Kills the program and what it started.
    pub(crate) fn kill(&self) {
        self.with_tree(Tree::kill);
    }

    /// Kills the program and what it started, and blocks until nothing is left or `longest` is over.
    pub(crate) fn kill_and_wait(&self, longest: Duration) {
        self.with_tree(|tree| tree.kill_and_wait(longest));
    }

    /// Does what a signal asks for.
    pub(crate) fn receive(&self, received: Received) {
        let already_there = received.by_terminal && !self.plan.own_group;
        match received.signal {
            Signal::CHILD => {
                self.with_tree(Tree::reap);
            }
            signal @ (Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT) => {
                self.receive_stop(signal, already_there);
            }
            Signal::TSTP => self.suspend(),
            Signal::CONT => self.go_on(),
            // USR1, USR2, WINCH: for the program alone, since they end a process that does not expect them.
            signal if !already_there => {
                self.with_tree(|tree| tree.signal_program(signal));
            }
            _ => {}
        }
    }

    /// Each signal is passed on once, and the lease kept until the program is gone; a second TERM or INT is impatience.
    fn receive_stop(&self, signal: Signal, already_there: bool) {
        tracing::info!(?signal, "asked to stop");
        if matches!(signal, Signal::TERM | Signal::INT) {
            self.urgent.set(self.urgent.get() + 1);
        }
        if self.stop.get().is_none() {
            self.stop.set(Some(signal));
        }
        let first = self.passed_on.borrow_mut().insert(signal.as_raw());
        match (self.is_program_alive(), self.urgent.get() > 1) {
            (true, true) => self.kill(),
            (false, true) => self.leave(),
            (true, false) if first && already_there => self.with_tree(Tree::was_asked_to_stop),
            (true, false) if first => self.with_tree(|tree| tree.ask_to_stop(signal)),
            _ => {}
        }
        self.shutdown.cancel();
        self.changed.notify_one();
    }

    /// Stops the program first, and then this process: who cannot renew must not let anything run.
    fn suspend(&self) {
        self.with_tree(|tree| tree.signal(Signal::STOP));
        if let Err(error) = kill_process(getpid(), Signal::STOP) {
            tracing::error!(%error, "cannot stop this process");
        }
        self.go_on();
    }

    /// After a stop of any kind: the program goes on only if its term does.
    fn go_on(&self) {
        let leads = self.term.borrow().as_ref().is_some_and(|term| term.check().is_ok());
        self.with_tree(|tree| match (tree.is_alive(), leads) {
            (false, _) => {}
            (true, true) => tree.signal(Signal::CONT),
            (true, false) => tree.kill(),
        });
    }

    fn with_tree(&self, change: impl FnOnce(&mut Tree)) {
        if let Some(tree) = &mut *self.tree.borrow_mut() {
            change(tree);
            let alive = tree.is_alive();
            self.alive.send_if_modified(|known| std::mem::replace(known, alive) != alive);
            self.changed.notify_one();
        }
    }
}
