//! Why an election could not go on.

use std::sync::Arc;
use std::time::Duration;

use crate::{Invalid, StoreError};

/// Why a campaign or a resignation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// A value was refused before anything was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store refuses for good, or did not confirm a release in time.
    #[error("{0}")]
    Store(#[source] Arc<StoreError>),
    /// The store grants leases that are too short for the timing.
    #[error("the store granted a lease of {granted:?} where {asked:?} was asked for; choose a ttl that it keeps")]
    ShortGrant {
        /// What was asked for.
        asked: Duration,
        /// What was granted.
        granted: Duration,
    },
    /// The task that drives the campaign is gone: its runtime shut down.
    #[error("the campaign was interrupted: the runtime that drove it shut down")]
    Interrupted,
}

impl From<StoreError> for ElectionError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}
