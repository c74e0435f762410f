//! Keeping a lease, and giving it up.

use super::*;

impl Server {
    /// Renews; `counted` is the client's number of the renewal, for mistakes that need one.
    pub(crate) fn renew(&self, grant: &Grant, caller: Caller, counted: Option<u64>) -> Answer<Renewed> {
        let now = self.now(caller);
        let key = key_of(self.mistake, &grant.name);
        let mut state = self.state();
        match self.checked(&state, &key, Operation::Renew, &grant.name) {
            Err(error)
                if error.kind() == StoreErrorKind::Malformed && self.makes(Mistake::RenewalOverwritesForeign) => {}
            answer => answer?,
        }
        let counter_known = state.counters.contains_key(&key);
        let Some(Record::Lease(lease)) = state.records.get_mut(&key) else {
            if self.makes(Mistake::RenewalCreates)
                || self.makes(Mistake::RenewalOverwritesForeign)
                || self.makes(Mistake::RenewalPutsBack) && counter_known
            {
                let lease = self.put_back(grant, caller, now);
                state.records.insert(key, Record::Lease(lease));
                return Ok(Renewed::Extended(grant.clone()));
            }
            return Ok(Renewed::Lost(LossReason::Removed));
        };
        if let Some(reason) = self.refuses(lease, grant, now, counted) {
            if self.makes(Mistake::RefusedRenewalExtends) {
                lease.expires = self.end(now, lease.ttl);
            }
            return Ok(Renewed::Lost(reason));
        }
        let extended = self.extend(lease, grant, now);
        if self.makes(Mistake::TokenCountsWrites) {
            let token = lease.token;
            state.counters.insert(key.clone(), token);
        }
        if self.makes(Mistake::RenewsAllOfCandidate) {
            for record in state.records.values_mut() {
                match record {
                    Record::Lease(lease) if lease.holder == grant.candidate => lease.expires = self.end(now, lease.ttl),
                    _ => {}
                }
            }
        }
        drop(state);
        if self.makes(Mistake::RenewalsWake) {
            self.tell(&key, WakeUp::Changed);
        }
        Ok(Renewed::Extended(extended))
    }

    pub(super) fn put_back(&self, grant: &Grant, caller: Caller, now: Micros) -> Lease {
        Lease {
            name: grant.name.clone(),
            holder: grant.candidate.clone(),
            token: grant.token.value(),
            payload: Payload::default(),
            ttl: grant.ttl,
            since: now,
            expires: self.end(now, grant.ttl),
            receipt: grant.receipt.as_str().parse().unwrap(),
            writes: 0,
            released: false,
            before: None,
            loser: None,
            client: caller.client,
            locked: false,
        }
    }

    fn refuses(&self, lease: &Lease, grant: &Grant, now: Micros, counted: Option<u64>) -> Option<LossReason> {
        let by = || LossReason::Superseded { by: Some(lease.holder.clone()) };
        let (candidate, token) = (lease.holder == grant.candidate, lease.token == grant.token.value());
        let mine = match self.mistake {
            Some(Mistake::RenewsByName) => true,
            Some(Mistake::RenewsByCandidate) => candidate,
            Some(Mistake::RepeatedBidNewReceipt) => {
                candidate && token && lease.receipt.to_string() == grant.receipt.as_str()
            }
            _ => candidate && token,
        };
        match () {
            () if lease.released && !(mine && self.makes(Mistake::RenewalBringsBack)) => Some(LossReason::Removed),
            () if lease.expires <= now && !self.makes(Mistake::ExpiredIsExtended) => Some(LossReason::EXPIRED),
            () if !mine => Some(by()),
            () if counted.is_some_and(|counted| counted != lease.writes) => Some(by()),
            () => None,
        }
    }

    fn extend(&self, lease: &mut Lease, grant: &Grant, now: Micros) -> Grant {
        lease.released = false;
        lease.writes += 1;
        let ttl = if self.makes(Mistake::RenewalGivesHalf) { grant.ttl / 2 } else { grant.ttl };
        lease.expires = match self.mistake {
            Some(Mistake::RenewalExtendsNothing) => lease.expires,
            Some(Mistake::RenewalAddsTtl) => self.end(lease.expires, ttl),
            Some(Mistake::RenewalShortens) => self.end(now, ttl),
            _ => lease.expires.max(self.end(now, ttl)),
        };
        match self.mistake {
            Some(Mistake::RenewalForgetsPayload) => lease.payload = Payload::default(),
            Some(Mistake::TokenCountsWrites) => lease.token += 1,
            _ => {}
        }
        let mut extended = grant.clone().with_ttl(ttl);
        extended.token = FencingToken(lease.token);
        extended
    }

    pub(crate) fn release(&self, grant: &Grant, caller: Caller) -> Answer<Released> {
        let now = self.now(caller);
        let key = key_of(self.mistake, &grant.name);
        let mut state = self.state();
        self.checked(&state, &key, Operation::Release, &grant.name)?;
        let counter_known = state.counters.contains_key(&key);
        let error =
            |detail| Err(Self::error(StoreErrorKind::Malformed, Operation::Release, &grant.name).with_detail(detail));
        let Some(Record::Lease(lease)) = state.records.get_mut(&key) else {
            return match self.mistake {
                Some(Mistake::ReleaseOfRemovedIsAnError) if counter_known => error("no record"),
                Some(Mistake::ReleaseOfNothingIsFreed) if !counter_known => Ok(Released::Freed),
                _ => Ok(Released::NotHeld),
            };
        };
        let (candidate, token) = (lease.holder == grant.candidate, lease.token == grant.token.value());
        let mine = match self.mistake {
            Some(Mistake::ReleasesByName) => true,
            Some(Mistake::ReleasesByCandidate) => candidate,
            Some(Mistake::ReleasesSuccessor) => candidate && token || lease.before.as_ref() == Some(&grant.candidate),
            _ => candidate && token,
        };
        if lease.released && self.makes(Mistake::SecondReleaseIsAnError) {
            return error("released before");
        }
        if lease.released || lease.expires <= now || !mine {
            return Ok(Released::NotHeld);
        }
        if self.makes(Mistake::ReleaseLeavesRecord) {
            return Ok(Released::Freed);
        }
        lease.released = true;
        if self.makes(Mistake::ReleaseForgetsCounter) {
            state.counters.remove(&key);
        }
        drop(state);
        if !self.makes(Mistake::ReleaseWakesNobody) {
            self.tell(&key, WakeUp::Vacated);
        }
        Ok(Released::Freed)
    }
}
