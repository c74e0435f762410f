//! Waiting for a lease to run out, judged on both sides.

use std::time::Duration;

use tenure_core::{Acquired, Bid, Grant};
use tokio::time::{Instant, sleep};

use super::{Bench, lock};
use crate::clause::{Stop, fail};
use crate::client::{Client, Sent};

/// How often a contender bids when the lease may run out any moment.
const CLOSE_BY: Duration = Duration::from_millis(2);

/// How often before.
const FAR_OFF: Duration = Duration::from_millis(25);

impl Bench<'_> {
    /// Bids until the lease of `holder` runs out: never before its ttl after the last confirmed request was sent, and
    /// at the latest the store's lateness after it.
    pub(crate) async fn outlast(&self, holder: &Sent<Grant>, contender: &Client, bid: &Bid) -> Result<Grant, Stop> {
        let ttl = holder.value.ttl;
        let latest = ttl + self.descriptor().lateness + self.slack();
        loop {
            let answer = contender.bid(bid).await?.value;
            let kept = holder.at.elapsed();
            match answer {
                Acquired::Granted(grant) => {
                    self.not_early(ttl, kept)?;
                    lock(&self.figures).add_expiry(ttl, kept);
                    return Ok(grant);
                }
                Acquired::Held(record) if kept > latest => fail!(
                    "the lease is still held {kept:?} after the last confirmed request, with a ttl of {ttl:?} and a \
                     lateness of at most {:?}: {record:?}",
                    self.descriptor().lateness
                ),
                Acquired::Held(_) if kept + FAR_OFF * 2 < ttl => sleep(FAR_OFF).await,
                Acquired::Held(_) => sleep(CLOSE_BY).await,
            }
        }
    }

    /// Reads until nobody is shown as holder any more, within the same bounds.
    pub(crate) async fn until_nobody(&self, holder: &Sent<Grant>, reader: &Client) -> Result<Duration, Stop> {
        let Grant { name, ttl, .. } = &holder.value;
        let latest = *ttl + self.descriptor().lateness + self.slack();
        loop {
            let record = reader.read(name).await?;
            let kept = holder.at.elapsed();
            match record {
                None => {
                    self.not_early(*ttl, kept)?;
                    return Ok(kept);
                }
                Some(record) if kept > latest => fail!(
                    "a read still shows a holder {kept:?} after the last confirmed request, with a ttl of {ttl:?}: \
                     {record:?}"
                ),
                Some(_) if kept + FAR_OFF * 2 < *ttl => sleep(FAR_OFF).await,
                Some(_) => sleep(CLOSE_BY).await,
            }
        }
    }

    /// Fails when a lease was free so soon that a leader, which counts on [`validity`] of it, may still act.
    pub(crate) fn not_early(&self, ttl: Duration, kept: Duration) -> Result<(), Stop> {
        if kept < validity(ttl) {
            fail!(
                "the lease was free {kept:?} after the last confirmed request was sent: its ttl is {ttl:?}, and a \
                 leader counts on {:?} of it",
                validity(ttl)
            );
        }
        Ok(())
    }

    /// Takes a failure for the slowness of this machine when it came after the lease may have run out.
    pub(crate) fn in_time<T>(&self, holder: &Sent<Grant>, answer: Result<T, Stop>) -> Result<T, Stop> {
        match answer {
            Err(Stop::Failed(reason)) if holder.at.elapsed() >= validity(holder.value.ttl) => {
                Err(Stop::TooSlow(reason))
            }
            answer => answer,
        }
    }

    /// Waits until `part` of `ttl` has passed since `since`.
    pub(crate) async fn pass(&self, since: Instant, part: Duration) {
        tokio::time::sleep_until(since + part).await;
    }
}

/// What a leader counts on: two clocks may differ by 1 % each, and 5 ms go to timers.
fn validity(ttl: Duration) -> Duration {
    (ttl * 99 / 101).saturating_sub(Duration::from_millis(5))
}
