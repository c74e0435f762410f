//! The state machine of one campaign: pure, and the only place where an election is decided.
//!
//! It turns inputs into actions. It does no I/O, reads no clock, draws no randomness and knows no runtime: the driver
//! performs what it asks, and the simulator and the model checker run this very code.
//!
//! One machine is one campaign of one candidate, from the first bid to the end of at most one term of work; a new
//! campaign is a new machine with a new candidate, so a term never comes back.
//!
//! ```text
//!              held, failed                    lost, stop
//!            ┌─────────────┐                ┌────────────────────────────────┐
//!            ▼             │                │                                ▼
//!       Following ──────► Bidding ───────► Settling ──► Leading ──► Stopping ──► Releasing ──► Ended
//!            │             │   granted        │  settled   │ C, lost,  │ work      │ answered,
//!            │             │                  │            │ stop      │ ended     │ budget over
//!            └──── stop ───┴── stop, late ────┴────────────┴── work ended ─────────►
//! ```
//!
//! The rules that it keeps, with the names used in tests and in the simulator:
//!
//! 1. Work starts only after a confirmed grant whose deadline lies ahead, once per term.
//! 2. The stop signal comes at `C` or earlier; work is cut off at the deadline or earlier.
//! 3. Renewing goes on until the work has ended; a release goes out only after that. If the work overran the deadline,
//!    nothing is released: the lease runs out.
//! 4. At most one store call of a kind is in flight; a call that hangs is abandoned at its bound.
//! 5. Lost is final.
//! 6. Transient trouble never ends a campaign; a permanent error does, unless leading, where the deadline decides.
//! 7. Stopping ends within `stop_budget + attempt_timeout`, and leaves no record that it could have released.
//! 8. Work is started and ended in pairs, in order.

use std::time::Duration;

use crate::clock::Moment;
use crate::{
    Acquired, CandidateId, FencingToken, Grant, LeaseRecord, LossReason, Renewed, StoreErrorKind, Timing, WakeUp,
};

mod io;
mod term;

pub use io::{Action, Answer, Attempt, Call, Cause, End, Input, Jitter, Release};
use term::{Flight, SHORTEST_ATTEMPT, Term, poll_delay, retry_delay};

/// Decides one campaign of one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    candidate: CandidateId,
    timing: Timing,
    on_finish: OnFinish,
    state: State,
    next_attempt: u64,
    /// A bid whose fate is unknown may have taken the lease.
    doubt: bool,
    /// A bid that was given up was granted: heard of since the bid in flight was sent, which may have been decided before.
    late_grant: bool,
    /// The last term that a release was sent for. It may be under way still, and the next bid be granted the very same
    /// term: that one must not begin.
    given_up: Option<FencingToken>,
    herd: Herd,
}

/// What becomes of the lease when the work has ended by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFinish {
    /// It is released at once.
    #[default]
    Release,
    /// It is left to run out, so that nobody leads again before its ttl has passed.
    Hold,
}

/// How large the crowd seems that races for a free lease: lost races raise it, won ones lower it. A woken candidate
/// spreads its bid over a window that grows with it: nothing for a few candidates, `retry_every` for a big herd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Herd(u8);

impl Herd {
    const LARGEST: u8 = 8;

    fn spread(self, timing: &Timing, jitter: Jitter) -> Duration {
        match self.0 {
            0 => Duration::ZERO,
            n => jitter.of(timing.retry_every() / (1 << (Self::LARGEST - n))),
        }
    }

    fn lost_race(&mut self) {
        self.0 = (self.0 + 1).min(Self::LARGEST);
    }

    fn won_race(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

/// Where a campaign stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Somebody else leads, or the store did not answer.
    Following(Following),
    /// A bid is in flight.
    Bidding { flight: Flight, race: bool },
    /// Granted; the work starts at `start_at`, when what an earlier leader may still have under way has landed.
    Settling { term: Term, start_at: Moment },
    /// The work runs.
    Leading { term: Term },
    /// The work was told to stop, or was cut off, and has not ended yet.
    Stopping { term: Term, stop: Stop },
    /// No work runs any more; what the candidate holds, or may hold, is given back.
    Releasing(Releasing),
    /// Over.
    Ended(End),
}

/// Waiting for the next bid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Following {
    bid_at: Moment,
    /// The bid is due because the lease becomes free, so that others bid too.
    race: bool,
    /// No hint brings the bid further forward than this, so that a flood of hints is no flood of bids.
    earliest: Moment,
}

/// How a term is being ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stop {
    cause: Cause,
    signalled_at: Moment,
    cut_at: Option<Moment>,
    overrun_reported: bool,
    /// The store said that the lease is not ours, or the deadline has passed: nothing to renew or release.
    gone: bool,
}

/// Giving back, within a budget.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Releasing {
    phase: Phase,
    give_up_at: Moment,
    then: Then,
    /// The last failure.
    trouble: StoreErrorKind,
    /// Whether a term's standing is being wound up (shown as stopping) or just a bid (shown as following).
    after_term: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The answer to a bid decides what there is to give back.
    AwaitBid(Flight),
    /// Reading whether a bid of unknown fate took the lease.
    Reading(Flight),
    /// Releasing the grant.
    Freeing(Flight, Grant),
    /// Repeats the read, or the release of the grant, at the given time.
    Pausing(Moment, Option<Grant>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    End(Cause),
    Follow,
}

