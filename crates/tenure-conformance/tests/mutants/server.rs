//! A server that keeps leases, right but for one mistake.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tenure_core::{
    Acquired, Bid, CandidateId, FencingToken, Grant, LeaseName, LeaseRecord, LossReason, Operation, Payload, Receipt,
    Released, Renewed, StoreError, StoreErrorKind, WakeUp,
};
use tokio::sync::broadcast;

use crate::mistake::Mistake;
use crate::names::key_of;

mod bids;
mod sight;
mod terms;

pub(crate) type Answer<T> = Result<T, StoreError>;

/// The largest ttl; the smallest and the unit are a millisecond.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
pub(crate) const UNIT: Duration = Duration::from_millis(1);

/// A time in microseconds, far from zero, so that clocks may be shifted back.
pub(crate) type Micros = i64;
const EPOCH: Micros = 1 << 52;
const NEVER: Micros = Micros::MAX;

pub(crate) struct Server {
    pub(crate) mistake: Option<Mistake>,
    pub(crate) connections: AtomicUsize,
    pub(crate) changes: broadcast::Sender<(Option<String>, WakeUp)>,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    set_up: bool,
    setting_up: bool,
    records: HashMap<String, Record>,
    counters: HashMap<String, u64>,
    lagging: HashMap<String, Record>,
    reads: usize,
    receipts: u64,
}

#[derive(Clone)]
enum Record {
    Lease(Lease),
    Foreign,
}

#[derive(Clone)]
struct Lease {
    name: LeaseName,
    holder: CandidateId,
    token: u64,
    payload: Payload,
    ttl: Duration,
    since: Micros,
    expires: Micros,
    receipt: u64,
    writes: u64,
    released: bool,
    before: Option<CandidateId>,
    loser: Option<CandidateId>,
    client: usize,
    locked: bool,
}

/// Who calls: which client, and how far its clock is from the server's.
#[derive(Clone, Copy, Default)]
pub(crate) struct Caller {
    pub(crate) client: usize,
    pub(crate) wall_clock_ahead: i64,
    pub(crate) zone_ahead: i64,
}

