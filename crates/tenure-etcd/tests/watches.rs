//! What wakes a waiter: changes, and gaps; never a renewal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bench;

use std::time::Duration;

use bench::proxy::{Mode, Proxy};
use bench::*;
use futures::StreamExt;
use futures::stream::BoxStream;
use tenure_core::{LeaseName, LeaseStore, Released, Renewed, WakeUp};
use tenure_etcd::EtcdStore;

/// The next wake-up; a watch that stays silent fails the test.
async fn next(watch: &mut BoxStream<'static, WakeUp>) -> WakeUp {
    tokio::time::timeout(LONG, watch.next()).await.expect("no wake-up").expect("a watch never ends")
}

/// Whether nothing wakes within a time in which every event arrives.
async fn quiet(watch: &mut BoxStream<'static, WakeUp>) -> bool {
    tokio::time::timeout(Duration::from_millis(500), watch.next()).await.is_err()
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_grant_a_release_a_removal_and_an_expiry_wake_and_a_renewal_does_not() {
    let (store, name) = (store().await, fresh("wake"));
    let mut watch = store.watch(&name);
    let first = granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken, "a grant");
    assert!(matches!(store.renew(&first).await.unwrap(), Renewed::Extended(_)));
    granted(&store, &bid(&fresh("other"))).await;
    assert!(quiet(&mut watch).await, "neither a renewal nor another lease");
    assert_eq!(store.release(&first).await.unwrap(), Released::Freed);
    assert_eq!(next(&mut watch).await, WakeUp::Vacated, "a release");
    granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    admin().await.delete(store.key_of(&name), None).await.unwrap();
    assert_eq!(next(&mut watch).await, WakeUp::Vacated, "a removal by hand");
    let begun = std::time::Instant::now();
    granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    assert_eq!(next(&mut watch).await, WakeUp::Vacated, "an expiry");
    let late = begun.elapsed().saturating_sub(TTL);
    assert!(begun.elapsed() >= TTL && late <= store.describe().lateness, "{late:?}");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_change_between_the_call_and_the_first_poll_wakes() {
    let (store, name) = (store().await, fresh("unpolled"));
    let mut watch = store.watch(&name);
    let elsewhere = self::store().await;
    granted(&elsewhere, &bid(&name)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

/// Whoever waits first opens the watch only after the call: what happens before it stands is caught up with.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_change_before_the_watch_stands_wakes() {
    let proxy = Proxy::to(&server()).await;
    let (store, elsewhere, name) = (store_at(&proxy.address).await, store().await, fresh("slow-open"));
    proxy.set(Mode::Silent);
    let mut watch = store.watch(&name);
    let opening = tokio::spawn(async move { (next(&mut watch).await, watch) });
    granted(&elsewhere, &bid_for(&name, Duration::from_secs(30))).await;
    proxy.set(Mode::Pass);
    let (wake, _watch) = opening.await.unwrap();
    assert!(matches!(wake, WakeUp::Taken | WakeUp::Resync));
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_cut_wakes_once_it_is_mended_and_everything_after_it_wakes() {
    let proxy = Proxy::to(&server()).await;
    let (store, elsewhere, name) = (store_at(&proxy.address).await, store().await, fresh("cut"));
    let mut watch = store.watch(&name);
    let grant = granted(&elsewhere, &bid_for(&name, Duration::from_secs(60))).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    proxy.set(Mode::Cut);
    assert!(quiet(&mut watch).await);
    assert_eq!(elsewhere.release(&grant).await.unwrap(), Released::Freed);
    proxy.set(Mode::Pass);
    assert_eq!(next(&mut watch).await, WakeUp::Resync, "a change may have been missed");
    settle(&mut watch).await;
    granted(&elsewhere, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

/// Takes what is left of earlier changes; a watch that wakes again and again fails the test.
async fn settle(watch: &mut BoxStream<'static, WakeUp>) {
    let settled = async { while !quiet(watch).await {} };
    tokio::time::timeout(LONG, settled).await.expect("the watch never settles");
}

/// A watch that goes on from a revision that is gone is refused by the server, for good if nobody looks.
/// K17.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_compaction_during_a_cut_wakes_and_the_watch_goes_on() {
    let proxy = Proxy::to(&server()).await;
    let (store, elsewhere, name) = (store_at(&proxy.address).await, store().await, fresh("compacted"));
    let mut watch = store.watch(&name);
    let grant = granted(&elsewhere, &bid_for(&name, Duration::from_secs(60))).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    proxy.set(Mode::Cut);
    assert_eq!(elsewhere.release(&grant).await.unwrap(), Released::Freed);
    compact_to_head().await;
    proxy.set(Mode::Pass);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    settle(&mut watch).await;
    granted(&elsewhere, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

/// B161: an observer that begins where the leader's record was written gets nothing once that is compacted away.
/// K17.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn an_observer_of_a_record_older_than_the_compaction_sees_it_and_its_end() {
    let (holder, name) = (store().await, fresh("old-record"));
    let grant = granted(&holder, &bid_for(&name, Duration::from_secs(60))).await;
    let observer = store().await;
    compact_to_head().await;
    let mut watch = observer.watch(&name);
    let seen = observer.read(&name).await.unwrap().unwrap();
    assert_eq!((seen.holder, seen.token), (grant.candidate.clone(), grant.token));
    assert_eq!(holder.release(&grant).await.unwrap(), Released::Freed);
    // A resync comes first if the compaction overtook what the observer knew.
    next(&mut watch).await;
    until("the observer sees the end", || async { observer.read(&name).await.unwrap().is_none() }).await;
    settle(&mut watch).await;
    granted(&holder, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

async fn compact_to_head() {
    let mut admin = admin().await;
    for _ in 0..100 {
        admin.put("/tenure-unrelated", "x", None).await.unwrap();
    }
    let head = admin.get("/tenure-unrelated", None).await.unwrap().header().unwrap().revision();
    // Another test may have compacted further already.
    let _ = admin.compact(head, None).await;
}

/// A cluster restored from a backup counts revisions that were seen already: a watch that goes on from the newest one
/// waits for the cluster to catch up, and misses everything until then.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_cluster_whose_revision_went_back_wakes_and_the_watch_goes_on() {
    let one = server();
    let two = variable("TENURE_TEST_ETCD3").split(',').next().unwrap().to_owned();
    let (ahead, behind) = if revision_of(&one).await > revision_of(&two).await { (one, two) } else { (two, one) };
    let mut writer = raw(&[&ahead]).await;
    for _ in 0..500 {
        // More than other tests write beside this one.
        writer.put("/tenure-unrelated", "x", None).await.unwrap();
    }
    let proxy = Proxy::to(&ahead).await;
    let (store, name) = (store_at(&proxy.address).await, fresh("restored"));
    let mut watch = store.watch(&name);
    granted(&store_at(&ahead).await, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    proxy.turn_to(&behind);
    proxy.set(Mode::Cut);
    tokio::time::sleep(Duration::from_millis(50)).await;
    proxy.set(Mode::Pass);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    settle(&mut watch).await;
    granted(&store_at(&behind).await, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

async fn revision_of(server: &str) -> i64 {
    raw(&[server]).await.get("x", None).await.unwrap().header().unwrap().revision()
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_watch_that_falls_silent_is_opened_again_elsewhere() {
    let (one, two) = (Proxy::to(&server()).await, Proxy::to(&server()).await);
    let store = store_at(&format!("{},{}", one.address, two.address)).await;
    let (elsewhere, name) = (self::store().await, fresh("silent"));
    let mut watch = store.watch(&name);
    granted(&elsewhere, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    one.set(Mode::Silent);
    // HTTP/2 pings notice within 9 s; the lease ran out in the meantime.
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    settle(&mut watch).await;
    granted(&elsewhere, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

/// K20.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_thousand_watches_share_one_connection() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let names: Vec<LeaseName> = (0..1000).map(|n| fresh(&format!("many-{n}"))).collect();
    let mut watches: Vec<_> = names.iter().map(|name| store.watch(name)).collect();
    let elsewhere: EtcdStore = self::store().await;
    for at in [0, 500, 999] {
        granted(&elsewhere, &bid(&names[at])).await;
        assert_eq!(next(&mut watches[at]).await, WakeUp::Taken);
    }
    assert!(quiet(&mut watches[1]).await);
    assert_eq!(proxy.accepted(), 1);
}
