//! What goes into the machine and what comes out of it.

use std::time::Duration;

use crate::clock::Moment;
use crate::{Acquired, Grant, LeaseRecord, LossReason, Released, Renewed, StoreErrorKind, WakeUp};

/// Tells the machine that something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed, nothing else.
    Tick,
    /// The host was suspended, for so long, since the step before.
    Suspended(Duration),
    /// A store call was answered, in time or late.
    Answer(Attempt, Answer),
    /// The store hints that the lease changed hands, or that it may have.
    Woken(WakeUp),
    /// This candidate shall stop contending, and its work with it.
    Stop,
    /// The leader gives the lease up: its work is cut off at once.
    Resign,
    /// The work has ended, and everything that it started.
    WorkEnded,
}

/// The answer to a store call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a bid.
    Acquired(Acquired),
    /// To a renewal.
    Renewed(Renewed),
    /// To a release.
    Released(Released),
    /// To a read.
    Read(Option<LeaseRecord>),
    /// To any of them: no outcome.
    Failed(StoreErrorKind),
}

/// One store call of one machine, with the instant before which none of its bytes left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Counts the calls of this machine.
    pub number: u64,
    /// What is called.
    pub call: Call,
    /// Read from the clock before the request was made: what a deadline counts from.
    pub sent: Moment,
}

/// The kinds of store calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `try_acquire`.
    Bid,
    /// `renew`.
    Renew,
    /// `release`.
    Release,
    /// `read`.
    Read,
}

/// Asks the shell to do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a bid.
    Bid(Attempt),
    /// Send a renewal of the grant.
    Renew(Attempt, Grant),
    /// Send a release of the grant.
    Release(Attempt, Grant),
    /// Read the lease.
    Read(Attempt),
    /// Start the work of this term.
    StartWork(Grant),
    /// Tell the work to stop. At most once per term, and before it is cut off.
    SignalStop,
    /// End the work now: drop its future, abort its tasks. At most once per term.
    CutOff,
    /// The work goes on although it was cut off: it blocks its thread or swallowed its cancellation.
    ReportOverrun,
}

/// Randomness from outside, one draw per step: the machine draws none itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Jitter(u16);

impl Jitter {
    /// A fraction of `share`/65536.
    pub const fn new(share: u16) -> Self {
        Self(share)
    }

    /// This fraction of `d`.
    pub(super) fn of(self, d: Duration) -> Duration {
        // Two steps, so that a long `d` does not overflow.
        d / 65536 * u32::from(self.0)
    }
}

/// How a campaign ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Why.
    pub cause: Cause,
    /// What became of the lease.
    pub release: Release,
}

/// Why a campaign ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The work ended by itself.
    Finished,
    /// The candidate was asked to stop.
    Stopped,
    /// Leadership was lost, or resigned.
    Lost(LossReason),
    /// The store refused a bid for good.
    Failed(StoreErrorKind),
    /// The store grants leases that are too short for the timing.
    ShortGrant(Duration),
}

/// What became of the lease when a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// There was nothing to give back, or it is left to run out.
    NotNeeded,
    /// The store answered.
    Done(Released),
    /// The store did not confirm the release in time; the lease runs out by itself.
    Failed(StoreErrorKind),
}
