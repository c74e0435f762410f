//! Wake-ups that the server sends: one connection of its own for all watches of a store.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tenure_core::LeaseName;
use tokio::time::{Instant, sleep, timeout};

use super::sql::CHANNEL;
use super::{Postgres, named};
use crate::backoff::Backoff;
use crate::dialect::Problem;
use crate::leases::Leases;

/// How long the listener believes in a connection that says nothing: a cable that was pulled sends no error.
const QUIET: Duration = Duration::from_secs(15);

/// Listens and wakes, until nobody watches.
pub(super) async fn run(leases: &Leases<Postgres>) {
    let mut backoff = Backoff::new();
    let mut first = true;
    loop {
        let begun = Instant::now();
        match session(leases, &mut first).await {
            Ok(()) => return,
            Err(problem) => tracing::debug!(target: "tenure", ?problem, "watch interrupted"),
        }
        sleep(backoff.after(begun.elapsed())).await;
        if leases.watchers.names().is_none() {
            return;
        }
    }
}

/// Listens on one connection; `Ok` when nobody watches any more.
async fn session(leases: &Leases<Postgres>, first: &mut bool) -> Result<(), Problem> {
    let dialect = &leases.dialect;
    let options = match &dialect.listen {
        Some(direct) => named(direct.clone()),
        None => dialect.session(),
    };
    // The client's listener works on a pool only: one of its own, so that nothing else waits for it.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(dialect.timeout)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options);
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    bounded(dialect.timeout, listener.listen(CHANNEL)).await?;
    if std::mem::take(first) {
        leases.watchers.greet();
    } else {
        leases.watchers.resync();
    }
    loop {
        tokio::select! {
            () = leases.watchers.turnover() => {
                if leases.watchers.names().is_none() {
                    return Ok(());
                }
                leases.watchers.greet();
            }
            // Cancel safe: the client reads whole messages only.
            told = timeout(QUIET, listener.try_recv()) => match told {
                Ok(Ok(Some(notification))) => {
                    if let Ok(name) = LeaseName::new(notification.payload()) {
                        leases.watchers.wake(&name);
                    }
                }
                Ok(Ok(None)) => return Err(sqlx::Error::PoolClosed.into()),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let alive = sqlx::query("SELECT 1").execute(&mut listener);
                    bounded(dialect.timeout, alive).await?;
                }
            }
        }
    }
}

async fn bounded<T>(within: Duration, work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, Problem> {
    match timeout(within, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(sqlx::Error::PoolTimedOut.into()),
    }
}
