//! Who gets a lease.

use super::*;

impl Server {
    /// A token as the counter stands, for the mistake that reads it in a request of its own.
    pub(crate) fn next_token(&self, name: &LeaseName) -> u64 {
        self.state().counters.get(&key_of(self.mistake, name)).copied().unwrap_or(0) + 1
    }

    pub(crate) fn is_free(&self, name: &LeaseName, caller: Caller) -> bool {
        let now = self.now(caller);
        match self.state().records.get(&key_of(self.mistake, name)) {
            Some(Record::Lease(lease)) => lease.released || lease.expires <= now,
            _ => true,
        }
    }

    /// Takes the lease; `token` and `blindly` are for mistakes of clients that decided something before.
    pub(crate) fn acquire(&self, bid: &Bid, caller: Caller, token: Option<u64>, blindly: bool) -> Answer<Acquired> {
        let now = self.now(caller);
        let key = key_of(self.mistake, &bid.name);
        let mut state = self.state();
        self.checked(&state, &key, Operation::Acquire, &bid.name)?;
        let found = match state.records.get(&key) {
            Some(Record::Lease(lease)) => Some(lease.clone()),
            _ => None,
        };
        if let Some(lease) = &found
            && !blindly
            && self.keeps_out(lease, bid, now)
        {
            if let Some(Record::Lease(lease)) = state.records.get_mut(&key) {
                lease.loser = Some(bid.candidate.clone());
                if self.makes(Mistake::LosingBidRestartsTtl) {
                    lease.expires = self.end(now, lease.ttl);
                }
            }
            return match self.mistake {
                Some(Mistake::ContentionIsAnError) => {
                    Err(Self::error(StoreErrorKind::Denied, Operation::Acquire, &bid.name).with_detail("held"))
                }
                _ => Ok(Acquired::Held(self.record(lease, now))),
            };
        }
        let lease = self.granted(&mut state, (&key, found), bid, (caller, now), token);
        let grant = self.grant_of(&lease, bid, &state, &key);
        state.records.insert(key.clone(), Record::Lease(lease));
        drop(state);
        if !self.makes(Mistake::GrantWakesNobody) {
            self.tell(&key, WakeUp::Taken);
        }
        Ok(Acquired::Granted(grant))
    }

    fn keeps_out(&self, lease: &Lease, bid: &Bid, now: Micros) -> bool {
        let own = match self.mistake {
            Some(Mistake::OwnRecordKeepsOut) => false,
            Some(Mistake::CandidateByLabel) => lease.holder.label() == bid.candidate.label(),
            _ => lease.holder == bid.candidate,
        };
        let runs = match self.mistake {
            Some(Mistake::TtlOfContender) => self.end(lease.since, bid.ttl) > now,
            _ => lease.expires > now,
        };
        !lease.released && runs && !own
    }

    fn granted(
        &self,
        state: &mut State,
        (key, found): (&str, Option<Lease>),
        bid: &Bid,
        (caller, now): (Caller, Micros),
        token: Option<u64>,
    ) -> Lease {
        let expired = found.as_ref().is_some_and(|lease| !lease.released && lease.expires <= now);
        let same_term = found.as_ref().is_some_and(|lease| match self.mistake {
            Some(Mistake::ExpiredTermRevived) => !lease.released && lease.holder == bid.candidate,
            Some(Mistake::CopyRevivesTerm) => lease.holder == bid.candidate,
            Some(Mistake::CandidateByLabel) => !lease.released && lease.holder.label() == bid.candidate.label(),
            _ => !lease.released && !expired && lease.holder == bid.candidate,
        });
        if expired && self.makes(Mistake::ExpiryForgetsCounter) {
            state.counters.remove(key);
        }
        let counter = match self.mistake {
            Some(Mistake::CounterPerCandidate) => format!("{key}/{}", bid.candidate),
            Some(Mistake::CounterInClient) => format!("{key}/{}", caller.client),
            _ => key.to_owned(),
        };
        let new_token = |state: &mut State| {
            let next = token.unwrap_or_else(|| state.counters.get(&counter).copied().unwrap_or(0) + 1);
            state.counters.insert(counter.clone(), next);
            next
        };
        state.receipts += 1;
        let fresh = self.end(now, self.given(bid.ttl));
        let payload = match (&found, self.mistake) {
            (Some(lease), Some(Mistake::FirstPayloadStays)) => lease.payload.clone(),
            (_, Some(Mistake::PayloadTrimmed)) => Payload::new(bid.payload.as_str().trim()).unwrap(),
            _ => bid.payload.clone(),
        };
        match found {
            Some(lease) if same_term => Lease {
                holder: bid.candidate.clone(),
                token: if self.makes(Mistake::RepeatedBidNewToken) { new_token(state) } else { lease.token },
                payload,
                expires: match self.mistake {
                    Some(Mistake::RepeatedBidExtendsNothing) => lease.expires,
                    Some(Mistake::RepeatedBidShortens) => fresh,
                    _ => lease.expires.max(fresh),
                },
                receipt: if self.makes(Mistake::RepeatedBidNewReceipt) { state.receipts } else { lease.receipt },
                released: false,
                ..lease
            },
            found => Lease {
                name: bid.name.clone(),
                holder: bid.candidate.clone(),
                token: new_token(state),
                payload,
                ttl: self.given(bid.ttl),
                since: now,
                expires: if self.makes(Mistake::SetThenExpire) { NEVER } else { fresh },
                receipt: state.receipts,
                writes: 0,
                released: false,
                before: found.filter(|_| expired).map(|lease| lease.holder),
                loser: None,
                client: caller.client,
                locked: false,
            },
        }
    }

    fn given(&self, asked: Duration) -> Duration {
        if self.makes(Mistake::GrantsHalf) { asked / 2 } else { asked }
    }

    fn grant_of(&self, lease: &Lease, bid: &Bid, state: &State, key: &str) -> Grant {
        let orderly = match state.records.get(key) {
            Some(Record::Lease(before)) => before.released || self.makes(Mistake::ClaimsOrderlyRelease),
            _ => false,
        };
        Grant::of(bid, FencingToken(lease.token))
            .with_ttl(lease.ttl)
            .with_receipt(Receipt::new(lease.receipt.to_string()))
            .with_after_release(orderly)
    }

    /// The second request of the mistake that sets the expiry in one of its own.
    pub(crate) fn set_expiry(&self, grant: &Grant, caller: Caller) -> Answer<()> {
        let now = self.now(caller);
        if let Some(Record::Lease(lease)) = self.state().records.get_mut(&key_of(self.mistake, &grant.name)) {
            lease.expires = self.end(now, lease.ttl);
        }
        Ok(())
    }
}
