//! Locks that somebody else keeps: never a loss, never for ever.

use std::time::{Duration, Instant};

use tenure_core::{LeaseStore, Released, Renewed, StoreErrorKind};
use tenure_sql::sqlx::Connection;
use tenure_sql::{SqlConfig, SqliteStore};

use crate::bench::{Bench, bid, granted, name, run};

/// K01.
#[tokio::test]
async fn a_lock_that_lasts_is_unavailable_and_changes_nothing() {
    let bench = Bench::new();
    let config = SqlConfig::default().with_timeout(Duration::from_millis(200)).unwrap();
    let store = SqliteStore::open_with(bench.path(), config).await.unwrap();
    let grant = granted(&store, &bid("nightly")).await;
    let mut raw = bench.raw().await;
    run(&mut raw, "BEGIN IMMEDIATE").await;
    let begun = Instant::now();
    let path = bench.path();
    let told = format!("{path:?} is locked by another connection for too long: end its transaction");
    for error in [
        store.renew(&grant).await.unwrap_err(),
        store.release(&grant).await.unwrap_err(),
        store.try_acquire(&bid("other")).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.detail()), (StoreErrorKind::Unavailable, Some(told.as_str())));
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "each call is bounded");
    assert_eq!(store.read(&name("nightly")).await.unwrap().unwrap().token, grant.token);
    run(&mut raw, "ROLLBACK").await;
    assert!(matches!(store.renew(&grant).await.unwrap(), Renewed::Extended(_)));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
}

/// K14.
#[tokio::test]
async fn a_short_lock_is_waited_for() {
    let bench = Bench::new();
    let store = bench.open().await;
    let mut raw = bench.raw().await;
    run(&mut raw, "BEGIN IMMEDIATE").await;
    let bid = bid("nightly");
    let (grant, ()) = tokio::join!(granted(&store, &bid), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        run(&mut raw, "COMMIT").await;
    });
    assert_eq!(store.read(&bid.name).await.unwrap().unwrap().token, grant.token);
    raw.close().await.unwrap();
}
