//! Somebody leads within a stated bound once faults end; a crash is followed by a successor within
//! `ttl + g + poll_every`.
//!
//! Kinds of `docs/cases.md`: K08, K10, K18.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::clock::{MS, Nanos};
use crate::event::{Event, Seen};
use crate::store::StoreKind;

/// Somebody leads within a stated bound.
#[derive(Debug, Default)]
pub struct Liveness {
    /// Since when nobody's work acts though somebody contends in calm.
    gap: Option<Gap>,
    contending: bool,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    since: Nanos,
    /// Faults ended during this gap, so that calls may still hang.
    first: bool,
    /// However the lease is renewed meanwhile.
    cap: Nanos,
}

impl Invariant for Liveness {
    const SAYS: &'static str = "somebody leads within the bound once faults end";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        if ledger.calm_since.is_none() {
            return Ok(());
        }
        let (due, since) = (self.due(ledger), self.gap.map_or(0, |gap| gap.since));
        require!(seen.at <= due, "nobody leads since {since}, somebody should have by {due}");
        match seen.event {
            // Somebody who was about to lead shall not: the others' turn.
            Event::StopAsked if !ledger.accounts[seen.c].began => {
                self.gap = None;
                self.look(seen, ledger);
            }
            Event::Calm
            | Event::Campaign
            | Event::WorkBegan { .. }
            | Event::WorkOver
            | Event::WorkFrozen
            | Event::WorkThawed
            | Event::Crashed
            | Event::Ended { .. }
            | Event::Paused
            | Event::Resumed => self.look(seen, ledger),
            _ => {}
        }
        Ok(())
    }
}

impl Liveness {
    fn look(&mut self, seen: &Seen, ledger: &Ledger) {
        let acts = ledger.accounts.iter().any(|account| account.acting);
        let contending = ledger.accounts.iter().any(|account| account.campaigning && !account.paused && !account.over);
        if acts || !contending {
            self.gap = None;
        } else if self.gap.is_none() {
            let held_until = ledger.hold.map_or(0, |hold| hold.2).max(seen.at);
            let cap = held_until + longest(ledger, |times| times.ttl) * 103 / 100 + ledger.store.lateness();
            self.gap = Some(Gap { since: seen.at, first: seen.event == Event::Calm, cap });
        }
        self.contending = contending;
    }

    /// By when somebody has to lead: the lease is free, somebody looks, bids, and starts.
    fn due(&self, ledger: &Ledger) -> Nanos {
        let Some(gap) = self.gap else { return Nanos::MAX };
        let mut free = ledger.hold.map_or(0, |hold| hold.2).max(gap.since).min(gap.cap);
        let mut looks = 1;
        if ledger.store == StoreKind::Kubernetes && ledger.hold.is_some() {
            // Whoever has just come times the record from its first look on.
            free = free.max(gap.since + longest(ledger, |times| times.ttl));
            looks = 2;
        }
        let poll = looks * longest(ledger, |times| times.poll_every);
        // The pause after a loss, a retry, the spread of a crowd.
        let retry = 3 * longest(ledger, |times| times.retry_every);
        let settle = longest(ledger, |times| times.settle_delay);
        let hung = if gap.first {
            longest(ledger, |times| 2 * times.attempt_timeout + times.stop_budget + 2 * times.retry_every)
        } else {
            0
        };
        free + (poll + retry + settle + hung) * 112 / 100 + 100 * MS
    }
}

fn longest(ledger: &Ledger, time: impl Fn(&crate::times::Times) -> Nanos) -> Nanos {
    ledger.accounts.iter().map(|account| time(&account.times)).max().unwrap_or(0)
}
