//! The machine under test, with or without a bug around it.

use tenure_core::clock::Moment;
use tenure_core::machine::{Action, Cause, End, Herd, Input, Jitter, Machine, OnFinish};
use tenure_core::{CandidateId, Standing, Timing};

use super::Bug;
use super::plant::{Plant, without_drift};
use crate::clock::Nanos;
use crate::times::{duration, nanos};

/// The machine that ships; around it, at most one [`Bug`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    machine: Machine,
    plant: Option<Box<Plant>>,
}

impl Subject {
    /// A campaign, as [`Machine::new`] makes it.
    pub fn new(
        candidate: CandidateId,
        timing: Timing,
        on_finish: OnFinish,
        start_at: Nanos,
        herd: Herd,
        bug: Option<Bug>,
    ) -> Self {
        let told = if bug == Some(Bug::DriftIgnored) { without_drift(timing) } else { timing };
        Self {
            machine: Machine::new(candidate, told, on_finish, moment(start_at), herd),
            plant: bug.filter(|bug| bug.is_of_machine()).map(|bug| Box::new(Plant::new(bug, timing))),
        }
    }

    /// Steps the machine at local time `now`.
    pub fn step(&mut self, now: Nanos, jitter: Jitter, input: Input) -> Vec<Action> {
        match &mut self.plant {
            None => self.machine.step(moment(now), jitter, input),
            Some(plant) => plant.step(&mut self.machine, now, jitter, input),
        }
    }

    /// When to step next, in local time.
    pub fn wake_at(&self) -> Option<Nanos> {
        let at = self.machine.wake_at().map(|at| nanos(at.since_origin()));
        match &self.plant {
            None => at,
            Some(plant) => plant.wake_at(at),
        }
    }

    /// The end of authority, in local time.
    pub fn deadline(&self) -> Option<Nanos> {
        let lag = self.plant.as_ref().map_or(0, |plant| plant.lag());
        self.machine.deadline().map(|at| nanos(at.since_origin()) + lag)
    }

    /// Why the running term is being ended.
    pub fn stopping_for(&self) -> Option<&Cause> {
        self.machine.stopping_for()
    }

    /// How the campaign ended.
    pub fn end(&self) -> Option<&End> {
        self.plant.as_ref().and_then(|plant| plant.forced_end()).or(self.machine.end())
    }

    /// What the candidate says of itself.
    pub fn standing(&self) -> Standing {
        self.machine.standing()
    }

    /// How large the crowd seems.
    pub fn herd(&self) -> Herd {
        self.machine.herd()
    }

    /// The machine itself.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }
}

/// A time of a host's clock as the machine takes it.
pub(super) fn moment(now: Nanos) -> Moment {
    Moment::new(duration(now))
}
