//! The store, as the election sees it, with what its answers tell about who leads: no request is made for that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::BoxStream;
use tenure::clock::{Clock, Moment, SystemClock};
use tenure::{
    Acquired, Bid, CandidateId, Grant, LeaseName, LeaseRecord, LeaseStore, Released, Renewed, StoreDescriptor,
    StoreError, WakeUp, async_trait,
};

#[derive(Debug)]
pub(super) struct Sight {
    store: Arc<dyn LeaseStore>,
    seen: Mutex<Option<Seen>>,
}

/// Whom an answer showed, and how long that holds.
#[derive(Clone, Debug)]
struct Seen {
    holder: CandidateId,
    until: Moment,
}

impl Sight {
    pub(super) fn of(store: Arc<dyn LeaseStore>) -> Self {
        Self { store, seen: Mutex::new(None) }
    }

    /// The technology of the store.
    pub(super) fn kind(&self) -> String {
        self.store.describe().name.into_owned()
    }

    /// The label of the holder that was seen last, as long as its lease cannot have run out.
    pub(super) fn holder(&self) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.as_ref().filter(|seen| SystemClock.now() < seen.until)?;
        Some(seen.holder.label().to_owned())
    }

    fn see(&self, holder: Option<(&CandidateId, Duration)>) {
        let now = SystemClock.now();
        let seen = holder.map(|(holder, lasts)| Seen { holder: holder.clone(), until: now + lasts });
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LeaseStore for Sight {
    fn describe(&self) -> StoreDescriptor {
        self.store.describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let answer = self.store.try_acquire(bid).await;
        match &answer {
            Ok(Acquired::Granted(grant)) => self.see(Some((&grant.candidate, grant.ttl))),
            Ok(Acquired::Held(record)) => self.see(Some((&record.holder, record.remaining))),
            Err(_) => {}
        }
        answer
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        let answer = self.store.renew(grant).await;
        match &answer {
            Ok(Renewed::Extended(grant)) => self.see(Some((&grant.candidate, grant.ttl))),
            Ok(Renewed::Lost(_)) => self.see(None),
            Err(_) => {}
        }
        answer
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let answer = self.store.release(grant).await;
        if answer.is_ok() {
            self.see(None);
        }
        answer
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        self.store.read(name).await
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.store.prepare().await
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        self.store.list()
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        self.store.renew_many(grants).await
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        self.store.watch(name)
    }
}
