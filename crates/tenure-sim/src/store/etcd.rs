//! etcd: leases on the cluster leader's monotonic clock, revoked late and never early.

use super::Store;
use crate::clock::{MS, Nanos, S};

/// A tick of 500 ms, and the revoke's way through the log.
pub(super) const LATENESS: Nanos = 500 * MS;
/// The server raises shorter ttls: one and a half election time-outs, in whole seconds.
pub(super) const SHORTEST_TTL: Nanos = 2 * S;
/// Election time-out of the cluster, by which a new leader lengthens every lease.
const ELECTION: Nanos = S;

impl Store {
    /// Another server leads the cluster from `now` on: it refuses calls for a while, and restarts every ttl.
    pub fn change_leader(&mut self, now: Nanos, down_for: Nanos) {
        self.weather.refuses_until = self.weather.refuses_until.max(now + down_for);
        let local = self.clock.local(now);
        if let Some(record) = &mut self.record
            && local < record.freed_at
        {
            let expires = local + record.ttl + ELECTION;
            let late_by = record.freed_at - record.expires;
            record.expires = record.expires.max(expires);
            record.freed_at = record.expires + late_by;
        }
    }
}
