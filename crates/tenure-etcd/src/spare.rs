//! Etcd leases that losing bids left over, for the next bid of the same candidate.
//!
//! A follower that is woken bids with one request instead of two that way. A spare is never another candidate's or
//! another lease's: a late copy of an abandoned bid would come to life under it. A spare that nobody asks for again runs
//! out by itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::clock::{Clock, Moment, SystemClock};
use tenure_core::{Bid, CandidateId, LeaseName};

use crate::etcd::EtcdLease;

/// The spares of one store.
#[derive(Default)]
pub(crate) struct Spares {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    leases: HashMap<(LeaseName, CandidateId), Spare>,
    /// At how many the ones that ran out are thrown away, so that each costs only so much on the whole.
    sweep_at: usize,
}

#[derive(Clone, Copy)]
struct Spare {
    lease: EtcdLease,
    /// The ttl that was asked for; the cluster may have raised it.
    asked: Duration,
    /// When it has run out if nothing was heard of it.
    until: Moment,
}

impl Spares {
    /// The spare for `bid`, if there is one with time left.
    pub(crate) fn of(&self, bid: &Bid) -> Option<EtcdLease> {
        let now = SystemClock::new().now();
        let spare = *self.kept().leases.get(&key(bid))?;
        (spare.asked == bid.ttl && spare.until > now).then_some(spare.lease)
    }

    /// Keeps `lease`, whose time began at `since`, for the next bid like `bid`.
    pub(crate) fn keep(&self, bid: &Bid, lease: EtcdLease, since: Moment) {
        const FEW: usize = 64;
        let now = SystemClock::new().now();
        let mut kept = self.kept();
        kept.leases.insert(key(bid), Spare { lease, asked: bid.ttl, until: since + lease.ttl });
        if kept.leases.len() > kept.sweep_at.max(FEW) {
            kept.leases.retain(|_, spare| spare.until > now);
            kept.sweep_at = 2 * kept.leases.len();
        }
    }

    /// Forgets the spare for `bid`: it is gone, or in use.
    pub(crate) fn forget(&self, bid: &Bid) {
        self.kept().leases.remove(&key(bid));
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(bid: &Bid) -> (LeaseName, CandidateId) {
    (bid.name.clone(), bid.candidate.clone())
}

#[cfg(test)]
mod tests {
    use tenure_core::Label;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const LEASE: EtcdLease = EtcdLease { id: 7, ttl: TTL };

    fn bid(name: &str, nonce: u128, ttl: Duration) -> Bid {
        let candidate = CandidateId::with_nonce(&Label::new("worker").unwrap(), nonce);
        Bid::new(LeaseName::new(name).unwrap(), candidate, ttl)
    }

    #[test]
    fn a_spare_serves_only_the_same_bid() {
        let spares = Spares::default();
        spares.keep(&bid("a", 1, TTL), LEASE, SystemClock::new().now());
        assert_eq!(spares.of(&bid("a", 1, TTL)), Some(LEASE));
        assert_eq!(spares.of(&bid("b", 1, TTL)), None, "another lease");
        assert_eq!(spares.of(&bid("a", 2, TTL)), None, "another candidate");
        assert_eq!(spares.of(&bid("a", 1, 2 * TTL)), None, "another ttl");
        spares.forget(&bid("a", 1, TTL));
        assert_eq!(spares.of(&bid("a", 1, TTL)), None);
    }

    #[test]
    fn spares_that_ran_out_are_not_used_and_do_not_pile_up() {
        let spares = Spares::default();
        let long_ago = SystemClock::new().now().saturating_sub(TTL);
        for nonce in 0..10_000 {
            spares.keep(&bid("a", nonce, TTL), LEASE, long_ago);
            assert_eq!(spares.of(&bid("a", nonce, TTL)), None);
        }
        assert!(spares.kept().leases.len() <= 64, "{}", spares.kept().leases.len());
    }
}
