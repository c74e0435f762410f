//! Kubernetes: a `Lease` object that only stores; each candidate times its changes on its own clock.
//!
//! A call is a read and a conditional write, so it goes to the server twice.

use tenure_core::StoreErrorKind;

use super::{Change, Loss, Object, Outcome, Record, Request, Seen, Store, Who};
use crate::clock::{DRIFT, Nanos};

/// What one process has seen of the object: it runs out `ttl` after the reply that showed this version first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    version: u64,
    since: Nanos,
}

/// What a client does when it has read the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decide {
    /// The call's outcome.
    Answer(Outcome),
    /// Writes this, and answers with that if it is written.
    Write(Request, Outcome),
}

impl Observation {
    /// Takes note of `object`, read by a reply that came when this process's clock showed `local`.
    pub fn see(&mut self, object: &Object, local: Nanos) {
        if object.version != self.version {
            *self = Self { version: object.version, since: local };
        }
    }

    /// Time left until the object runs out, if it is held: `None` when it is free.
    fn remaining(&self, object: &Object, ttl: Nanos, local: Nanos) -> Option<Nanos> {
        object.holder?;
        (self.since + ttl).checked_sub(local).filter(|left| *left > 0)
    }

    /// What the call `asked` makes of `object`. `ttl` is what counts as the record's duration.
    pub fn decide(&self, asked: &Request, object: &Object, ttl: Nanos, local: Nanos) -> Decide {
        let left = self.remaining(object, ttl, local);
        let seen = |remaining| object.holder.map(|who| Seen { who, token: object.token, ttl: object.ttl, remaining });
        let mine = |who: Who| object.holder == Some(who);
        match *asked {
            Request::Bid { who, ttl } => {
                if let Some(held) = left.and_then(seen).filter(|_| !mine(who)) {
                    return Decide::Answer(Outcome::Held(held));
                }
                let again = left.is_some() && mine(who);
                let token = if again { object.token } else { object.token + 1 };
                let put = Object { version: 0, holder: Some(who), token, ttl };
                let granted = Outcome::Granted { token, ttl, after_release: false };
                Decide::Write(Request::Put { version: object.version, put }, granted)
            }
            Request::Renew { who, token, ttl } => match object.holder {
                Some(holder) if holder == who && object.token == token => {
                    let put = Object { version: 0, holder: Some(who), token, ttl };
                    Decide::Write(Request::Put { version: object.version, put }, Outcome::Extended { ttl })
                }
                Some(holder) if holder != who => Decide::Answer(Outcome::Lost(Loss::Superseded(holder))),
                Some(_) => Decide::Answer(Outcome::Lost(Loss::Expired)),
                None => Decide::Answer(Outcome::Lost(Loss::Removed)),
            },
            Request::Release { who, token } if mine(who) && object.token == token => {
                let put = Object { version: 0, holder: None, token, ttl: object.ttl };
                Decide::Write(Request::Put { version: object.version, put }, Outcome::Freed)
            }
            Request::Release { .. } => Decide::Answer(Outcome::NotHeld),
            Request::Read => Decide::Answer(Outcome::Found(left.and_then(seen))),
            Request::Get | Request::Put { .. } => Decide::Answer(Outcome::Failed(StoreErrorKind::Invalid)),
        }
    }
}

/// Nobody can think that the record has run out before this true time, however fast its clock is.
pub(super) fn kept_until(record: &Record) -> Nanos {
    record.confirmed_at + record.ttl * 1_000_000 / (1_000_000 + DRIFT as Nanos)
}

/// Whoever has seen the record as soon as it was written thinks that it has run out by this true time.
pub(super) fn free_by(record: &Record) -> Nanos {
    record.confirmed_at + record.ttl * 1_000_000 / (1_000_000 - DRIFT as Nanos)
}

impl Store {
    pub(super) fn object(&self) -> Object {
        let (holder, ttl) = self.record.map_or((None, 0), |record| (Some(record.who), record.ttl));
        Object { version: self.version, holder, token: self.last_token, ttl }
    }

    pub(super) fn put(&mut self, now: Nanos, version: u64, put: Object) -> (Outcome, Option<Change>) {
        if version != self.version {
            return (Outcome::Conflict, None);
        }
        let before = self.record;
        let Some(who) = put.holder else {
            self.record = None;
            self.released = true;
            self.version += 1;
            return (Outcome::Written, Some(Change::Freed));
        };
        let same = before.filter(|record| (record.who, record.token) == (who, put.token));
        self.last_token = put.token;
        self.write(now, who, put.token, put.ttl, same, 0);
        // Nothing runs out in the server: the observers' clocks say when.
        if let Some(record) = &mut self.record {
            record.freed_at = Nanos::MAX;
        }
        let change = match same {
            Some(_) => Change::Extended { who },
            None => Change::Granted { who, token: put.token },
        };
        (Outcome::Written, Some(change))
    }
}
