//! The store as the candidates see it: one lease, decided atomically at one instant by one clock.
//!
//! What all stores have in common is here; what each technology does in its own way lies in a file per technology.

use tenure_core::StoreErrorKind;

use crate::clock::{HostClock, Nanos, S};
use crate::planted::Bug;

mod etcd;
mod kubernetes;
mod redis;
mod request;
mod sql;

pub use kubernetes::{Decide, Observation};
pub use redis::Saved;
pub use request::{Loss, Object, Outcome, Request, Seen, Who};

/// The technologies that are modelled, by what their descriptors say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// Exact, on the host's clock, with push.
    Memory,
    /// Late expiry, ttls in whole seconds and raised when small, a change of leader restarts them; push, expiry too.
    Etcd,
    /// The server's wall clock, which steps; push for grants and releases; a failover can roll back.
    Redis,
    /// Statements that fail, wait for locks and commit late; push in some, polling in others.
    Sql,
    /// Each candidate times the record's changes itself; every write compares a version.
    Kubernetes,
}

impl StoreKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Memory, Self::Etcd, Self::Redis, Self::Sql, Self::Kubernetes];

    /// Whether ttls are whole seconds.
    pub fn whole_seconds(self) -> bool {
        matches!(self, Self::Etcd | Self::Kubernetes)
    }

    /// How much later than its ttl an abandoned lease may be free (`g`), on the store's clock.
    pub fn lateness(self) -> Nanos {
        if self == Self::Etcd { etcd::LATENESS } else { 0 }
    }
}

/// The lease as the store holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Who holds it.
    pub who: Who,
    /// The number of the term.
    pub token: u64,
    /// For how long from the last confirmed bid or renewal.
    pub ttl: Nanos,
    /// When it runs out, by the store's clock.
    pub expires: Nanos,
    /// When the store notices that, by its clock.
    pub freed_at: Nanos,
    /// True time of the last confirmed bid or renewal.
    pub confirmed_at: Nanos,
    /// True time at which the term was granted.
    pub granted_at: Nanos,
}

/// What a decision changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// A new term began.
    Granted {
        /// Who asked.
        who: Who,
        /// Its number.
        token: u64,
    },
    /// The holder's own bid again.
    Repeated {
        /// The holder.
        who: Who,
        /// The number it was told.
        token: u64,
    },
    /// The holder's time was restarted.
    Extended {
        /// The holder.
        who: Who,
    },
    /// The lease was given back.
    Freed,
}

/// One lease in one store.
#[derive(Clone, Debug)]
pub struct Store {
    kind: StoreKind,
    clock: HostClock,
    record: Option<Record>,
    /// The term before was given up in order.
    released: bool,
    last_token: u64,
    /// Counts the changes of the record.
    version: u64,
    /// Grants no more than this.
    longest_ttl: Nanos,
    weather: Weather,
    history: redis::History,
    bug: Option<Bug>,
}

/// What is wrong with the server, and until when.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// Connections are refused: surely not applied.
    pub refuses_until: Nanos,
    /// Requests wait.
    pub hangs_until: Nanos,
    /// Requests are refused for lack of rights.
    pub denies_until: Nanos,
    /// The store answers that what lies there is no lease.
    pub malformed_until: Nanos,
    /// Statements fail at random.
    pub fails_until: Nanos,
}

impl Store {
    /// An empty store.
    pub fn new(kind: StoreKind, clock: HostClock, bug: Option<Bug>) -> Self {
        Self {
            kind,
            clock,
            record: None,
            released: true,
            last_token: 0,
            version: 0,
            longest_ttl: 3_600 * S,
            weather: Weather::default(),
            history: redis::History::default(),
            bug,
        }
    }

    /// Grants no more than `ttl`, whatever it is asked for.
    pub fn limit_ttl(&mut self, ttl: Nanos) {
        self.longest_ttl = ttl;
    }

    /// What is wrong with the server.
    pub fn weather(&mut self) -> &mut Weather {
        &mut self.weather
    }

    /// The store's own clock.
    pub fn clock(&mut self) -> &mut HostClock {
        &mut self.clock
    }

    /// The record as it lies there, run out or not.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Counts the changes of the record.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Somebody removes the record by hand. Tokens go on rising.
    pub fn remove(&mut self) {
        self.record = None;
        self.released = false;
        self.version += 1;
    }

    /// Until when, in true time, the store surely keeps the lease for its holder if nobody renews it.
    pub fn held_until(&self) -> Option<(Who, Nanos)> {
        let record = self.record?;
        Some((
            record.who,
            match self.kind {
                StoreKind::Kubernetes => kubernetes::kept_until(&record),
                _ => self.clock.when(record.expires),
            },
        ))
    }

    /// The true time at which the lease will be free if nobody renews it.
    pub fn free_at(&self) -> Option<Nanos> {
        self.record.map(|record| match self.kind {
            StoreKind::Kubernetes => kubernetes::free_by(&record),
            _ => self.clock.when(record.freed_at),
        })
    }

