//! Renewing goes on until the work has ended: no error ends the loop.
//!
//! Kinds of `docs/cases.md`: K10.

use tenure_core::machine::Call;

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::clock::MS;
use crate::event::{Event, Seen};

/// Renewing goes on until the work has ended.
#[derive(Debug, Default)]
pub struct Renewing;

impl Invariant for Renewing {
    const SAYS: &'static str = "renewing goes on until the work has ended";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        let account = match seen.event {
            Event::Stepped { .. } | Event::Signalled { .. } => &ledger.accounts[seen.c],
            _ => return Ok(()),
        };
        let stop_at = account.stop_at().unwrap_or(0);
        if !account.leads() || account.gone || account.signalled.is_some() && seen.local > stop_at {
            // Near the deadline the bounds shrink, and at last no call is worth sending.
            return Ok(());
        }
        let times = &account.times;
        let longest = times.renew_every.max(times.attempt_timeout + times.retry_every * 3 / 2);
        let since = account.last_sent.max(account.paused_until);
        require!(
            seen.local <= since + longest + 20 * MS,
            "c{} has not renewed for {} ns, {longest} ns are the longest pause ({:?})",
            seen.c,
            seen.local - since,
            Call::Renew
        );
        Ok(())
    }
}
