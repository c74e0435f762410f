//! A release goes out only after the work has ended, and no renewal after the end of a term.
//!
//! Kinds of `docs/cases.md`: K07, K11.

use tenure_core::machine::Call;

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};

/// A release goes out only after the work has ended, and no renewal after the end of a term.
#[derive(Debug, Default)]
pub struct InOrder;

impl Invariant for InOrder {
    const SAYS: &'static str = "release only after the work has ended; no renewal after the end of a term";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        let Event::Sent { call, .. } = seen.event else { return Ok(()) };
        let (account, c) = (&ledger.accounts[seen.c], seen.c);
        require!(account.campaigning, "c{c} sends {call:?} after the end of its campaign");
        match call {
            Call::Release => {
                require!(!account.began || account.over, "c{c} releases while its work runs");
                require!(!account.elected || account.reported.is_some(), "c{c} releases in the middle of its term");
                require!(!account.gone || !account.elected, "c{c} releases what is not its own any more");
            }
            Call::Renew => {
                require!(account.reported.is_none(), "c{c} renews after its work has ended");
                require!(!account.gone, "c{c} renews what it has lost");
                let alive = account.deadline.is_some_and(|deadline| seen.local < deadline);
                require!(alive, "c{c} renews after its deadline");
            }
            Call::Bid | Call::Read => {
                require!(!account.elected, "c{c} sends {call:?} in or after its term");
            }
        }
        Ok(())
    }
}
