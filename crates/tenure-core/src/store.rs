//! The contract between Tenure and a store: the only crossing into a backend.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::{self, BoxStream};

use crate::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, Operation, Released, Renewed, StoreDescriptor, StoreError,
    StoreErrorKind, WakeUp,
};

/// Keeps leases: named, time-bounded rights that at most one candidate holds.
///
/// # Contract
///
/// The driver's safety rests on these rules; `tenure-conformance` checks them.
///
/// - **Atomic.** Each call is one decision in the store, made by the store's clock and from one snapshot. Never read,
///   decide here, and write with a version that was refreshed in between. Only the decision is atomic: the record in
///   [`Acquired::Held`] and the reason in [`Renewed::Lost`] may come from a second read.
/// - **Plain.** A call retries nothing, sleeps nowhere, spawns nothing and keeps no election state, and asks its client
///   not to retry either. Every await has a bound, connecting included.
/// - **Droppable.** Dropping a call's future means that its outcome is *unknown*, and leaves the client usable: no
///   stranded pool permit, no socket that stays dead.
/// - **Idempotent bids.** A candidate that holds the lease already, because an earlier answer was lost, gets the same
///   grant and token again, and the ttl starts anew. Anyone else's unexpired lease is [`Acquired::Held`].
/// - **Conditional writes.** `renew` and `release` compare candidate *and* token. A mismatch changes nothing, not a
///   byte. A renewal never creates a lease and never extends one that ran out.
/// - **Rising tokens.** A grant to a new candidate carries a token larger than every earlier one of this lease, after
///   release, expiry and re-creation too, within what [`StoreDescriptor::token`] declares. The token is issued in the
///   same atomic step as the grant. Release keeps the counter.
/// - **Late copies are harmless.** A late copy of an abandoned renewal or bid never moves an expiry back (the later of
///   the stored and the new one is kept), and never disturbs the term after it.
/// - **Foreign data is reported.** A record without an expiry, or in another format, is
///   [`StoreErrorKind::Malformed`] with the key's name: never taken over in silence.
/// - **Names are isolated.** Two different [`LeaseName`]s never share a lease.
/// - **Errors tell what is known.** A call that may have been applied is [`StoreErrorKind::Unknown`], never
///   [`StoreErrorKind::Unavailable`]; contention is an outcome, not an error.
///
/// # Cancel safety
///
/// Every method may be dropped at any await point; see *Droppable* above.
///
/// # Time
///
/// A lease runs out `ttl` after the instant at which the store decided the last confirmed bid or renewal, measured by
/// the store, and at the latest [`StoreDescriptor::lateness`] after that.
#[async_trait]
pub trait LeaseStore: fmt::Debug + Send + Sync + 'static {
    /// Says what this store can do. Cheap; may be called at any time.
    fn describe(&self) -> StoreDescriptor;

    /// Takes the lease if it is free, has run out, or is this candidate's already.
    ///
    /// # Errors
    ///
    /// See [`StoreErrorKind`]; being held by somebody else is an outcome.
    ///
    /// # Cancel safety
    ///
    /// A dropped bid may still be applied; the same candidate's next bid recognises it.
    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError>;

    /// Extends the lease by its full ttl from now, if it is still this term's.
    ///
    /// # Errors
    ///
    /// See [`StoreErrorKind`]; a lost lease is an outcome.
    ///
    /// # Cancel safety
    ///
    /// A dropped renewal may still be applied; it can only extend this very term.
    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError>;

    /// Frees the lease, if it is still this term's. Releasing twice is [`Released::NotHeld`] or [`Released::Freed`],
    /// never an error.
    ///
    /// # Errors
    ///
    /// See [`StoreErrorKind`].
    ///
    /// # Cancel safety
    ///
    /// A dropped release may still be applied; it can only free this very term.
    async fn release(&self, grant: &Grant) -> Result<Released, StoreError>;

    /// Shows who holds the lease; `None` when nobody does (free or run out).
    ///
    /// # Errors
    ///
    /// See [`StoreErrorKind`].
    ///
    /// # Cancel safety
    ///
    /// Changes nothing.
    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError>;

    /// Sets the store up (a table, say). Idempotent, and safe when many processes do it at once.
    ///
    /// # Errors
    ///
    /// See [`StoreErrorKind`].
    ///
    /// # Cancel safety
    ///
    /// A dropped call may leave the set-up undone or done; calling again finishes it.
    async fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Lists the leases that somebody holds, in no particular order.
    ///
    /// Yields one [`StoreErrorKind::Unsupported`] error where a store cannot list.
    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        let error = StoreError::new(StoreErrorKind::Unsupported, Operation::List, self.describe().name)
            .with_detail("this store cannot list its leases; name one");
        stream::iter([Err(error)]).boxed()
    }

    /// Renews many leases, and answers for each as [`renew`](Self::renew) does, in order.
    ///
    /// # Cancel safety
    ///
    /// As for `renew`, for each of them.
    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        join_all(grants.iter().map(|grant| self.renew(grant))).await
    }

    /// Wakes whoever waits for `name`: after a grant, a release, an expiry the store announces, or a removal, never for
    /// a mere renewal.
    ///
    /// A hint, never proof. The stream reconnects by itself with backoff, tells of a gap by yielding
    /// [`WakeUp::Resync`] once, and ends only when dropped. What changes after this call returned must wake; where the
    /// subscription stands only later, the stream yields [`WakeUp::Resync`] once it does. It may hold a connection and a task of its own, shared
    /// between all watches of a store. A store without push never yields.
    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        let _ = name;
        stream::pending().boxed()
    }
}

/// Forwards every method, so that a wrapper never falls back to a default by accident.
macro_rules! forward_to_inner {
    ($($pointer:ty),+) => {$(
        #[async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl<T: LeaseStore + ?Sized> LeaseStore for $pointer {
            fn describe(&self) -> StoreDescriptor {
                (**self).describe()
            }

            async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
                (**self).try_acquire(bid).await
            }

            async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
                (**self).renew(grant).await
            }

            async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
                (**self).release(grant).await
            }

            async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
                (**self).read(name).await
            }

            async fn prepare(&self) -> Result<(), StoreError> {
                (**self).prepare().await
            }

            fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
                (**self).list()
            }

            async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
                (**self).renew_many(grants).await
            }

            fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
                (**self).watch(name)
            }
        }
    )+};
}

forward_to_inner!(Arc<T>, Box<T>, &'static T);
