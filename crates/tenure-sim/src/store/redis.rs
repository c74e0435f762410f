//! Redis: the server's wall clock, and replicas that lag behind.

use super::{Record, Store, StoreKind};
use crate::clock::Nanos;

/// The latest states, for a failover to fall back to.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    saved: Vec<Saved>,
    enabled: bool,
}

/// The store's state as it was.
#[derive(Clone, Copy, Debug)]
pub struct Saved {
    at: Nanos,
    record: Option<Record>,
    released: bool,
    last_token: u64,
}

impl Store {
    /// Keeps states for failovers from now on.
    pub fn keep_history(&mut self) {
        self.history.enabled = true;
        self.save(0);
    }

    /// A replica that lagged behind by `lag` takes over: what was acknowledged since is lost, the counter too.
    pub fn fail_over(&mut self, now: Nanos, lag: Nanos) {
        let then = now.saturating_sub(lag);
        let Some(saved) = self.history.saved.iter().rev().find(|saved| saved.at <= then).copied() else { return };
        self.record = saved.record;
        self.released = saved.released;
        self.last_token = saved.last_token;
        self.version += 1;
        self.save(now);
    }

    pub(super) fn save(&mut self, now: Nanos) {
        if !self.history.enabled || self.kind != StoreKind::Redis {
            return;
        }
        if self.history.saved.len() == 64 {
            self.history.saved.drain(..32);
        }
        let (record, released, last_token) = (self.record, self.released, self.last_token);
        self.history.saved.push(Saved { at: now, record, released, last_token });
    }
}
