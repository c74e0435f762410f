//! No two terms' work overlap in true time.
//!
//! Kinds of `docs/cases.md`: K01, K03, K05, K07.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};

/// No two terms' work overlap in true time.
#[derive(Debug, Default)]
pub struct Overlap;

impl Invariant for Overlap {
    const SAYS: &'static str = "no two terms' work overlap in true time";
    const HOLDS: Holds = Holds::UnderAssumptions;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        if let Event::WorkBegan { .. } | Event::WorkThawed = seen.event {
            let other = ledger.accounts.iter().enumerate().find(|(c, account)| *c != seen.c && account.acting);
            require!(other.is_none(), "the work of c{} acts while that of c{} does", seen.c, other.map_or(0, |o| o.0));
        }
        Ok(())
    }
}
