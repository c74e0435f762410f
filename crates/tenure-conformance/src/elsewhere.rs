//! Clients in other processes.

use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::LeaseStore;

use crate::Unable;

/// What is different where a client in another process lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Surroundings {
    /// By how many seconds its wall clock is ahead (or behind, when negative). Its monotonic clocks are true.
    pub wall_clock_ahead: i64,
    /// Its time zone, as the environment variable `TZ`; `None`: as here.
    pub time_zone: Option<&'static str>,
}

impl Surroundings {
    /// With a wall clock that is so many seconds ahead.
    #[must_use]
    pub fn with_wall_clock_ahead(mut self, seconds: i64) -> Self {
        self.wall_clock_ahead = seconds;
        self
    }

    /// In another time zone.
    #[must_use]
    pub fn with_time_zone(mut self, zone: &'static str) -> Self {
        self.time_zone = Some(zone);
        self
    }
}

/// A client in another process.
#[async_trait]
pub trait Elsewhere: Send + Sync {
    /// The client: its calls are made over there.
    fn store(&self) -> Arc<dyn LeaseStore>;

    /// Kills the process, without a chance to tidy up, and returns when it is dead.
    ///
    /// # Errors
    ///
    /// [`Unable`] when it cannot.
    async fn kill(&self) -> Result<(), Unable>;
}
