//! Seeing that something changed nothing.

use std::time::Duration;

use tenure_core::{LeaseName, LeaseRecord};

use super::Bench;
use crate::Unable;
use crate::clause::{Stop, Verdict, ensure, fail};
use crate::client::Client;

/// How much more time may be left on the second look, for the rounding of clocks.
const ROUNDING: Duration = Duration::from_millis(2);

/// What a store held for a lease at one moment.
pub(crate) struct Snapshot {
    name: LeaseName,
    record: Option<LeaseRecord>,
    raw: Option<String>,
}

impl Bench<'_> {
    /// Looks at a lease, at the raw record too where the bench can.
    ///
    /// Waits a little first, so that time passes between the lease's last change and the look: a write that merely
    /// restarts the ttl would show no difference otherwise.
    pub(crate) async fn snapshot(&self, client: &Client, name: &LeaseName) -> Result<Snapshot, Stop> {
        tokio::time::sleep(ROUNDING * 10).await;
        self.look(client, name).await
    }

    /// Fails when the lease is not as it was, but for the time that passed.
    pub(crate) async fn unchanged(&self, client: &Client, before: &Snapshot, by: &str) -> Verdict {
        let after = self.look(client, &before.name).await?;
        ensure!(before.raw == after.raw, "{by} changed the record from {:?} to {:?}", before.raw, after.raw);
        match (&before.record, &after.record) {
            (None, None) => Ok(()),
            (Some(before), Some(after)) if same_term(before, after) => {
                ensure!(
                    after.remaining <= before.remaining + ROUNDING,
                    "{by} extended the lease: {:?} were left before, {:?} after",
                    before.remaining,
                    after.remaining
                );
                Ok(())
            }
            (before, after) => fail!("{by} changed the lease from {before:?} to {after:?}"),
        }
    }

    async fn look(&self, client: &Client, name: &LeaseName) -> Result<Snapshot, Stop> {
        let record = client.read(name).await?;
        let raw = match self.harness().admin().await {
            Ok(admin) => match admin.raw(name).await {
                Ok(raw) => Some(raw),
                Err(Unable::Lacks(_)) => None,
                Err(failed) => return Err(failed.into()),
            },
            Err(_) => None,
        };
        Ok(Snapshot { name: name.clone(), record, raw })
    }
}

fn same_term(a: &LeaseRecord, b: &LeaseRecord) -> bool {
    (&a.name, &a.holder, a.token, &a.payload, a.ttl) == (&b.name, &b.holder, b.token, &b.payload, b.ttl)
}
