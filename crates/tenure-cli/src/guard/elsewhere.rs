//! On systems without parent-death signals and subreapers there is no guard.

use std::time::Duration;

use tenure::{Grant, StoreUrl};

/// What a guard would be told.
#[derive(Debug)]
#[allow(dead_code, reason = "there is nobody to tell")]
pub(crate) struct Start {
    pub(crate) store: StoreUrl,
    pub(crate) grant: Grant,
    pub(crate) deadline: Duration,
    pub(crate) free: bool,
    pub(crate) environment: Environment,
}

/// Variables, and their values.
pub(crate) type Environment = Vec<(String, String)>;

/// Never.
pub(crate) fn if_asked() -> Option<u8> {
    None
}
