//! A timing as plain numbers, with the validity worked out from the protocol's formula and not by the code under test.

use std::time::Duration;

use tenure_core::Timing;

use crate::clock::{MS, Nanos};

/// The times of one candidate's election in nanoseconds of its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    /// What the store is asked for.
    pub ttl: Nanos,
    /// Between two renewals.
    pub renew_every: Nanos,
    /// Bound on one call.
    pub attempt_timeout: Nanos,
    /// Before a failed call is repeated.
    pub retry_every: Nanos,
    /// Between two looks of a waiting candidate.
    pub poll_every: Nanos,
    /// Between the stop signal and the cut.
    pub stop_budget: Nanos,
    /// Between a grant and the start of the work.
    pub settle_delay: Nanos,
    /// How far the store's clock may step forward.
    pub clock_step: Nanos,
}

impl Times {
    /// The numbers of `timing`.
    pub fn of(timing: &Timing) -> Self {
        Self {
            ttl: nanos(timing.ttl()),
            renew_every: nanos(timing.renew_every()),
            attempt_timeout: nanos(timing.attempt_timeout()),
            retry_every: nanos(timing.retry_every()),
            poll_every: nanos(timing.poll_every()),
            stop_budget: nanos(timing.stop_budget()),
            settle_delay: nanos(timing.settle_delay()),
            clock_step: nanos(timing.clock_step()),
        }
    }

    /// `V`: how long a leader may act from the sending of a request that was granted `ttl`.
    pub fn validity(&self, ttl: Nanos) -> Nanos {
        (ttl.min(self.ttl) * 99 / 101).saturating_sub(self.clock_step).saturating_sub(5 * MS)
    }
}

/// `d` in nanoseconds; all times of a simulation fit.
pub fn nanos(d: Duration) -> Nanos {
    d.as_nanos() as Nanos
}

/// `n` nanoseconds as a duration.
pub fn duration(n: Nanos) -> Duration {
    Duration::from_nanos(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_validity_worked_out_here_is_the_one_that_ships() {
        for (ttl, step) in [(15_000, 0), (250, 0), (15_000, 700), (60_000, 1)] {
            let ttl = Duration::from_millis(ttl);
            let timing = Timing::builder(ttl).clock_step(Duration::from_millis(step)).stop_budget(ttl / 20).build();
            let timing = timing.unwrap();
            for granted in [ttl, ttl * 2, ttl * 9 / 10] {
                let ours = Times::of(&timing).validity(nanos(granted));
                assert_eq!(ours, nanos(timing.validity(granted)), "{ttl:?} {granted:?}");
            }
        }
    }
}
