//! Watching a server that tells nothing: one look at all watched names every second.

use std::time::Duration;

use tenure_core::Operation;
use tokio::time::{Instant, sleep, timeout_at};

use crate::backoff::Backoff;
use crate::dialect::{Dialect, Effect};
use crate::leases::Leases;

/// One statement a second and store, however many names are watched: a release is noticed within it.
const EVERY: Duration = Duration::from_secs(1);

/// Looks and wakes, until nobody watches.
pub(crate) async fn run<D: Dialect>(leases: &Leases<D>) {
    let mut backoff = Backoff::new();
    let mut failing = false;
    while let Some(names) = leases.watchers.names() {
        let begun = Instant::now();
        let looked = async {
            let mut call = leases.call(Operation::Watch, None).await?;
            call.run(Effect::Read, |dialect, link| dialect.look(link, &names)).await
        };
        match looked.await {
            Ok(seen) => {
                if std::mem::take(&mut failing) {
                    leases.watchers.resync();
                }
                leases.watchers.compare(&names, seen);
                // A watch that comes or goes cuts the wait short.
                let _ = timeout_at(begun + EVERY, leases.watchers.turnover()).await;
            }
            Err(error) => {
                tracing::debug!(target: "tenure", %error, "watch interrupted");
                failing = true;
                sleep(backoff.after(begun.elapsed())).await;
            }
        }
    }
}
