//! A store on its way to an election, with somebody who sees what it answers: no request is made for that.

use std::ops::Deref;
use std::sync::Arc;

use futures::stream::BoxStream;
use tenure::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, LeaseStore, Released, Renewed, StoreDescriptor, StoreError, WakeUp,
    async_trait,
};

/// Sees the answers of a store.
#[async_trait]
pub(crate) trait Witness: std::fmt::Debug + Send + Sync + 'static {
    fn acquired(&self, answer: &Result<Acquired, StoreError>);

    fn renewed(&self, _answer: &Result<Renewed, StoreError>) {}

    /// Returns when a release may go out.
    async fn before_release(&self) {}

    fn released(&self, _answer: &Result<Released, StoreError>) {}
}

/// A store with its witness, to whom it gives way.
#[derive(Debug)]
pub(crate) struct Witnessed<W> {
    store: Arc<dyn LeaseStore>,
    witness: W,
}

impl<W> Witnessed<W> {
    pub(crate) fn new(store: Arc<dyn LeaseStore>, witness: W) -> Self {
        Self { store, witness }
    }

    /// The technology of the store.
    pub(crate) fn kind(&self) -> String {
        self.store.describe().name.into_owned()
    }
}

impl<W> Deref for Witnessed<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.witness
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<W: Witness> LeaseStore for Witnessed<W> {
    fn describe(&self) -> StoreDescriptor {
        self.store.describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let answer = self.store.try_acquire(bid).await;
        self.witness.acquired(&answer);
        answer
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        let answer = self.store.renew(grant).await;
        self.witness.renewed(&answer);
        answer
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        self.witness.before_release().await;
        let answer = self.store.release(grant).await;
        self.witness.released(&answer);
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
        let answers = self.store.renew_many(grants).await;
        answers.iter().for_each(|answer| self.witness.renewed(answer));
        answers
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        self.store.watch(name)
    }
}
