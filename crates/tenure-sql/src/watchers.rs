//! Who waits for which lease, and what was seen of it last.
//!
//! A store has one task that looks for changes, however many watches it has: the task runs while somebody watches, and
//! tells the watches of the names that changed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tenure_core::{LeaseName, WakeUp};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::dialect::Dialect;
use crate::leases::Leases;
use crate::row::Seen;

/// The watches of one store.
#[derive(Debug, Default)]
pub struct Watchers {
    names: Mutex<HashMap<LeaseName, Watched>>,
    task: Mutex<Option<JoinHandle<()>>>,
    turnover: Notify,
}

/// What is kept of one name. Counting makes two wake-ups before the next look one.
#[derive(Debug)]
struct Watched {
    wake: watch::Sender<(u64, WakeUp)>,
    seen: Option<State>,
}

type State = (Option<String>, i64);

impl Watchers {
    pub fn new() -> Self {
        Self::default()
    }

    /// Wakes the watches of `name`.
    pub fn wake(&self, name: &LeaseName) {
        if let Some(watched) = lock(&self.names).get(name) {
            wake(&watched.wake, WakeUp::Changed);
        }
    }

    /// Wakes every watch: something may have been missed.
    pub fn resync(&self) {
        for watched in lock(&self.names).values() {
            wake(&watched.wake, WakeUp::Resync);
        }
    }

    /// Wakes the watches of the names among `asked` whose state is not what was seen before. The first look at a name
    /// wakes too: nobody knows what happened between the watcher's own last look and this one.
    pub fn compare(&self, asked: &[LeaseName], found: Vec<Seen>) {
        let mut found: HashMap<String, State> =
            found.into_iter().map(|seen| (seen.name, (seen.candidate, seen.token))).collect();
        let mut names = lock(&self.names);
        for name in asked {
            // A removed row is one more state.
            let state = found.remove(name.as_str()).unwrap_or((None, -1));
            if let Some(watched) = names.get_mut(name)
                && watched.seen.as_ref() != Some(&state)
            {
                watched.seen = Some(state);
                wake(&watched.wake, WakeUp::Changed);
            }
        }
    }

    /// Wakes the watches of names that are new: nobody knows what happened between the watcher's own last look and the
    /// moment from which on every change is told.
    #[cfg(feature = "postgres")]
    pub(crate) fn greet(&self) {
        for watched in lock(&self.names).values_mut().filter(|watched| watched.seen.is_none()) {
            watched.seen = Some((None, -1));
            wake(&watched.wake, WakeUp::Changed);
        }
    }

    /// The names that somebody watches, for the task; `None` when nobody does, which ends the task.
    pub fn names(&self) -> Option<Vec<LeaseName>> {
        // Held so that a watch that comes now either is seen here or finds no task and starts one.
        let mut task = lock(&self.task);
        let mut names = lock(&self.names);
        names.retain(|_, watched| watched.wake.receiver_count() > 0);
        if names.is_empty() {
            *task = None;
            return None;
        }
        Some(names.keys().cloned().collect())
    }

    /// Returns when a watch was added or dropped since the last call.
    pub async fn turnover(&self) {
        self.turnover.notified().await;
    }

    fn subscribe(&self, name: &LeaseName) -> watch::Receiver<(u64, WakeUp)> {
        match lock(&self.names).entry(name.clone()) {
            Entry::Occupied(mut known) => {
                // A newcomer's own last look may be older than what was seen last: look anew, which wakes all.
                known.get_mut().seen = None;
                known.get().wake.subscribe()
            }
            Entry::Vacant(free) => {
                let (wake, receiver) = watch::channel((0, WakeUp::Changed));
                free.insert(Watched { wake, seen: None });
                receiver
            }
        }
    }

    fn start<T: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce() -> T) {
        let mut running = lock(&self.task);
        // Outside a runtime nothing can wait either: the first poll of the stream comes here again.
        if running.as_ref().is_none_or(JoinHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            *running = Some(runtime.spawn(task()));
        }
    }
}

/// Watches `name`, with the store's one task behind it.
pub(crate) fn watch<D: Dialect>(leases: &Arc<Leases<D>>, name: &LeaseName) -> BoxStream<'static, WakeUp> {
    // Subscribed here, not at the first poll: a change in between must wake.
    let watching = Watching { receiver: Some(leases.watchers.subscribe(name)), leases: leases.clone() };
    leases.watchers.turnover.notify_one();
    watching.ensure_task();
    stream::unfold(watching, |mut watching| async move {
        watching.ensure_task();
        let receiver = watching.receiver.as_mut()?;
        // The sender lives as long as anybody receives.
        receiver.changed().await.ok()?;
        let (_, wake_up) = *receiver.borrow_and_update();
        Some((wake_up, watching))
    })
    .boxed()
}

struct Watching<D: Dialect> {
    leases: Arc<Leases<D>>,
    receiver: Option<watch::Receiver<(u64, WakeUp)>>,
}

impl<D: Dialect> Watching<D> {
    fn ensure_task(&self) {
        self.leases.watchers.start(|| D::watch(self.leases.clone()));
    }
}

impl<D: Dialect> Drop for Watching<D> {
    fn drop(&mut self) {
        self.receiver = None;
        self.leases.watchers.turnover.notify_one();
    }
}

fn wake(sender: &watch::Sender<(u64, WakeUp)>, wake_up: WakeUp) {
    sender.send_modify(|(count, last)| {
        *count += 1;
        *last = wake_up;
    });
}

/// A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
