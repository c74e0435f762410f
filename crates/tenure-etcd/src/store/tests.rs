//! What cannot be seen from outside: which etcd lease a bid uses, and what a watch leaves behind.

use futures::StreamExt;
use tenure_core::{CandidateId, Label};

use super::*;

const TTL: Duration = Duration::from_secs(2);

async fn store() -> EtcdStore {
    let Ok(server) = std::env::var("TENURE_TEST_ETCD") else {
        panic!("TENURE_TEST_ETCD is not set: run integration/test.sh")
    };
    EtcdStore::connect(&format!("etcd://{server}").parse().unwrap()).await.unwrap()
}

fn bid(name: &LeaseName) -> Bid {
    Bid::new(name.clone(), CandidateId::draw(&Label::new("worker").unwrap()), TTL)
}

fn fresh() -> LeaseName {
    LeaseName::new(CandidateId::draw(&Label::new("inside").unwrap()).as_str()).unwrap()
}

async fn granted(store: &EtcdStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

async fn lease_of_key(store: &EtcdStore, name: &LeaseName) -> i64 {
    store.etcd.get(&store.key_of(name), READ_PATIENCE).await.unwrap().unwrap().lease()
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn losing_bids_of_one_candidate_share_one_etcd_lease_and_the_winning_bid_takes_it() {
    let (store, name) = (store().await, fresh());
    let holder = granted(&store, &bid(&name)).await;
    let loser = bid(&name);
    assert!(matches!(store.try_acquire(&loser).await.unwrap(), Acquired::Held(_)));
    let spare = store.spares.of(&loser).unwrap();
    for _ in 0..10 {
        assert!(matches!(store.try_acquire(&loser).await.unwrap(), Acquired::Held(_)));
        assert_eq!(store.spares.of(&loser), Some(spare));
    }
    assert_eq!(store.release(&holder).await.unwrap(), Released::Freed);
    let grant = granted(&store, &loser).await;
    assert_eq!(lease_of_key(&store, &name).await, spare.id);
    assert_eq!(store.spares.of(&loser), None, "it is in use now");
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
}

/// The client's record of the spare is older than the server's: the bid must not rest on it.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_spare_that_the_server_does_not_know_any_more_carries_no_grant() {
    let (store, name) = (store().await, fresh());
    let holder = granted(&store, &bid(&name)).await;
    let loser = bid(&name);
    for held in [true, false] {
        assert!(matches!(store.try_acquire(&loser).await.unwrap(), Acquired::Held(_)));
        let spare = store.spares.of(&loser).unwrap();
        store.etcd.revoke(spare.id).await.unwrap();
        if !held {
            assert_eq!(store.release(&holder).await.unwrap(), Released::Freed);
            granted(&store, &loser).await;
            assert_ne!(lease_of_key(&store, &name).await, spare.id);
        }
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn the_last_waiter_that_leaves_ends_the_watch_and_the_next_one_begins_another() {
    let (store, one, two) = (store().await, fresh(), fresh());
    for _ in 0..3 {
        let mut waiters = [store.watch(&one), store.watch(&one), store.watch(&two)];
        granted(&store, &bid(&fresh())).await;
        let grant = granted(&store, &bid(&one)).await;
        for waiter in &mut waiters[..2] {
            assert_eq!(waiter.next().await, Some(WakeUp::Taken));
        }
        assert!(store.watches.is_busy());
        // Two at once, from two threads.
        let [first, second, third] = waiters;
        let leaving = [first, second, third].map(|waiter| std::thread::spawn(move || drop(waiter)));
        for thread in leaving {
            thread.join().unwrap();
        }
        assert!(!store.watches.is_busy());
        assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    }
}

#[test]
#[ignore = "needs etcd: run integration/test.sh"]
fn a_watch_taken_outside_of_a_runtime_begins_with_its_first_poll() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let name = fresh();
    let store = runtime.block_on(store());
    let mut watch = store.watch(&name);
    assert!(!store.watches.is_busy(), "no runtime, no task");
    runtime.block_on(async {
        granted(&store, &bid(&name)).await;
        assert_eq!(watch.next().await, Some(WakeUp::Taken));
    });
    assert!(store.watches.is_busy());
}