/// What a machine says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Standing {
    /// Contends, and does not lead.
    Following,
    /// Leads until the deadline.
    Leading {
        /// The term.
        token: FencingToken,
        /// The end of authority as it stands.
        deadline: Moment,
    },
    /// Led, and winds up: work is told to stop or has ended, the lease may still be held.
    Stopping {
        /// The term.
        token: Option<FencingToken>,
        /// The end of authority: work may still act until then, if it was not cut off.
        deadline: Option<Moment>,
        /// Whether the work outlived its cut-off.
        overrun: bool,
    },
    /// The campaign is over.
    Ended,
}

impl Machine {
    /// A campaign of `candidate` that bids first at `start_at`.
    pub fn new(candidate: CandidateId, timing: Timing, on_finish: OnFinish, start_at: Moment, herd: Herd) -> Self {
        Self {
            candidate,
            timing,
            on_finish,
            state: State::Following(Following { bid_at: start_at, race: false, earliest: start_at }),
            next_attempt: 0,
            doubt: false,
            late_grant: false,
            given_up: None,
            herd,
        }
    }

    /// Takes `input` at `now`, and says what to do. `now` never goes back from step to step.
    pub fn step(&mut self, now: Moment, jitter: Jitter, input: Input) -> Vec<Action> {
        let mut step = Step { now, jitter, actions: Vec::new() };
        if let (Input::Suspended(slept), Some(term)) = (&input, self.term_mut()) {
            term.suspended(*slept, now);
        }
        // Time has the first word: no answer can move a deadline that has passed.
        self.pass_time(&mut step);
        match input {
            Input::Tick | Input::Suspended(_) => {}
            Input::Answer(attempt, answer) => self.answered(&mut step, attempt, answer),
            Input::Woken(wake_up) => self.woken(&mut step, wake_up),
            Input::Stop => self.stop(&mut step),
            Input::Resign => self.resign(&mut step),
            Input::WorkEnded => self.work_ended(&mut step),
        }
        self.pass_time(&mut step);
        step.actions
    }

    /// When to step again with [`Input::Tick`], if nothing else happens before; `None` when the campaign is over.
    pub fn wake_at(&self) -> Option<Moment> {
        Some(match &self.state {
            State::Following(following) => following.bid_at,
            State::Bidding { flight, .. } => flight.until,
            State::Settling { term, start_at } => (*start_at).min(term.renewal_wake()).min(term.stop_at(&self.timing)),
            State::Leading { term } => term.renewal_wake().min(term.stop_at(&self.timing)),
            State::Stopping { term, stop } => return stop.wake_at(term, &self.timing),
            State::Releasing(releasing) => releasing.wake_at(),
            State::Ended(_) => return None,
        })
    }

    /// What the candidate may say about itself.
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Following(_) | State::Bidding { .. } | State::Settling { .. } => Standing::Following,
            State::Leading { term } => Standing::Leading { token: term.grant.token, deadline: term.deadline },
            State::Stopping { term, stop } => Standing::Stopping {
                token: Some(term.grant.token),
                deadline: (!stop.gone).then_some(term.deadline),
                overrun: stop.overrun_reported,
            },
            State::Releasing(releasing) if releasing.after_term => {
                Standing::Stopping { token: None, deadline: None, overrun: false }
            }
            State::Releasing(_) => Standing::Following,
            State::Ended(_) => Standing::Ended,
        }
    }

    /// The end of authority of the term whose work runs; `None` when no work may run.
    pub fn deadline(&self) -> Option<Moment> {
        match &self.state {
            State::Leading { term } => Some(term.deadline),
            State::Stopping { term, stop } if !stop.gone && stop.cut_at.is_none() => {
                Some(stop.cut_off_at(term, &self.timing))
            }
            _ => None,
        }
    }

    /// Why the running term is being ended, once it is.
    pub fn stopping_for(&self) -> Option<&Cause> {
        match &self.state {
            State::Stopping { stop, .. } => Some(&stop.cause),
            _ => None,
        }
    }

    /// How the campaign ended, once it has.
    pub fn end(&self) -> Option<&End> {
        match &self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// How large the crowd seems, for the next campaign to start with.
    pub fn herd(&self) -> Herd {
        self.herd
    }

    /// Who contends.
    pub fn candidate(&self) -> &CandidateId {
        &self.candidate
    }

    /// The name of the state, as in the diagram of this module: for traces, and to count which transitions were taken.
    pub fn state_name(&self) -> &'static str {
        match &self.state {
            State::Following(_) => "following",
            State::Bidding { .. } => "bidding",
            State::Settling { .. } => "settling",
            State::Leading { .. } => "leading",
            State::Stopping { .. } => "stopping",
            State::Releasing(_) => "releasing",
            State::Ended(_) => "ended",
        }
    }

    fn term_mut(&mut self) -> Option<&mut Term> {
        match &mut self.state {
            State::Settling { term, .. } | State::Leading { term } | State::Stopping { term, .. } => Some(term),
            _ => None,
        }
    }
}

/// One step in the making.
struct Step {
    now: Moment,
    jitter: Jitter,
    actions: Vec<Action>,
}

impl Step {
    /// A renewal that came due in this very step, of a term that is over in it too, need not go out.
    fn withdraw_renewal(&mut self) {
        self.actions.retain(|action| !matches!(action, Action::Renew(..)));
    }
}

mod campaign;
mod leading;
mod releasing;

#[cfg(test)]
mod tests;
