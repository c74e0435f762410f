//! The suite on the memory store.

use std::sync::Arc;

use tenure_conformance::{Admin, Foreign, Harness, Unable, async_trait, conformance};
use tenure_core::{LeaseName, LeaseStore, MemoryStore, StoreError};

struct Memory(MemoryStore);

#[async_trait]
impl Harness for Memory {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(self.0.clone()))
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(self.0.clone())))
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        self.0.interrupt_watches();
        Ok(())
    }
}

struct Operator(MemoryStore);

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        self.0.remove(name);
        Ok(())
    }

    async fn put_foreign(&self, name: &LeaseName, _foreign: Foreign) -> Result<(), Unable> {
        self.0.corrupt(name);
        Ok(())
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }
}

conformance!(Memory(MemoryStore::new()), skips: [
    "token-server",
    "doubt-words",
    "time-wall-clock",
    "time-zone",
    "setup-race",
    "setup-missing",
    "setup-credentials",
    "setup-rights",
    "torture-killed",
]);
