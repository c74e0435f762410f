//! A client as clauses use it: each call says what answer it must get.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, LeaseStore, LossReason, Released, Renewed, StoreError, StoreErrorKind,
};
use tokio::time::{Instant, sleep};

use crate::clause::{Stop, Verdict, ensure, fail};

/// A client of the store under test.
///
/// A transient answer (the store was busy) is no outcome: the call is made again, at most [`TRIES`] times.
#[derive(Clone, Debug)]
pub(crate) struct Client(Arc<dyn LeaseStore>);

/// How often a transient answer is taken, and how long the pause after it is: two seconds in all, more than any store
/// is busy with a few dozen candidates.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A value, and the instant at which the request that brought it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent<T> {
    pub(crate) at: Instant,
    pub(crate) value: T,
}

impl Client {
    pub(crate) fn new(store: Arc<dyn LeaseStore>) -> Self {
        Self(store)
    }

    /// The bare store, for calls that may fail.
    pub(crate) fn bare(&self) -> &Arc<dyn LeaseStore> {
        &self.0
    }

    /// A bid, whatever its outcome.
    pub(crate) async fn bid(&self, bid: &Bid) -> Result<Sent<Acquired>, Stop> {
        let (answer, _) = answered(|| self.0.try_acquire(bid)).await?;
        Ok(answer)
    }

    /// A bid that must be granted.
    pub(crate) async fn granted(&self, bid: &Bid) -> Result<Grant, Stop> {
        Ok(self.granted_at(bid).await?.value)
    }

    /// A bid that must be granted, and when it was sent.
    pub(crate) async fn granted_at(&self, bid: &Bid) -> Result<Sent<Grant>, Stop> {
        let answer = self.bid(bid).await?;
        match answer.value {
            Acquired::Granted(grant) => Ok(Sent { at: answer.at, value: grant }),
            Acquired::Held(record) => fail!("a bid for {:?} was not granted: held by {record:?}", bid.name),
        }
    }

    /// A bid that must find the lease held.
    pub(crate) async fn held(&self, bid: &Bid) -> Result<LeaseRecord, Stop> {
        match self.bid(bid).await?.value {
            Acquired::Held(record) => Ok(record),
            Acquired::Granted(grant) => fail!("a bid was granted while another candidate held the lease: {grant:?}"),
        }
    }

    /// A renewal, whatever its outcome.
    pub(crate) async fn renew(&self, grant: &Grant) -> Result<Sent<Renewed>, Stop> {
        let (answer, _) = answered(|| self.0.renew(grant)).await?;
        Ok(answer)
    }

    /// A renewal that must succeed.
    pub(crate) async fn extended(&self, grant: &Grant) -> Result<Grant, Stop> {
        Ok(self.extended_at(grant).await?.value)
    }

    /// A renewal that must succeed, and when it was sent.
    pub(crate) async fn extended_at(&self, grant: &Grant) -> Result<Sent<Grant>, Stop> {
        let answer = self.renew(grant).await?;
        match answer.value {
            Renewed::Extended(extended) => Ok(Sent { at: answer.at, value: extended }),
            Renewed::Lost(reason) => fail!("a renewal of a term that holds the lease was refused: {reason}"),
        }
    }

    /// A renewal that must be refused.
    pub(crate) async fn lost(&self, grant: &Grant, whose: &str) -> Result<LossReason, Stop> {
        match self.renew(grant).await?.value {
            Renewed::Lost(reason) => Ok(reason),
            Renewed::Extended(grant) => fail!("a renewal by {whose} was confirmed: {grant:?}"),
        }
    }

    /// A release that must free the lease.
    pub(crate) async fn freed(&self, grant: &Grant) -> Verdict {
        let (answer, doubted) = answered(|| self.0.release(grant)).await?;
        // After an answer in doubt the repetition may find that the first one did it.
        ensure!(answer.value == Released::Freed || doubted, "a release of a term that holds the lease was refused");
        Ok(())
    }

    /// A release that must change nothing.
    pub(crate) async fn not_held(&self, grant: &Grant, whose: &str) -> Verdict {
        let (answer, _) = answered(|| self.0.release(grant)).await?;
        ensure!(answer.value == Released::NotHeld, "a release by {whose} was answered with {:?}", answer.value);
        Ok(())
    }

    /// A release that may be answered either way, but not with an error.
    pub(crate) async fn let_go(&self, grant: &Grant) -> Verdict {
        let _ = answered(|| self.0.release(grant)).await?;
        Ok(())
    }

    /// What the store shows, held or not.
    pub(crate) async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, Stop> {
        let (answer, _) = answered(|| self.0.read(name)).await?;
        Ok(answer.value)
    }

    /// What the store shows of a lease that must be held.
    pub(crate) async fn shown(&self, name: &LeaseName) -> Result<LeaseRecord, Stop> {
        match self.read(name).await? {
            Some(record) => Ok(record),
            None => fail!("a read of {name:?} shows nobody while the lease is held"),
        }
    }

    /// What the store shows of a lease that `grant` must be holding.
    pub(crate) async fn shows(&self, grant: &Grant) -> Result<LeaseRecord, Stop> {
        let record = self.shown(&grant.name).await?;
        ensure!(
            record.holder == grant.candidate && record.token == grant.token,
            "{:?} with token {} holds the lease, and a read shows {record:?}",
            grant.candidate,
            grant.token
        );
        Ok(record)
    }

    /// That the store shows nobody.
    pub(crate) async fn nobody(&self, name: &LeaseName) -> Verdict {
        match self.read(name).await? {
            None => Ok(()),
            Some(record) => fail!("a read shows a holder where nobody holds the lease: {record:?}"),
        }
    }
}

/// Calls until the answer is an outcome; tells whether an earlier try was answered with `Unknown`.
async fn answered<T, F>(call: impl Fn() -> F) -> Result<(Sent<T>, bool), StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut doubted = false;
    for _ in 1..TRIES {
        let at = Instant::now();
        match call().await {
            Ok(value) => return Ok((Sent { at, value }, doubted)),
            Err(error) if error.kind().is_transient() => doubted |= error.kind() == StoreErrorKind::Unknown,
            Err(error) => return Err(error),
        }
        sleep(PAUSE).await;
    }
    let at = Instant::now();
    Ok((Sent { at, value: call().await? }, doubted))
}
