//! The traps of the client and the server, each of which the store must not step into.

use std::error::Error;
use std::time::Duration;

use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use tenure_core::{Bid, LeaseStore, Renewed, StoreErrorKind, StoreUrl};
use tenure_redis::{Bounds, RedisStore, redis};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::{TTL, bid, candidate, connect, eventually, fresh_name, granted, lease_key, operator};
use crate::private::PrivateServer;
use crate::proxy::{Fate, Proxy};

/// K11.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_dropped_bid_is_applied_all_the_same_and_its_candidate_recognised() {
    let server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    let mut operator = operator(&server.url()).await;
    let bid = bid(&fresh_name("dropped"));
    // The server knows the script: one request is all.
    granted(&store, &crate::bench::bid(&fresh_name("dropped"))).await;
    let _: () = redis::cmd("CLIENT").arg("PAUSE").arg(300).arg("WRITE").query_async(&mut operator).await.unwrap();
    assert!(timeout(Duration::from_millis(50), store.try_acquire(&bid)).await.is_err());
    eventually("the dropped bid is applied", Duration::from_secs(5), async || {
        store.read(&bid.name).await.unwrap().is_some_and(|record| record.holder == bid.candidate)
    })
    .await;
    assert_eq!(granted(&store, &bid).await.token.value(), 1);
}

/// K12.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_thousand_dropped_calls_strand_no_connection() {
    let server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    let mut operator = operator(&server.url()).await;
    for n in 0..1_000 {
        let bid = bid(&fresh_name("strand"));
        // Each at another point of its way: connecting, sending, waiting.
        let _ = timeout(Duration::from_micros(n % 200), store.try_acquire(&bid)).await;
    }
    granted(&store, &bid(&fresh_name("strand"))).await;
    let info: String = redis::cmd("INFO").arg("clients").query_async(&mut operator).await.unwrap();
    let clients = info.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap();
    assert!(clients.trim().parse::<u32>().unwrap() <= 3, "{clients} clients are connected");
}

