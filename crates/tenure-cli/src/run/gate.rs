//! What stands between the election and its store: it watches bids, and holds a release back until the program is gone.

use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::BoxStream;
use tenure::{
    Acquired, Bid, CandidateId, Grant, LeaseName, LeaseRecord, LeaseStore, Released, Renewed, StoreDescriptor,
    StoreError, StoreErrorKind, WakeUp, async_trait,
};
use tokio::sync::watch;

/// A store, seen by one `tenure run`.
#[derive(Debug)]
pub(crate) struct Gate {
    store: Arc<dyn LeaseStore>,
    last: watch::Sender<Option<Answer>>,
    granted: Mutex<Option<Grant>>,
    program_alive: watch::Receiver<bool>,
}

/// What the store said to a bid.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Granted,
    HeldBy(CandidateId),
    Failed(StoreErrorKind),
}

impl Gate {
    /// In front of `store`; `program_alive` tells whether any process of the program is left.
    pub(crate) fn new(store: Arc<dyn LeaseStore>, program_alive: watch::Receiver<bool>) -> Self {
        Self { store, last: watch::Sender::new(None), granted: Mutex::new(None), program_alive }
    }

    /// What the store said to the last bid that it answered.
    pub(crate) fn last_answer(&self) -> Option<Answer> {
        self.last.borrow().clone()
    }

    /// What the store granted last.
    pub(crate) fn granted(&self) -> Option<Grant> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The technology of the store.
    pub(crate) fn kind(&self) -> String {
        self.store.describe().name.into_owned()
    }

    /// Returns when the first bid was answered.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn first_answer(&self) {
        // The sender lives as long as `self`.
        let _ = self.last.subscribe().wait_for(Option::is_some).await;
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LeaseStore for Gate {
    fn describe(&self) -> StoreDescriptor {
        self.store.describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let answer = self.store.try_acquire(bid).await;
        if let Ok(Acquired::Granted(grant)) = &answer {
            *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant.clone());
        }
        self.last.send_replace(Some(match &answer {
            Ok(Acquired::Granted(_)) => Answer::Granted,
            Ok(Acquired::Held(record)) => Answer::HeldBy(record.holder.clone()),
            Err(error) => Answer::Failed(error.kind()),
        }));
        answer
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        self.store.renew(grant).await
    }

    /// Waits for the program to be gone: nobody else may lead before. A program that cannot be killed keeps the lease
    /// until that runs out.
    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        // A sender that is gone took the program with it.
        let _ = self.program_alive.clone().wait_for(|alive| !alive).await;
        self.store.release(grant).await
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
