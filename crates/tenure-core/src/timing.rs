//! How long things take, and the rule that keeps them safe.

use std::time::Duration;

use crate::Invalid;

/// Drift that is allowed for, in percent: any two clocks involved run within ±1 % of true time. NTP slews at most
/// 0.05 %, so this is generous and costs 2 % of a ttl.
const DRIFT_PERCENT: u32 = 1;

/// Room for timers and the scheduler between a deadline and the end of the lease (`m` in the protocol).
const MARGIN: Duration = Duration::from_millis(5);

/// The times of an election; one that exists keeps the rule below.
///
/// | value | default | meaning |
/// |---|---|---|
/// | `ttl` | 15 s | what the store is asked for |
/// | `renew_every` | ttl/3 | between renewals, counted from the sending of one to the sending of the next |
/// | `attempt_timeout` | ttl/5 | bound on one store call |
/// | `retry_every` | ttl/15 | after an unknown or unavailable answer, jittered |
/// | `poll_every` | ttl/3 | how often a waiting candidate looks when nothing wakes it, jittered |
/// | `stop_budget` | ttl/5 | what the work gets between the stop signal and being cut off |
/// | `settle_delay` | 0 | between a grant and the start of the work, unless the earlier term was given up in order |
/// | `clock_step` | 0 | how far the store's lease clock may step forward (assumption A4) |
///
/// # Time
///
/// A leader may act for [`validity`](Self::validity) from the sending of the last request that was confirmed:
/// `V = ttl·(1-ε)/(1+ε) - clock_step - 5 ms` with ε = 1 %, so that its time ends before the store's on any two clocks
/// within the drift. (C. Gray and D. Cheriton, "Leases", 1989.) The rule, `renew_every + 2·attempt_timeout +
/// stop_budget ≤ V`, leaves room for a renewal that hangs and another that succeeds before the work is told to stop.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::Timing;
///
/// let timing = Timing::with_ttl(Duration::from_secs(30))?;
/// assert_eq!(timing.renew_every(), Duration::from_secs(10));
/// let short = Timing::builder(Duration::from_secs(30)).renew_every(Duration::from_secs(25)).build();
/// assert!(short.is_err());
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    ttl: Duration,
    renew_every: Duration,
    attempt_timeout: Duration,
    retry_every: Duration,
    poll_every: Duration,
    stop_budget: Duration,
    settle_delay: Duration,
    clock_step: Duration,
}

impl Timing {
    /// The defaults for `ttl`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the ttl is too short for the rule (under about 110 ms) or absurdly long (over ten years).
    pub fn with_ttl(ttl: Duration) -> Result<Self, Invalid> {
        Self::builder(ttl).build()
    }

    /// Starts from the defaults for `ttl`.
    pub fn builder(ttl: Duration) -> TimingBuilder {
        TimingBuilder {
            timing: Self {
                ttl,
                renew_every: ttl / 3,
                attempt_timeout: ttl / 5,
                retry_every: ttl / 15,
                poll_every: ttl / 3,
                stop_budget: ttl / 5,
                settle_delay: Duration::ZERO,
                clock_step: Duration::ZERO,
            },
        }
    }

    /// What the store is asked for.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Time between the sending of two renewals.
    pub const fn renew_every(&self) -> Duration {
        self.renew_every
    }

    /// Bound on one store call.
    pub const fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// Time before a failed call is repeated, jittered by half.
    pub const fn retry_every(&self) -> Duration {
        self.retry_every
    }

    /// Longest time between two looks of a waiting candidate.
    pub const fn poll_every(&self) -> Duration {
        self.poll_every
    }

    /// What the work gets between the stop signal and being cut off.
    pub const fn stop_budget(&self) -> Duration {
        self.stop_budget
    }

    /// Time between a grant and the start of the work.
    pub const fn settle_delay(&self) -> Duration {
        self.settle_delay
    }

    /// How far the store's lease clock may step forward.
    pub const fn clock_step(&self) -> Duration {
        self.clock_step
    }

    /// How long a leader may act from the sending of a confirmed request, if the store granted `granted`.
    ///
    /// A ttl longer than asked for does not lengthen it; a shorter one shortens it.
    pub fn validity(&self, granted: Duration) -> Duration {
        let ttl = granted.min(self.ttl);
        let in_drift = ttl * (100 - DRIFT_PERCENT) / (100 + DRIFT_PERCENT);
        in_drift.saturating_sub(self.clock_step).saturating_sub(MARGIN)
    }

    /// Room between a deadline and the end of the lease; work that runs longer has overrun.
    pub(crate) const fn margin() -> Duration {
        MARGIN
    }
}

impl Default for Timing {
    /// The defaults for a ttl of 15 s.
    fn default() -> Self {
        Self::builder(Duration::from_secs(15)).timing
    }
}

/// Changes single times of a [`Timing`] before it is checked.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct TimingBuilder {
    timing: Timing,
}

impl TimingBuilder {
    /// Sets the time between two renewals.
    pub const fn renew_every(mut self, d: Duration) -> Self {
        self.timing.renew_every = d;
        self
    }

    /// Sets the bound on one store call.
    pub const fn attempt_timeout(mut self, d: Duration) -> Self {
        self.timing.attempt_timeout = d;
        self
    }

