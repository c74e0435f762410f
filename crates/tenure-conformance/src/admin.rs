//! Means to handle records past the store's own interface.

use async_trait::async_trait;
use tenure_core::LeaseName;

use crate::Unable;

/// Handles records past the store's own interface, as an operator with a shell would.
#[async_trait]
pub trait Admin: Send + Sync {
    /// Removes the record of a lease, whoever holds it, and leaves what the store keeps beside it (a counter).
    ///
    /// # Errors
    ///
    /// [`Unable`] when it cannot.
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable>;

    /// Puts something that is no lease where the lease would be.
    ///
    /// # Errors
    ///
    /// [`Unable`] when it cannot.
    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable>;

    /// Removes everything that the store keeps for a lease, counters included.
    ///
    /// # Errors
    ///
    /// [`Unable`] when it cannot: what stays is listed in the report.
    async fn purge(&self, name: &LeaseName) -> Result<(), Unable>;

    /// What the store holds for a lease, in any form that two moments can be compared by, without what changes by
    /// itself (a remaining time).
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where it cannot: what [`read`](tenure_core::LeaseStore::read) shows is compared then.
    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let _ = name;
        Err(Unable::lacks("this admin client shows no raw records"))
    }

    /// Whether [`remove`](Self::remove) takes the counter along, so that tokens begin anew. A store that admits it
    /// says so in its docs. `false`.
    fn removal_resets_tokens(&self) -> bool {
        false
    }

    /// Whether the store tells watchers of a removal past its interface, as it should. A store whose server cannot
    /// says `false`, and in its docs too.
    fn removal_wakes(&self) -> bool {
        true
    }
}

/// What lies where a lease should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Foreign {
    /// A value of another program's, in another format.
    Value,
    /// A record of the right format that never runs out. Where the format cannot express that: [`Unable::Lacks`].
    WithoutExpiry,
}
