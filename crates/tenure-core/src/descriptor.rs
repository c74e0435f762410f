//! What a store says about itself.

use std::borrow::Cow;
use std::time::Duration;

/// Describes a store: what it can do, how late it may be, and how far its word can be trusted.
///
/// Built with [`StoreDescriptor::new`], which assumes the weakest of everything, and the `with_` methods.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreDescriptor {
    /// The technology, one lower-case word: `redis`, `etcd`, `sqlite`. Metrics and errors carry it.
    pub name: Cow<'static, str>,
    /// The server's version, where a connection has told it.
    pub version: Option<String>,
    /// The shortest ttl that the store keeps as asked.
    pub min_ttl: Duration,
    /// The longest.
    pub max_ttl: Duration,
    /// A ttl must be a multiple of this. Whole-second stores say one second.
    pub ttl_unit: Duration,
    /// How much later than its ttl a lease that nobody renews may be free (`g` in the docs).
    pub lateness: Duration,
    /// What a fencing token survives.
    pub token: TokenDurability,
    /// How a waiter learns of a change.
    pub wake_up: WakeUpKind,
    /// Whose clock lets a lease run out.
    pub clock: LeaseClock,
}

impl StoreDescriptor {
    /// A store called `name` with any ttl from 1 ms to ten years, no lateness, tokens that can fall back, no push and
    /// the server's wall clock.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            version: None,
            min_ttl: Duration::from_millis(1),
            max_ttl: Duration::from_secs(10 * 365 * 24 * 60 * 60),
            ttl_unit: Duration::from_millis(1),
            lateness: Duration::ZERO,
            token: TokenDurability::BestEffort,
            wake_up: WakeUpKind::Poll,
            clock: LeaseClock::ServerWall,
        }
    }

    /// With the server's version.
    #[must_use]
    pub fn with_version(mut self, version: Option<String>) -> Self {
        self.version = version;
        self
    }

    /// With ttls between `min` and `max` in multiples of `unit`.
    #[must_use]
    pub fn with_ttl_limits(mut self, min: Duration, max: Duration, unit: Duration) -> Self {
        (self.min_ttl, self.max_ttl, self.ttl_unit) = (min, max, unit);
        self
    }

    /// With the bound on late expiry.
    #[must_use]
    pub fn with_lateness(mut self, lateness: Duration) -> Self {
        self.lateness = lateness;
        self
    }

    /// With what a token survives.
    #[must_use]
    pub fn with_token(mut self, token: TokenDurability) -> Self {
        self.token = token;
        self
    }

    /// With how a waiter learns of a change.
    #[must_use]
    pub fn with_wake_up(mut self, wake_up: WakeUpKind) -> Self {
        self.wake_up = wake_up;
        self
    }

    /// With whose clock lets a lease run out.
    #[must_use]
    pub fn with_clock(mut self, clock: LeaseClock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks that the store keeps `ttl` as asked.
    ///
    /// # Errors
    ///
    /// The refusal as text: what was asked, what the store takes. Nothing is rounded.
    pub fn check_ttl(&self, ttl: Duration) -> Result<(), crate::Invalid> {
        let refuse = |rule: String| {
            Err(crate::Invalid::new(format!("ttl of {ttl:?} is not possible with {}: {rule}", self.name)))
        };
        if ttl < self.min_ttl {
            return refuse(format!("it keeps leases for at least {:?}", self.min_ttl));
        }
        if ttl > self.max_ttl {
            return refuse(format!("it keeps leases for at most {:?}", self.max_ttl));
        }
        if !self.ttl_unit.is_zero() && !ttl.as_nanos().is_multiple_of(self.ttl_unit.as_nanos()) {
            return refuse(format!("it takes multiples of {:?} only", self.ttl_unit));
        }
        Ok(())
    }
}

/// What a fencing token survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TokenDurability {
    /// Can fall back after a failover or a crash: an acknowledged grant may be lost.
    BestEffort,
    /// As durable as one server's disk.
    SingleNode,
    /// Survives the loss of a minority of servers, and restarts.
    Durable,
}

/// How a waiter learns of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WakeUpKind {
    /// The store tells: [`LeaseStore::watch`](crate::LeaseStore::watch) yields.
    Push,
    /// The store tells nothing; the waiter looks again when the record runs out, and every `poll_every`.
    Poll,
}

/// Whose clock lets a lease run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseClock {
    /// A monotonic clock of the server.
    ServerMonotonic,
    /// The server's wall clock: a step forward frees leases early.
    ServerWall,
    /// The clock of the one host that all candidates share; it counts suspend and never steps.
    HostBootTime,
    /// Each candidate times the record's changes on its own monotonic clock.
    Observer,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K13.
    #[test]
    fn a_ttl_that_the_store_would_change_is_refused_with_the_rule() {
        let s = Duration::from_secs;
        let store = StoreDescriptor::new("kubernetes").with_ttl_limits(s(1), s(3600), s(1));
        let refusal = |ttl| store.check_ttl(ttl).unwrap_err().to_string();
        assert!(store.check_ttl(s(15)).is_ok());
        assert_eq!(
            refusal(Duration::from_millis(1500)),
            "ttl of 1.5s is not possible with kubernetes: it takes multiples of 1s only"
        );
        assert_eq!(
            refusal(Duration::from_millis(500)),
            "ttl of 500ms is not possible with kubernetes: it keeps leases for at least 1s"
        );
        assert_eq!(refusal(s(3601)), "ttl of 3601s is not possible with kubernetes: it keeps leases for at most 3600s");
    }
}
