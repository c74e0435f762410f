//! A clock for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Clock, Moment};

/// A clock on tokio's timer, for tests: under `start_paused` an hour of lease time takes milliseconds and no test
/// sleeps for real. It can also pretend that the host was suspended.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::clock::{Clock, TestClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = TestClock::new();
/// let start = clock.now();
/// clock.sleep_until(start + Duration::from_secs(3600)).await;
/// clock.suspend(Duration::from_secs(60));
/// assert_eq!(clock.now() - start, Duration::from_secs(3660));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TestClock {
    start: Instant,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    suspended: Mutex<Duration>,
    advanced: Mutex<Duration>,
    jumped: Notify,
}

impl TestClock {
    /// A clock that starts an hour after its origin, so that times before the start can be expressed. Clones share it.
    pub fn new() -> Self {
        Self { start: Instant::now(), shared: Arc::default() }
    }

    /// Lets `d` pass at once, as if the host had been suspended: timers of tokio do not count it, this clock does.
    pub fn suspend(&self, d: Duration) {
        *lock(&self.shared.suspended) += d;
        self.shared.jumped.notify_waiters();
    }

    /// Lets `d` pass at once, as if nobody had been scheduled meanwhile: for tests on runtimes whose time cannot be
    /// paused.
    pub fn advance(&self, d: Duration) {
        *lock(&self.shared.advanced) += d;
        self.shared.jumped.notify_waiters();
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Moment {
        const ORIGIN: Duration = Duration::from_secs(3600);
        Moment::new(ORIGIN + self.start.elapsed() + *lock(&self.shared.advanced) + self.suspended())
    }

    fn suspended(&self) -> Duration {
        *lock(&self.shared.suspended)
    }

    async fn sleep_until(&self, at: Moment) {
        loop {
            let mut jumped = std::pin::pin!(self.shared.jumped.notified());
            // Registered before the clock is read, so that no jump in between is missed.
            jumped.as_mut().enable();
            let left = at - self.now();
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = jumped => {}
            }
        }
    }
}

fn lock(d: &Mutex<Duration>) -> MutexGuard<'_, Duration> {
    d.lock().unwrap_or_else(PoisonError::into_inner)
}
