//! `tenure serve`: a candidate without a program, for what runs beside it and asks over HTTP whether it leads.
//!
//! The election runs on this thread, HTTP on one of its own: a loop that is stuck can be told, and a server that is dead
//! changes nothing about the election. Every answer about leadership compares the clock at that very moment.

mod candidacy;
mod http;
mod listen;
mod metrics;
mod page;
mod sight;
mod site;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tenure::{CancellationToken, Election, Leadership, StoreError, Timing};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use candidacy::{Candidacy, Shown};
pub(crate) use listen::Listen;
pub(crate) use site::Site;

use crate::args::{Global, ServeArgs};
use crate::{exit, logging, store};

/// Time before a store that cannot be opened is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

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
    let site = Site::open(&name, args.listen)?;
    let candidacy = site.candidacy();
    // Between the last "leads" and giving the lease away: within the stop budget, after which a term is cut off.
    let grace = timing.stop_budget() * 9 / 10;
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
        tokio::spawn(candidacy.clone().keep_ticking());
        let Some(store) = open(&url, &shutdown).await? else { return Ok(()) };
        let mut builder = Election::builder(name, candidacy.sees(store)).timing(timing);
        if let Some(label) = args.id {
            builder = builder.candidate(label);
        }
        if let Some(payload) = args.payload {
            builder = builder.payload(payload);
        }
        let election = builder.build()?;
        candidacy.contends(&election);
        loop {
            let ended =
                election.run_as_leader(shutdown.clone(), |lead| hold(candidacy, lead, &shutdown, grace)).await?;
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
async fn hold(candidacy: &Candidacy, lead: Leadership, shutdown: &CancellationToken, grace: Duration) {
    tracing::info!(token = %lead.token(), "leading");
    let shown = candidacy.leads_in(lead.term());
    tokio::select! {
        _ = lead.lost() => return,
        () = shutdown.cancelled() => {}
        () = shown.asked_to_resign() => {}
    }
    // Whoever asks is told no from here on, and has time to stop before the next one may start.
    drop(shown);
    tokio::select! {
        _ = lead.lost() => {}
        () = tokio::time::sleep(grace) => {}
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
