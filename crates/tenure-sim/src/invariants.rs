//! What must hold, one file per invariant. Each judges by what the observer sees, never by the machine's own word.

use crate::event::Seen;

pub mod authority;
pub mod events;
pub mod fencing;
pub mod held;
pub mod ledger;
pub mod liveness;
pub mod overlap;
pub mod release;
pub mod renewing;
pub mod requests;
pub mod stopping;
pub mod tokens;
pub mod unknown;

use ledger::Ledger;

/// When an invariant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// While assumptions A1 to A5 hold.
    UnderAssumptions,
    /// Whatever happens.
    Always,
    /// While the store keeps what it has acknowledged.
    Durable,
}

/// `Err` says what was broken.
pub type Verdict = Result<(), String>;

/// One thing that must hold.
pub trait Invariant {
    /// What it says, in one line.
    const SAYS: &'static str;
    /// When it holds.
    const HOLDS: Holds;

    /// Takes note of what was seen, the ledger already included, and judges it.
    ///
    /// # Errors
    ///
    /// What was broken.
    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict;
}

/// Refuses with a message that is only made then.
macro_rules! require {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

pub(crate) use require;
