//! Who is told of changes: one watch on the store's prefix, shared by everybody who waits on this store.
//!
//! Keep-alives change no key, so all that comes down the watch is grants, releases, removals and expiries. The watch
//! goes on from the revision after the last event that was seen. After any interruption everybody is told to look
//! again, once the watch stands and not before: what changes from then on is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use etcd_client::{Client, Error, EventType, WatchOptions, WatchResponse, WatchStream};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tenure_core::{LeaseName, StoreErrorKind, WakeUp};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::CALL_BOUND;
use crate::error::{Effect, Failure, is_login_stale, translate};
use crate::etcd::{Etcd, READ_PATIENCE, end_of_prefix};
use crate::key::Place;

/// Time before the first attempt to watch again, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest time between two attempts: waiting candidates look by themselves every few seconds anyway.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Time without an event after which the server is asked for a sign of life: connections can be dead without knowing
/// it.
const QUIET: Duration = Duration::from_secs(30);

/// The waiters of one store, and the task that tells them.
pub(crate) struct Watches {
    etcd: Arc<Etcd>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    names: HashMap<LeaseName, Crowd>,
    /// Runs as long as somebody waits.
    task: Option<JoinHandle<()>>,
    /// The revision to watch from when the task begins; 0 where none is known.
    from: i64,
}

/// Everybody who waits for one lease.
#[derive(Default)]
struct Crowd {
    seen: watch::Sender<Seen>,
    /// How many there are; the channel would count those that are just leaving.
    size: usize,
}

/// What happened to one lease so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    changes: u64,
    resyncs: u64,
    /// Whether the last change left the lease free.
    is_vacant: bool,
}

impl Seen {
    /// What to tell somebody who was told everything up to `told`.
    fn wake_up_since(self, told: Self) -> WakeUp {
        match self {
            now if now.resyncs != told.resyncs => WakeUp::Resync,
            now if now.is_vacant => WakeUp::Vacated,
            _ => WakeUp::Taken,
        }
    }
}

impl Watches {
    pub(crate) fn new(etcd: Arc<Etcd>) -> Arc<Self> {
        Arc::new(Self { etcd, waiting: Mutex::default() })
    }

    /// Wakes for every change of `name` from now on.
    pub(crate) fn of(self: &Arc<Self>, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        let place = self.enter(name);
        stream::unfold(place, |mut place| async move {
            // At the latest here there is a runtime for the task.
            place.watches.ensure_task();
            if place.seen.changed().await.is_err() {
                // The sender is kept as long as this waiter is.
                return None;
            }
            let now = *place.seen.borrow_and_update();
            let wake = now.wake_up_since(place.told);
            place.told = now;
            Some((wake, place))
        })
        .boxed()
    }

    fn enter(self: &Arc<Self>, name: &LeaseName) -> Waiter {
        let mut waiting = self.waiting();
        if waiting.task.is_none() && waiting.names.is_empty() {
            // Everything that is answered before a waiter enters is older than what it waits for.
            waiting.from = match self.etcd.revision() {
                0 => 0,
                known => known + 1,
            };
        }
        let crowd = waiting.names.entry(name.clone()).or_default();
        crowd.size += 1;
        let seen = crowd.seen.subscribe();
        let told = *seen.borrow();
        drop(waiting);
        self.ensure_task();
        Waiter { watches: self.clone(), name: name.clone(), seen, told }
    }

    fn leave(&self, name: &LeaseName) {
        let mut waiting = self.waiting();
        if let Some(crowd) = waiting.names.get_mut(name) {
            crowd.size -= 1;
            if crowd.size == 0 {
                waiting.names.remove(name);
            }
        }
        if waiting.names.is_empty()
            && let Some(task) = waiting.task.take()
        {
            task.abort();
        }
    }

    /// Starts the task if none runs: the first time, and after its runtime ended.
    fn ensure_task(self: &Arc<Self>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut waiting = self.waiting();
        if waiting.task.as_ref().is_none_or(JoinHandle::is_finished) {
            let follow = Follow { watches: Arc::downgrade(self), etcd: self.etcd.clone(), next: waiting.from };
            waiting.task = Some(runtime.spawn(follow.run()));
        }
    }

    fn tell(&self, name: &LeaseName, is_vacant: bool) {
        if let Some(crowd) = self.waiting().names.get(name) {
            crowd.seen.send_modify(|seen| {
                seen.changes += 1;
                seen.is_vacant = is_vacant;
            });
        }
    }

    fn tell_all(&self) {
        for crowd in self.waiting().names.values() {
            crowd.seen.send_modify(|seen| seen.resyncs += 1);
        }
    }

