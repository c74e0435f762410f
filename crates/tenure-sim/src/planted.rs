//! Planted bugs: known faults of the field, put back one at a time to see that the simulator finds them.
//!
//! A bug sits where the fault of the field sat: between the machine and its shell (what goes in and what comes out is
//! falsified, see [`Subject`]), in the shell, or in the store. None of it is compiled into anything but the simulator.

use std::fmt;
use std::str::FromStr;

mod plant;
mod subject;
pub mod table;

pub use subject::Subject;

macro_rules! bugs {
    ($($bug:ident $name:literal $what:literal,)*) => {
        /// A known fault of the field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bug {
            $(#[doc = $what] $bug,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug,)*];

            /// The name, for the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// What is wrong.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => $what,)*
                }
            }
        }
    };
}

bugs! {
    DeadlineFromAnswer "deadline-from-answer" "the deadline counts from the answer, not from the sending of the request",
    DriftIgnored "drift-ignored" "the whole ttl is used, without room for clocks that run at different rates",
    SuspendIgnored "suspend-ignored" "the leader's clock stands still while the host is suspended",
    DeadlineBetweenCalls "deadline-between-calls" "the deadline is looked at only when no call is in flight",
    BudgetForEachCall "budget-for-each-call" "each call of a round has the whole attempt time-out, whatever is left",
    UnknownExtends "unknown-extends" "a renewal of unknown outcome counts as an extension",
    UnknownBidGrants "unknown-bid-grants" "a bid of unknown outcome makes a leader",
    AnswerOfAnother "answer-of-another" "a late answer counts for the latest renewal, not for its own",
    LateBidAdopted "late-bid-adopted" "a late grant counts as the answer to the latest bid",
    LossIgnored "loss-ignored" "a renewal that the store refuses is taken for a passing trouble",
    LateAnswerResurrects "late-answer-resurrects" "an extension that comes after the deadline starts the term again",
    ReleaseBeforeEnd "release-before-end" "the lease is given back at the stop signal, while the work still runs",
    NoCutOff "no-cut-off" "the work is told to stop, and never cut off",
    SignalAtCut "signal-at-cut" "the stop signal comes only when the work is cut off",
    StartsTwice "starts-twice" "each renewal starts the work again",
    RenewalDies "renewal-dies" "the renewal loop ends at its first error",
    RenewsAfterEnd "renews-after-end" "a renewal is sent after the work has ended",
    StopForgetsBid "stop-forgets-bid" "stopping forgets a bid of unknown outcome",
    ReleaseForgotten "release-forgotten" "the lease is not given back when the work has ended",
    StopWaitsForAnswer "stop-waits-for-answer" "stopping waits for an answer without bound",
    TokenKept "token-kept" "a process shows its work the token of its first term in every term",
    CandidateReused "candidate-reused" "a campaign after a loss keeps the candidate, and so the old token",
    PanicHoldsOn "panic-holds-on" "work that panicked is not reported as ended, and its lease renewed for ever",
    NoJitter "no-jitter" "nothing is spread at random",
    HotLoop "hot-loop" "a bid that failed is repeated at once",
    RepeatedBidRaisesToken "repeated-bid-raises-token" "the store counts the holder's own bid as a new term",
    UnscopedRelease "unscoped-release" "the store frees whatever lies under the name",
    ReleaseResetsCounter "release-resets-counter" "the store forgets the last token when the lease is freed",
    FollowersOwnTtl "followers-own-ttl" "a follower times the record with its own ttl, not with the record's",
}

impl Bug {
    /// Whether it sits between the machine and its shell, where the model checker has it too.
    pub fn is_of_machine(self) -> bool {
        self <= Self::StopWaitsForAnswer
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Bug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|bug| bug.name() == text).copied();
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|bug| bug.name()).collect();
            format!("no planted bug is called {text:?}: one of {}", names.join(", "))
        })
    }
}
