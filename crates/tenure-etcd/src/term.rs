//! How a term is extended, and how it is given up.

use std::time::Duration;

use etcd_client::KeyValue;
use tenure_core::{Grant, LossReason, Released, Renewed, StoreErrorKind};

use crate::error::Failure;
use crate::etcd::{Condition, Etcd, EtcdLease, Written};
use crate::receipt;
use crate::record::Record;

/// What lies under a key, compared with a grant.
enum Standing {
    /// The grant's term.
    Kept(Record),
    /// Something else, or nothing.
    Lost(LossReason),
}

impl Standing {
    /// Compares candidate, token and the etcd lease that the holder put the key under.
    fn of(grant: &Grant, found: Option<&KeyValue>) -> Self {
        match found.map(Record::read) {
            None => Self::Lost(LossReason::Removed),
            Some(Err(_)) => Self::Lost(LossReason::Malformed),
            Some(Ok(record)) if !record.is_of(grant) => {
                Self::Lost(LossReason::Superseded { by: Some(record.candidate) })
            }
            // Somebody bound the key to another etcd lease, which this candidate does not keep alive.
            Some(Ok(record)) if !record.is_in_place() => Self::Lost(LossReason::Superseded { by: None }),
            Some(Ok(record)) => Self::Kept(record),
        }
    }

    fn is_lost(grant: &Grant, found: Option<&KeyValue>) -> bool {
        matches!(Self::of(grant, found), Self::Lost(_))
    }
}

/// Restarts the ttl of the grant's term: a keep-alive that found the etcd lease *and* a record that is still the term's.
pub(crate) async fn renew(etcd: &Etcd, grant: &Grant) -> Result<Renewed, Failure> {
    let key = etcd.keys.key_of(&grant.name);
    let mut lease = match receipt::lease_of(grant) {
        Some(id) => EtcdLease { id, ttl: grant.ttl },
        // A grant without its receipt: nothing is sent to any etcd lease before the comparison.
        None => match Standing::of(grant, etcd.get(&key, etcd.patience(grant.ttl)).await?.as_ref()) {
            Standing::Lost(reason) => return Ok(Renewed::Lost(reason)),
            Standing::Kept(record) => EtcdLease { id: record.bound_to, ttl: record.ttl },
        },
    };
    // The second time only when the first showed the term under another etcd lease of its own, or contradicted itself.
    for _ in 0..2 {
        let is_lost = |found: Option<&KeyValue>| Standing::is_lost(grant, found);
        let (alive, found) = etcd.keep_alive_and_get(lease, &key, is_lost).await?;
        match decide(grant, lease.id, alive, found.as_ref()) {
            Decision::Final(renewed) => return Ok(renewed),
            Decision::LookAgain(other) => lease = other,
        }
    }
    Err(contradiction())
}

/// What a keep-alive and a comparison say together.
pub(crate) enum Decision {
    /// The renewal's answer.
    Final(Renewed),
    /// The term goes on, but not as it was asked for: a repeated bid of the same candidate moved the key to this newer
    /// etcd lease, or the member that was asked for the etcd lease lags behind.
    LookAgain(EtcdLease),
}

/// Decides on a renewal of `grant` whose keep-alive for `lease` did or did not find it, and whose read found `found`.
pub(crate) fn decide(grant: &Grant, lease: i64, alive: bool, found: Option<&KeyValue>) -> Decision {
    Decision::Final(match Standing::of(grant, found) {
        Standing::Lost(LossReason::Removed) if !alive => Renewed::Lost(LossReason::EXPIRED),
        Standing::Lost(reason) => Renewed::Lost(reason),
        Standing::Kept(record) if alive && record.bound_to == lease => {
            let receipt = receipt::of(lease, &grant.name, &grant.candidate, grant.token);
            Renewed::Extended(grant.clone().with_ttl(record.ttl).with_receipt(receipt))
        }
        Standing::Kept(record) => return Decision::LookAgain(EtcdLease { id: record.bound_to, ttl: record.ttl }),
    })
}

/// The etcd lease was not found where it was asked for, and the key that is bound to it was there, twice. Nothing was
/// confirmed, and nothing is lost.
fn contradiction() -> Failure {
    Failure::new(StoreErrorKind::Unknown, "the record is there but its etcd lease was not found")
}

/// Frees the lease if it is the grant's term's, and ends the term's etcd lease.
pub(crate) async fn release(etcd: &Etcd, grant: &Grant) -> Result<Released, Failure> {
    let key = etcd.keys.key_of(&grant.name);
    let noted = receipt::lease_of(grant);
    let created = i64::try_from(grant.token.value()).unwrap_or(i64::MAX);
    let mut found = match noted {
        Some(lease) => {
            let condition = Condition::Term { create_revision: created, lease };
            match delete(etcd, &key, condition, grant.ttl).await? {
                Written::Applied(_) => return Ok(freed(etcd, lease).await),
                Written::Refused(found) => found,
            }
        }
        None => etcd.get(&key, etcd.patience(grant.ttl)).await?,
    };
    // The second time only if the candidate's own repeated bid moved the key in between.
    for _ in 0..2 {
        let record = match found.as_ref().map(|kv| (kv, Record::read(kv))) {
            Some((kv, Err(why))) => return Err(Failure::malformed(kv.key(), &why)),
            Some((_, Ok(record))) if record.is_of(grant) => record,
            _ => {
                if let Some(lease) = noted {
                    // Without its etcd lease, no late copy of a bid can take the lease for this candidate again.
                    let _ = etcd.revoke(lease).await;
                }
                return Ok(Released::NotHeld);
            }
        };
        match delete(etcd, &key, Condition::Unchanged(record.mod_revision), record.ttl).await? {
            Written::Applied(_) if record.is_in_place() => return Ok(freed(etcd, record.bound_to).await),
            Written::Applied(_) => return Ok(Released::Freed),
            Written::Refused(now) => found = now,
        }
    }
    Err(Failure::new(StoreErrorKind::Unavailable, "the record changed again and again under the release"))
}

async fn delete(etcd: &Etcd, key: &str, condition: Condition, ttl: Duration) -> Result<Written, Failure> {
    let written = etcd.delete_if(key, condition, ttl).await?;
    // A delete names no etcd lease that could be gone.
    written.ok_or_else(contradiction)
}

/// The key is gone, so the lease is free; its etcd lease runs out by itself should it not be ended now.
async fn freed(etcd: &Etcd, lease: i64) -> Released {
    let _ = etcd.revoke(lease).await;
    Released::Freed
}

#[cfg(test)]
mod tests;