/// K04.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_connection_that_went_silent_is_replaced() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let store = connect(&format!("{}?timeout=600ms", proxy.url())).await;
    let grant = granted(&store, &bid(&fresh_name("silent"))).await;
    proxy.silence();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unknown, "{error}");
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn callers_with_a_bound_of_their_own_get_a_silent_connection_replaced_too() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let store = connect(&proxy.url()).await;
    let grant = granted(&store, &bid(&fresh_name("silent"))).await;
    proxy.silence();
    let began = Instant::now();
    // The driver gives up after its attempt time-out, which may be shorter than every bound here.
    eventually("the connection is replaced", Duration::from_secs(5), async || {
        timeout(Duration::from_millis(150), store.renew(&grant)).await.is_ok_and(|outcome| outcome.is_ok())
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn connecting_goes_on_from_call_to_call_when_each_gives_up_before_it_is_done() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let store = connect(&proxy.url()).await;
    let grant = granted(&store, &bid(&fresh_name("slow"))).await;
    proxy.decree(Fate::Delay(Duration::from_millis(120)), Fate::Delay(Duration::from_millis(120)));
    proxy.cut();
    // A handshake takes 240 ms now, a call another 240: none of these calls could do it alone.
    eventually("a call is answered", Duration::from_secs(5), async || {
        timeout(Duration::from_millis(280), store.renew(&grant)).await.is_ok_and(|outcome| outcome.is_ok())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    let mut operator = operator(&server.url()).await;
    let grant = granted(&store, &bid(&fresh_name("noscript"))).await;
    let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut operator).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert!(store.read(&grant.name).await.unwrap().is_some());
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(&mut operator).await.unwrap();
    assert!(stats.contains("cmdstat_eval:calls=3,"), "the text goes out once for each script that is missing: {stats}");
}

/// K10.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_restarted_server_is_found_again_without_a_failed_call() {
    let mut server = PrivateServer::start(&["--appendfsync", "always"]).await;
    let store = connect(&server.url()).await;
    let grant = granted(&store, &bid(&fresh_name("restart"))).await;
    server.kill();
    server.restart().await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    let _ = store.release(&grant).await.unwrap();
    assert_eq!(granted(&store, &bid(&grant.name)).await.token.value(), 2);
    server.kill();
    // A call that overtakes the news of the end is of unknown effect; one that is refused a connection surely of none.
    eventually("calls are refused", Duration::from_secs(5), async || {
        store.renew(&grant).await.unwrap_err().kind() == StoreErrorKind::Unavailable
    })
    .await;
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_dead_server_fails_a_call_at_once_and_not_after_the_client_s_nine_seconds() {
    let mut server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    // The service's own manager, with the client's defaults: six attempts, 9.47 s.
    let manager = ConnectionManager::new(redis::Client::open(server.url()).unwrap()).await.unwrap();
    let shared = RedisStore::new(manager);
    let name = fresh_name("dead");
    granted(&shared, &bid(&name)).await;
    server.kill();
    let began = Instant::now();
    assert_eq!(store.read(&name).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let began = Instant::now();
    for _ in 0..2 {
        assert!(shared.try_acquire(&bid(&name)).await.unwrap_err().kind().is_transient());
    }
    assert!(began.elapsed() < Duration::from_secs(7), "two calls, 3 s each: {:?}", began.elapsed());
}

/// K01.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_server_that_accepts_and_says_nothing_does_not_hold_a_call() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    proxy.silence_for_ever();
    let url: StoreUrl = format!("{}?timeout=400ms&connect_timeout=200ms", proxy.url()).parse().unwrap();
    let began = Instant::now();
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_write_whose_connection_breaks_is_unknown_and_the_next_call_works() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let store = connect(&proxy.url()).await;
    let bid = bid(&fresh_name("cut"));
    granted(&store, &crate::bench::bid(&fresh_name("cut"))).await;
    proxy.decree(Fate::Delay(Duration::from_millis(200)), Fate::Delay(Duration::from_millis(200)));
    let (outcome, ()) = tokio::join!(store.try_acquire(&bid), async {
        // The request has arrived, its answer is under way.
        sleep(Duration::from_millis(300)).await;
        proxy.cut();
    });
    assert_eq!(outcome.unwrap_err().kind(), StoreErrorKind::Unknown);
    proxy.decree(Fate::Pass, Fate::Pass);
    assert_eq!(store.read(&bid.name).await.unwrap().unwrap().holder, bid.candidate);
    assert_eq!(granted(&store, &bid).await.token.value(), 1);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_read_only_replica_is_unavailable_and_left_at_once() {
    let primary = PrivateServer::start(&[]).await;
    let mut operator = operator(&primary.url()).await;
    let store = connect(&primary.url()).await;
    let before: u64 = redis::cmd("CLIENT").arg("ID").query_async(&mut operator).await.unwrap();
    let _: () = redis::cmd("REPLICAOF").arg("127.0.0.1").arg(1).query_async(&mut operator).await.unwrap();
    let error = store.try_acquire(&bid(&fresh_name("replica"))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    let _: () = redis::cmd("REPLICAOF").arg("NO").arg("ONE").query_async(&mut operator).await.unwrap();
    granted(&store, &bid(&fresh_name("replica"))).await;
    let clients: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut operator).await.unwrap();
    let newest = clients.split("id=").filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).max().unwrap();
    assert!(newest > before + 1, "the store kept the replica's connection");
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_full_server_refuses_a_grant_and_still_lets_its_leader_renew_and_release() {
    let server = PrivateServer::start(&["--maxmemory-policy", "noeviction"]).await;
    let store = connect(&server.url()).await;
    let mut operator = operator(&server.url()).await;
    let grant = granted(&store, &bid(&fresh_name("full"))).await;
    let _: () = redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").query_async(&mut operator).await.unwrap();
    let error = store.try_acquire(&bid(&fresh_name("full"))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    let _ = store.release(&grant).await.unwrap();
    assert_eq!(operator.exists::<_, u8>(lease_key(&grant.name)).await.unwrap(), 0);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn no_error_of_a_refused_connection_shows_the_password() {
    let server = PrivateServer::start(&["--requirepass", "right"]).await;
    // It repeats the arguments of commands that it does not know, passwords too.
    let forgetful = ["--rename-command", "HELLO", "", "--rename-command", "AUTH", ""];
    let forgetful = PrivateServer::start(&forgetful).await;
    for url in [server.url(), forgetful.url()].map(|url| url.replace("redis://", "redis://user:canary@")) {
        for url in [format!("{url}/99"), format!("{url}?protocol=resp2"), url] {
            let error = RedisStore::connect(&url.parse().unwrap()).await.unwrap_err();
            let mut shown = format!("{error} {error:?}");
            let mut source = error.source();
            while let Some(inner) = source {
                shown += &format!(" {inner} {inner:?}");
                source = inner.source();
            }
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_call_waits_as_long_as_its_bounds_say_with_a_service_s_own_connection_too() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let manager = ConnectionManager::new(redis::Client::open(proxy.url()).unwrap()).await.unwrap();
    let bounds =
        Bounds::new(Duration::from_millis(200), Duration::from_millis(200), Duration::from_millis(100)).unwrap();
    let store = RedisStore::new(manager).with_bounds(bounds);
    proxy.silence();
    let began = Instant::now();
    let bid = Bid::new(fresh_name("bounds"), candidate(), TTL);
    assert_eq!(store.try_acquire(&bid).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
}
