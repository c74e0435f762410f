//! On a cluster.

use std::time::Duration;

use futures::TryStreamExt;
use tenure_core::{LeaseName, LeaseStore, LossReason, Released, Renewed, StoreErrorKind, WakeUp};
use tenure_redis::{RedisStore, redis};
use tokio::sync::{Mutex, MutexGuard};

use crate::bench::{bid, connect, environment, eventually, fresh_name, granted, operator};
use crate::watch::next;

/// A failover is everybody's: one test at a time.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

fn nodes() -> Vec<String> {
    environment("TENURE_TEST_REDIS_CLUSTER").split(',').map(str::to_owned).collect()
}

async fn cluster() -> RedisStore {
    connect(&format!("redis://{}?cluster=true", nodes().join(","))).await
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn both_keys_of_every_name_lie_in_one_slot() {
    let _turn = turn().await;
    let store = cluster().await;
    for name in ["a", "{a}", "}a", "{", "}{", "a}b{c", "%7D", "日本 }"] {
        let name = LeaseName::new(format!("{name}-{:08x}", fastrand::u32(..))).unwrap();
        let grant = granted(&store, &bid(&name)).await;
        assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()), "{name}");
        assert_eq!(store.release(&grant).await.unwrap(), Released::Freed, "{name}");
        assert!(granted(&store, &bid(&name)).await.after_release, "{name}");
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn leases_of_all_nodes_are_renewed_together_and_listed() {
    let _turn = turn().await;
    let store = cluster().await;
    let mut grants = Vec::new();
    for _ in 0..100 {
        grants.push(granted(&store, &bid(&fresh_name("slots"))).await);
    }
    let _ = store.release(&grants[40]).await.unwrap();
    let outcomes = store.renew_many(&grants).await;
    for (n, outcome) in outcomes.into_iter().enumerate() {
        let expected = if n == 40 { Renewed::Lost(LossReason::Removed) } else { Renewed::Extended(grants[n].clone()) };
        assert_eq!(outcome.unwrap(), expected, "{n}");
    }
    let listed: Vec<_> = store.list().try_collect().await.unwrap();
    let found = grants.iter().filter(|grant| listed.iter().any(|record| record.name == grant.name)).count();
    assert_eq!(found, 99);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_release_on_one_node_wakes_a_watch_on_any() {
    let _turn = turn().await;
    let (leader, watcher) = (cluster().await, cluster().await);
    for _ in 0..6 {
        let name = fresh_name("wake");
        let grant = granted(&leader, &bid(&name)).await;
        let mut watch = watcher.watch(&name);
        assert_eq!(next(&mut watch).await, WakeUp::Resync);
        let _ = leader.release(&grant).await.unwrap();
        assert_eq!(next(&mut watch).await, WakeUp::Vacated);
    }
}

/// K18.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_replica_that_takes_over_is_followed() {
    let _turn = turn().await;
    let store = cluster().await;
    let grants = futures::future::join_all((0..30).map(|_| async {
        let bid = bid(&fresh_name("failover"));
        granted(&store, &bid).await
    }))
    .await;
    fail_over().await;
    for grant in &grants {
        eventually("the store follows", Duration::from_secs(15), async || match store.renew(grant).await {
            Ok(outcome) => {
                // An orderly takeover loses nothing.
                assert_eq!(outcome, Renewed::Extended(grant.clone()));
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Unknown, "the client repeats writes: {error}");
                false
            }
        })
        .await;
    }
}

