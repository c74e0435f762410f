//! What this process has been told about each lease: no election state, nothing is granted or refused by it here.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_core::{FencingToken, Grant, LeaseName};
use tokio::time::Instant;

/// The highest token of each lease, which the acquire script must exceed though a failover turned its counter back;
/// and until when the last confirmation is good, which tells a lease that was removed from one that ran out.
#[derive(Default)]
pub(crate) struct Seen(Mutex<HashMap<LeaseName, Sighting>>);

#[derive(Clone, Copy)]
struct Sighting {
    highest: FencingToken,
    confirmed: Option<(FencingToken, Instant)>,
}

impl Seen {
    pub(crate) fn highest(&self, name: &LeaseName) -> FencingToken {
        self.lock().get(name).map_or(FencingToken(0), |sighting| sighting.highest)
    }

    pub(crate) fn token(&self, name: &LeaseName, token: FencingToken) {
        self.update(name, token, None);
    }

    /// Notes that the store gave or extended `grant` upon a request that was sent at `sent`.
    pub(crate) fn confirmed(&self, grant: &Grant, sent: Instant) {
        self.update(&grant.name, grant.token, Some((grant.token, sent + grant.ttl)));
    }

    /// Whether the lease of `grant` cannot have run out by itself yet.
    pub(crate) fn is_fresh(&self, grant: &Grant) -> bool {
        let confirmed = self.lock().get(&grant.name).and_then(|sighting| sighting.confirmed);
        confirmed.is_some_and(|(token, until)| token == grant.token && Instant::now() < until)
    }

    fn update(&self, name: &LeaseName, token: FencingToken, confirmed: Option<(FencingToken, Instant)>) {
        let mut seen = self.lock();
        match seen.get_mut(name) {
            Some(sighting) => {
                sighting.highest = sighting.highest.max(token);
                sighting.confirmed = confirmed.or(sighting.confirmed);
            }
            None => {
                seen.insert(name.clone(), Sighting { highest: token, confirmed });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseName, Sighting>> {
        // A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::{CandidateId, Label};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_highest_token_stays_and_a_confirmation_runs_out() {
        let seen = Seen::default();
        let name = LeaseName::new("nightly").unwrap();
        let candidate = CandidateId::draw(&Label::new("w").unwrap());
        let grant = Grant::new(name.clone(), candidate, FencingToken(7), Duration::from_secs(10));
        assert_eq!(seen.highest(&name), FencingToken(0));
        assert!(!seen.is_fresh(&grant));
        seen.confirmed(&grant, Instant::now());
        seen.token(&name, FencingToken(5));
        assert_eq!(seen.highest(&name), FencingToken(7));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(seen.is_fresh(&grant));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!seen.is_fresh(&grant));
    }
}
