//! Leaving the store as it was found.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tenure_core::LeaseName;
use tokio::time::timeout;

use super::{Bench, lock};
use crate::clause::Verdict;
use crate::run::caught;

/// Bound on tidying up after one clause: a store that hangs has failed already.
const TIDY_WITHIN: Duration = Duration::from_secs(10);

/// Leases that are tidied up at once.
const AT_ONCE: usize = 16;

impl Bench<'_> {
    /// Removes what the clause left behind, and answers with the names of what could not be removed: all that it used,
    /// where the bench has no admin client. What is held is released at least.
    pub(crate) async fn tidy(&self) -> Vec<String> {
        let names = std::mem::take(&mut *lock(&self.names));
        let all = || names.iter().map(ToString::to_string).collect();
        match self.harness().admin().await {
            Ok(admin) => {
                let purges = stream::iter(&names).map(|name| {
                    let admin = &admin;
                    async move { admin.purge(name).await.is_err().then(|| name.to_string()) }
                });
                timeout(TIDY_WITHIN, purges.buffer_unordered(AT_ONCE).filter_map(|left| async { left }).collect())
                    .await
                    .unwrap_or_else(|_| all())
            }
            Err(_) => {
                // Best effort: what is not released runs out by itself.
                let _ = timeout(TIDY_WITHIN, caught(self.release(&names))).await;
                all()
            }
        }
    }

    async fn release(&self, names: &[LeaseName]) -> Verdict {
        let client = self.client().await?;
        stream::iter(names)
            .for_each_concurrent(AT_ONCE, |name| {
                let store = client.bare();
                async move {
                    if let Ok(Some(record)) = store.read(name).await
                        && let Some(grant) = record.grant_of(&record.holder)
                    {
                        let _ = store.release(&grant).await;
                    }
                }
            })
            .await;
        Ok(())
    }
}