/// Makes some replica a primary.
async fn fail_over() {
    for node in nodes() {
        let mut node = operator(&format!("redis://{node}")).await;
        let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(&mut node).await.unwrap();
        if redis::from_redis_value::<String>(role[0].clone()).unwrap() != "slave" {
            continue;
        }
        let _: () = redis::cmd("CLUSTER").arg("FAILOVER").query_async(&mut node).await.unwrap();
        eventually("the replica is a primary", Duration::from_secs(15), async || {
            let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(&mut node).await.unwrap();
            redis::from_redis_value::<String>(role[0].clone()).unwrap() == "master"
        })
        .await;
        return;
    }
    panic!("no node is a replica");
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_node_named_without_its_cluster_is_unsupported() {
    let _turn = turn().await;
    let store = connect(&format!("redis://{}", nodes()[0])).await;
    let mut unsupported = 0;
    for _ in 0..20 {
        if let Err(error) = store.try_acquire(&bid(&fresh_name("lone"))).await {
            assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("cluster=true"), "{error}");
            unsupported += 1;
        }
    }
    assert!(unsupported > 0, "two of three slots lie elsewhere");
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn wrong_credentials_are_denied_by_a_cluster_too() {
    let _turn = turn().await;
    for protocol in ["resp3", "resp2"] {
        let url = format!("redis://nobody:wrong@{}?cluster=true&protocol={protocol}", nodes().join(","));
        let error = RedisStore::connect(&url.parse().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}: {:?}", std::error::Error::source(&error));
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_cluster_none_of_whose_nodes_is_there_is_unavailable() {
    let error =
        RedisStore::connect(&"redis://127.0.0.1:1,127.0.0.1:2?cluster=true".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}: {:?}", std::error::Error::source(&error));
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_node_that_freezes_is_left_for_its_replica() {
    let _turn = turn().await;
    let store = cluster().await;
    let grant = granted(&store, &bid(&fresh_name("frozen"))).await;
    let frozen = Frozen::new(owner(&grant.name).await);
    let mut unknown = 0;
    eventually("the replica answers", Duration::from_secs(40), async || match store.renew(&grant).await {
        Ok(outcome) => {
            // What the replica had not received yet is gone.
            assert!(matches!(outcome, Renewed::Extended(_) | Renewed::Lost(_)), "{outcome:?}");
            true
        }
        Err(error) => {
            assert!(error.kind().is_transient(), "{error}");
            unknown += 1;
            false
        }
    })
    .await;
    assert!(unknown > 0, "nothing froze");
    drop(frozen);
    servers("wait", "redis-cluster");
}

/// The number of the node that serves the lease.
async fn owner(name: &LeaseName) -> usize {
    let nodes = nodes();
    let mut node = operator(&format!("redis://{}", nodes[0])).await;
    let key = crate::bench::lease_key(name);
    let slot: u16 = redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query_async(&mut node).await.unwrap();
    let ranges: Vec<(u16, u16, (String, u16))> = {
        let all: Vec<Vec<redis::Value>> = redis::cmd("CLUSTER").arg("SLOTS").query_async(&mut node).await.unwrap();
        let number = |value: &redis::Value| redis::from_redis_value(value.clone()).unwrap();
        let first = |node: &redis::Value| match node {
            redis::Value::Array(node) => {
                (redis::from_redis_value(node[0].clone()).unwrap(), redis::from_redis_value(node[1].clone()).unwrap())
            }
            other => panic!("{other:?}"),
        };
        all.iter().map(|range| (number(&range[0]), number(&range[1]), first(&range[2]))).collect()
    };
    let (_, _, (host, port)) = ranges.iter().find(|(from, to, _)| (*from..=*to).contains(&slot)).unwrap();
    1 + nodes.iter().position(|node| *node == format!("{host}:{port}")).unwrap()
}

/// Thaws the node when the test ends, however it does.
struct Frozen(String);

impl Frozen {
    fn new(number: usize) -> Self {
        let member = format!("redis-cluster-{number}");
        servers("pause", &member);
        Self(member)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        servers("resume", &self.0);
    }
}

fn servers(verb: &str, member: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/servers/servers.sh");
    let folder = environment("TENURE_TEST_SERVERS_DIR");
    let done = std::process::Command::new("bash").args([script, verb, &folder, member]).status().unwrap();
    assert!(done.success(), "servers.sh {verb} {member}");
}
