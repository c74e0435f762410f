//! Clients whose requests and replies get lost on the way.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tenure_core::{
    Acquired, Bid, Fault, Grant, LeaseName, LeaseRecord, LeaseStore, Operation, Released, Renewed, StoreDescriptor,
    StoreError, StoreErrorKind, WakeUp,
};

use crate::Unable;

/// A client whose calls something happens to on the way.
#[async_trait]
pub trait FaultInjector: Send + Sync {
    /// The client.
    fn store(&self) -> Arc<dyn LeaseStore>;

    /// From now on this happens to each request of the client; requests under way keep what was in force when they
    /// were sent.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] for a fault that this injector cannot cause.
    async fn cause(&self, fault: Fault) -> Result<(), Unable>;

    /// Whether faults happen below the client, on its wire, so that its own time-outs and its errors are seen.
    fn below_the_client(&self) -> bool {
        true
    }
}

/// Causes faults in front of a client, to whole calls: works for every store.
///
/// A lost request is never made; of a lost reply nothing comes back; a delayed or repeated request is made later by a
/// task, even when its caller has gone.
#[derive(Debug)]
pub struct FaultsInFront {
    store: Arc<Front>,
}

impl FaultsInFront {
    /// Faults in front of `store`.
    pub fn of(store: Arc<dyn LeaseStore>) -> Self {
        Self { store: Arc::new(Front { inner: store, fault: Mutex::new(Fault::None) }) }
    }
}

#[async_trait]
impl FaultInjector for FaultsInFront {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.store) as Arc<dyn LeaseStore>
    }

    async fn cause(&self, fault: Fault) -> Result<(), Unable> {
        *self.store.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        Ok(())
    }

    fn below_the_client(&self) -> bool {
        false
    }
}

struct Front {
    inner: Arc<dyn LeaseStore>,
    fault: Mutex<Fault>,
}

type Answer<T> = Result<T, StoreError>;

impl Front {
    /// Makes `call` as the fault in force says.
    async fn perform<T: Send + 'static>(
        &self,
        operation: Operation,
        call: impl Fn(Arc<dyn LeaseStore>) -> BoxFuture<'static, Answer<T>> + Send + 'static,
    ) -> Answer<T> {
        let inner = Arc::clone(&self.inner);
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let error =
            |kind| Err(StoreError::new(kind, operation, inner.describe().name).with_detail("a fault on purpose"));
        match fault {
            Fault::None => call(inner).await,
            Fault::Fail(kind) => error(kind),
            Fault::FailAfter(kind) => {
                drop(call(Arc::clone(&inner)).await);
                error(kind)
            }
            Fault::LoseRequest => pending().await,
            Fault::LoseReply => {
                drop(call(inner).await);
                pending().await
            }
            Fault::DelayRequest(delay) => {
                let under_way = tokio::spawn({
                    let inner = Arc::clone(&inner);
                    async move {
                        tokio::time::sleep(delay).await;
                        call(inner).await
                    }
                });
                under_way.await.unwrap_or_else(|_| error(StoreErrorKind::Unknown))
            }
            Fault::DelayReply(delay) => {
                let answer = call(inner).await;
                tokio::time::sleep(delay).await;
                answer
            }
            Fault::Repeat(delay) => {
                let answer = call(Arc::clone(&inner)).await;
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    drop(call(inner).await);
                });
                answer
            }
            _ => Err(StoreError::new(StoreErrorKind::Unsupported, operation, inner.describe().name)
                .with_detail(format!("this injector does not know the fault {fault:?}"))),
        }
    }
}

impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseStore for Front {
    fn describe(&self) -> StoreDescriptor {
        self.inner.describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Answer<Acquired> {
        let bid = bid.clone();
        self.perform(Operation::Acquire, move |store| {
            let bid = bid.clone();
            Box::pin(async move { store.try_acquire(&bid).await })
        })
        .await
    }

    async fn renew(&self, grant: &Grant) -> Answer<Renewed> {
        let grant = grant.clone();
        self.perform(Operation::Renew, move |store| {
            let grant = grant.clone();
            Box::pin(async move { store.renew(&grant).await })
        })
        .await
    }

    async fn release(&self, grant: &Grant) -> Answer<Released> {
        let grant = grant.clone();
        self.perform(Operation::Release, move |store| {
            let grant = grant.clone();
            Box::pin(async move { store.release(&grant).await })
        })
        .await
    }

    async fn read(&self, name: &LeaseName) -> Answer<Option<LeaseRecord>> {
        let name = name.clone();
        self.perform(Operation::Read, move |store| {
            let name = name.clone();
            Box::pin(async move { store.read(&name).await })
        })
        .await
    }

    async fn prepare(&self) -> Answer<()> {
        self.inner.prepare().await
    }

    fn list(&self) -> BoxStream<'static, Answer<LeaseRecord>> {
        self.inner.list()
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Answer<Renewed>> {
        self.inner.renew_many(grants).await
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        self.inner.watch(name)
    }
}