impl Server {
    pub(crate) fn new(mistake: Option<Mistake>, set_up: bool) -> Arc<Self> {
        let (changes, _) = broadcast::channel(1024);
        let state = State { set_up, ..State::default() };
        let (connections, started, state) = (AtomicUsize::new(0), Instant::now(), Mutex::new(state));
        Arc::new(Self { mistake, connections, changes, started, state })
    }

    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn error(kind: StoreErrorKind, operation: Operation, name: &LeaseName) -> StoreError {
        StoreError::new(kind, operation, "model").with_lease(name)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn now(&self, caller: Caller) -> Micros {
        let now = EPOCH + i64::try_from(self.started.elapsed().as_micros()).unwrap();
        let ahead = match self.mistake {
            Some(Mistake::ClientClock) => caller.wall_clock_ahead,
            Some(Mistake::LocalTime) => caller.zone_ahead,
            _ => 0,
        };
        now + ahead * 1_000_000
    }

    /// How long a lease is kept of which so much was asked, and what is said about it.
    fn kept(&self, asked: Duration) -> Duration {
        match self.mistake {
            Some(Mistake::TtlRoundedDown) => Duration::from_millis(asked.as_millis() as u64 / 1000 * 1000),
            Some(Mistake::FractionsCutOff) => Duration::from_millis(asked.as_millis() as u64),
            Some(Mistake::LongTtlWraps) if asked > MAX_TTL => UNIT,
            _ => asked,
        }
    }

    fn end(&self, now: Micros, ttl: Duration) -> Micros {
        match self.mistake {
            Some(Mistake::TtlIgnored) => NEVER,
            Some(Mistake::ShortTtlIsForever) if ttl < UNIT => NEVER,
            _ => now.saturating_add(i64::try_from(self.kept(ttl).as_micros()).unwrap()),
        }
    }

    fn checked(&self, state: &State, key: &str, operation: Operation, name: &LeaseName) -> Answer<()> {
        if !state.set_up {
            let passing = self.makes(Mistake::MissingIsPassing);
            let kind = if passing { StoreErrorKind::Unavailable } else { StoreErrorKind::Malformed };
            return Err(Self::error(kind, operation, name));
        }
        match state.records.get(key) {
            Some(Record::Lease(lease)) if lease.locked => {
                Err(Self::error(StoreErrorKind::Unavailable, operation, name).with_detail("the record is locked"))
            }
            Some(Record::Lease(lease)) if lease.expires == NEVER && lease.receipt == 0 => match self.mistake {
                Some(Mistake::EternalIsHeld) => Ok(()),
                _ => Err(Self::error(StoreErrorKind::Malformed, operation, name)),
            },
            Some(Record::Foreign) if operation == Operation::Acquire && self.makes(Mistake::ForeignTakenOver) => Ok(()),
            Some(Record::Foreign) => Err(Self::error(StoreErrorKind::Malformed, operation, name)),
            _ => Ok(()),
        }
    }

    fn tell(&self, key: &str, woken: WakeUp) {
        let _ = self.changes.send((Some(key.to_owned()), woken));
    }

    pub(crate) fn begin_setup(&self) -> bool {
        let mut state = self.state();
        if self.makes(Mistake::SetupEmpties) {
            state.records.clear();
        }
        let raced = state.setting_up && !state.set_up && self.makes(Mistake::SetupRaces);
        state.setting_up = true;
        !raced
    }

    pub(crate) fn end_setup(&self) {
        self.state().set_up = true;
    }

    /// Locks a record, as a transaction does that a dropped call leaves open; unless it is locked already.
    pub(crate) fn lock(&self, name: &LeaseName) -> bool {
        match self.state().records.get_mut(&key_of(self.mistake, name)) {
            Some(Record::Lease(lease)) => !std::mem::replace(&mut lease.locked, true),
            _ => false,
        }
    }

    pub(crate) fn unlock(&self, name: &LeaseName) {
        if let Some(Record::Lease(lease)) = self.state().records.get_mut(&key_of(self.mistake, name)) {
            lease.locked = false;
        }
    }

    pub(crate) fn client_gone(&self, client: usize) {
        if self.makes(Mistake::LeaseEndsWithClient) {
            self.state().records.retain(|_, record| !matches!(record, Record::Lease(lease) if lease.client == client));
        }
    }

    pub(crate) fn restart(&self) {
        if self.makes(Mistake::CounterInServerMemory) {
            self.state().counters.clear();
        }
    }

    pub(crate) fn remove(&self, name: &LeaseName) {
        let key = key_of(self.mistake, name);
        let mut state = self.state();
        state.records.remove(&key);
        if self.makes(Mistake::RemovalForgetsCounter) {
            state.counters.remove(&key);
        }
        drop(state);
        if !self.makes(Mistake::RemovalWakesNobody) {
            self.tell(&key, WakeUp::Vacated);
        }
    }

    /// Puts another program's value, or one of its leases, that never runs out.
    pub(crate) fn put_foreign(&self, name: &LeaseName, eternal: Option<CandidateId>) {
        let key = key_of(self.mistake, name);
        let record = eternal.map_or(Record::Foreign, |holder| {
            let bid = Bid::new(name.clone(), holder, Duration::ZERO);
            let mut lease =
                self.put_back(&Grant::of(&bid, FencingToken(1)).with_receipt(Receipt::new("0")), Caller::default(), 0);
            lease.expires = NEVER;
            Record::Lease(lease)
        });
        self.state().records.insert(key, record);
    }

    pub(crate) fn raw(&self, name: &LeaseName) -> String {
        match self.state().records.get(&key_of(self.mistake, name)) {
            None => "nothing".to_owned(),
            Some(Record::Foreign) => "something foreign".to_owned(),
            Some(Record::Lease(lease)) => format!(
                "{} {} {:?} {:?} {} {} {} {}",
                lease.holder,
                lease.token,
                lease.payload,
                lease.ttl,
                lease.since,
                lease.expires,
                lease.writes,
                lease.released
            ),
        }
    }

    pub(crate) fn count_connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}
