//! Wake-ups.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tenure_core::{LeaseStore, WakeUp, WakeUpKind};
use tenure_redis::redis;
use tokio::time::timeout;

use crate::bench::{bid, connect, eventually, fresh_name, granted, operator, server_url, store};
use crate::private::PrivateServer;
use crate::proxy::Proxy;

pub(crate) async fn next(watch: &mut BoxStream<'static, WakeUp>) -> WakeUp {
    timeout(Duration::from_secs(15), watch.next()).await.expect("no wake-up within 15 s").expect("the watch ended")
}

async fn is_quiet(watch: &mut BoxStream<'static, WakeUp>) -> bool {
    timeout(Duration::from_millis(100), watch.next()).await.is_err()
}

async fn subscribers(operator: &mut redis::aio::MultiplexedConnection) -> usize {
    let clients: String =
        redis::cmd("CLIENT").arg("LIST").arg("TYPE").arg("PUBSUB").query_async(operator).await.unwrap();
    clients.lines().count()
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_watch_wakes_on_grant_and_release_and_not_on_renewal_or_for_others() {
    let store = store().await;
    assert_eq!(store.describe().wake_up, WakeUpKind::Push);
    let name = fresh_name("watch");
    let mut watch = store.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync, "what happened before the subscription may have been missed");
    let grant = granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    let _ = store.renew(&grant).await.unwrap();
    granted(&store, &bid(&fresh_name("watch"))).await;
    assert!(is_quiet(&mut watch).await);
    let mut second = store.watch(&name);
    let _ = store.release(&grant).await.unwrap();
    assert_eq!(next(&mut watch).await, WakeUp::Vacated);
    assert_eq!(next(&mut second).await, WakeUp::Vacated, "the subscription was there already");
}

/// K17.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_release_while_the_subscription_is_cut_wakes_afterwards() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let (watcher, leader) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let name = fresh_name("cut");
    let grant = granted(&leader, &bid(&name)).await;
    let mut watch = watcher.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    proxy.cut();
    let _ = leader.release(&grant).await.unwrap();
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    granted(&leader, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_subscription_that_went_silent_is_replaced() {
    let server = PrivateServer::start(&[]).await;
    let proxy = Proxy::to(server.address()).await;
    let watcher = connect(&format!("{}?timeout=500ms&connect_timeout=500ms", proxy.url())).await;
    let name = fresh_name("silent");
    let mut watch = watcher.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    proxy.silence();
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    granted(&connect(&server.url()).await, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_server_that_was_down_for_a_while_is_found_again() {
    let mut server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    let name = fresh_name("down");
    let mut watch = store.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    server.kill();
    assert!(is_quiet(&mut watch).await);
    server.restart().await;
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn all_watches_of_a_store_share_one_connection_which_ends_with_the_last() {
    let server = PrivateServer::start(&[]).await;
    let store = connect(&server.url()).await;
    let mut operator = operator(&server.url()).await;
    let names: Vec<_> = (0..600).map(|_| fresh_name("shared")).collect();
    let mut watches: Vec<_> = names.iter().map(|name| store.watch(name)).collect();
    for watch in &mut watches {
        assert_eq!(next(watch).await, WakeUp::Resync);
    }
    assert_eq!(subscribers(&mut operator).await, 1);
    let mut again = store.watch(&names[0]);
    drop(watches);
    let _ = granted(&store, &bid(&names[0])).await;
    assert_eq!(next(&mut again).await, WakeUp::Taken);
    drop(again);
    eventually("the subscription ends", Duration::from_secs(5), async || subscribers(&mut operator).await == 0).await;
    assert_eq!(next(&mut store.watch(&names[1])).await, WakeUp::Resync);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_watch_outlives_its_store() {
    let store = store().await;
    let other = connect(&server_url()).await;
    let name = fresh_name("outlives");
    let mut watch = store.watch(&name);
    drop(store);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    granted(&other, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}