    /// Whether the task runs.
    #[cfg(test)]
    pub(crate) fn is_busy(&self) -> bool {
        self.waiting().task.as_ref().is_some_and(|task| !task.is_finished())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One waiter's place; leaves when dropped.
struct Waiter {
    watches: Arc<Watches>,
    name: LeaseName,
    seen: watch::Receiver<Seen>,
    /// What the waiter was told of.
    told: Seen,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.watches.leave(&self.name);
    }
}

/// The task: follows the prefix until nobody waits any more.
struct Follow {
    watches: Weak<Watches>,
    etcd: Arc<Etcd>,
    /// The first revision that was not seen yet; 0 where none is known.
    next: i64,
}

/// Why a watch ended.
enum End {
    /// The connection broke, or the server ended it.
    Broken(Failure),
    /// What lies between the last event and now was compacted away.
    Compacted,
    /// Nobody waits any more.
    NobodyWaits,
}

impl Follow {
    async fn run(mut self) {
        let mut gap = self.next == 0;
        let mut pause = FIRST_PAUSE;
        let mut warned = false;
        loop {
            let failure = match self.open().await {
                Ok(stream) => {
                    pause = FIRST_PAUSE;
                    if gap && !self.with(Watches::tell_all) {
                        return;
                    }
                    match self.follow(stream).await {
                        End::NobodyWaits => return,
                        End::Compacted => {
                            self.next = 0;
                            gap = true;
                            continue;
                        }
                        End::Broken(failure) => failure,
                    }
                }
                Err(End::Compacted) => {
                    self.next = 0;
                    gap = true;
                    continue;
                }
                Err(End::NobodyWaits) => return,
                Err(End::Broken(failure)) => failure,
            };
            gap = true;
            warned = log(&failure, self.etcd.keys.prefix(), warned);
            sleep(pause.mul_f64(0.5 + fastrand::f64())).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Opens the watch, and returns once the server says that it stands.
    async fn open(&mut self) -> Result<WatchStream, End> {
        let (prefix, next) = (self.etcd.keys.prefix(), self.next);
        let end = end_of_prefix(prefix);
        let request = |client: Client| {
            let options = WatchOptions::new().with_range(end.clone()).with_start_revision(next);
            async move { open(client, prefix, options).await }
        };
        let opened = timeout(CALL_BOUND, self.etcd.endpoints.call(Effect::None, READ_PATIENCE, request)).await;
        let (stream, first) = match opened {
            Ok(opened) => opened.map_err(End::Broken)?,
            Err(_) => return Err(End::Broken(Failure::no_answer(Effect::None, CALL_BOUND))),
        };
        if let Some(end) = end_of(&first) {
            return Err(end);
        }
        let head = first.header().map_or(0, etcd_client::ResponseHeader::revision);
        if head + 1 < self.next {
            // A cluster restored from a backup, or a member that lags: events may come under revisions seen already.
            return Err(End::Compacted);
        }
        if self.next == 0 {
            self.next = head + 1;
        }
        Ok(stream)
    }

    async fn follow(&mut self, mut stream: WatchStream) -> End {
        let mut asked = false;
        loop {
            let bound = if asked { CALL_BOUND } else { QUIET };
            let message = match timeout(bound, stream.message()).await {
                Ok(Ok(Some(message))) => message,
                Ok(Ok(None)) => return broken("the server ended the watch"),
                Ok(Err(error)) => return End::Broken(translate(error, Effect::None)),
                Err(_) if asked => return broken("the server went silent"),
                Err(_) => {
                    asked = true;
                    match timeout(CALL_BOUND, stream.request_progress()).await {
                        Ok(Ok(())) => continue,
                        _ => return broken("the connection broke"),
                    }
                }
            };
            asked = false;
            if let Some(end) = end_of(&message) {
                return end;
            }
            for event in message.events() {
                let Some(kv) = event.kv() else { continue };
                self.next = self.next.max(kv.mod_revision() + 1);
                let is_vacant = event.event_type() == EventType::Delete;
                if let Place::Lease(name) = self.etcd.keys.place_of(kv.key())
                    && !self.with(|watches| watches.tell(&name, is_vacant))
                {
                    return End::NobodyWaits;
                }
            }
        }
    }

    /// Calls `tell` with the waiters, and returns whether there may be any.
    fn with(&self, tell: impl FnOnce(&Watches)) -> bool {
        self.watches.upgrade().is_some_and(|watches| {
            tell(&watches);
            true
        })
    }
}

/// Opens a watch and takes the server's first message.
async fn open(client: Client, prefix: &str, options: WatchOptions) -> Result<(WatchStream, WatchResponse), Error> {
    let mut login_is_fresh = false;
    loop {
        let mut stream = client.watch_client().watch(prefix, Some(options.clone())).await?;
        match stream.message().await {
            // A login that ran out shows as either; the client renews it for single requests only.
            Ok(Some(first)) if is_refused(&first) && !login_is_fresh => client.refresh_token().await?,
            Err(error) if !login_is_fresh && is_login_stale(&error) => client.refresh_token().await?,
            Ok(Some(first)) => return Ok((stream, first)),
            Ok(None) => return Err(Error::WatchError("the server ended the watch before it stood".into())),
            Err(error) => return Err(error),
        }
        login_is_fresh = true;
    }
}

/// Whether the server cancelled the watch for want of a right.
fn is_refused(message: &WatchResponse) -> bool {
    let why = message.cancel_reason();
    message.canceled() && (why.contains("permission denied") || why.contains("auth"))
}

/// Whether the server cancelled the watch with this message, and why.
fn end_of(message: &WatchResponse) -> Option<End> {
    if message.compact_revision() > 0 {
        return Some(End::Compacted);
    }
    message.canceled().then(|| {
        let kind = if is_refused(message) { StoreErrorKind::Denied } else { StoreErrorKind::Unavailable };
        let why = message.cancel_reason().escape_debug();
        End::Broken(Failure::new(kind, format!("the server cancelled the watch: {why}")))
    })
}

fn broken(why: &'static str) -> End {
    End::Broken(Failure::new(StoreErrorKind::Unavailable, why))
}

/// Tells an operator once why candidates are slower than they could be; whether that was said.
fn log(failure: &Failure, prefix: &str, warned: bool) -> bool {
    if failure.kind.is_transient() || warned {
        tracing::debug!(?failure, prefix, "the watch on etcd broke; trying again");
        return warned;
    }
    tracing::warn!(?failure, prefix, "etcd refuses the watch; candidates poll until it does not");
    true
}
