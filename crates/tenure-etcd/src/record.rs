//! What lies under a lease's key: a small JSON document, bound to an etcd lease.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcd_client::KeyValue;
use serde::{Deserialize, Serialize};
use tenure_core::{Bid, CandidateId, FencingToken, Grant, LeaseName, LeaseRecord, Payload};

use crate::receipt;

/// The layout that this version reads and writes.
const VERSION: u8 = 1;

/// A record as it was read: what the holder wrote, and what etcd knows of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) candidate: CandidateId,
    pub(crate) payload: Payload,
    /// The ttl that etcd granted for the etcd lease.
    pub(crate) ttl: Duration,
    pub(crate) acquired_at: Option<SystemTime>,
    /// The etcd lease under which the holder put the key.
    pub(crate) put_under: i64,
    /// The etcd lease that the key is bound to now; another one if somebody else moved it.
    pub(crate) bound_to: i64,
    /// The revision that made the key: the term's token.
    pub(crate) create_revision: i64,
    /// The revision of the last change to the key.
    pub(crate) mod_revision: i64,
}

/// What every version of the document has, so that a later one is told apart before anything else is looked at.
#[derive(Deserialize)]
struct Layout {
    v: u8,
}

/// The document.
#[derive(Deserialize, Serialize)]
struct Document {
    v: u8,
    candidate: String,
    payload: String,
    /// Whole seconds: etcd knows no others.
    ttl: u64,
    /// Milliseconds since 1970 by the holder's wall clock, for display only.
    acquired_at: Option<u64>,
    /// In hexadecimal, as `etcdctl` writes it.
    lease: String,
}

impl Record {
    /// Reads what lies under a key.
    ///
    /// # Errors
    ///
    /// Says in words why it is no lease of ours.
    pub(crate) fn read(kv: &KeyValue) -> Result<Self, String> {
        if kv.lease() == 0 {
            return Err("it is bound to no etcd lease, so it would never run out".into());
        }
        let foreign = |_| format!("its value is not a lease of version {VERSION}");
        let Layout { v } = serde_json::from_slice(kv.value()).map_err(foreign)?;
        if v != VERSION {
            return Err(format!("its value has the version {v}, and this program knows version {VERSION}"));
        }
        let document: Document = serde_json::from_slice(kv.value()).map_err(foreign)?;
        let put_under = i64::from_str_radix(&document.lease, 16).map_err(|_| "its etcd lease is no number")?;
        Ok(Self {
            candidate: CandidateId::from_wire(document.candidate).map_err(|error| error.to_string())?,
            payload: Payload::new(document.payload).map_err(|error| error.to_string())?,
            ttl: Duration::from_secs(document.ttl),
            acquired_at: document.acquired_at.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms))),
            put_under,
            bound_to: kv.lease(),
            create_revision: kv.create_revision(),
            mod_revision: kv.mod_revision(),
        })
    }

    /// Whether this is the term of `grant`.
    pub(crate) fn is_of(&self, grant: &Grant) -> bool {
        self.candidate == grant.candidate && self.token() == grant.token
    }

    /// Whether the key is still bound as its holder bound it.
    pub(crate) fn is_in_place(&self) -> bool {
        self.put_under == self.bound_to
    }

    pub(crate) fn token(&self) -> FencingToken {
        token_of(self.create_revision)
    }

    /// The record as a store shows it, with `remaining` until it runs out.
    pub(crate) fn shown(&self, name: &LeaseName, remaining: Duration) -> LeaseRecord {
        LeaseRecord::new(name.clone(), self.candidate.clone(), self.token(), self.ttl)
            .with_payload(self.payload.clone())
            .with_remaining(remaining)
            .with_acquired_at(self.acquired_at)
            .with_receipt(receipt::of(self.bound_to, name, &self.candidate, self.token()))
    }
}

/// The document that `bid` puts under its key, for a term that began at `acquired_at`.
#[expect(clippy::expect_used, reason = "numbers and strings always have a JSON form")]
pub(crate) fn written(bid: &Bid, lease: i64, ttl: Duration, acquired_at: Option<SystemTime>) -> Vec<u8> {
    let since_1970 = acquired_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let document = Document {
        v: VERSION,
        candidate: bid.candidate.as_str().to_owned(),
        payload: bid.payload.as_str().to_owned(),
        ttl: ttl.as_secs(),
        acquired_at: since_1970.and_then(|d| u64::try_from(d.as_millis()).ok()),
        lease: format!("{lease:x}"),
    };
    serde_json::to_vec(&document).expect("a document of numbers and strings can be written")
}

/// A key's create revision as a fencing token; etcd counts revisions from 1.
pub(crate) fn token_of(create_revision: i64) -> FencingToken {
    FencingToken(create_revision.unsigned_abs())
}

#[cfg(test)]
mod tests;
