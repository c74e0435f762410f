//! When each record was first seen as it is: the one thing that a store on Kubernetes remembers.
//!
//! Nobody but the holder can say when a record was written, and its wall clock is not to be trusted. So a record runs out
//! when it has not changed for its own duration on *this* process's monotonic clock, counted from the answer in which it
//! was first seen. That errs on the late side, never on the early one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use tenure_core::clock::{Clock, Moment};
use tenure_core::{FencingToken, LeaseName};

use crate::record::Found;

#[derive(Debug)]
pub(crate) struct Sightings {
    clock: Arc<dyn Clock>,
    seen: Mutex<HashMap<LeaseName, Sighting>>,
}

#[derive(Debug)]
struct Sighting {
    uid: String,
    spec: LeaseSpec,
    since: Moment,
    /// Over all records of this name.
    highest: FencingToken,
}

impl Sightings {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// Notes what an answer showed that came just now, and says how long the record has still to run: zero when it ran
    /// out, or nobody holds it. Labels and annotations do not count: others may change them.
    pub(crate) fn remaining(&self, name: &LeaseName, found: &Found) -> Duration {
        let now = self.clock.now();
        let mut seen = self.seen();
        let sighting = seen.entry(name.clone()).or_insert_with(|| Sighting {
            uid: String::new(),
            spec: LeaseSpec::default(),
            since: now,
            highest: FencingToken(0),
        });
        sighting.highest = sighting.highest.max(found.token);
        if sighting.uid != found.uid() || sighting.spec != found.spec {
            found.uid().clone_into(&mut sighting.uid);
            found.spec.clone_into(&mut sighting.spec);
            sighting.since = now;
        }
        match found.holder {
            Some(_) => found.ttl.saturating_sub(now - sighting.since),
            None => Duration::ZERO,
        }
    }

    /// The largest token that this process has seen for `name`: an object that was deleted takes its count along.
    pub(crate) fn highest(&self, name: &LeaseName) -> FencingToken {
        self.seen().get(name).map_or(FencingToken(0), |sighting| sighting.highest)
    }

    /// A panic elsewhere cannot leave a half-made change behind that matters: at worst a record is timed anew.
    fn seen(&self) -> MutexGuard<'_, HashMap<LeaseName, Sighting>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
