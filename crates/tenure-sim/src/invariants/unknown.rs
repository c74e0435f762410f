//! No unknown outcome extends a deadline or starts a term.
//!
//! Kinds of `docs/cases.md`: K02, K11.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};

/// No unknown outcome extends a deadline or starts a term.
#[derive(Debug, Default)]
pub struct Unknown;

impl Invariant for Unknown {
    const SAYS: &'static str = "no unknown outcome extends a deadline or starts a term";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        if let Event::Stepped { deadline: Some(deadline), .. } = seen.event {
            let confirmed = ledger.accounts[seen.c].deadline;
            require!(
                confirmed.is_some_and(|confirmed| deadline <= confirmed),
                "c{} counts on {deadline}, and {confirmed:?} was confirmed",
                seen.c
            );
        }
        Ok(())
    }
}
