//! Requests per candidate stay within a budget, and a crowd's bids are spread.
//!
//! Kinds of `docs/cases.md`: K20.

use tenure_core::machine::Call;

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::clock::Nanos;
use crate::event::{Event, Seen};
use crate::store::{Change, Outcome};

/// Requests per candidate stay within a budget.
#[derive(Debug, Default)]
pub struct Budget {
    spent: Vec<Spent>,
}

/// A bucket that leaks: each request fills it, time empties it.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    level: Nanos,
    at: Nanos,
    last: [Option<Nanos>; 2],
}

/// So many requests at once are allowed.
const BURST: Nanos = 64;

impl Invariant for Budget {
    const SAYS: &'static str = "requests per candidate stay within budget";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        self.spent.resize(ledger.accounts.len(), Spent::default());
        let retry = ledger.accounts[seen.c.min(ledger.accounts.len() - 1)].times.retry_every;
        let spent = &mut self.spent[seen.c];
        match seen.event {
            // What brings a call forward pays for it: a hint, a look at a lease that has just run out, a new campaign.
            Event::Hinted | Event::Campaign | Event::Elected { .. } => {
                spent.level = spent.level.saturating_sub(retry);
                if seen.event == Event::Campaign {
                    spent.last = [None; 2];
                }
            }
            // A bid that was given up has won after all: the next one follows at once.
            Event::Heard { outcome: Outcome::Granted { .. }, .. } => {
                spent.level = spent.level.saturating_sub(retry);
                spent.last[0] = None;
            }
            Event::Heard { outcome: Outcome::Held(record), .. } if record.remaining < retry => {
                spent.level = spent.level.saturating_sub(retry);
            }
            Event::Sent { call, .. } => {
                spent.level = spent.level.saturating_sub(2 * seen.local.saturating_sub(spent.at)) + retry;
                spent.at = seen.local;
                require!(spent.level <= BURST * retry, "c{} sends more than {BURST} requests in a burst", seen.c);
                let (kind, apart) = match call {
                    Call::Bid => (0, retry / 64),
                    Call::Renew => (1, 0),
                    Call::Read | Call::Release => return Ok(()),
                };
                let early = spent.last[kind].is_some_and(|last| seen.local + 1 < last + apart);
                require!(!early, "c{} sends {call:?} again within {apart} ns", seen.c);
                spent.last[kind] = Some(seen.local);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Once a crowd has learned how large it is, its bids for a lease that becomes free are spread.
#[derive(Debug, Default)]
pub struct Spread {
    races: u32,
    bids: Vec<Nanos>,
}

/// Each lost race doubles the window, up to eight times; some candidates miss some races.
const LEARNED: u32 = 24;
/// In fewer candidates than this there is nothing to spread.
const CROWD: usize = 16;

impl Invariant for Spread {
    const SAYS: &'static str = "a crowd's bids are spread";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        if ledger.accounts.len() < CROWD {
            return Ok(());
        }
        match seen.event {
            Event::Decided(Change::Freed) => {
                self.races += 1;
                self.bids.clear();
            }
            Event::Sent { call: Call::Bid, .. } if self.races > LEARNED && ledger.calm_since.is_some() => {
                let window = ledger.accounts[seen.c].times.retry_every / 16;
                self.bids.retain(|at| at + window > seen.at);
                self.bids.push(seen.at);
                let (now, crowd) = (self.bids.len(), ledger.accounts.len());
                require!(now <= crowd * 3 / 4, "{now} of {crowd} candidates bid within {window} ns");
            }
            _ => {}
        }
        Ok(())
    }
}
