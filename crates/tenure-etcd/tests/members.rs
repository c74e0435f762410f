//! Members that are dead, deaf, silent or restarted, and calls that are dropped: no call hangs, and none is lost for
//! want of looking elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bench;

use std::time::{Duration, Instant};

use bench::proxy::{DeafPort, Mode, Proxy, closed_port};
use bench::*;
use futures::FutureExt;
use tenure_core::{Grant, LeaseStore, Released, Renewed, StoreErrorKind};
use tenure_etcd::EtcdStore;

/// What a driver waits for one call when the ttl is [`TTL`].
const ATTEMPT: Duration = Duration::from_millis(400);

/// The whole life of a lease, each call within what a driver would wait.
async fn cycle(store: &EtcdStore) {
    async fn in_time<T>(call: impl Future<Output = T>) -> T {
        tokio::time::timeout(ATTEMPT, call).await.expect("the call takes longer than a driver waits")
    }
    let name = fresh("cycle");
    let grant = in_time(granted(store, &bid(&name))).await;
    assert_eq!(in_time(store.renew(&grant)).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(in_time(store.read(&name)).await.unwrap().unwrap().holder, grant.candidate);
    assert_eq!(in_time(store.release(&grant)).await.unwrap(), Released::Freed);
}

/// The client alone fails two of three calls here.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn members_that_refuse_connections_cost_no_calls() {
    let (dead, gone) = (closed_port().await, closed_port().await);
    let store = store_at(&format!("{dead},{},{gone}", server())).await;
    for _ in 0..20 {
        cycle(&store).await;
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn members_that_drop_every_packet_cost_no_calls() {
    let (deaf, mute) = (DeafPort::open().await, DeafPort::open().await);
    let store = store_at(&format!("{},{},{}", deaf.address, mute.address, server())).await;
    for _ in 0..20 {
        cycle(&store).await;
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_member_that_falls_silent_costs_no_call() {
    let (one, two) = (Proxy::to(&server()).await, Proxy::to(&server()).await);
    let store = store_at(&format!("{},{}", one.address, two.address)).await;
    for silent in [&one, &two, &one] {
        cycle(&store).await;
        silent.set(Mode::Silent);
        cycle(&store).await;
        silent.set(Mode::Pass);
    }
}

/// A connection whose other end is gone without a word: the socket stays dead, a new one would work.
/// K12.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_connection_that_died_unnoticed_is_replaced_within_the_call() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    cycle(&store).await;
    let before = proxy.accepted();
    proxy.kill_standing();
    cycle(&store).await;
    cycle(&store).await;
    assert_eq!(proxy.accepted(), before + 1, "one new connection serves all");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_crowd_of_calls_replaces_a_dead_connection_once() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let name = fresh("crowd");
    proxy.kill_standing();
    let before = proxy.accepted();
    let reads = (0..200).map(|_| store.read(&name));
    for read in futures::future::join_all(reads).await {
        assert_eq!(read.unwrap(), None);
    }
    assert_eq!(proxy.accepted(), before + 1);
}

/// K01.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn no_call_hangs_when_nothing_is_heard_and_each_says_what_is_known() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let name = fresh("dark");
    let grant = granted(&store, &bid(&name)).await;
    let another = bid(&name);
    proxy.set(Mode::Silent);
    let begun = Instant::now();
    let (renewed, released, acquired, read) =
        tokio::join!(store.renew(&grant), store.release(&grant), store.try_acquire(&another), store.read(&name));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    assert_eq!(renewed.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(released.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert!(acquired.unwrap_err().kind().is_transient());
    assert_eq!(read.unwrap_err().kind(), StoreErrorKind::Unavailable, "a read changes nothing");
    proxy.set(Mode::Pass);
    cycle(&store).await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn connecting_to_nobody_fails_soon_and_says_unavailable() {
    let (dead, deaf) = (closed_port().await, DeafPort::open().await);
    for (members, bound) in [(dead.to_string(), 1), (deaf.address.to_string(), 6)] {
        let begun = Instant::now();
        let error = EtcdStore::connect(&format!("etcd://{members}").parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(begun.elapsed() < Duration::from_secs(bound), "{:?}", begun.elapsed());
    }
}

/// K10.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_store_outlives_a_server_that_goes_and_comes_back() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let name = fresh("restart");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(30))).await;
    proxy.set(Mode::Cut);
    let during = store.renew(&grant).await.unwrap_err();
    assert!(during.kind().is_transient(), "{during}");
    proxy.set(Mode::Pass);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_bid_whose_answer_is_lost_is_unknown_and_the_next_one_is_the_same_term() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let name = fresh("lost");
    let ours = bid_for(&name, Duration::from_secs(60));
    // The first bid is lost to somebody else, so that the next one begins with the put.
    let other = granted(&store, &bid(&name)).await;
    held(&store, &ours).await;
    assert_eq!(store.release(&other).await.unwrap(), Released::Freed);
    proxy.set(Mode::LoseAnswers);
    let error = store.try_acquire(&ours).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unknown, "{error}");
    let stored = raw_record(&store, &name).await.expect("the bid was applied");
    proxy.set(Mode::Pass);
    let grant = granted(&store, &ours).await;
    assert_eq!(grant.token.value(), stored.create_revision().unsigned_abs());
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn calls_dropped_at_any_point_leave_the_store_usable_on_the_same_connection() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let name = fresh("dropped");
    let ours = bid_for(&name, Duration::from_secs(60));
    let grant = granted(&store, &ours).await;
    let connections = proxy.accepted();
    for n in 0..250 {
        drop_after(n % 6, store.try_acquire(&ours)).await;
        drop_after(n % 6, store.renew(&grant)).await;
        drop_after(n % 6, store.read(&name)).await;
        drop_after(n % 6, store.try_acquire(&bid(&name))).await;
    }
    let again = granted(&store, &ours).await;
    assert_eq!(again.token, grant.token);
    assert_eq!(store.release(&again).await.unwrap(), Released::Freed);
    assert_eq!(proxy.accepted(), connections, "no connection was given up for a drop");
}

/// Polls `call` `polls` times, and drops it.
async fn drop_after<T>(polls: usize, call: impl Future<Output = T>) {
    let mut call = Box::pin(call);
    for _ in 0..polls {
        if (&mut call).now_or_never().is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// A client of somebody's own chooses members by chance: no store can change that, and asking again makes up for it.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_client_of_ones_own_with_dead_members_mostly_works() {
    let (dead, gone) = (closed_port().await.to_string(), closed_port().await.to_string());
    let store = EtcdStore::new(raw(&[&dead, &server(), &gone]).await);
    let name = fresh("own");
    let mut failed = 0;
    for _ in 0..60 {
        failed += usize::from(store.read(&name).await.is_err());
    }
    assert!(failed <= 10, "{failed} of 60 reads failed");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_client_of_ones_own_without_any_bound_does_not_hang_a_call() {
    let proxy = Proxy::to(&server()).await;
    let client = tenure_etcd::etcd_client::Client::connect([&proxy.address], None).await.unwrap();
    let store = EtcdStore::new(client);
    let name = fresh("unbounded");
    let grant: Grant = granted(&store, &bid(&name)).await;
    proxy.set(Mode::Silent);
    let begun = Instant::now();
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert!(begun.elapsed() < Duration::from_secs(6));
}
