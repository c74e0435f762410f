//! The contract's plainest reading: leases in this process's memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::broadcast;

use crate::clock::{Clock, Moment, SystemClock};
use crate::{
    Acquired, Bid, CandidateId, FencingToken, Grant, LeaseClock, LeaseName, LeaseRecord, LeaseStore, LossReason,
    Operation, Payload, Released, Renewed, StoreDescriptor, StoreError, StoreErrorKind, TokenDurability, WakeUp,
    WakeUpKind,
};

mod fault;

pub use fault::{Fault, FaultHook, StoreCall};

/// Keeps leases in memory: the reference that other stores are measured against, for tests, examples and elections
/// between the tasks of one process.
///
/// Clones share the leases. Tokens rise over the life of the store, also over [`remove`](Self::remove). A hook can
/// delay, drop, repeat and fail calls, before or after they take effect: see [`Fault`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use tenure_core::{Acquired, Bid, CandidateId, Label, LeaseName, LeaseStore, MemoryStore};
///
/// let store = MemoryStore::new();
/// let candidate = CandidateId::draw(&Label::new("worker-7")?);
/// let bid = Bid::new(LeaseName::new("nightly")?, candidate, Duration::from_secs(15));
/// assert!(matches!(store.try_acquire(&bid).await?, Acquired::Granted(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
}

struct Shared {
    leases: Mutex<Leases>,
    changes: broadcast::Sender<Option<LeaseName>>,
    hook: Mutex<Option<Arc<FaultHook>>>,
}

#[derive(Default)]
struct Leases {
    last_token: u64,
    slots: HashMap<LeaseName, Slot>,
}

#[derive(Clone)]
enum Slot {
    Held(Held),
    Released,
    Foreign,
}

#[derive(Clone)]
struct Held {
    candidate: CandidateId,
    token: FencingToken,
    payload: Payload,
    ttl: Duration,
    expires: Moment,
    acquired_at: SystemTime,
}

impl MemoryStore {
    /// An empty store on the host's clock.
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// An empty store on `clock`.
    pub fn with_clock(clock: impl Clock) -> Self {
        // 256 changes are far more than a watcher that is polled at all can be behind; one that is gets a resync.
        let (changes, _) = broadcast::channel(256);
        let shared = Shared { leases: Mutex::default(), changes, hook: Mutex::new(None) };
        Self { shared: Arc::new(shared), clock: Arc::new(clock) }
    }

    /// Asks `hook` before every call what shall go wrong with it.
    pub fn set_fault_hook(&self, hook: impl Fn(&StoreCall) -> Fault + Send + Sync + 'static) {
        *lock(&self.shared.hook) = Some(Arc::new(hook));
    }

    /// Lets every further call through.
    pub fn clear_fault_hook(&self) {
        *lock(&self.shared.hook) = None;
    }

    /// Removes the lease, as an operator would by hand. Tokens go on rising.
    pub fn remove(&self, name: &LeaseName) {
        lock(&self.shared.leases).slots.remove(name);
        self.announce(name);
    }

    /// Puts something that is no lease where the lease `name` would be.
    pub fn corrupt(&self, name: &LeaseName) {
        lock(&self.shared.leases).slots.insert(name.clone(), Slot::Foreign);
        self.announce(name);
    }

    /// Interrupts every watch once, as a lost connection would: each wakes with a resync.
    pub fn interrupt_watches(&self) {
        let _ = self.shared.changes.send(None);
    }

    fn announce(&self, name: &LeaseName) {
        // An error means that nobody watches.
        let _ = self.shared.changes.send(Some(name.clone()));
    }

    async fn call<T: Send + 'static>(
        &self,
        call: StoreCall,
        apply: impl Fn(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let hook = lock(&self.shared.hook).clone();
        let fault = hook.map_or(Fault::None, |hook| hook(&call));
        fault::perform(self.clone(), fault, call, apply).await
    }

    fn acquire_now(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let now = self.clock.now();
        let mut leases = lock(&self.shared.leases);
        let found = leases.slots.get(&bid.name).cloned();
        let (token, acquired_at, expires) = match &found {
            Some(Slot::Foreign) => return Err(malformed(Operation::Acquire, &bid.name)),
            Some(Slot::Held(held)) if held.expires > now && held.candidate != bid.candidate => {
                return Ok(Acquired::Held(held.record(&bid.name, now)));
            }
            Some(Slot::Held(held)) if held.expires > now => {
                (held.token, held.acquired_at, held.expires.max(now + bid.ttl))
            }
            _ => {
                leases.last_token += 1;
                (FencingToken(leases.last_token), SystemTime::now(), now + bid.ttl)
            }
        };
        let held = Held {
            candidate: bid.candidate.clone(),
            token,
            payload: bid.payload.clone(),
            ttl: bid.ttl,
            expires,
            acquired_at,
        };
        leases.slots.insert(bid.name.clone(), Slot::Held(held));
        drop(leases);
        self.announce(&bid.name);
        let clean = matches!(found, None | Some(Slot::Released));
        Ok(Acquired::Granted(Grant::of(bid, token).with_after_release(clean)))
    }

