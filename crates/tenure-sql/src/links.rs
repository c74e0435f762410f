//! The few connections that a store keeps for itself.
//!
//! A pool of the client is not used here: giving a connection back to it spawns a ping without a bound, which can keep a
//! permit for ever; opening one repeats refused attempts for as long as the pool may wait; and a service's queries would
//! stand in the way of renewals. What is needed is small: at most [`LIMIT`] connections, opened one attempt at a time,
//! and none lost when a caller goes away. That holds for one that is just being opened too: a server counts handshakes
//! that break off, and MySQL locks out a host with too many of them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::dialect::{Dialect, Health, Problem};

/// One connection for renewals, and one for a bid or a call that hangs.
const LIMIT: usize = 2;

/// Keeps up to [`LIMIT`] connections.
pub(crate) struct Links<D: Dialect> {
    permits: Semaphore,
    idle: Mutex<Vec<Idle<D::Link>>>,
    openings: Mutex<Vec<Opening<D::Link>>>,
    /// How long an opening may take, whoever waits for it.
    patience: Duration,
}

struct Idle<L> {
    link: L,
    since: Instant,
    abandoned: bool,
}

/// A connection that is being opened. Nothing goes on with it while nobody waits.
struct Opening<L> {
    future: BoxFuture<'static, Result<L, Problem>>,
    since: Instant,
}

/// Waits for an opening; the next caller goes on with it when this one goes away.
struct Opened<'a, D: Dialect> {
    links: &'a Links<D>,
    opening: Option<Opening<D::Link>>,
}

/// A connection lent to one call. Dropped in the middle of a statement, it is dealt with as the dialect says; nothing
/// waits and nothing is spawned for it.
pub(crate) struct Lent<'a, D: Dialect> {
    links: &'a Links<D>,
    pub dialect: &'a D,
    pub link: Option<D::Link>,
    pub state: State,
    _permit: SemaphorePermit<'a>,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing: it can be used.
    Ready,
    /// A statement was sent and its answer was not seen.
    Busy,
    /// It cannot be used any more.
    Dead,
}

impl<D: Dialect> Links<D> {
    /// Each opening may take as long as `patience`.
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            permits: Semaphore::new(LIMIT),
            idle: Mutex::new(Vec::new()),
            openings: Mutex::new(Vec::new()),
            patience,
        }
    }

    /// A connection that works, as far as can be told.
    pub(crate) async fn lend<'a>(&'a self, dialect: &'a Arc<D>) -> Result<Lent<'a, D>, Problem> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let mut lent = Lent { links: self, dialect, link: None, state: State::Busy, _permit: permit };
        while let Some(idle) = self.take_idle() {
            let health = dialect.health(&idle.link, idle.since.elapsed());
            let health = if idle.abandoned && health == Health::Good { dialect.abandoned() } else { health };
            match health {
                Health::Dead => {}
                Health::Good => {
                    lent.link = Some(idle.link);
                    lent.state = State::Ready;
                    return Ok(lent);
                }
                Health::Doubtful => {
                    let link = lent.link.insert(idle.link);
                    if dialect.ping(link).await.is_ok() {
                        lent.state = State::Ready;
                        return Ok(lent);
                    }
                    lent.link = None;
                }
            }
        }
        lent.link = Some(self.open(dialect).await?);
        lent.state = State::Ready;
        Ok(lent)
    }

    /// A new connection, or one that an earlier caller began to open.
    async fn open(&self, dialect: &Arc<D>) -> Result<D::Link, Problem> {
        let begun = self.take_opening().unwrap_or_else(|| {
            let dialect = dialect.clone();
            Opening { future: async move { dialect.connect().await }.boxed(), since: Instant::now() }
        });
        let mut opened = Opened { links: self, opening: None };
        let result = opened.opening.insert(begun).future.as_mut().await;
        opened.opening = None;
        result
    }

    /// One that is not overdue: after an outage of the network a fresh attempt is faster than TCP's next repetition.
    fn take_opening(&self) -> Option<Opening<D::Link>> {
        let mut openings = lock(&self.openings);
        openings.retain(|opening| opening.since.elapsed() < self.patience);
        openings.pop()
    }

    /// The connection that was used last, so that one that is not needed grows old; one whose state is in doubt only
    /// when there is no other.
    fn take_idle(&self) -> Option<Idle<D::Link>> {
        let mut idle = lock(&self.idle);
        let at = idle.iter().rposition(|idle| !idle.abandoned).or_else(|| idle.len().checked_sub(1))?;
        Some(idle.remove(at))
    }
}

impl<D: Dialect> Drop for Opened<'_, D> {
    fn drop(&mut self) {
        lock(&self.links.openings).extend(self.opening.take());
    }
}

impl<D: Dialect> Drop for Lent<'_, D> {
    fn drop(&mut self) {
        let abandoned = match self.state {
            State::Ready => false,
            State::Busy if self.dialect.abandoned() != Health::Dead => true,
            State::Busy | State::Dead => return,
        };
        if let Some(link) = self.link.take() {
            lock(&self.links.idle).push(Idle { link, since: Instant::now(), abandoned });
        }
    }
}

impl<D: Dialect> fmt::Debug for Links<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("idle", &lock(&self.idle).len()).finish_non_exhaustive()
    }
}

/// A panic elsewhere cannot leave a half-made change behind: each change is one push or removal.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
