//! What a store answers. Contention and loss are outcomes, not errors.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{CandidateId, Grant, LeaseRecord, StoreError, StoreErrorKind};

/// Answers a bid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// The candidate holds the lease.
    Granted(Grant),
    /// Somebody else holds it. The record may come from a second read, so it can be newer than the decision.
    Held(LeaseRecord),
}

/// Answers a renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Renewed {
    /// The lease was extended by its full ttl from the instant the store decided.
    Extended(Grant),
    /// The lease is not this term's any more; final in the store too.
    Lost(LossReason),
}

/// Answers a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Released {
    /// The lease was this term's and is free now.
    Freed,
    /// The lease was not this term's; nothing was changed.
    NotHeld,
}

/// Wakes somebody who waits for a lease: a hint to look, never proof of anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WakeUp {
    /// The lease became free: it was released, was removed, or ran out.
    Vacated,
    /// Somebody took the lease. A waiter that was about to bid need not.
    Taken,
    /// One or the other; the store cannot tell which. Mere renewals do not wake.
    Changed,
    /// The store's channel was interrupted and is back: a change may have been missed.
    Resync,
}

/// Says why leadership ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The store names another holder.
    Superseded {
        /// The holder, where the store could tell.
        by: Option<CandidateId>,
    },
    /// The deadline came without a confirmed renewal, or the store said that the lease had run out.
    Expired {
        /// The kind of the last failure of a renewal; `None` when none failed (the process was starved, or the store
        /// said so).
        kind: Option<StoreErrorKind>,
        /// That failure itself.
        error: Option<Arc<StoreError>>,
    },
    /// The record is gone: somebody removed it.
    Removed,
    /// The host was suspended past the deadline.
    Suspended {
        /// For how long, since the last confirmed renewal was sent.
        slept: Duration,
    },
    /// The record is there but cannot be read as a lease.
    Malformed,
    /// The leader gave the lease up itself.
    Resigned,
}

impl LossReason {
    /// The reason of a lease that ran out, with nothing known about the cause. What a store answers.
    pub const EXPIRED: Self = Self::Expired { kind: None, error: None };

    /// The reason as one word, for metrics and machine-readable output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Superseded { .. } => "superseded",
            Self::Expired { .. } => "expired",
            Self::Removed => "removed",
            Self::Suspended { .. } => "suspended",
            Self::Malformed => "malformed",
            Self::Resigned => "resigned",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superseded { by: Some(by) } => write!(f, "superseded by {by}"),
            Self::Superseded { by: None } => f.write_str("superseded by another candidate"),
            Self::Expired { error: Some(error), .. } => write!(f, "not renewed in time ({error})"),
            Self::Expired { kind: Some(kind), .. } => write!(f, "not renewed in time ({kind})"),
            Self::Expired { .. } => f.write_str("not renewed in time"),
            Self::Removed => f.write_str("the lease was removed from the store"),
            Self::Suspended { slept } => write!(f, "the host was suspended for {slept:?}"),
            Self::Malformed => f.write_str("the record in the store is not a lease"),
            Self::Resigned => f.write_str("resigned"),
        }
    }
}

impl std::error::Error for LossReason {}
