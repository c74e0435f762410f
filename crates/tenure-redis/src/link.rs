//! The connection that carries a store's calls: shared, bounded, replaced when it is of no use any more.
//!
//! The client's own manager keeps a connection whose requests time out, because a time-out is no proof that the
//! connection is dead; after a silent partition every call then waits on the old socket until the kernel gives up. The
//! link counts what calls waited in vain instead. It repeats nothing, sleeps nowhere and spawns nothing: a connection
//! is opened by the calls that need it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use redis::{Cmd, RedisResult, Value};
use tokio::time::{Instant, timeout_at};

use crate::config::Bounds;
use crate::error::{Failure, is_of_no_use};
use crate::source::{Connection, Node, Source};

/// Runs commands, one bound on each.
pub(crate) struct Link {
    bounds: Bounds,
    origin: Origin,
}

enum Origin {
    /// Opened here, and opened again.
    Own { source: Arc<Source>, slot: Mutex<Slot> },
    /// The service's own; looks after itself as well as it can.
    Given(Connection),
}

#[derive(Default)]
struct Slot {
    live: Option<Arc<Live>>,
    opening: Option<Opening>,
}

/// One attempt to connect, carried on by whichever calls wait for it. A call that is dropped leaves it to the next.
#[derive(Clone)]
struct Opening {
    began: Instant,
    outcome: Shared<BoxFuture<'static, Result<Arc<Live>, Failure>>>,
}

struct Live {
    connection: Connection,
    closed: Arc<AtomicBool>,
    /// By hash slot in a cluster, since its nodes fall silent one by one; all under one entry elsewhere.
    waited: Mutex<HashMap<u16, Waited>>,
}

/// How long calls have waited with no answer in between.
struct Waited {
    in_vain: Duration,
    counted_until: Instant,
}

impl Link {
    pub(crate) fn own(source: Arc<Source>, bounds: Bounds) -> Self {
        Self { bounds, origin: Origin::Own { source, slot: Mutex::default() } }
    }

    pub(crate) fn given(connection: Connection, bounds: Bounds) -> Self {
        Self { bounds, origin: Origin::Given(connection) }
    }

    /// The same origin with other bounds, and no connection yet.
    pub(crate) fn with_bounds(&self, bounds: Bounds) -> Self {
        match &self.origin {
            Origin::Own { source, .. } => Self::own(source.clone(), bounds),
            Origin::Given(connection) => Self::given(connection.clone(), bounds),
        }
    }

    pub(crate) fn source(&self) -> Option<&Arc<Source>> {
        match &self.origin {
            Origin::Own { source, .. } => Some(source),
            Origin::Given(_) => None,
        }
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    pub(crate) fn is_cluster(&self) -> bool {
        match &self.origin {
            Origin::Own { source, .. } => matches!(**source, Source::Cluster { .. }),
            Origin::Given(connection) => matches!(connection, Connection::Cluster(_)),
        }
    }

    /// When a call that begins now is given up.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.bounds.call()
    }

    /// Runs `command`, which concerns keys of hash slot `hash`, until `deadline` at the latest.
    pub(crate) async fn run(&self, command: &Cmd, hash: u16, deadline: Instant) -> Result<Value, Failure> {
        self.with(hash, deadline, async |mut connection| connection.run(command).await).await
    }

    /// Runs `command` on the cluster node at `node`, or on the only server.
    pub(crate) async fn run_on(&self, node: &Node, command: Cmd, deadline: Instant) -> Result<Value, Failure> {
        self.with(node.lane(), deadline, async |mut connection| connection.run_on(node, command).await).await
    }

    async fn with(
        &self,
        hash: u16,
        deadline: Instant,
        run: impl AsyncFnOnce(Connection) -> RedisResult<Value>,
    ) -> Result<Value, Failure> {
        let unanswered = |_| Failure::Unanswered(self.bounds.call());
        let (source, slot) = match &self.origin {
            Origin::Own { source, slot } => (source, slot),
            Origin::Given(connection) => {
                let answer = timeout_at(deadline, run(connection.clone())).await;
                return answer.map_err(unanswered)?.map_err(Failure::Answered);
            }
        };
        let live = self.live(source, slot, deadline).await?;
        let waiting = Waiting::begin(&live, if self.is_cluster() { hash } else { 0 });
        let answer = timeout_at(deadline, run(live.connection.clone())).await.map_err(unanswered)?;
        waiting.answered();
        answer.map_err(|error| {
            // A cluster's connection replaces its broken parts by itself.
            if !self.is_cluster() && is_of_no_use(&error) {
                lock(slot).discard(&live);
            }
            Failure::Answered(error)
        })
    }

