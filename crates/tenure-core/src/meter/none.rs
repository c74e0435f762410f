//! Without the feature `metrics` nothing is counted.

use std::time::Duration;

use crate::machine::{Answer, Call};
use crate::{FencingToken, LeaseName, LossReason};

pub(crate) struct Meter;

impl Meter {
    pub(crate) fn new(_: &LeaseName, _: &str) -> Self {
        Self
    }

    pub(crate) fn stands(&self, _: Option<Duration>) {}

    pub(crate) fn elected(&self, _: FencingToken, _: Duration) {}

    pub(crate) fn lost(&self, _: &LossReason) {}

    pub(crate) fn overrun(&self) {}

    pub(crate) fn answered(&self, _: Call, _: &Answer, _: Duration) {}

    pub(crate) fn abandoned(&self, _: Call) {}
}
