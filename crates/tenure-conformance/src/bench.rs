//! What a clause works with: names and candidates of its own, clients, ttls, and a place for what it measures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{Bid, CandidateId, Label, LeaseName, LeaseStore, StoreDescriptor, StoreError};
use tokio::time::timeout;

use crate::clause::Stop;
use crate::client::Client;
use crate::figures::{Figure, Figures};
use crate::unable::chain;
use crate::{Admin, ChildProcess, Elsewhere, Harness, Surroundings, Unable};

mod contest;
mod snapshot;
mod tidy;

/// How long a client may take to connect, and a first read to be answered: longer than any sensible connect time-out.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The ttl of leases that must not run out within a clause, on however busy a machine.
const LONG: Duration = Duration::from_secs(60);

/// The least ttl of leases that shall run out.
const SHORT: Duration = Duration::from_millis(500);

/// What one clause works with.
pub(crate) struct Bench<'h> {
    harness: &'h dyn Harness,
    child: Option<&'h str>,
    descriptor: StoreDescriptor,
    label: Label,
    stem: String,
    names: Mutex<Vec<LeaseName>>,
    figures: Mutex<Figures>,
}

impl<'h> Bench<'h> {
    /// Lays out a bench and sees that the store answers. `child` is the test of this binary that serves as another
    /// process.
    pub(crate) async fn open(harness: &'h dyn Harness, child: Option<&'h str>) -> Result<Self, Stop> {
        let prefix = harness.prefix();
        if prefix.len() > 64 {
            return Err(Stop::Failed(format!("the prefix {prefix:?} has over 64 bytes: odd names need the room")));
        }
        let store = connect(harness).await?;
        let bench = Self {
            harness,
            child,
            descriptor: store.describe(),
            label: Label::new("conformance")?,
            stem: format!("{prefix}-{:012x}", fastrand::u64(..1 << 48)),
            names: Mutex::default(),
            figures: Mutex::default(),
        };
        let name = LeaseName::new(&bench.stem)?;
        match timeout(ANSWER_WITHIN, Client::new(store).read(&name)).await {
            Ok(answer) => answer.map(|_| bench),
            Err(_) => Err(Stop::Failed(format!("no answer to a read within {ANSWER_WITHIN:?}"))),
        }
    }

    pub(crate) fn harness(&self) -> &'h dyn Harness {
        self.harness
    }

    pub(crate) fn descriptor(&self) -> &StoreDescriptor {
        &self.descriptor
    }

    /// The ttl of leases that shall run out.
    pub(crate) fn ttl(&self) -> Duration {
        self.harness.ttl().unwrap_or_else(|| self.possible(SHORT))
    }

    /// The ttl of leases that must not run out within the clause.
    pub(crate) fn long(&self) -> Duration {
        self.possible(LONG)
    }

    /// The ttl nearest to `wanted`, and not shorter where the store allows, that the store keeps as asked.
    pub(crate) fn possible(&self, wanted: Duration) -> Duration {
        let StoreDescriptor { min_ttl, max_ttl, ttl_unit, .. } = self.descriptor;
        let wanted = wanted.clamp(min_ttl, max_ttl.max(min_ttl));
        let unit = ttl_unit.as_nanos().max(1);
        let whole = wanted.as_nanos().div_ceil(unit) * unit;
        Duration::from_nanos(u64::try_from(whole).unwrap_or(u64::MAX))
    }

    /// How long something that shall happen soon may take on this bench.
    pub(crate) fn slack(&self) -> Duration {
        self.harness.slack()
    }

    /// A new client.
    pub(crate) async fn client(&self) -> Result<Client, Stop> {
        connect(self.harness).await.map(Client::new)
    }

    /// Two new clients, as two processes would have them.
    pub(crate) async fn pair(&self) -> Result<(Client, Client), Stop> {
        Ok((self.client().await?, self.client().await?))
    }

    /// So many new clients.
    pub(crate) async fn clients(&self, count: usize) -> Result<Vec<Client>, Stop> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }

    /// A lease that nobody used yet.
    pub(crate) fn name(&self) -> Result<LeaseName, Stop> {
        self.name_of(|stem, count| format!("{stem}-{count}"))
    }

    /// A lease whose name is made of a part that is this clause's own and the number of names it used.
    pub(crate) fn name_of(&self, make: impl FnOnce(&str, usize) -> String) -> Result<LeaseName, Stop> {
        let mut names = lock(&self.names);
        let name = LeaseName::new(make(&self.stem, names.len()))?;
        names.push(name.clone());
        Ok(name)
    }

    /// A candidate that never was before.
    pub(crate) fn candidate(&self) -> CandidateId {
        CandidateId::draw(&self.label)
    }

    /// A new candidate's bid for a lease that must not run out.
    pub(crate) fn bid(&self, name: &LeaseName) -> Bid {
        Bid::new(name.clone(), self.candidate(), self.long())
    }

    /// A new candidate's bid for a lease that shall run out.
    pub(crate) fn short_bid(&self, name: &LeaseName) -> Bid {
        Bid::new(name.clone(), self.candidate(), self.ttl())
    }

    /// Means to handle records past the store's interface.
    pub(crate) async fn admin(&self) -> Result<Arc<dyn Admin>, Stop> {
        Ok(self.harness.admin().await?)
    }

    /// A client in another process.
    pub(crate) async fn elsewhere(&self, surroundings: &Surroundings) -> Result<Box<dyn Elsewhere>, Stop> {
        match (self.harness.elsewhere(surroundings).await, self.child) {
            (Err(Unable::Lacks(_)), Some(test)) if self.harness.spans_processes() => {
                Ok(Box::new(ChildProcess::of_this_test(test, surroundings).await?))
            }
            (answer, _) => Ok(answer?),
        }
    }

    pub(crate) fn measure(&self, figure: Figure, value: i64) {
        lock(&self.figures).add(figure, value);
    }

    pub(crate) fn take_figures(&self) -> Figures {
        std::mem::take(&mut lock(&self.figures))
    }
}

async fn connect(harness: &dyn Harness) -> Result<Arc<dyn LeaseStore>, Stop> {
    let refused = |error: &StoreError| Stop::Failed(format!("no client could be made: {}", chain(error)));
    match timeout(ANSWER_WITHIN, harness.store()).await {
        Ok(answer) => answer.map_err(|error| refused(&error)),
        Err(_) => Err(Stop::Failed(format!("no client could be made within {ANSWER_WITHIN:?}"))),
    }
}

/// No change of these values can be half made, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
