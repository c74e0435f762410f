//! A memory store on a clock that the tests move, which logs every call and lets a test decide what goes wrong.

#![allow(
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test file uses its part of the bench"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_core::clock::{Clock, Moment, TestClock};
use tenure_core::{
    Election, ElectionBuilder, Fault, LeaseName, LeaseRecord, LeaseStore, MemoryStore, Operation, StoreCall, Timing,
};

pub const TTL: Duration = Duration::from_secs(15);
pub const S: Duration = Duration::from_secs(1);
pub const NAME: &str = "nightly";

type Rule = dyn Fn(&StoreCall) -> Fault + Send + Sync;

#[derive(Clone)]
pub struct Bench {
    pub clock: TestClock,
    pub store: MemoryStore,
    log: Arc<Mutex<Vec<(Moment, StoreCall)>>>,
    rule: Arc<Mutex<Option<Arc<Rule>>>>,
}

impl Bench {
    pub fn new() -> Self {
        let clock = TestClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let bench = Self { clock: clock.clone(), store: store.clone(), log: Arc::default(), rule: Arc::default() };
        let (log, rule) = (bench.log.clone(), bench.rule.clone());
        store.set_fault_hook(move |call| {
            log.lock().unwrap().push((clock.now(), call.clone()));
            let rule = rule.lock().unwrap().clone();
            rule.map_or(Fault::None, |rule| rule(call))
        });
        bench
    }

    /// From now on `rule` says what goes wrong.
    pub fn faults(&self, rule: impl Fn(&StoreCall) -> Fault + Send + Sync + 'static) {
        *self.rule.lock().unwrap() = Some(Arc::new(rule));
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        *self.rule.lock().unwrap() = None;
    }

    pub fn builder(&self, label: &str) -> ElectionBuilder {
        Election::builder(NAME, self.store.clone())
            .candidate(label)
            .clock(self.clock.clone())
            .timing(Timing::with_ttl(TTL).unwrap())
    }

    pub fn election(&self, label: &str) -> Election {
        self.builder(label).build().unwrap()
    }

    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    pub async fn pass(&self, d: Duration) {
        self.clock.sleep_until(self.clock.now() + d).await;
    }

    pub async fn record(&self) -> Option<LeaseRecord> {
        let rule = self.rule.lock().unwrap().take();
        let record = self.store.read(&name()).await.unwrap();
        *self.rule.lock().unwrap() = rule;
        record
    }

    /// The times of the calls of one kind, made by candidates called `label`.
    pub fn calls(&self, operation: Operation, label: &str) -> Vec<Moment> {
        let log = self.log.lock().unwrap();
        let of_label = |call: &StoreCall| call.candidate.as_ref().is_some_and(|candidate| candidate.label() == label);
        log.iter().filter(|(_, call)| call.operation == operation && of_label(call)).map(|(at, _)| *at).collect()
    }

    /// Waits for `condition`, within an hour of the store's time.
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        for _ in 0..360_000 {
            if condition() {
                return;
            }
            self.pass(Duration::from_millis(10)).await;
        }
        panic!("the condition did not come true within an hour");
    }

    pub async fn until_free(&self) {
        for _ in 0..360_000 {
            if self.record().await.is_none() {
                return;
            }
            self.pass(Duration::from_millis(10)).await;
        }
        panic!("the lease was not freed within an hour");
    }
}

pub fn name() -> LeaseName {
    LeaseName::new(NAME).unwrap()
}
