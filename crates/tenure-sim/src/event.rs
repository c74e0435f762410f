//! What the observer sees, with true time: the trace is made of this, and the invariants judge by nothing else.

use std::fmt;

use tenure_core::machine::{Call, Release};

use crate::clock::Nanos;
use crate::store::{Change, Outcome, Who};

/// Something happened.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Seen {
    /// True time.
    pub at: Nanos,
    /// Where: the number of the candidate; meaningless for what concerns all.
    pub c: usize,
    /// In which campaign.
    pub who: Who,
    /// What that host's clock showed.
    pub local: Nanos,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A campaign began.
    Campaign,
    /// A request left.
    Sent {
        /// Which call of the world.
        id: u32,
        /// Of which kind.
        call: Call,
        /// For which term.
        token: u64,
    },
    /// The store decided a request of this campaign.
    Decided(Change),
    /// The store keeps the lease for its holder, if nothing else happens.
    Kept {
        /// Who holds it, surely at least until when, and until when at the most. True time.
        hold: Option<(Who, Nanos, Nanos)>,
    },
    /// An answer reached the driver.
    Heard {
        /// To which call.
        id: u32,
        /// Of which kind.
        call: Call,
        /// For which term.
        token: u64,
        /// When the request left, by this host's clock.
        sent: Nanos,
        /// What it said.
        outcome: Outcome,
        /// When the store decided, in true time.
        decided_at: Nanos,
    },
    /// A hint reached the driver.
    Hinted,
    /// The machine was stepped, and says this of itself.
    Stepped {
        /// The end of authority.
        deadline: Option<Nanos>,
        /// When to step next.
        wake_at: Option<Nanos>,
    },
    /// The machine started a term.
    Elected {
        /// Its number, as the work is told.
        token: u64,
    },
    /// The work was told to stop; whether because time ran out.
    Signalled {
        /// Renewals did not work.
        expired: bool,
    },
    /// The work was cut off.
    Cut,
    /// The work goes on although it was cut off.
    Overrun,
    /// The machine was told that the work has ended.
    Reported,
    /// Work acts from now on.
    WorkBegan {
        /// The token that it has.
        token: u64,
    },
    /// Work does not act for a while: its process is stopped.
    WorkFrozen,
    /// Work acts again.
    WorkThawed,
    /// Work acts no more.
    WorkOver,
    /// The work asked whether it leads.
    Checked {
        /// The answer.
        ok: bool,
    },
    /// A write of the campaign reached the resource.
    Wrote {
        /// The token that it carried.
        token: u64,
        /// Whether the fence let it in.
        accepted: bool,
    },
    /// The machine was asked to stop.
    StopAsked,
    /// The machine was told that the leader gives up.
    Resigned,
    /// The campaign ended.
    Ended {
        /// Why.
        cause: Why,
        /// What became of the lease.
        release: Release,
    },
    /// The process, or its driver alone, does not run for a while.
    Paused,
    /// It runs again.
    Resumed,
    /// The process is gone.
    Crashed,
    /// Something was made to go wrong.
    Fault(Fault),
    /// Nothing goes wrong from now on.
    Calm,
}

/// Why a campaign ended, without the particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The work returned.
    Finished,
    /// Asked to stop.
    Stopped,
    /// Leadership was lost.
    Lost,
    /// The store refused for good.
    Failed,
    /// The grant was too short.
    ShortGrant,
}

/// What can be made to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Fault {
    RequestLost,
    ReplyLost,
    CallFailed,
    Repeated,
    Delayed,
    ConnectionRefused,
    LinkCut,
    LinkSlow,
    LinkLossy,
    StoreDown,
    StoreHangs,
    StoreFails,
    StoreDenies,
    StoreMalformed,
    LeaderChanged,
    FailedOver,
    ClockStepped,
    RateChanged,
    Removed,
    HintLost,
    FalseHint,
    Crash,
    Suspend,
    Pause,
    Stall,
    WorkLate,
    WorkPanicked,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, ns) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        write!(f, "{s:>5}.{ns:09}  ")?;
        match self.event {
            Event::Kept { .. } | Event::Calm => write!(f, "{:17}", "")?,
            _ => write!(f, "c{} #{:<5} {:>8.3} ", self.c, self.who, self.local as f64 / 1e9)?,
        }
        match self.event {
            Event::Kept { hold: None } => f.write_str("store: free"),
            Event::Kept { hold: Some((who, surely, latest)) } => {
                write!(f, "store: held by #{who} until {:.6}, at the latest {:.6}", secs(surely), secs(latest))
            }
            Event::Sent { id, call, token } => write!(f, "sends {call:?} {id} (token {token})"),
            Event::Heard { id, call, outcome, sent, .. } => {
                write!(f, "hears {outcome:?} to {call:?} {id}, sent {:.6} ago", secs(self.local - sent))
            }
            Event::Stepped { deadline, wake_at } => {
                f.write_str("  machine:")?;
                write_at(f, " deadline", deadline, self.local)?;
                write_at(f, " wakes", wake_at, self.local)
            }
            event => write!(f, "{event:?}"),
        }
    }
}

fn write_at(f: &mut fmt::Formatter<'_>, word: &str, at: Option<Nanos>, now: Nanos) -> fmt::Result {
    match at {
        Some(at) if at >= now => write!(f, "{word} in {:.6}", secs(at - now)),
        Some(at) => write!(f, "{word} {:.6} ago", secs(now - at)),
        None => write!(f, "{word} never"),
    }
}

fn secs(n: Nanos) -> f64 {
    n as f64 / 1e9
}
