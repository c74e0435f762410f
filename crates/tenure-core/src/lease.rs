//! What goes to a store and comes back: a bid, a grant, a record.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{CandidateId, FencingToken, LeaseName, Payload};

/// Asks a store for a lease. The same candidate's bid repeated is one grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Bid {
    /// The lease that is asked for.
    pub name: LeaseName,
    /// Who asks.
    pub candidate: CandidateId,
    /// How long the store shall keep the lease when nobody renews it.
    pub ttl: Duration,
    /// What observers of the lease shall see.
    pub payload: Payload,
}

impl Bid {
    /// A bid of `candidate` for `name` with an empty payload.
    pub fn new(name: LeaseName, candidate: CandidateId, ttl: Duration) -> Self {
        Self { name, candidate, ttl, payload: Payload::default() }
    }

    /// The same bid, with `payload`.
    #[must_use]
    pub fn with_payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }
}

/// What a store gave: the lease `name` to `candidate`, for `ttl` from the instant the store decided.
///
/// A grant also says what later calls must match: `renew` and `release` compare candidate and token, and change
/// nothing when either differs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// The lease that was given.
    pub name: LeaseName,
    /// Who holds it.
    pub candidate: CandidateId,
    /// The number of this term.
    pub token: FencingToken,
    /// How long the store keeps it from the last confirmed bid or renewal. A store may grant another ttl than was
    /// asked for (etcd raises small ones).
    pub ttl: Duration,
    /// What the store needs to find the term again; means nothing to anybody else.
    pub receipt: Receipt,
    /// Whether the store *knows* that the term before this one was given up in order, or that there was none. `false`
    /// where it cannot tell. A candidate with a settle delay skips it then: nobody can still be working.
    pub after_release: bool,
}

impl Grant {
    /// The grant of `token` that answers `bid`, with the ttl that was asked for and an empty receipt.
    pub fn of(bid: &Bid, token: FencingToken) -> Self {
        Self::new(bid.name.clone(), bid.candidate.clone(), token, bid.ttl)
    }

    /// A grant from its parts, with an empty receipt: for stores, and for programs that carry a grant to another
    /// process.
    pub fn new(name: LeaseName, candidate: CandidateId, token: FencingToken, ttl: Duration) -> Self {
        Self { name, candidate, token, ttl, receipt: Receipt::default(), after_release: false }
    }

    /// The same grant, with the ttl that the store really gave.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// The same grant, with `receipt`.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = receipt;
        self
    }

    /// The same grant, saying whether the earlier term is known to have been given up in order.
    #[must_use]
    pub fn with_after_release(mut self, known: bool) -> Self {
        self.after_release = known;
        self
    }
}

/// A store's own note on a grant, such as an etcd lease id: opaque text that only the store reads.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Receipt(Arc<str>);

impl Receipt {
    /// A receipt that holds `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text, for the store that wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Receipt {
    fn default() -> Self {
        Self("".into())
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// A lease as a store shows it to whoever reads it: who holds it now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseRecord {
    /// The lease.
    pub name: LeaseName,
    /// Whom the store names. A *holder*; whether it is still the *leader* only its own deadline tells.
    pub holder: CandidateId,
    /// The number of the holder's term.
    pub token: FencingToken,
    /// What the holder shows to observers.
    pub payload: Payload,
    /// The ttl of the holder's lease.
    pub ttl: Duration,
    /// Time until the lease runs out if nobody renews it, when the store answered.
    pub remaining: Duration,
    /// When the term began by the store's calendar, for display only; nothing is decided by it.
    pub acquired_at: Option<SystemTime>,
    /// The store's note on the term, so that a candidate that finds itself here can give the lease back.
    pub receipt: Receipt,
}

impl LeaseRecord {
    /// The record of `holder`'s term `token`, with `ttl` and no time left, an empty payload and an empty receipt.
    pub fn new(name: LeaseName, holder: CandidateId, token: FencingToken, ttl: Duration) -> Self {
        Self {
            name,
            holder,
            token,
            payload: Payload::default(),
            ttl,
            remaining: Duration::ZERO,
            acquired_at: None,
            receipt: Receipt::default(),
        }
    }

    /// The same record, with the time until it runs out.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = remaining;
        self
    }

    /// The same record, with `payload`.
    #[must_use]
    pub fn with_payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// The same record, with the calendar time at which the term began.
    #[must_use]
    pub fn with_acquired_at(mut self, at: Option<SystemTime>) -> Self {
        self.acquired_at = at;
        self
    }

    /// The same record, with `receipt`.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.receipt = receipt;
        self
    }

    /// The grant behind this record, if `candidate` is its holder: what a stopping candidate gives back after a bid
    /// whose answer it never saw.
    pub fn grant_of(&self, candidate: &CandidateId) -> Option<Grant> {
        (self.holder == *candidate).then(|| {
            Grant::new(self.name.clone(), self.holder.clone(), self.token, self.ttl).with_receipt(self.receipt.clone())
        })
    }
}
