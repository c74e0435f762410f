//! `tenure serve`: a candidate without a program, for what runs beside it and asks over HTTP whether it leads.
//!
//! The election runs on this thread, HTTP on one of its own: a loop that is stuck can be told, and a server that is dead
//! changes nothing about the election. Every answer about leadership compares the clock at that very moment.

mod http;
mod listen;
mod page;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde::Serialize;
use tenure::clock::{Clock, SystemClock};
use tenure::{CancellationToken, Election, Leadership, StoreError, Term, Timing};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use listen::Listen;

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
    store: String,
    term: Mutex<Option<Term>>,
    /// When the loop ticked last, in milliseconds of the boot-time clock; 0 before it ran.
    ticked: AtomicU64,
    /// Counts changes of leadership.
    changes: tokio::sync::watch::Sender<u64>,
    resign: tokio::sync::Notify,
}

/// The JSON of `/v1/status`.
#[derive(Serialize)]
struct Status<'a> {
    v: u8,
    name: &'a str,
    store: &'a str,
    /// Whether this candidate leads now.
    leads: bool,
    /// Its term's number; `null` while it does not lead.
    token: Option<u64>,
    /// Time until its authority ends if nothing is renewed; `null` while it does not lead.
    remaining_ms: Option<u64>,
    observed_at: String,
}

impl Shared {
    fn term(&self) -> Option<Term> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_term(&self, term: Option<Term>) {
        *self.term.lock().unwrap_or_else(PoisonError::into_inner) = term;
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Whether this candidate leads at this moment.
    fn leads(&self) -> bool {
        self.term().is_some_and(|term| term.check().is_ok())
    }

    fn is_stuck(&self) -> bool {
        let ticked = Duration::from_millis(self.ticked.load(Ordering::Relaxed));
        SystemClock.now().since_origin().saturating_sub(ticked) > STUCK_AFTER
    }

    fn has_ticked(&self) -> bool {
        self.ticked.load(Ordering::Relaxed) > 0
    }

    fn tick(&self) {
        let now = u64::try_from(SystemClock.now().since_origin().as_millis()).unwrap_or(u64::MAX);
        self.ticked.store(now, Ordering::Relaxed);
    }

    fn status(&self) -> String {
        let leading = self.term().and_then(|term| term.check().ok().map(|token| (token, term.remaining())));
        let status = Status {
            v: 1,
            name: &self.name,
            store: &self.store,
            leads: leading.is_some(),
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
        store: url.scheme().to_owned(),
        term: Mutex::new(None),
        ticked: AtomicU64::new(0),
        changes: tokio::sync::watch::Sender::new(0),
        resign: tokio::sync::Notify::new(),
    });
    for listener in listeners {
        http::start(listener, shared.clone())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let shutdown = CancellationToken::new();
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let asked = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
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
        let mut builder = Election::builder(name, store).timing(timing);
        if let Some(label) = args.id {
            builder = builder.candidate(label);
        }
        if let Some(payload) = args.payload {
            builder = builder.payload(payload);
        }
        let election = builder.build()?;
        loop {
            // A term that was resigned over HTTP ends its campaign's work, and the next campaign begins.
            let ended = election.run_as_leader(shutdown.clone(), |lead| hold(&shared, lead, &shutdown)).await?;
            tracing::info!(?ended, "the term is over");
            if shutdown.is_cancelled() {
                return Ok(());
            }
        }
    })
}

/// Leads until the deadline, a loss, or until it is asked to stop or to resign. The stop signal is for work: who asks is
/// told the truth of the moment until the deadline, and plans by `remaining_ms`.
async fn hold(shared: &Shared, lead: Leadership, shutdown: &CancellationToken) {
    tracing::info!(token = %lead.token(), "leading");
    shared.set_term(Some(lead.term()));
    let _over = Over(shared);
    tokio::select! {
        _ = lead.lost() => {}
        () = shutdown.cancelled() => {}
        () = shared.resign.notified() => {}
    }
}

/// Takes leadership back however the term ends.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.set_term(None);
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
