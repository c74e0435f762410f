//! What HTTP tells about this candidate. Every answer about leadership compares the clock at that very moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tenure::clock::{Clock, SystemClock};
use tenure::{Election, LeaseName, LeaseStore, Term};
use tokio::sync::{Notify, watch};

use super::metrics::Metrics;
use super::sight::Sight;
use crate::output;
use crate::witnessed::Witnessed;

/// The loop ticks so often.
const TICK: Duration = Duration::from_millis(500);

/// A loop that has not ticked for so long is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// What HTTP tells about this candidate.
pub(crate) struct Candidacy {
    name: String,
    /// What the store is, and what its answers showed; `None` before it was opened.
    store: OnceLock<Arc<Witnessed<Sight>>>,
    leading: Mutex<Option<Leading>>,
    /// When the loop ticked last, in milliseconds of the boot-time clock.
    ticked: AtomicU64,
    /// Counts changes of leadership.
    changes: watch::Sender<u64>,
    metrics: Metrics,
    /// What is asked for the gauges of the moment; `None` before there is one.
    election: OnceLock<Election>,
}

/// A term of this candidate's.
#[derive(Clone)]
struct Leading {
    term: Term,
    /// Ends this very term: a request that comes late must not end the next one.
    resign: Arc<Notify>,
}

/// The JSON of `/v1/status`.
#[derive(Serialize)]
struct Status<'a> {
    v: u8,
    name: &'a str,
    store: Option<String>,
    /// Whether this candidate leads now.
    leads: bool,
    /// Who leads, as far as the store's answers showed; `null` where nobody is known to.
    leader: Option<String>,
    /// Its term's number; `null` while it does not lead.
    token: Option<u64>,
    /// Time until its authority ends if nothing is renewed; `null` while it does not lead.
    remaining_ms: Option<u64>,
    observed_at: String,
}

impl Candidacy {
    /// A candidacy for `name` that has not begun yet.
    ///
    /// # Errors
    ///
    /// When this process has one already: there is one recorder of metrics.
    pub(crate) fn new(name: &LeaseName) -> anyhow::Result<Self> {
        let candidacy = Self {
            name: name.to_string(),
            store: OnceLock::new(),
            leading: Mutex::new(None),
            ticked: AtomicU64::new(0),
            changes: watch::Sender::new(0),
            metrics: Metrics::install()?,
            election: OnceLock::new(),
        };
        candidacy.tick();
        Ok(candidacy)
    }

    /// Ticks for ever, on the runtime of the election: a loop that is stuck shows.
    pub(crate) async fn keep_ticking(self: Arc<Self>) {
        loop {
            self.tick();
            self.metrics.tidy();
            tokio::time::sleep(TICK).await;
        }
    }

    /// The store, once it is open, as one that is looked at on its way to the election.
    pub(crate) fn sees(&self, store: Arc<dyn LeaseStore>) -> Arc<dyn LeaseStore> {
        let sight = Arc::new(Witnessed::new(store, Sight::default()));
        let _ = self.store.set(sight.clone());
        sight
    }

    /// The election, once it is built.
    pub(crate) fn contends(&self, election: &Election) {
        let _ = self.election.set(election.clone());
    }

    /// This candidate leads, until what is returned is dropped or the term's deadline has passed.
    pub(crate) fn leads_in(&self, term: Term) -> Shown<'_> {
        let resign = Arc::new(Notify::new());
        self.set_leading(Some(Leading { term, resign: resign.clone() }));
        Shown { candidacy: self, resign }
    }

    /// All metrics, with the gauges of this moment.
    pub(super) fn metrics(&self) -> String {
        if let Some(election) = self.election.get() {
            election.record_standing();
        }
        self.metrics.render()
    }

    /// Tells of every change of leadership.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
    fn leading(&self) -> Option<Leading> {
        self.leading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_leading(&self, leading: Option<Leading>) {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = leading;
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether this candidate leads at this moment.
    pub(super) fn leads(&self) -> bool {
        self.leading().is_some_and(|leading| leading.term.check().is_ok())
    }

    /// Who leads, as far as is known.
    pub(super) fn leader(&self) -> Option<String> {
        self.store.get()?.holder()
    }

    /// Asks this term to end; `false` when there is none.
    pub(super) fn resign(&self) -> bool {
        match self.leading().filter(|leading| leading.term.check().is_ok()) {
            Some(leading) => {
                leading.resign.notify_one();
                true
            }
            None => false,
        }
    }

    /// Time until something changes by itself.
    pub(super) fn remaining(&self) -> Option<Duration> {
        self.leading().map(|leading| leading.term.remaining()).filter(|left| !left.is_zero())
    }

    pub(super) fn is_stuck(&self) -> bool {
        let ticked = Duration::from_millis(self.ticked.load(Ordering::Relaxed));
        SystemClock.now().since_origin().saturating_sub(ticked) > STUCK_AFTER
    }

    pub(super) fn is_ready(&self) -> bool {
        self.store.get().is_some() && !self.is_stuck()
    }

    fn tick(&self) {
        let now = u64::try_from(SystemClock.now().since_origin().as_millis()).unwrap_or(u64::MAX);
        self.ticked.store(now, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> String {
        let leading = self.leading().and_then(|Leading { term, .. }| Some((term.check().ok()?, term.remaining())));
        let status = Status {
            v: 1,
            name: &self.name,
            store: self.store.get().map(|store| store.kind()),
            leads: leading.is_some(),
            leader: self.leader(),
            token: leading.map(|(token, _)| token.value()),
            remaining_ms: leading.map(|(_, left)| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            observed_at: output::rfc3339(SystemTime::now()),
        };
        serde_json::to_string(&status).unwrap_or_default()
    }
}

/// That this candidate leads, for others to see.
pub(crate) struct Shown<'a> {
    candidacy: &'a Candidacy,
    resign: Arc<Notify>,
}

impl Shown<'_> {
    /// Waits for somebody to ask this very term to end.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn asked_to_resign(&self) {
        self.resign.notified().await;
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.candidacy.set_leading(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_does_not_tick_is_stuck_until_it_does() {
        let candidacy = Candidacy::new(&LeaseName::new("nightly").unwrap()).unwrap();
        candidacy.sees(Arc::new(tenure::MemoryStore::new()));
        assert!(!candidacy.is_stuck() && candidacy.is_ready());
        let long_ago = SystemClock.now().since_origin() - STUCK_AFTER - TICK;
        candidacy.ticked.store(u64::try_from(long_ago.as_millis()).unwrap(), Ordering::Relaxed);
        assert!(candidacy.is_stuck() && !candidacy.is_ready());
        candidacy.tick();
        assert!(!candidacy.is_stuck());
    }
}
