//! What a server shows.

use super::*;

impl Server {
    pub(crate) fn read(&self, name: &LeaseName, caller: Caller) -> Answer<Option<LeaseRecord>> {
        let now = self.now(caller);
        let key = key_of(self.mistake, name);
        let mut state = self.state();
        match self.checked(&state, &key, Operation::Read, name) {
            Err(error) if error.kind() == StoreErrorKind::Malformed && self.makes(Mistake::ForeignReadsAsNobody) => {
                return Ok(None);
            }
            answer => answer?,
        }
        state.reads += 1;
        let lags = self.makes(Mistake::ReadsFromLaggingReplica) && state.reads.is_multiple_of(2);
        let found = if lags { state.lagging.get(&key).cloned() } else { state.records.get(&key).cloned() };
        if let Some(current) = state.records.get(&key).cloned()
            && !lags
        {
            state.lagging.insert(key.clone(), current);
        }
        if self.makes(Mistake::ReadProlongs)
            && let Some(Record::Lease(lease)) = state.records.get_mut(&key)
            && lease.expires > now
        {
            lease.expires = self.end(now, lease.ttl);
        }
        Ok(match found {
            Some(Record::Lease(lease)) if self.shows(&lease, now) => Some(self.record(&lease, now)),
            _ => None,
        })
    }

    fn shows(&self, lease: &Lease, now: Micros) -> bool {
        let released = lease.released && !self.makes(Mistake::ReadShowsReleased);
        let expired = lease.expires <= now && !self.makes(Mistake::ReadShowsExpired);
        !released && !expired
    }

    pub(super) fn record(&self, lease: &Lease, now: Micros) -> LeaseRecord {
        let left = Duration::from_micros(u64::try_from(lease.expires.saturating_sub(now)).unwrap_or(0));
        let remaining = match self.mistake {
            Some(Mistake::TimeLeftIsTtl) => lease.ttl,
            Some(Mistake::TimeLeftTooLong) => left + Duration::from_secs(60),
            _ => left,
        };
        let holder = match &lease.loser {
            Some(loser) if self.makes(Mistake::ReadShowsLoser) => loser,
            _ => &lease.holder,
        };
        let token = if self.makes(Mistake::ReadForgetsToken) { 0 } else { lease.token };
        LeaseRecord::new(lease.name.clone(), holder.clone(), FencingToken(token), self.kept(lease.ttl))
            .with_payload(lease.payload.clone())
            .with_remaining(remaining)
            .with_receipt(Receipt::new(lease.receipt.to_string()))
    }

    pub(crate) fn list(&self, caller: Caller) -> Vec<Answer<LeaseRecord>> {
        let now = self.now(caller);
        let state = self.state();
        let leases = state.records.values().filter_map(|record| match record {
            Record::Lease(lease) => Some(lease),
            Record::Foreign => None,
        });
        let held = |lease: &&Lease| self.makes(Mistake::ListShowsReleased) || !lease.released && lease.expires > now;
        leases.filter(held).map(|lease| Ok(self.record(lease, now))).collect()
    }
}