    fn renew_now(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        let now = self.clock.now();
        let mut leases = lock(&self.shared.leases);
        Ok(match leases.slots.get_mut(&grant.name) {
            Some(Slot::Foreign) => Renewed::Lost(LossReason::Malformed),
            None | Some(Slot::Released) => Renewed::Lost(LossReason::Removed),
            Some(Slot::Held(held)) if !held.is_of(grant) && held.expires > now => {
                Renewed::Lost(LossReason::Superseded { by: Some(held.candidate.clone()) })
            }
            Some(Slot::Held(held)) if !held.is_of(grant) || held.expires <= now => Renewed::Lost(LossReason::EXPIRED),
            Some(Slot::Held(held)) => {
                held.expires = held.expires.max(now + grant.ttl);
                Renewed::Extended(grant.clone())
            }
        })
    }

    fn release_now(&self, grant: &Grant) -> Result<Released, StoreError> {
        let now = self.clock.now();
        let mut leases = lock(&self.shared.leases);
        match leases.slots.get(&grant.name) {
            Some(Slot::Foreign) => Err(malformed(Operation::Release, &grant.name)),
            Some(Slot::Held(held)) if held.is_of(grant) && held.expires > now => {
                leases.slots.insert(grant.name.clone(), Slot::Released);
                drop(leases);
                self.announce(&grant.name);
                Ok(Released::Freed)
            }
            _ => Ok(Released::NotHeld),
        }
    }

    fn read_now(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let now = self.clock.now();
        match lock(&self.shared.leases).slots.get(name) {
            Some(Slot::Foreign) => Err(malformed(Operation::Read, name)),
            Some(Slot::Held(held)) if held.expires > now => Ok(Some(held.record(name, now))),
            _ => Ok(None),
        }
    }

    fn list_now(&self) -> Vec<Result<LeaseRecord, StoreError>> {
        let names: Vec<LeaseName> = lock(&self.shared.leases).slots.keys().cloned().collect();
        names.iter().filter_map(|name| self.read_now(name).transpose()).collect()
    }
}

impl Held {
    fn is_of(&self, grant: &Grant) -> bool {
        self.candidate == grant.candidate && self.token == grant.token
    }

    fn record(&self, name: &LeaseName, now: Moment) -> LeaseRecord {
        LeaseRecord::new(name.clone(), self.candidate.clone(), self.token, self.ttl)
            .with_payload(self.payload.clone())
            .with_remaining(self.expires - now)
            .with_acquired_at(Some(self.acquired_at))
    }
}

#[async_trait]
impl LeaseStore for MemoryStore {
    fn describe(&self) -> StoreDescriptor {
        StoreDescriptor::new("memory")
            .with_token(TokenDurability::SingleNode)
            .with_wake_up(WakeUpKind::Push)
            .with_clock(LeaseClock::HostBootTime)
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let bid = bid.clone();
        let call = StoreCall::new(Operation::Acquire, &bid.name, Some(&bid.candidate));
        self.call(call, move |store| store.acquire_now(&bid)).await
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        let grant = grant.clone();
        let call = StoreCall::new(Operation::Renew, &grant.name, Some(&grant.candidate));
        self.call(call, move |store| store.renew_now(&grant)).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let grant = grant.clone();
        let call = StoreCall::new(Operation::Release, &grant.name, Some(&grant.candidate));
        self.call(call, move |store| store.release_now(&grant)).await
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let name = name.clone();
        self.call(StoreCall::new(Operation::Read, &name, None), move |store| store.read_now(&name)).await
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        stream::iter(self.list_now()).boxed()
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        use broadcast::error::RecvError::{Closed, Lagged};
        // Subscribed here, not at the first poll: a change in between must wake.
        let state = (self.shared.changes.subscribe(), name.clone());
        stream::unfold(state, |(mut changes, name)| async move {
            loop {
                match changes.recv().await {
                    Ok(Some(changed)) if changed == name => return Some((WakeUp::Changed, (changes, name))),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(Lagged(_)) => return Some((WakeUp::Resync, (changes, name))),
                    // The store is gone, and with it everything that could change.
                    Err(Closed) => std::future::pending::<()>().await,
                }
            }
        })
        .boxed()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("leases", &lock(&self.shared.leases).slots.len()).finish_non_exhaustive()
    }
}

fn malformed(operation: Operation, name: &LeaseName) -> StoreError {
    StoreError::new(StoreErrorKind::Malformed, operation, "memory")
        .with_lease(name)
        .with_detail("what lies under this name is not a lease; remove it or choose another name")
}

/// A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
