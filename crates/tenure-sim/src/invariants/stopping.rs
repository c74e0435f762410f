//! Stopping in any state ends in time, and leaves no record that could have been released.
//!
//! Kinds of `docs/cases.md`: K06, K11.

use tenure_core::Released;
use tenure_core::machine::Release;

use super::ledger::{Account, Ledger};
use super::{Holds, Invariant, Verdict, require};
use crate::clock::{MS, Nanos};
use crate::event::{Event, Seen, Why};

/// Stopping ends in time and leaves nothing behind.
#[derive(Debug, Default)]
pub struct Stopping {
    asked: Vec<Option<Nanos>>,
}

/// Timers are served a little late, a few times in a row.
const SLACK: Nanos = 20 * MS;

impl Invariant for Stopping {
    const SAYS: &'static str = "stopping ends in time and leaves no record that could have been released";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        self.asked.resize(ledger.accounts.len(), None);
        let account = match seen.event {
            Event::Kept { .. } | Event::Calm => return Ok(()),
            _ => &ledger.accounts[seen.c],
        };
        let asked = &mut self.asked[seen.c];
        match seen.event {
            Event::Campaign | Event::Crashed => *asked = None,
            Event::StopAsked => *asked = asked.or(Some(seen.local)),
            Event::Stepped { .. } | Event::Ended { .. } => {
                if let Some(asked) = *asked {
                    is_in_time(account, asked, seen.local)?;
                }
            }
            _ => {}
        }
        if let Event::Ended { cause, release } = seen.event {
            *asked = None;
            leaves_nothing(ledger, account, seen, cause, release)?;
        }
        Ok(())
    }
}

/// A stop budget for the work, an attempt time-out for giving back. Work that outlives its cut holds the rest up.
fn is_in_time(account: &Account, asked: Nanos, local: Nanos) -> Verdict {
    if account.leads() && account.cut.is_some() {
        return Ok(());
    }
    let Account { times, reported, paused_until, .. } = account;
    let ended = (asked + times.stop_budget).max(reported.unwrap_or(0));
    let due = (ended + times.attempt_timeout).max(*paused_until) + SLACK;
    require!(local <= due, "asked to stop at {asked}, still not over at {local}, due by {due}");
    Ok(())
}

fn leaves_nothing(ledger: &Ledger, account: &Account, seen: &Seen, cause: Why, release: Release) -> Verdict {
    let held = ledger.hold.filter(|(who, _, latest)| *who == seen.who && seen.at < *latest);
    let given_up = match release {
        // Said so: it was tried, and could not be confirmed.
        Release::Failed(_) => return Ok(()),
        // Another term of the same candidate, by a bid that came late; or one that had run out, and that a clock which was set
        // back after the answer was decided has brought back.
        Release::Done(Released::NotHeld) => {
            ledger.holder_token != account.token || ledger.stepped_at >= account.last_decided
        }
        Release::Done(Released::Freed) | Release::NotNeeded => false,
    };
    let left_to_run_out = account.elected && (account.gone || cause == Why::Finished && account.holds_on_finish);
    let taken_later = ledger.granted_at > account.last_decided;
    if account.waived && (!account.elected || ledger.holder_token != account.token) {
        return Ok(());
    }
    require!(
        held.is_none() || given_up || left_to_run_out || taken_later,
        "c{} ends its campaign ({cause:?}, {release:?}) and the store still holds the lease for it",
        seen.c
    );
    Ok(())
}