    /// Decides `request` at true time `now`. `luck` is a random number.
    pub fn decide(&mut self, now: Nanos, request: Request, luck: u64) -> (Outcome, Option<Change>) {
        if let Some(kind) = self.refusal(now, luck) {
            return (Outcome::Failed(kind), None);
        }
        match request {
            Request::Bid { who, ttl } => self.bid(now, who, ttl, luck),
            Request::Renew { who, token, ttl } => self.renew(now, who, token, ttl, luck),
            Request::Release { who, token } => self.release(now, who, token),
            Request::Read => (Outcome::Found(self.present(now).map(|record| self.seen(now, record))), None),
            Request::Get => (Outcome::Got(self.object()), None),
            Request::Put { version, put } => self.put(now, version, put),
        }
    }

    fn refusal(&self, now: Nanos, luck: u64) -> Option<StoreErrorKind> {
        let weather = &self.weather;
        if now < weather.refuses_until {
            Some(StoreErrorKind::Unavailable)
        } else if now < weather.denies_until {
            Some(StoreErrorKind::Denied)
        } else if now < weather.malformed_until {
            Some(StoreErrorKind::Malformed)
        } else if now < weather.fails_until {
            sql::statement_fails(luck)
        } else {
            None
        }
    }

    /// The record, as long as the store has not noticed that it ran out.
    fn present(&self, now: Nanos) -> Option<Record> {
        let local = self.clock.local(now);
        self.record.filter(|record| local < record.freed_at)
    }

    fn seen(&self, now: Nanos, record: Record) -> Seen {
        let remaining = record.expires.saturating_sub(self.clock.local(now));
        Seen { who: record.who, token: record.token, ttl: record.ttl, remaining }
    }

    fn bid(&mut self, now: Nanos, who: Who, ttl: Nanos, luck: u64) -> (Outcome, Option<Change>) {
        let ttl = self.ttl_for(ttl);
        let found = self.present(now);
        if let Some(record) = found.filter(|record| record.who != who) {
            return (Outcome::Held(self.seen(now, record)), None);
        }
        let own = found.is_some() && self.bug != Some(Bug::RepeatedBidRaisesToken);
        if !own {
            self.last_token += 1;
        }
        let token = match found {
            Some(record) if own => record.token,
            _ => self.last_token,
        };
        let after_release = found.is_none() && self.released && self.kind != StoreKind::Etcd;
        self.write(now, who, token, ttl, found, luck);
        let change = if found.is_some() { Change::Repeated { who, token } } else { Change::Granted { who, token } };
        (Outcome::Granted { token, ttl, after_release }, Some(change))
    }

    fn renew(&mut self, now: Nanos, who: Who, token: u64, ttl: Nanos, luck: u64) -> (Outcome, Option<Change>) {
        let Some(record) = self.present(now) else {
            return (Outcome::Lost(if self.record.is_some() { Loss::Expired } else { Loss::Removed }), None);
        };
        let same = (record.who, record.token) == (who, token);
        if !same {
            return (Outcome::Lost(Loss::Superseded(record.who)), None);
        }
        if self.clock.local(now) >= record.expires {
            return (Outcome::Lost(Loss::Expired), None);
        }
        let ttl = self.ttl_for(ttl);
        self.write(now, record.who, record.token, ttl, Some(record), luck);
        (Outcome::Extended { ttl }, Some(Change::Extended { who: record.who }))
    }

    fn release(&mut self, now: Nanos, who: Who, token: u64) -> (Outcome, Option<Change>) {
        let scoped = self.bug != Some(Bug::UnscopedRelease);
        let held = |record: &Record| !scoped || (record.who, record.token) == (who, token);
        if self.present(now).filter(held).is_none() {
            return (Outcome::NotHeld, None);
        }
        self.record = None;
        self.released = true;
        self.version += 1;
        if self.bug == Some(Bug::ReleaseResetsCounter) {
            self.last_token = 0;
        }
        self.save(now);
        (Outcome::Freed, Some(Change::Freed))
    }

    /// Writes the record. A late copy never moves an expiry back.
    fn write(&mut self, now: Nanos, who: Who, token: u64, ttl: Nanos, earlier: Option<Record>, luck: u64) {
        let expires = (self.clock.local(now) + ttl).max(earlier.map_or(0, |record| record.expires));
        let freed_at = expires + self.late_by(luck);
        let granted_at = earlier.map_or(now, |record| record.granted_at);
        self.record = Some(Record { who, token, ttl, expires, freed_at, confirmed_at: now, granted_at });
        self.released = false;
        self.version += 1;
        self.save(now);
    }

    fn ttl_for(&self, asked: Nanos) -> Nanos {
        let least = if self.kind == StoreKind::Etcd { etcd::SHORTEST_TTL } else { 0 };
        asked.max(least).min(self.longest_ttl)
    }

    fn late_by(&self, luck: u64) -> Nanos {
        let lateness = self.kind.lateness();
        if lateness == 0 { 0 } else { luck % lateness }
    }
}
