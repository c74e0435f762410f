//! What a Lease object says, read as client-go reads it, and the objects that are written.
//!
//! The spec is client-go's, field by field, so that either side takes the other's record. What it has no place for lies
//! in annotations, which client-go leaves alone.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::ObjectMeta;
use tenure_core::{Bid, CandidateId, FencingToken, Grant, LeaseName, LeaseRecord, Payload, Receipt};

use crate::object_name;

/// The whole name of the lease, where the object's is a hash.
const NAME: &str = "tenure.rs/name";
/// The largest token so far: `leaseTransitions` alone could be set back by whoever applies a manifest.
const TOKEN: &str = "tenure.rs/token";
/// What the holder shows to observers.
const PAYLOAD: &str = "tenure.rs/payload";

/// A Lease object as it was read, and what it says.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    lease: Lease,
    /// The lease's own, or an empty one.
    pub(crate) spec: LeaseSpec,
    pub(crate) holder: Option<CandidateId>,
    pub(crate) token: FencingToken,
    pub(crate) ttl: Duration,
}

impl Found {
    /// Reads the object that was found under the name of `name`'s.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub(crate) fn parse(name: &LeaseName, lease: Lease) -> Result<Self, String> {
        let (object, hashed) = object_name::of(name);
        let annotation = |key| lease.metadata.annotations.as_ref().and_then(|all| all.get(key));
        if hashed && annotation(NAME).map(String::as_str) != Some(name.as_str()) {
            return Err(format!("the object {object} says in its annotation {NAME} that it is of another lease"));
        }
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.strategy.is_some() {
            return Err(format!("the object {object} has a strategy: the cluster itself elects its holder"));
        }
        let transitions = u64::try_from(spec.lease_transitions.unwrap_or(0))
            .map_err(|_| format!("the object {object} has negative leaseTransitions"))?;
        let noted = match annotation(TOKEN).map(|text| text.parse::<u64>()) {
            None => 0,
            Some(Ok(noted)) => noted,
            Some(Err(_)) => return Err(format!("the object {object} has an annotation {TOKEN} that is no number")),
        };
        let holder = match spec.holder_identity.as_deref() {
            None | Some("") => None,
            Some(identity) => Some(
                CandidateId::from_wire(identity).map_err(|error| format!("holder of the object {object}: {error}"))?,
            ),
        };
        let ttl = match spec.lease_duration_seconds {
            Some(seconds @ 1..) => Duration::from_secs(u64::from(seconds.unsigned_abs())),
            _ if holder.is_none() => Duration::ZERO,
            _ => {
                return Err(format!("the object {object} has a holder and no leaseDurationSeconds: it never runs out"));
            }
        };
        Ok(Self { holder, token: FencingToken(transitions.max(noted)), ttl, spec, lease })
    }

    pub(crate) fn uid(&self) -> &str {
        self.lease.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether this is the term of `grant`, in the very object that it was granted in.
    pub(crate) fn is_term_of(&self, grant: &Grant) -> bool {
        self.is_object_of(grant) && self.holder.as_ref() == Some(&grant.candidate) && self.token == grant.token
    }

    /// Whether the object is the one that `grant` was made in, and no later one of the same name.
    pub(crate) fn is_object_of(&self, grant: &Grant) -> bool {
        let uid = grant.receipt.as_str();
        uid.is_empty() || uid == self.uid()
    }

    /// The record that an observer sees; `None` when nobody holds the lease.
    pub(crate) fn record(&self, name: &LeaseName, remaining: Duration) -> Option<LeaseRecord> {
        let holder = self.holder.clone()?;
        let annotations = self.lease.metadata.annotations.as_ref();
        let payload = annotations.and_then(|all| all.get(PAYLOAD)).and_then(|text| Payload::new(text.as_str()).ok());
        let acquired_at = self.spec.acquire_time.as_ref().map(|MicroTime(at)| SystemTime::from(*at));
        Some(
            LeaseRecord::new(name.clone(), holder, self.token, self.ttl)
                .with_remaining(remaining)
                .with_payload(payload.unwrap_or_default())
                .with_acquired_at(acquired_at)
                .with_receipt(Receipt::new(self.uid())),
        )
    }

    /// The grant that this object is, after it was written.
    pub(crate) fn grant(&self, bid: &Bid) -> Grant {
        Grant::of(bid, self.token).with_ttl(self.ttl).with_receipt(Receipt::new(self.uid()))
    }

    /// This object with a new term for `bid`: `None` when there are no larger tokens any more.
    pub(crate) fn granted(&self, bid: &Bid, above: FencingToken) -> Option<Lease> {
        let token = self.token.max(above).value().checked_add(1)?;
        let mut lease = self.lease.clone();
        let hashed = object_name::of(&bid.name).1;
        note(&mut lease.metadata, hashed.then_some(&bid.name), Some(token), &bid.payload);
        lease.spec = Some(term(bid, token)?);
        Some(self.versioned(lease))
    }

    /// This object with its holder's term prolonged to `ttl` from now.
    pub(crate) fn extended(&self, ttl: Duration) -> Lease {
        let mut lease = self.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        // A replacement that changes nothing would leave the version, and tell nobody that the holder lives.
        let now = now();
        let again = spec.renew_time.as_ref().is_some_and(|MicroTime(before)| *before == now);
        spec.renew_time = Some(MicroTime(if again { now + SignedDuration::from_micros(1) } else { now }));
        spec.lease_duration_seconds = Some(whole_seconds(ttl));
        self.versioned(lease)
    }

    /// This object with nobody holding it, as client-go leaves it: the server refuses a duration of 0.
    pub(crate) fn released(&self) -> Lease {
        let mut lease = self.lease.clone();
        note(&mut lease.metadata, None, None, &Payload::default());
        let now = MicroTime(now());
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        (spec.acquire_time, spec.renew_time) = (Some(now.clone()), Some(now));
        self.versioned(lease)
    }

    /// Version and uid of the read go with every write: without the uid a write re-creates an object that was deleted.
    fn versioned(&self, mut lease: Lease) -> Lease {
        lease.metadata.managed_fields = None;
        lease.metadata.resource_version = self.lease.metadata.resource_version.clone();
        lease.metadata.uid = self.lease.metadata.uid.clone();
        lease
    }
}

