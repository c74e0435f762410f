//! Watching an election without contending.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, pending, select};
use futures::stream::{self, BoxStream, StreamExt};

use crate::clock::{Clock, SystemClock};
use crate::{CandidateId, FencingToken, Invalid, LeaseName, LeaseRecord, LeaseStore, StoreError, WakeUp};

/// What an observer sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaderChange {
    /// The store names this holder.
    Elected(LeaseRecord),
    /// The store names nobody.
    Vacant,
    /// The observer lost sight of the store for a while: terms may have come and gone unseen. What the store says now
    /// follows, if it differs from what was seen last.
    Resync,
}

/// Yields who leads `name` now, and every change that is seen; terms that come and go between two looks are not.
///
/// The holder is whom the store names. Only the holder's own deadline tells whether it still leads.
///
/// # Errors
///
/// [`Invalid`] for a bad name. A failed look is yielded as the stream's [`StoreError`], and the stream goes on.
///
/// # Cancel safety
///
/// The stream may be dropped at any time.
///
/// # Time
///
/// It looks when the store pushes a change, when the record seen last runs out, and every 5 s.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use futures::StreamExt;
/// use tenure_core::{Election, LeaderChange, MemoryStore, observe};
///
/// let store = MemoryStore::new();
/// let mut leaders = observe(store.clone(), "nightly")?;
/// assert_eq!(leaders.next().await.unwrap()?, LeaderChange::Vacant);
/// let lead = Election::builder("nightly", store).candidate("worker-7").build()?.campaign().await?;
/// let Some(Ok(LeaderChange::Elected(record))) = leaders.next().await else { panic!("nobody was elected") };
/// assert_eq!(record.holder.label(), "worker-7");
/// # drop(lead);
/// # Ok(())
/// # }
/// ```
pub fn observe<N>(
    store: impl LeaseStore,
    name: N,
) -> Result<BoxStream<'static, Result<LeaderChange, StoreError>>, Invalid>
where
    N: TryInto<LeaseName>,
    N::Error: Into<Invalid>,
{
    observe_on(store, name, SystemClock::new())
}

/// [`observe`] on a clock of the caller's, for tests.
///
/// # Errors
///
/// As [`observe`].
pub fn observe_on<N>(
    store: impl LeaseStore,
    name: N,
    clock: impl Clock,
) -> Result<BoxStream<'static, Result<LeaderChange, StoreError>>, Invalid>
where
    N: TryInto<LeaseName>,
    N::Error: Into<Invalid>,
{
    let name = name.try_into().map_err(Into::into)?;
    let store: Arc<dyn LeaseStore> = Arc::new(store);
    let observer =
        Observer { hints: store.watch(&name), store, name, clock: Arc::new(clock), seen: None, next: Next::Look };
    Ok(stream::unfold(observer, |mut observer| async move {
        let change = observer.next_change().await;
        Some((change, observer))
    })
    .boxed())
}

struct Observer {
    store: Arc<dyn LeaseStore>,
    name: LeaseName,
    clock: Arc<dyn Clock>,
    hints: BoxStream<'static, WakeUp>,
    /// What was shown last; `None` before the first look.
    seen: Option<Option<(CandidateId, FencingToken)>>,
    next: Next,
}

enum Next {
    Look,
    /// Wait for a hint, but no longer than this.
    Wait(Duration),
}

impl Observer {
    /// How often to look when nothing hints at a change.
    const POLL_EVERY: Duration = Duration::from_secs(5);
    /// Longest time that one look may take.
    const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
    /// Soonest a look follows a record's end: the store may be late by a little.
    const SOONEST: Duration = Duration::from_millis(10);

    async fn next_change(&mut self) -> Result<LeaderChange, StoreError> {
        loop {
            if let Next::Wait(longest) = self.next {
                let gap = self.wait(longest).await;
                self.next = Next::Look;
                if gap && self.seen.is_some() {
                    return Ok(LeaderChange::Resync);
                }
            }
            // Set before the look: if this future is dropped in it, the stream is dropped with it.
            self.next = Next::Wait(Self::POLL_EVERY);
            let record = self.look().await?;
            if let Some(record) = &record {
                self.next = Next::Wait(Self::POLL_EVERY.min(record.remaining.max(Self::SOONEST)));
            }
            let seen = record.as_ref().map(|record| (record.holder.clone(), record.token));
            if self.seen.as_ref() != Some(&seen) {
                self.seen = Some(seen);
                return Ok(record.map_or(LeaderChange::Vacant, LeaderChange::Elected));
            }
        }
    }

    async fn look(&mut self) -> Result<Option<LeaseRecord>, StoreError> {
        use crate::{Operation, StoreErrorKind};
        let timeout = self.clock.sleep_until(self.clock.now() + Self::LOOK_TIMEOUT);
        match select(self.store.read(&self.name), timeout).await {
            Either::Left((record, _)) => record,
            Either::Right(((), _)) => {
                Err(StoreError::new(StoreErrorKind::Unknown, Operation::Read, self.store.describe().name)
                    .with_lease(&self.name)
                    .with_detail(format!("no answer within {:?}", Self::LOOK_TIMEOUT)))
            }
        }
    }

    /// Returns whether the store told of a gap.
    async fn wait(&mut self, longest: Duration) -> bool {
        let timeout = self.clock.sleep_until(self.clock.now() + longest);
        let hint = self.hints.next();
        match select(hint, timeout).await {
            Either::Left((Some(hint), _)) => hint == WakeUp::Resync,
            Either::Left((None, timeout)) => {
                timeout.await;
                self.hints = stream::once(pending()).boxed();
                false
            }
            Either::Right(_) => false,
        }
    }
}
