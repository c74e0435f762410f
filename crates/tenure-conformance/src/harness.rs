//! What a test bench tells the suite about itself and does for it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{LeaseStore, StoreError};

use crate::{Admin, Elsewhere, FaultInjector, FaultsInFront, Surroundings, Unable};

/// The bench a store is tested on: how to make a client, and what else the bench can do.
///
/// [`store`](Self::store) is all that is needed. Each further method lets more clauses run; a clause whose means are
/// missing is skipped with the reason that the method gave.
///
/// ```
/// use std::sync::Arc;
/// use tenure_conformance::{Harness, async_trait};
/// use tenure_core::{LeaseStore, MemoryStore, StoreError};
///
/// struct Bench(MemoryStore);
///
/// #[async_trait]
/// impl Harness for Bench {
///     async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
///         Ok(Arc::new(self.0.clone()))
///     }
/// }
/// ```
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// A new client of the one store that is tested, as another process would have it: with connections of its own,
    /// set up ([`LeaseStore::prepare`]) and ready.
    ///
    /// # Errors
    ///
    /// A store that cannot be reached fails the suite.
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError>;

    /// The ttl of leases that are left to run out. `None`: the store's smallest, but not under 500 ms, so that a busy
    /// machine has time to do something within it.
    fn ttl(&self) -> Option<Duration> {
        None
    }

    /// How much later than the store promises something may be seen, for the sake of busy test machines: only what
    /// shall happen *soon* is judged with it; what must not happen *early* is judged strictly. Two seconds.
    fn slack(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// What the names of most leases of a run begin with. `tenure-conformance`.
    fn prefix(&self) -> &str {
        "tenure-conformance"
    }

    /// Whether a harness made in another process of this host reaches the same store. With it, and a command from
    /// [`conformance!`](crate::conformance!), the suite starts a second process by itself. `false`.
    fn spans_processes(&self) -> bool {
        false
    }

    /// How long a call of this store may wait for an answer that never comes, before it gives up by itself. Checked
    /// with an injector [below the client](FaultInjector::below_the_client). Ten seconds.
    fn call_bound(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Means to handle records past the store's own interface.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the bench has none.
    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Err(Unable::lacks("this bench has no admin client"))
    }

    /// A new client whose requests and replies can be lost, delayed and repeated.
    ///
    /// By default faults happen in front of the client, to whole calls. A bench with a proxy or a wire of its own
    /// causes them below it, where the store's code feels them, and that is the better test.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where no fault can be caused.
    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        Ok(Arc::new(FaultsInFront::of(self.store().await?)))
    }

    /// Restarts the server and returns when it answers again. Nothing else runs meanwhile.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the bench may not.
    async fn restart(&self) -> Result<(), Unable> {
        Err(Unable::lacks("this bench cannot restart the server"))
    }

    /// Cuts the connections over which clients of this bench watch, once. Nothing else runs meanwhile.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the bench cannot.
    async fn cut_watches(&self) -> Result<(), Unable> {
        Err(Unable::lacks("this bench cannot cut the connection of a watch"))
    }

    /// How many connections the server keeps open for clients of this bench. Nothing else runs meanwhile.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the bench cannot count them.
    async fn connections(&self) -> Result<usize, Unable> {
        Err(Unable::lacks("this bench cannot count connections"))
    }

    /// `count` clients of a place where the store was never set up: no table, no schema.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the store needs no set-up or the bench cannot make such a place.
    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let _ = count;
        Err(Unable::lacks("this store needs no set-up, or this bench cannot undo it"))
    }

    /// A client with a wrong password, token or certificate.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the store takes everybody.
    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        Err(Unable::lacks("this bench has no client with wrong credentials"))
    }

    /// A client that may connect, and may not write leases.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the store knows no rights.
    async fn restricted(&self) -> Result<Trespass, Unable> {
        Err(Unable::lacks("this bench has no client with restricted rights"))
    }

    /// A client in another process, with another clock or time zone.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] where the bench starts none; see [`spans_processes`](Self::spans_processes) too.
    async fn elsewhere(&self, surroundings: &Surroundings) -> Result<Box<dyn Elsewhere>, Unable> {
        let _ = surroundings;
        Err(Unable::lacks("this bench starts no second process"))
    }
}

/// A client that must not get in, and the secrets that none of its errors may show.
#[derive(Debug)]
pub struct Trespass {
    /// The client, or the error that connecting gave already.
    pub store: Result<Arc<dyn LeaseStore>, StoreError>,
    /// Passwords, tokens and the like that it was made with.
    pub secrets: Vec<String>,
}
