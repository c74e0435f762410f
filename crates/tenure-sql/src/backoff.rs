//! How long a watch waits before it connects again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// A session that lasted this long was a healthy one: its end is the first trouble, not one more.
const HEALTHY: Duration = Duration::from_secs(10);

/// Pauses that double from 50 ms to 5 s.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    /// The pause after a session that lasted `lasted`.
    pub(crate) fn after(&mut self, lasted: Duration) -> Duration {
        if lasted > HEALTHY {
            self.0 = FIRST;
        }
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_start_anew_after_a_healthy_session() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..9).map(|_| backoff.after(Duration::ZERO)).collect();
        assert_eq!((pauses[0], pauses[1], pauses[8]), (FIRST, FIRST * 2, LONGEST));
        assert_eq!(backoff.after(HEALTHY * 2), FIRST);
    }
}
