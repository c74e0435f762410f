//! How a lease is taken.

use std::time::SystemTime;

use tenure_core::clock::{Clock, SystemClock};
use tenure_core::{Acquired, Bid, Grant, StoreErrorKind};

use crate::error::Failure;
use crate::etcd::{Condition, Etcd, EtcdLease, Written};
use crate::receipt;
use crate::record::{self, Record};
use crate::spare::Spares;

/// How many times a bid looks again when the record changed between two of its requests. Each change is somebody else's
/// grant or release, so two in a row are rare already.
const LOOKS: usize = 4;

/// Takes the lease for `bid` if nobody holds it, or the same candidate does.
pub(crate) async fn place(etcd: &Etcd, spares: &Spares, bid: &Bid) -> Result<Acquired, Failure> {
    let placing = Placing { etcd, spares, bid, key: etcd.keys.key_of(&bid.name) };
    let (lease, mut written) = placing.first().await?;
    let mut own: Option<Record> = None;
    for _ in 0..LOOKS {
        let found = match written {
            Written::Applied(revision) => {
                let created = own.as_ref().map_or(revision, |own| own.create_revision);
                if let Some(own) = own.filter(|own| own.is_in_place() && own.bound_to != lease.id) {
                    // The key was moved away from it; without it no late copy of an earlier bid can move the key back.
                    let _ = etcd.revoke(own.bound_to).await;
                }
                return Ok(placing.granted(lease, created));
            }
            Written::Refused(found) => found,
        };
        let condition;
        (condition, own) = match found {
            None => (Condition::Free, None),
            Some(found) => {
                let record = Record::read(&found).map_err(|why| Failure::malformed(found.key(), &why))?;
                if record.candidate != bid.candidate {
                    return placing.held(&record).await;
                }
                if record.bound_to == lease.id && record.payload == bid.payload {
                    return Ok(placing.granted(lease, record.create_revision));
                }
                if record.ttl > lease.ttl
                    && let Some(granted) = placing.kept_longer(&record).await?
                {
                    return Ok(granted);
                }
                (Condition::Unchanged(record.mod_revision), Some(record))
            }
        };
        written = placing.put(condition, lease, own.as_ref()).await?.ok_or_else(lease_ran_out)?;
    }
    Err(Failure::new(StoreErrorKind::Unavailable, "the record changed again and again under the bid"))
}

/// One bid under way.
struct Placing<'a> {
    etcd: &'a Etcd,
    spares: &'a Spares,
    bid: &'a Bid,
    key: String,
}

impl Placing<'_> {
    /// The first try, with the spare of an earlier bid or a new etcd lease.
    async fn first(&self) -> Result<(EtcdLease, Written), Failure> {
        let now = SystemClock::new().now();
        if let Some(spare) = self.spares.of(self.bid) {
            let (alive, written) = futures::join!(self.etcd.keep_alive(spare), self.put(Condition::Free, spare, None));
            match (alive, written) {
                (Ok(true), Ok(Some(written))) => {
                    self.spares.keep(self.bid, spare, now);
                    return Ok((spare, written));
                }
                (Ok(_), Ok(_)) => self.spares.forget(self.bid),
                // The record may stand under a lease that nobody knows the end of: no grant, and no refusal.
                (Err(failure), Ok(Some(Written::Applied(_)))) => {
                    return Err(failure.in_doubt());
                }
                (_, Err(failure)) | (Err(failure), Ok(_)) => return Err(failure),
            }
        }
        let now = SystemClock::new().now();
        let lease = self.etcd.grant(self.bid.ttl).await?;
        // Kept before it is used: should this bid be dropped now, the next one finds it.
        self.spares.keep(self.bid, lease, now);
        let written = self.put(Condition::Free, lease, None).await?.ok_or_else(lease_ran_out)?;
        Ok((lease, written))
    }

    /// Puts the bid's record if `condition` holds; a term that goes on keeps the time it began.
    async fn put(
        &self,
        condition: Condition,
        lease: EtcdLease,
        own: Option<&Record>,
    ) -> Result<Option<Written>, Failure> {
        let acquired_at = match own {
            Some(own) => own.acquired_at,
            None => Some(SystemTime::now()),
        };
        let value = record::written(self.bid, lease.id, lease.ttl, acquired_at);
        self.etcd.put_if(&self.key, condition, &value, lease).await
    }

    fn granted(&self, lease: EtcdLease, create_revision: i64) -> Acquired {
        self.spares.forget(self.bid);
        let token = record::token_of(create_revision);
        let receipt = receipt::of(lease.id, &self.bid.name, &self.bid.candidate, token);
        Acquired::Granted(Grant::of(self.bid, token).with_ttl(lease.ttl).with_receipt(receipt))
    }

    async fn held(&self, record: &Record) -> Result<Acquired, Failure> {
        // The decision stands; should the second read fail, the most that can be left is the whole ttl.
        let remaining = self.etcd.remaining(record.bound_to, record.ttl).await.unwrap_or(Some(record.ttl));
        Ok(Acquired::Held(record.shown(&self.bid.name, remaining.unwrap_or_default())))
    }

    /// Keeps a record of this candidate's own that lasts longer than the bid asks for: an expiry never moves back.
    /// `None` when it is not there any more.
    async fn kept_longer(&self, record: &Record) -> Result<Option<Acquired>, Failure> {
        let lease = EtcdLease { id: record.bound_to, ttl: record.ttl };
        let (alive, found) = self.etcd.keep_alive_and_get(lease, &self.key, |_| false).await?;
        let unchanged = found.is_some_and(|found| found.mod_revision() == record.mod_revision);
        Ok((alive && unchanged).then(|| self.granted(lease, record.create_revision)))
    }
}

/// The new etcd lease ended before the bid did: nothing was written under it.
fn lease_ran_out() -> Failure {
    Failure::new(StoreErrorKind::Unavailable, "the bid took longer than its ttl")
}
