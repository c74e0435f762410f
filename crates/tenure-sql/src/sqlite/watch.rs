//! Notices what other connections, of this process and of others, change in the file.
//!
//! The kernel tells when the log is written to, which is a little *before* the change can be seen: SQLite writes, syncs,
//! and only then publishes in shared memory, of which nobody is told. So each such hint is followed by a row of short
//! looks at the counter of changes, until the write has had ample time. Without a hint nothing is looked at.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::inotify::Inotify;
use super::{Link, Sqlite};
use crate::dialect::{Dialect, Problem};
use crate::leases::Leases;

/// Looks without a pause after a hint, one to two thread switches apart: most disks sync within these.
const AT_ONCE: u32 = 6;

/// Looks after those, each after twice the pause of the one before: the last comes two seconds after the hint. A sync
/// that takes longer is found by the waiter's own poll.
const LATER: u32 = 11;
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Between two looks where the kernel tells nothing: a waiter notices a release within 20 ms.
const BLIND_PAUSE: Duration = Duration::from_millis(10);

/// Waits for changes and wakes, until nobody watches.
pub(super) async fn run(leases: &Leases<Sqlite>) {
    let mut backoff = crate::backoff::Backoff::new();
    loop {
        let begun = Instant::now();
        match session(leases).await {
            Ok(()) => return,
            Err(problem) => {
                tracing::debug!(target: "tenure", ?problem, path = ?leases.dialect.path, "watch interrupted");
            }
        }
        sleep(backoff.after(begun.elapsed())).await;
        leases.watchers.resync();
    }
}

/// Watches on one connection; `Ok` when nobody watches any more.
async fn session(leases: &Leases<Sqlite>) -> Result<(), Problem> {
    let Sqlite { path, .. } = &*leases.dialect;
    let inotify = Inotify::on(path).inspect_err(|error| tracing::debug!(target: "tenure", %error, ?path, "polling"));
    let mut link = leases.dialect.connect().await?;
    let mut looks = Looks { inotify: inotify.ok(), turnover: true, made: AT_ONCE + LATER, at: Instant::now() };
    let mut names = Vec::new();
    let mut version = None;
    loop {
        if looks.turnover {
            let Some(watched) = leases.watchers.names() else { return Ok(()) };
            names = watched;
        }
        if !leases.dialect.is_current(&link) {
            return Err(sqlx::Error::PoolClosed.into());
        }
        // First the counter, then the rows: a change in between is seen twice, never missed.
        let now = Some(data_version(&mut link).await?);
        if now != version || looks.turnover {
            let seen = leases.dialect.look(&mut link, &names).await?;
            leases.watchers.compare(&names, seen);
            version = now;
            looks.found_something();
        }
        looks.next(leases).await;
    }
}

/// Counts the changes that other connections made. It costs no disk access.
async fn data_version(link: &mut Link) -> Result<i64, Problem> {
    let (version,) = sqlx::query_as("PRAGMA data_version").fetch_one(&mut link.raw).await?;
    Ok(version)
}

/// When to look next.
struct Looks {
    inotify: Option<Inotify>,
    /// Whether a watch came or went.
    turnover: bool,
    /// Looks since the last hint.
    made: u32,
    at: Instant,
}

impl Looks {
    /// Ends the looks without a pause. The others go on: what was found may be an earlier change than the one hinted at.
    fn found_something(&mut self) {
        if self.made < AT_ONCE {
            self.made = AT_ONCE;
            self.at = Instant::now() + FIRST_PAUSE;
        }
    }

    /// Returns when a look is due.
    async fn next(&mut self, leases: &Leases<Sqlite>) {
        self.turnover = false;
        if self.made < AT_ONCE {
            self.made += 1;
            self.at = Instant::now() + FIRST_PAUSE;
            return tokio::task::yield_now().await;
        }
        if self.inotify.is_none() {
            (self.made, self.at) = (AT_ONCE + LATER - 1, Instant::now() + BLIND_PAUSE);
        }
        let due = self.made < AT_ONCE + LATER;
        tokio::select! {
            () = leases.watchers.turnover() => self.turnover = true,
            told = told(self.inotify.as_ref()) => {
                if told {
                    self.made = 0;
                } else {
                    self.inotify = None;
                }
            }
            () = sleep_until(self.at), if due => {
                self.made += 1;
                self.at = Instant::now() + FIRST_PAUSE * 2u32.pow(self.made - AT_ONCE);
            }
        }
    }
}

/// Whether the kernel told of a change, or `false` when it will tell no more.
async fn told(inotify: Option<&Inotify>) -> bool {
    match inotify {
        Some(inotify) => inotify.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}
