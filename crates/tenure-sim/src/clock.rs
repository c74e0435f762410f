//! Time in the simulated world: true time, which only the observer knows, and each host's own clock.

/// Nanoseconds of true time, or of one host's clock; the name of the variable says which.
pub type Nanos = u64;

/// One millisecond.
pub const MS: Nanos = 1_000_000;
/// One second.
pub const S: Nanos = 1_000 * MS;

/// The drift that Tenure allows for, in parts per million: 1 %.
pub const DRIFT: i32 = 10_000;

const PER_MILLION: u64 = 1_000_000;

/// A host's boot-time clock: runs at a rate of its own, counts suspends, and may be stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostClock {
    since_true: Nanos,
    since_local: Nanos,
    /// Local time per million of true time.
    rate: u64,
}

impl HostClock {
    /// A clock that shows `local` at the beginning of the world.
    pub fn new(local: Nanos) -> Self {
        Self { since_true: 0, since_local: local, rate: PER_MILLION }
    }

    /// What the clock shows at true time `now`. Good for five hours after the last change of rate.
    pub fn local(&self, now: Nanos) -> Nanos {
        self.since_local + (now - self.since_true) * self.rate / PER_MILLION
    }

    /// The first true time at which the clock shows `local` or more; the last change of the clock, if it did before.
    pub fn when(&self, local: Nanos) -> Nanos {
        let ahead = local.saturating_sub(self.since_local);
        self.since_true + (ahead * PER_MILLION).div_ceil(self.rate)
    }

    /// From true time `now` on, the clock runs fast by `ppm` parts per million, or slow if negative.
    pub fn set_rate(&mut self, now: Nanos, ppm: i32) {
        self.step(now, 0);
        self.rate = PER_MILLION.saturating_add_signed(ppm.into());
    }

    /// Steps the clock by `by` at true time `now`.
    pub fn step(&mut self, now: Nanos, by: i64) {
        self.since_local = self.local(now).saturating_add_signed(by);
        self.since_true = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_it_was_asked_to_wait_for_and_not_a_moment_earlier() {
        let mut clock = HostClock::new(77 * S);
        for ppm in [0, DRIFT, -DRIFT, 10 * DRIFT, 1, -1] {
            clock.set_rate(5 * S, ppm);
            for local in [77 * S + 1, 83 * S, 83 * S + 7, 100 * S + 333] {
                let now = clock.when(local);
                assert!(clock.local(now) >= local, "{ppm} {local}");
                assert!(now == 5 * S || clock.local(now - 1) < local, "{ppm} {local}");
            }
        }
    }

    #[test]
    fn a_step_moves_the_clock_at_once_and_a_rate_from_then_on() {
        let mut clock = HostClock::new(0);
        clock.step(S, -500_000_000);
        assert_eq!(clock.local(2 * S), 1_500 * MS);
        clock.set_rate(2 * S, DRIFT);
        assert_eq!(clock.local(102 * S), 102_500 * MS);
    }
}
