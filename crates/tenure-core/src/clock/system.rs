//! The clock of the host.

use std::time::Duration;

use async_trait::async_trait;

use super::{Clock, Moment};

/// The host's clock, which counts suspend: `CLOCK_BOOTTIME` on Linux.
///
/// On Linux each sleep is a timer of the kernel on that clock, so that a sleeper whose time came during a suspend wakes
/// right after it. On macOS `CLOCK_MONOTONIC` counts sleep too; there, and on other systems, a sleeper looks at the
/// clock every 100 ms at least. Where the system has no clock that counts suspend, the standard library's is used, and
/// a suspend is not noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The host's clock.
    pub const fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment::new(host::now())
    }

    fn suspended(&self) -> Duration {
        host::now().saturating_sub(host::awake())
    }

    async fn sleep_until(&self, at: Moment) {
        host::sleep_until(at.since_origin()).await;
    }
}

/// Sleeps in steps that are short enough to notice a suspend soon: the way of systems without a timer on this clock.
async fn sleep_in_steps(at: Duration) {
    const STEP: Duration = Duration::from_millis(100);
    loop {
        let left = at.saturating_sub(host::now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(STEP)).await;
    }
}

#[cfg(unix)]
fn read(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(target_os = "linux")]
mod host {
    use std::time::Duration;

    use rustix::time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) fn now() -> Duration {
        super::read(ClockId::Boottime)
    }

    pub(super) fn awake() -> Duration {
        super::read(ClockId::Monotonic)
    }

    /// Waits on a kernel timer; without one (no descriptor left, no I/O driver in the runtime) in steps.
    pub(super) async fn sleep_until(at: Duration) {
        if now() >= at {
            return;
        }
        match timer(at) {
            Some(timer) => {
                // The kernel's timer may be cancelled or fire early on a broken host: the clock has the last word.
                if timer.readable().await.is_err() || now() < at {
                    super::sleep_in_steps(at).await;
                }
            }
            None => super::sleep_in_steps(at).await,
        }
    }

    #[expect(
        deprecated,
        reason = "deprecated for types that may close their descriptor under the reactor, which an owned one cannot; \
                  its successor is `unsafe`, which this workspace forbids"
    )]
    fn timer(at: Duration) -> Option<AsyncFd<std::os::fd::OwnedFd>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Boottime, flags).ok()?;
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let due = Timespec { tv_sec: i64::try_from(at.as_secs()).ok()?, tv_nsec: i64::from(at.subsec_nanos()) };
        timerfd_settime(&fd, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval: zero, it_value: due }).ok()?;
        AsyncFd::with_interest(fd, Interest::READABLE).ok()
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
mod host {
    use std::time::Duration;

    use rustix::time::ClockId;

    pub(super) fn now() -> Duration {
        super::read(ClockId::Monotonic)
    }

    /// No second clock to compare with: a suspend counts, but is not told apart.
    pub(super) fn awake() -> Duration {
        now()
    }

    pub(super) async fn sleep_until(at: Duration) {
        super::sleep_in_steps(at).await;
    }
}

#[cfg(not(unix))]
mod host {
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(super) fn now() -> Duration {
        ORIGIN.elapsed()
    }

    pub(super) fn awake() -> Duration {
        now()
    }

    pub(super) async fn sleep_until(at: Duration) {
        super::sleep_in_steps(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_time_that_has_passed_is_not_slept_for() {
        let clock = SystemClock::new();
        let now = clock.now();
        clock.sleep_until(now).await;
        assert!(clock.now() >= now);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_host_clock_counts_suspend() {
        let boot = super::read(rustix::time::ClockId::Boottime);
        let now = SystemClock.now().since_origin();
        assert!(now.abs_diff(boot) < Duration::from_secs(1), "{now:?} is not the boot-time clock's {boot:?}");
        assert!(SystemClock.suspended() <= now);
    }
}
