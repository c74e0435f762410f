//! The only reader of time.
//!
//! Everything that decides by time does so on a [`Clock`]. The system clock counts host suspend, so a suspend uses a
//! lease up like any other time. Wall clocks are read for display only, and not here.

use std::fmt;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

mod system;
mod test;

pub use system::SystemClock;
pub use test::TestClock;

/// A point in time on one [`Clock`]; comparable only with others of the same clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The point `since_origin` after the clock's own origin, which means nothing outside that clock.
    pub const fn new(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// Time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is not earlier.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `d` before; the clock's origin when that lies before it.
    #[must_use]
    pub const fn saturating_sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d))
    }
}

impl Sub<Moment> for Moment {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

/// Reads time and waits for it.
///
/// # Contract
///
/// `now` never goes back, advances at a rate within ±1 % of true time, and counts the time the host was suspended.
/// A clock that cannot count suspend says so by a `suspended` that stays zero.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Moment;

    /// How long the host was suspended since some fixed origin. Only differences mean anything.
    fn suspended(&self) -> Duration;

    /// Returns when `now` has reached `at`: never before, and soon after, a suspend included.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    async fn sleep_until(&self, at: Moment);
}

#[async_trait]
impl<T: Clock + ?Sized> Clock for Arc<T> {
    fn now(&self) -> Moment {
        (**self).now()
    }

    fn suspended(&self) -> Duration {
        (**self).suspended()
    }

    async fn sleep_until(&self, at: Moment) {
        (**self).sleep_until(at).await;
    }
}
