//! The lease in the store of the model: exact, linearizable, on a clock of its own.

use crate::clock::Nanos;
use crate::planted::Bug;
use crate::store::{Loss, Outcome, Request, Seen, Who};

/// One lease, and what the store keeps of those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it, run out or not.
    pub record: Option<Record>,
    /// The term before was given up in order.
    pub released: bool,
    /// The last token that was issued.
    pub last_token: u64,
}

/// The lease as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who holds it.
    pub who: Who,
    /// The number of the term.
    pub token: u64,
    /// The attempt that it was granted to.
    pub won_by: u64,
    /// When it runs out, by the store's clock.
    pub expires: Nanos,
    /// The holder has heard of the term.
    pub known: bool,
}

impl Lease {
    /// Decides `request`, attempt `number` of its sender, at `local` by the store's clock. `longest` bounds what is
    /// granted.
    pub fn decide(
        &mut self,
        local: Nanos,
        number: u64,
        request: Request,
        longest: Option<Nanos>,
        bug: Option<Bug>,
    ) -> Outcome {
        let present = self.present(local);
        match request {
            Request::Bid { who, ttl } => {
                let ttl = longest.map_or(ttl, |longest| longest.min(ttl));
                match present {
                    Some(record) if record.who != who => Outcome::Held(record.seen(local, ttl)),
                    found => self.grant(local, number, who, ttl, found, bug),
                }
            }
            Request::Renew { who, token, ttl } => {
                let ttl = longest.map_or(ttl, |longest| longest.min(ttl));
                match (&mut self.record, present) {
                    (None, _) => Outcome::Lost(Loss::Removed),
                    (Some(_), None) => Outcome::Lost(Loss::Expired),
                    (Some(record), _) if (record.who, record.token) != (who, token) => {
                        Outcome::Lost(Loss::Superseded(record.who))
                    }
                    (Some(record), _) => {
                        record.expires = record.expires.max(local + ttl);
                        Outcome::Extended { ttl }
                    }
                }
            }
            Request::Release { who, token } => {
                let scoped = bug != Some(Bug::UnscopedRelease);
                if present.is_none_or(|record| scoped && (record.who, record.token) != (who, token)) {
                    return Outcome::NotHeld;
                }
                (self.record, self.released) = (None, true);
                if bug == Some(Bug::ReleaseResetsCounter) {
                    self.last_token = 0;
                }
                Outcome::Freed
            }
            // The model speaks the plain protocol only.
            Request::Read | Request::Get | Request::Put { .. } => {
                Outcome::Found(present.map(|record| record.seen(local, record.expires - local)))
            }
        }
    }

    /// The record, unless it has run out.
    pub fn present(&self, local: Nanos) -> Option<Record> {
        self.record.filter(|record| local < record.expires)
    }

    fn grant(
        &mut self,
        local: Nanos,
        number: u64,
        who: Who,
        ttl: Nanos,
        found: Option<Record>,
        bug: Option<Bug>,
    ) -> Outcome {
        let after_release = found.is_none() && (self.released || self.last_token == 0);
        let expires = local + ttl;
        let record = match found.filter(|_| bug != Some(Bug::RepeatedBidRaisesToken)) {
            Some(record) => Record { expires: record.expires.max(expires), ..record },
            None => {
                self.last_token += 1;
                Record { who, token: self.last_token, won_by: number, expires, known: false }
            }
        };
        (self.record, self.released) = (Some(record), false);
        Outcome::Granted { token: record.token, ttl, after_release }
    }
}

impl Record {
    fn seen(&self, local: Nanos, ttl: Nanos) -> Seen {
        Seen { who: self.who, token: self.token, ttl, remaining: self.expires - local }
    }
}
