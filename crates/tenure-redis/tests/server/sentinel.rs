//! Behind Sentinel.

use std::time::Duration;

use tenure_core::{LeaseStore, Renewed, StoreErrorKind, WakeUp};
use tenure_redis::{RedisStore, redis};
use tokio::sync::{Mutex, MutexGuard};

use crate::bench::{bid, connect, environment, eventually, fresh_name, granted, operator};
use crate::watch::next;

/// A failover is everybody's: one test at a time.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

fn url(extra: &str) -> String {
    let (hosts, service) =
        (environment("TENURE_TEST_REDIS_SENTINEL"), environment("TENURE_TEST_REDIS_SENTINEL_MASTER"));
    format!("redis://{hosts}?sentinel={service}{extra}")
}

/// K18.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_failover_is_followed_and_the_token_never_seen_twice() {
    let _turn = turn().await;
    let store = connect(&url("")).await;
    let name = fresh_name("failover");
    let grant = granted(&store, &bid(&name)).await;
    let mut watch = store.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    let sentinel = environment("TENURE_TEST_REDIS_SENTINEL").split(',').next().unwrap().to_owned();
    let mut sentinel = operator(&format!("redis://{sentinel}")).await;
    let service = environment("TENURE_TEST_REDIS_SENTINEL_MASTER");
    let address = async |sentinel: &mut redis::aio::MultiplexedConnection| {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&service);
        ask.query_async::<(String, u16)>(sentinel).await.unwrap()
    };
    let before = address(&mut sentinel).await;
    eventually("the sentinels agree to a failover", Duration::from_secs(20), async || {
        let mut failover = redis::cmd("SENTINEL");
        failover.arg("FAILOVER").arg(&service);
        failover.query_async::<()>(&mut sentinel).await.is_ok()
    })
    .await;
    eventually("another master is named", Duration::from_secs(20), async || address(&mut sentinel).await != before)
        .await;
    // Whatever happens meanwhile is transient; the answer in the end is one of the lease's.
    let mut last = None;
    eventually("the store follows", Duration::from_secs(20), async || match store.renew(&grant).await {
        Ok(outcome) => {
            last = Some(outcome);
            true
        }
        Err(error) => {
            assert!(error.kind().is_transient(), "{error}");
            false
        }
    })
    .await;
    assert!(matches!(last, Some(Renewed::Extended(_) | Renewed::Lost(_))));
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    let _ = store.release(&grant).await.unwrap();
    assert!(granted(&store, &bid(&name)).await.token > grant.token);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn one_sentinel_that_is_down_is_passed_over() {
    let _turn = turn().await;
    let url = url("").replace("redis://", "redis://127.0.0.1:1,");
    let store = connect(&url).await;
    granted(&store, &bid(&fresh_name("down"))).await;
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_name_that_no_sentinel_knows_and_a_host_that_is_none_are_told_apart() {
    let unknown = url("x");
    let error = RedisStore::connect(&unknown.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("is the name right?"), "{error}");
    let plain = format!("{}?sentinel=x", crate::bench::server_url());
    let error = RedisStore::connect(&plain.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
}
