//! A store of one's own, and the suite that says whether it keeps the contract.
//!
//! Run it with `cargo run -p tenure --example custom_store`. The store is a map behind a lock; in yours, each method is
//! one atomic request to a server. In a test file, `tenure_conformance::conformance!(..)` makes a named test per clause.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure::{
    Acquired, Bid, FencingToken, Grant, LeaseName, LeaseRecord, LeaseStore, LossReason, Payload, Released, Renewed,
    StoreDescriptor, StoreError, async_trait,
};
use tenure_conformance::{Plan, StoreHarness, run};

#[tokio::main]
async fn main() -> ExitCode {
    let store = Arc::new(MapStore::default());
    let report = run(&StoreHarness::new(store), Plan::default()).await;
    println!("{report}");
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Leases in a map: a row per name, which stays when the lease is released, since it carries the counter.
#[derive(Debug, Default)]
struct MapStore(Mutex<HashMap<LeaseName, Row>>);

#[derive(Debug)]
struct Row {
    holder: Option<Grant>,
    payload: Payload,
    token: u64,
    expires: Instant,
}

impl MapStore {
    fn rows(&self) -> MutexGuard<'_, HashMap<LeaseName, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    /// Who holds the lease by the store's clock.
    fn holder(&self) -> Option<&Grant> {
        self.holder.as_ref().filter(|_| self.expires > Instant::now())
    }

    fn is_held_by(&self, grant: &Grant) -> bool {
        self.holder().is_some_and(|held| held.candidate == grant.candidate && held.token == grant.token)
    }

    fn record(&self) -> Option<LeaseRecord> {
        let held = self.holder()?;
        let record = LeaseRecord::new(held.name.clone(), held.candidate.clone(), held.token, held.ttl);
        let left = self.expires.saturating_duration_since(Instant::now());
        Some(record.with_payload(self.payload.clone()).with_remaining(left))
    }
}

#[async_trait]
impl LeaseStore for MapStore {
    fn describe(&self) -> StoreDescriptor {
        StoreDescriptor::new("map")
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let mut rows = self.rows();
        let free = || Row { holder: None, payload: Payload::default(), token: 0, expires: Instant::now() };
        let row = rows.entry(bid.name.clone()).or_insert_with(free);
        match row.holder() {
            Some(held) if held.candidate != bid.candidate => {
                return Ok(row.record().map(Acquired::Held).unwrap_or_else(|| unreachable!("it is held")));
            }
            // The same candidate again: its earlier answer was lost. The same term, and never a shorter one.
            Some(_) => row.expires = row.expires.max(Instant::now() + bid.ttl),
            None => {
                row.token += 1;
                row.expires = Instant::now() + bid.ttl;
            }
        }
        let grant = Grant::of(bid, FencingToken(row.token));
        (row.holder, row.payload) = (Some(grant.clone()), bid.payload.clone());
        Ok(Acquired::Granted(grant))
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        let mut rows = self.rows();
        Ok(match rows.get_mut(&grant.name) {
            Some(row) if row.is_held_by(grant) => {
                row.expires = row.expires.max(Instant::now() + grant.ttl);
                Renewed::Extended(grant.clone())
            }
            Some(row) => Renewed::Lost(match row.holder() {
                Some(other) => LossReason::Superseded { by: Some(other.candidate.clone()) },
                None if row.holder.is_some() => LossReason::EXPIRED,
                None => LossReason::Removed,
            }),
            None => Renewed::Lost(LossReason::Removed),
        })
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let mut rows = self.rows();
        match rows.get_mut(&grant.name).filter(|row| row.is_held_by(grant)) {
            Some(row) => {
                row.holder = None;
                Ok(Released::Freed)
            }
            None => Ok(Released::NotHeld),
        }
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        // As every store: the shortest time that is still a time.
        let record = self.rows().get(name).and_then(Row::record);
        Ok(record.filter(|record| record.remaining > Duration::ZERO))
    }
}
