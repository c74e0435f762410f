use super::*;
use crate::Label;
use crate::clock::TestClock;

const TTL: Duration = Duration::from_secs(10);

struct Bench {
    clock: TestClock,
    store: MemoryStore,
    name: LeaseName,
}

impl Bench {
    fn new() -> Self {
        let clock = TestClock::new();
        Self { store: MemoryStore::with_clock(clock.clone()), clock, name: LeaseName::new("nightly").unwrap() }
    }

    fn bid(&self, nonce: u128) -> Bid {
        Bid::new(self.name.clone(), CandidateId::with_nonce(&Label::new("worker").unwrap(), nonce), TTL)
    }

    async fn granted(&self, bid: &Bid) -> Grant {
        match self.store.try_acquire(bid).await.unwrap() {
            Acquired::Granted(grant) => grant,
            Acquired::Held(record) => panic!("held by {record:?}"),
        }
    }

    async fn pass(&self, d: Duration) {
        self.clock.sleep_until(self.clock.now() + d).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_bid_is_the_same_grant_and_restarts_the_ttl() {
    let bench = Bench::new();
    let first = bench.granted(&bench.bid(1)).await;
    bench.pass(TTL / 2).await;
    assert_eq!(bench.granted(&bench.bid(1)).await.token, first.token);
    assert_eq!(bench.store.read(&bench.name).await.unwrap().unwrap().remaining, TTL);
}

#[tokio::test(start_paused = true)]
async fn tokens_rise_over_expiry_release_and_removal() {
    let bench = Bench::new();
    let a = bench.granted(&bench.bid(1)).await;
    bench.pass(TTL).await;
    let b = bench.granted(&bench.bid(1)).await;
    assert_eq!(bench.store.release(&b).await.unwrap(), Released::Freed);
    assert_eq!(bench.store.release(&b).await.unwrap(), Released::NotHeld);
    let c = bench.granted(&bench.bid(2)).await;
    bench.store.remove(&bench.name);
    let d = bench.granted(&bench.bid(3)).await;
    assert!(a.token < b.token && b.token < c.token && c.token < d.token);
    assert!(!b.after_release && c.after_release);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_never_revives_creates_or_steals() {
    let bench = Bench::new();
    let a = bench.granted(&bench.bid(1)).await;
    bench.pass(TTL).await;
    assert_eq!(bench.store.renew(&a).await.unwrap(), Renewed::Lost(LossReason::EXPIRED));
    let b = bench.granted(&bench.bid(2)).await;
    let by = Some(b.candidate.clone());
    assert_eq!(bench.store.renew(&a).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    bench.store.remove(&bench.name);
    assert_eq!(bench.store.renew(&b).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(bench.store.read(&bench.name).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn something_foreign_is_reported_and_never_taken_over() {
    let bench = Bench::new();
    bench.store.corrupt(&bench.name);
    let error = bench.store.try_acquire(&bench.bid(1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Malformed);
    assert_eq!(bench.store.read(&bench.name).await.unwrap_err().kind(), StoreErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn a_request_under_way_is_applied_after_its_caller_has_gone() {
    let bench = Bench::new();
    bench.store.set_fault_hook(|_| Fault::DelayRequest(Duration::from_secs(2)));
    let bid = bench.bid(1);
    assert!(tokio::time::timeout(Duration::from_secs(1), bench.store.try_acquire(&bid)).await.is_err());
    bench.store.clear_fault_hook();
    assert_eq!(bench.store.read(&bench.name).await.unwrap(), None);
    bench.pass(Duration::from_secs(2)).await;
    assert_eq!(bench.store.read(&bench.name).await.unwrap().unwrap().holder, bid.candidate);
}

#[tokio::test(start_paused = true)]
async fn a_watch_wakes_on_grant_release_and_gap_and_not_on_renewal() {
    let bench = Bench::new();
    let mut watch = bench.store.watch(&bench.name);
    let grant = bench.granted(&bench.bid(1)).await;
    assert_eq!(watch.next().await, Some(WakeUp::Changed));
    assert_eq!(bench.store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    bench.store.interrupt_watches();
    assert_eq!(watch.next().await, Some(WakeUp::Resync));
    let _ = bench.store.release(&grant).await.unwrap();
    assert_eq!(watch.next().await, Some(WakeUp::Changed));
}