    /// Sets the time before a failed call is repeated.
    pub const fn retry_every(mut self, d: Duration) -> Self {
        self.timing.retry_every = d;
        self
    }

    /// Sets the longest time between two looks of a waiting candidate.
    pub const fn poll_every(mut self, d: Duration) -> Self {
        self.timing.poll_every = d;
        self
    }

    /// Sets what the work gets between the stop signal and being cut off.
    pub const fn stop_budget(mut self, d: Duration) -> Self {
        self.timing.stop_budget = d;
        self
    }

    /// Sets the time between a grant and the start of the work.
    pub const fn settle_delay(mut self, d: Duration) -> Self {
        self.timing.settle_delay = d;
        self
    }

    /// Sets how far the store's lease clock may step forward.
    pub const fn clock_step(mut self, d: Duration) -> Self {
        self.timing.clock_step = d;
        self
    }

    /// Checks the rule.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the values and the rule that they break. Nothing is adjusted.
    pub fn build(self) -> Result<Timing, Invalid> {
        const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        let t = self.timing;
        for (name, value) in [
            ("ttl", t.ttl),
            ("renew_every", t.renew_every),
            ("attempt_timeout", t.attempt_timeout),
            ("retry_every", t.retry_every),
            ("poll_every", t.poll_every),
            ("stop_budget", t.stop_budget),
        ] {
            if value.is_zero() {
                return Err(Invalid::new(format!("{name} is 0: it must be longer")));
            }
        }
        for (name, value) in [
            ("ttl", t.ttl),
            ("poll_every", t.poll_every),
            ("retry_every", t.retry_every),
            ("settle_delay", t.settle_delay),
            ("clock_step", t.clock_step),
            ("renew_every", t.renew_every),
            ("attempt_timeout", t.attempt_timeout),
            ("stop_budget", t.stop_budget),
        ] {
            if value > LONGEST {
                return Err(Invalid::new(format!("{name} of {value:?} is too long: ten years at most")));
            }
        }
        let validity = t.validity(t.ttl);
        let needed = t.renew_every + 2 * t.attempt_timeout + t.stop_budget;
        if needed > validity {
            return Err(Invalid::new(format!(
                "renew_every {:?} + 2 x attempt_timeout {:?} + stop_budget {:?} = {needed:?} must not exceed the validity \
                 {validity:?} of a ttl of {:?}; lengthen the ttl or shorten the others",
                t.renew_every, t.attempt_timeout, t.stop_budget, t.ttl
            )));
        }
        Ok(t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn the_defaults_keep_the_rule() {
        assert_eq!(Timing::default(), Timing::with_ttl(15 * S).unwrap());
        let t = Timing::default();
        assert_eq!((t.ttl(), t.renew_every(), t.attempt_timeout()), (15 * S, 5 * S, 3 * S));
        assert_eq!((t.retry_every(), t.poll_every(), t.stop_budget()), (S, 5 * S, 3 * S));
        assert_eq!((t.settle_delay(), t.clock_step()), (Duration::ZERO, Duration::ZERO));
        for ttl in [110, 200, 1_000, 60_000, 86_400_000] {
            assert!(Timing::with_ttl(Duration::from_millis(ttl)).is_ok(), "{ttl} ms");
        }
    }

    /// K09.
    #[test]
    fn validity_allows_for_drift_step_and_margin() {
        let t = Timing::builder(101 * S).clock_step(4 * S).build().unwrap();
        assert_eq!(t.validity(101 * S), Duration::from_millis(94_995));
        assert_eq!(t.validity(200 * S), Duration::from_millis(94_995), "a longer grant is no longer authority");
        assert_eq!(t.validity(Duration::from_millis(50_500)), Duration::from_millis(45_495));
        assert_eq!(t.validity(S), Duration::ZERO);
    }

    /// K13.
    #[test]
    fn each_refusal_names_the_values_and_the_rule() {
        let refusal = |builder: TimingBuilder| builder.build().unwrap_err().to_string();
        let base = Timing::builder(15 * S);
        assert_eq!(
            refusal(base.renew_every(6 * S)),
            "renew_every 6s + 2 x attempt_timeout 3s + stop_budget 3s = 15s must not exceed the validity 14.697970297s of a \
             ttl of 15s; lengthen the ttl or shorten the others"
        );
        assert_eq!(refusal(Timing::builder(Duration::ZERO)), "ttl is 0: it must be longer");
        assert_eq!(refusal(base.retry_every(Duration::ZERO)), "retry_every is 0: it must be longer");
        assert_eq!(refusal(base.poll_every(Duration::ZERO)), "poll_every is 0: it must be longer");
        assert_eq!(refusal(base.attempt_timeout(Duration::ZERO)), "attempt_timeout is 0: it must be longer");
        assert_eq!(refusal(base.stop_budget(Duration::ZERO)), "stop_budget is 0: it must be longer");
        assert!(refusal(base.settle_delay(Duration::MAX)).starts_with("settle_delay of "));
        assert!(refusal(Timing::builder(Duration::from_millis(100))).contains("must not exceed the validity"));
        assert!(refusal(base.clock_step(15 * S)).contains("the validity 0ns"));
    }
}
