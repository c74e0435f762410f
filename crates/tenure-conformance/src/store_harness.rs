//! A harness for whoever has a store and nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tenure_core::{LeaseStore, StoreError};

use crate::Harness;

type Connect = dyn Fn() -> BoxFuture<'static, Result<Arc<dyn LeaseStore>, StoreError>> + Send + Sync;

/// A bench that can make clients and nothing else: for a store that is known by its URL only.
///
/// Clauses that need more of the bench are skipped with reasons.
pub struct StoreHarness {
    connect: Box<Connect>,
    ttl: Option<Duration>,
    prefix: String,
}

impl StoreHarness {
    /// Uses one client for everything.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use tenure_conformance::{Plan, StoreHarness, run};
    /// use tenure_core::MemoryStore;
    ///
    /// let harness = StoreHarness::new(MemoryStore::new());
    /// let report = run(&harness, Plan::default().only(["release", "payload"])).await;
    /// assert!(report.is_ok(), "{report}");
    /// # }
    /// ```
    pub fn new(store: impl LeaseStore) -> Self {
        let store: Arc<dyn LeaseStore> = Arc::new(store);
        Self::connecting(move || {
            let store = Arc::clone(&store);
            Box::pin(async move { Ok(store) })
        })
    }

    /// Makes each client by a call of `connect`: better, since clients then share no connection, as in life.
    pub fn connecting(
        connect: impl Fn() -> BoxFuture<'static, Result<Arc<dyn LeaseStore>, StoreError>> + Send + Sync + 'static,
    ) -> Self {
        Self { connect: Box::new(connect), ttl: None, prefix: "tenure-conformance".to_owned() }
    }

    /// With this ttl for leases that are left to run out.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// With names that begin so.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }
}

impl fmt::Debug for StoreHarness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHarness").field("ttl", &self.ttl).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[async_trait]
impl Harness for StoreHarness {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        (self.connect)().await
    }

    fn ttl(&self) -> Option<Duration> {
        self.ttl
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }
}
