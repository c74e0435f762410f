//! Work acts only while the store surely keeps the lease for its term: nobody else could take it.
//!
//! Stronger than "no overlap", which needs somebody else who is quick enough.
//!
//! Kinds of `docs/cases.md`: K02, K04.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};

/// Work acts only while the store surely keeps the lease for its term.
#[derive(Debug, Default)]
pub struct Held;

impl Invariant for Held {
    const SAYS: &'static str = "work acts only while the store keeps the lease for its term";
    const HOLDS: Holds = Holds::UnderAssumptions;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        match seen.event {
            // What was kept until now is known when the work pauses, and when the store changes its mind.
            Event::WorkOver if ledger.accounts[seen.c].frozen => {}
            Event::WorkBegan { .. } | Event::WorkFrozen | Event::WorkThawed | Event::WorkOver => {
                let until = ledger.hold.filter(|hold| hold.0 == seen.who).map(|hold| hold.1);
                require!(
                    until.is_some_and(|until| seen.at <= until),
                    "the work of c{} acted until {}, and the store kept its lease until {until:?}",
                    seen.c,
                    seen.at
                );
            }
            Event::Kept { hold } => {
                for (c, account) in ledger.accounts.iter().enumerate().filter(|(_, account)| account.acting) {
                    let kept = hold.is_some_and(|(who, until, _)| who == account.who && seen.at <= until);
                    require!(kept, "the store gave up the lease of c{c} while its work acts");
                }
            }
            _ => {}
        }
        Ok(())
    }
}
