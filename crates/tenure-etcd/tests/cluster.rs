//! A cluster of three whose members stop, freeze and come back.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::time::{Duration, Instant};

use bench::{bid, bid_for, fresh, granted, raw, server, store_at, until, variable};
use tenure_core::{LeaseStore, Renewed, StoreErrorKind, TokenDurability};
use tenure_etcd::EtcdStore;
use tokio::sync::Mutex;

/// One fault at a time.
static CLUSTER: Mutex<()> = Mutex::const_new(());

fn members() -> Vec<String> {
    variable("TENURE_TEST_ETCD3").split(',').map(str::to_owned).collect()
}

async fn store() -> EtcdStore {
    store_at(&variable("TENURE_TEST_ETCD3")).await
}

/// Does `verb` to the member of that index.
async fn fault(verb: &str, member: usize) {
    bench::fault(verb, &format!("etcd3-{}", member + 1)).await;
}

/// Index of the member that leads the cluster.
async fn leader() -> usize {
    let found = std::cell::Cell::new(None);
    until("the cluster has a leader", || async {
        for (n, member) in members().iter().enumerate() {
            if let Ok(status) = raw(&[member]).await.status().await
                && status.header().unwrap().member_id() == status.leader()
            {
                found.set(Some(n));
            }
        }
        found.get().is_some()
    })
    .await;
    found.get().unwrap()
}

/// Waits until all three answer again.
async fn whole() {
    for member in members() {
        until("the member answers", || async {
            let mut client = raw(&[&member]).await;
            client.get("x", None).await.is_ok()
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_cluster_of_three_keeps_tokens_over_the_loss_of_one() {
    let _alone = CLUSTER.lock().await;
    assert_eq!(store().await.describe().token, TokenDurability::Durable);
    assert_eq!(store_at(&server()).await.describe().token, TokenDurability::SingleNode);
}

/// K18.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_term_outlives_the_death_of_the_clusters_leader() {
    let _alone = CLUSTER.lock().await;
    let store = store().await;
    let name = fresh("leader-killed");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(15))).await;
    let leader = leader().await;
    fault("kill", leader).await;
    let begun = Instant::now();
    // What a driver does: bounded calls, repeated.
    until("a renewal is confirmed", || async {
        let renewed = tokio::time::timeout(Duration::from_secs(3), store.renew(&grant)).await;
        match renewed {
            Ok(Ok(Renewed::Lost(reason))) => panic!("lost: {reason}"),
            Ok(Err(error)) => {
                assert!(error.kind().is_transient(), "{error}");
                false
            }
            Ok(Ok(Renewed::Extended(_))) => true,
            Err(_) => false,
        }
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    let other = granted(&store, &bid(&fresh("after"))).await;
    assert!(other.token > grant.token);
    fault("start", leader).await;
    whole().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_member_that_freezes_costs_no_call() {
    let _alone = CLUSTER.lock().await;
    let store = store().await;
    let name = fresh("frozen");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(15))).await;
    let leader = leader().await;
    for member in (0..3).filter(|&member| member != leader) {
        fault("pause", member).await;
        for _ in 0..10 {
            let renewed = tokio::time::timeout(Duration::from_secs(3), store.renew(&grant)).await.unwrap();
            assert_eq!(renewed.unwrap(), Renewed::Extended(grant.clone()));
        }
        fault("resume", member).await;
    }
    whole().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn without_a_majority_every_call_ends_within_its_bound_and_nothing_is_called_lost() {
    let _alone = CLUSTER.lock().await;
    let store = store().await;
    let name = fresh("minority");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(60))).await;
    let stopped: Vec<usize> = (0..2).collect();
    for &member in &stopped {
        fault("kill", member).await;
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(12) {
        let one = Instant::now();
        let another = bid(&name);
        let (renewed, acquired) = tokio::join!(store.renew(&grant), store.try_acquire(&another));
        assert!(one.elapsed() < Duration::from_secs(6), "{:?}", one.elapsed());
        let (renewed, acquired) = (renewed.unwrap_err(), acquired.unwrap_err());
        assert!(renewed.kind().is_transient() && acquired.kind().is_transient(), "{renewed} {acquired}");
    }
    // By now the member that is left knows that it has no leader, and says so: nothing was applied.
    let error = store.try_acquire(&bid(&name)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    for &member in &stopped {
        fault("start", member).await;
    }
    whole().await;
    until("the term is renewed", || async { matches!(store.renew(&grant).await, Ok(Renewed::Extended(_))) }).await;
}

/// B168: a leader of the cluster that was frozen may end every lease when it wakes, although they were kept alive at its
/// successor. Whatever the server does, a term that is gone is noticed at the next renewal, and the next token is larger.
/// K18.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_leader_of_the_cluster_that_freezes_and_wakes_leaves_no_term_in_doubt() {
    let _alone = CLUSTER.lock().await;
    let store = store().await;
    let name = fresh("leader-frozen");
    let ours = bid_for(&name, Duration::from_secs(4));
    let mut grant = granted(&store, &ours).await;
    let leader = leader().await;
    fault("pause", leader).await;
    let begun = Instant::now();
    let mut woken = false;
    while begun.elapsed() < Duration::from_secs(14) {
        if !woken && begun.elapsed() > Duration::from_secs(8) {
            fault("resume", leader).await;
            woken = true;
        }
        if let Ok(Ok(Renewed::Lost(_))) = tokio::time::timeout(Duration::from_millis(800), store.renew(&grant)).await {
            let stored = store.read(&name).await.unwrap();
            assert!(stored.is_none_or(|stored| stored.token > grant.token), "lost is final in the store too");
            let next = granted(&store, &bid_for(&name, Duration::from_secs(4))).await;
            assert!(next.token > grant.token);
            grant = next;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    whole().await;
    until("a renewal is confirmed or the loss is told", || async {
        tokio::time::timeout(Duration::from_secs(1), store.renew(&grant)).await.is_ok_and(|renewed| renewed.is_ok())
    })
    .await;
}
