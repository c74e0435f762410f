//! The tasks of one term.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Keeps what a term has started, so that it can be cut off and waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    cut_off: bool,
    handles: Vec<AbortHandle>,
}

impl Tasks {
    /// Counts whatever holds it as part of the term.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    pub(crate) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let handle = self.tracker.spawn(task);
        let mut open = self.lock();
        if open.cut_off {
            handle.abort();
        } else {
            open.handles.retain(|handle| !handle.is_finished());
            open.handles.push(handle.abort_handle());
        }
        handle
    }

    /// Aborts every task, and every one that is spawned later.
    pub(crate) fn cut_off(&self) {
        let mut open = self.lock();
        open.cut_off = true;
        for handle in open.handles.drain(..) {
            handle.abort();
        }
    }

    /// Returns when nothing of the term runs any more.
    pub(crate) async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
