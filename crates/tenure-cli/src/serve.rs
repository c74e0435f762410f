//! `tenure serve`: a candidate without a program, for what runs beside it and asks over HTTP whether it leads.
//!
//! The election runs on this thread, HTTP on one of its own: a loop that is stuck can be told, and a server that is dead
//! changes nothing about the election. Every answer about leadership compares the clock at that very moment.

mod http;
mod listen;
mod page;
mod sight;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde::Serialize;
use tenure::clock::{Clock, SystemClock};
use tenure::{CancellationToken, Election, Leadership, StoreError, Term, Timing};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

pub(crate) use listen::Listen;
use sight::Sight;

use crate::args::{Global, ServeArgs};
use crate::{exit, logging, output, store};

/// The loop ticks so often.
const TICK: Duration = Duration::from_millis(500);

/// A loop that has not ticked for so long is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// Time before a store that cannot be opened is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What HTTP tells about this candidate.
pub(crate) struct Shared {
    name: String,
    /// What the store is, and what its answers showed; `None` before it was opened.
    store: OnceLock<Arc<Sight>>,
    leading: Mutex<Option<Leading>>,
    /// When the loop ticked last, in milliseconds of the boot-time clock.
    ticked: AtomicU64,
    /// Counts changes of leadership.
    changes: watch::Sender<u64>,
    /// Between the last "leads" and giving the lease away.
    grace: Duration,
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

impl Shared {
    fn leading(&self) -> Option<Leading> {
        self.leading.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_leading(&self, leading: Option<Leading>) {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = leading;
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether this candidate leads at this moment.
    fn leads(&self) -> bool {
        self.leading().is_some_and(|leading| leading.term.check().is_ok())
    }

    /// Who leads, as far as is known.
    fn leader(&self) -> Option<String> {
        self.store.get()?.holder()
    }

    /// Asks this term to end; `false` when there is none.
    fn resign(&self) -> bool {
        match self.leading().filter(|leading| leading.term.check().is_ok()) {
            Some(leading) => {
                leading.resign.notify_one();
                true
            }
            None => false,
        }
    }

    /// Time until something changes by itself.
    fn remaining(&self) -> Option<Duration> {
        self.leading().map(|leading| leading.term.remaining()).filter(|left| !left.is_zero())
    }

    fn is_stuck(&self) -> bool {
        let ticked = Duration::from_millis(self.ticked.load(Ordering::Relaxed));
        SystemClock.now().since_origin().saturating_sub(ticked) > STUCK_AFTER
    }

    fn is_ready(&self) -> bool {
        self.store.get().is_some() && !self.is_stuck()
    }

    fn tick(&self) {
        let now = u64::try_from(SystemClock.now().since_origin().as_millis()).unwrap_or(u64::MAX);
        self.ticked.store(now, Ordering::Relaxed);
    }

    fn status(&self) -> String {
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

pub(crate) fn serve(global: &Global, args: ServeArgs) -> u8 {
    match perform(global, args) {
        Ok(()) => exit::YES,
        Err(error) => {
            logging::failure(global, &error);
            exit::FAILED
        }
    }
}

fn perform(global: &Global, args: ServeArgs) -> anyhow::Result<()> {
    let name = global.name.clone().context("no lease is named: tenure serve --name N --listen ADDR")?;
    let url = store::choose(&global.store)?;
    let timing = Timing::with_ttl(args.ttl).with_context(|| format!("--ttl {:?} is not possible", args.ttl))?;
    // Before the first bid: a candidate that nobody can ask must not lead.
    let listeners = args.listen.iter().map(Listen::bind).collect::<anyhow::Result<Vec<_>>>()?;
    let shared = Arc::new(Shared {
        name: name.to_string(),
        store: OnceLock::new(),
        leading: Mutex::new(None),
        ticked: AtomicU64::new(0),
        changes: watch::Sender::new(0),
        // Within the stop budget, after which a term is cut off.
        grace: timing.stop_budget() * 9 / 10,
    });
    shared.tick();
    for listener in listeners {
        http::start(listener, shared.clone())?;
    }
    let _sockets = Sockets(&args.listen);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut hang_up = signal(SignalKind::hangup())?;
        let asked = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                _ = hang_up.recv() => {}
            }
            asked.cancel();
        });
        let ticking = shared.clone();
        tokio::spawn(async move {
            loop {
                ticking.tick();
                tokio::time::sleep(TICK).await;
            }
        });
        let Some(store) = open(&url, &shutdown).await? else { return Ok(()) };
        let store = Arc::new(Sight::of(store));
        let _ = shared.store.set(store.clone());
        let mut builder = Election::builder(name, store).timing(timing);
        if let Some(label) = args.id {
            builder = builder.candidate(label);
        }
        if let Some(payload) = args.payload {
            builder = builder.payload(payload);
        }
        let election = builder.build()?;
        loop {
            let ended = election.run_as_leader(shutdown.clone(), |lead| hold(&shared, lead, &shutdown)).await?;
            tracing::info!(?ended, "the term is over");
            if shutdown.is_cancelled() {
                return Ok(());
            }
            // Resigned: the others look as often as this at least.
            tokio::select! {
                () = tokio::time::sleep(timing.poll_every() * 5 / 4) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    })
}

/// Leads until the deadline, a loss, or until it is asked to stop or to resign. The stop signal is for work: who asks is
/// told the truth of the moment until the deadline, and plans by `remaining_ms`.
async fn hold(shared: &Shared, lead: Leadership, shutdown: &CancellationToken) {
    tracing::info!(token = %lead.token(), "leading");
    let resign = Arc::new(Notify::new());
    shared.set_leading(Some(Leading { term: lead.term(), resign: resign.clone() }));
    let _over = Over(shared);
    tokio::select! {
        _ = lead.lost() => return,
        () = shutdown.cancelled() => {}
        () = resign.notified() => {}
    }
    // Whoever asks is told no from here on, and has time to stop before the next one may start.
    shared.set_leading(None);
    tokio::select! {
        _ = lead.lost() => {}
        () = tokio::time::sleep(shared.grace) => {}
    }
}

/// Sockets go with the process.
struct Sockets<'a>(&'a [Listen]);

impl Drop for Sockets<'_> {
    fn drop(&mut self) {
        for listen in self.0 {
            listen.remove();
        }
    }
}

/// Takes leadership back however the term ends.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.set_leading(None);
    }
}

/// Opens the store; one that cannot be reached now may be reached later. `None` when asked to stop meanwhile.
async fn open(
    url: &tenure::StoreUrl,
    shutdown: &CancellationToken,
) -> Result<Option<Arc<dyn tenure::LeaseStore>>, StoreError> {
    loop {
        let opened = tokio::select! {
            opened = store::open(url) => opened,
            () = shutdown.cancelled() => return Ok(None),
        };
        match opened {
            Ok(store) => return Ok(Some(store)),
            Err(error) if !error.kind().is_transient() => return Err(error),
            Err(error) => tracing::warn!(%error, "the store cannot be opened; trying again"),
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_EVERY) => {}
            () = shutdown.cancelled() => return Ok(None),
        }
    }
}