    async fn live(&self, source: &Arc<Source>, slot: &Mutex<Slot>, deadline: Instant) -> Result<Arc<Live>, Failure> {
        let called = Instant::now();
        loop {
            let opening = match lock(slot).live_or_opening(source, &self.bounds) {
                Ok(live) => return Ok(live),
                Err(opening) => opening,
            };
            match timeout_at(deadline, opening.outcome.clone()).await {
                // The attempt goes on with the next call.
                Err(_) => return Err(Failure::NotConnected(self.bounds.call())),
                Ok(Ok(live)) => return Ok(lock(slot).opened(&opening, live)),
                Ok(Err(failure)) => {
                    lock(slot).failed(&opening);
                    // One that an earlier call began says little about now: this call begins its own.
                    if opening.began >= called {
                        return Err(failure);
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Own { source, .. } => write!(f, "{source:?}"),
            Origin::Given(Connection::Cluster(_)) => f.write_str("given cluster connection"),
            Origin::Given(_) => f.write_str("given connection"),
        }
    }
}

impl Slot {
    fn live_or_opening(&mut self, source: &Arc<Source>, bounds: &Bounds) -> Result<Arc<Live>, Opening> {
        if let Some(live) = &self.live
            && live.is_of_use(bounds)
        {
            return Ok(live.clone());
        }
        self.live = None;
        Err(self.opening.get_or_insert_with(|| Opening::begin(source.clone(), *bounds)).clone())
    }

    fn opened(&mut self, opening: &Opening, live: Arc<Live>) -> Arc<Live> {
        if self.is_current(opening) {
            self.opening = None;
            self.live = Some(live.clone());
        }
        live
    }

    fn failed(&mut self, opening: &Opening) {
        if self.is_current(opening) {
            self.opening = None;
        }
    }

    fn is_current(&self, opening: &Opening) -> bool {
        self.opening.as_ref().is_some_and(|current| current.outcome.ptr_eq(&opening.outcome))
    }

    fn discard(&mut self, live: &Arc<Live>) {
        self.live.take_if(|current| Arc::ptr_eq(current, live));
    }
}

impl Opening {
    fn begin(source: Arc<Source>, bounds: Bounds) -> Self {
        let began = Instant::now();
        let outcome = async move {
            let closed = Arc::new(AtomicBool::new(false));
            // One server answers within the bound on connecting, or not. Of sentinels and cluster nodes some may be
            // dead, each of which takes that long.
            let bound = if matches!(*source, Source::Server(_)) { bounds.connect() } else { bounds.call() };
            match timeout_at(began + bound, source.connect(&bounds, closed.clone())).await {
                Err(_) => Err(Failure::NotConnected(bound)),
                Ok(Err(error)) => Err(Failure::Connecting(error)),
                Ok(Ok(connection)) => Ok(Arc::new(Live { connection, closed, waited: Mutex::default() })),
            }
        };
        Self { began, outcome: outcome.boxed().shared() }
    }
}

impl Live {
    fn is_of_use(&self, bounds: &Bounds) -> bool {
        !self.closed.load(Ordering::Acquire)
            && lock(&self.waited).values().all(|waited| waited.in_vain < bounds.silence())
    }
}

/// A call that waits for its answer; dropped without one, its waiting counts against the connection.
struct Waiting<'a> {
    live: &'a Live,
    hash: u16,
    since: Instant,
    answered: bool,
}

impl<'a> Waiting<'a> {
    fn begin(live: &'a Live, hash: u16) -> Self {
        Self { live, hash, since: Instant::now(), answered: false }
    }

    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.answered {
            lock(&self.live.waited).remove(&self.hash);
            return;
        }
        let now = Instant::now();
        let mut waited = lock(&self.live.waited);
        let entry = waited.entry(self.hash).or_insert(Waited { in_vain: Duration::ZERO, counted_until: self.since });
        // Calls that waited side by side count once.
        entry.in_vain += now.saturating_duration_since(entry.counted_until.max(self.since));
        entry.counted_until = now;
    }
}

/// A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