/// A new object with the first term of `bid`; `None` when there are no larger tokens any more.
pub(crate) fn created(bid: &Bid, above: FencingToken) -> Option<Lease> {
    let (object, hashed) = object_name::of(&bid.name);
    let token = above.value().checked_add(1)?;
    let mut metadata = ObjectMeta { name: Some(object.into_owned()), ..ObjectMeta::default() };
    note(&mut metadata, hashed.then_some(&bid.name), Some(token), &bid.payload);
    Some(Lease { metadata, spec: Some(term(bid, token)?) })
}

fn term(bid: &Bid, token: u64) -> Option<LeaseSpec> {
    let at = MicroTime(now());
    Some(LeaseSpec {
        holder_identity: Some(bid.candidate.as_str().to_owned()),
        lease_duration_seconds: Some(whole_seconds(bid.ttl)),
        acquire_time: Some(at.clone()),
        renew_time: Some(at),
        lease_transitions: Some(i32::try_from(token).ok()?),
        ..LeaseSpec::default()
    })
}

fn note(metadata: &mut ObjectMeta, name: Option<&LeaseName>, token: Option<u64>, payload: &Payload) {
    let annotations: &mut BTreeMap<_, _> = metadata.annotations.get_or_insert_default();
    if let Some(name) = name {
        annotations.insert(NAME.to_owned(), name.as_str().to_owned());
    }
    if let Some(token) = token {
        annotations.insert(TOKEN.to_owned(), token.to_string());
    }
    if payload.is_empty() {
        annotations.remove(PAYLOAD);
    } else {
        annotations.insert(PAYLOAD.to_owned(), payload.as_str().to_owned());
    }
}

/// Of a duration that the store's limits let through; the rest of a running lease is rounded up.
fn whole_seconds(ttl: Duration) -> i32 {
    i32::try_from(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).unwrap_or(i32::MAX)
}

/// The wall clock, in microseconds as the server keeps it: others see it, and nothing is decided by it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
}

/// The name of the lease that an object found by listing keeps.
pub(crate) fn name_of(lease: &Lease) -> Option<LeaseName> {
    let annotation = lease.metadata.annotations.as_ref().and_then(|all| all.get(NAME));
    LeaseName::new(annotation.or(lease.metadata.name.as_ref())?.as_str()).ok()
}

#[cfg(test)]
mod tests;
