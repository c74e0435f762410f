//! Calls whose callers go away in the middle.

use std::fs;
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use futures::{FutureExt, poll};
use tenure_core::{LeaseStore, Renewed};
use tenure_sql::{SqlConfig, SqliteStore};

use crate::bench::{Bench, bid, eventually, granted, name, run};

/// How often this process has the database, or its log, open.
fn open_files(path: &Path) -> usize {
    let path = path.to_str().unwrap();
    let targets = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with(path)).count()
}

/// K20.
#[tokio::test]
async fn a_thousand_dropped_calls_strand_no_connection() {
    let bench = Bench::new();
    let store = bench.open().await;
    let grant = granted(&store, &bid("nightly")).await;
    for n in 0..1000 {
        let mut call = match n % 4 {
            0 => async { drop(store.try_acquire(&bid("nightly")).await) }.boxed_local(),
            1 => store.renew(&grant).map(drop).boxed_local(),
            2 => store.read(&grant.name).map(drop).boxed_local(),
            _ => async { drop(store.try_acquire(&bid(&format!("orphan-{n}"))).await) }.boxed_local(),
        };
        for _ in 0..=(n % 3) {
            if matches!(poll!(&mut call), Poll::Ready(())) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    assert!(matches!(store.renew(&grant).await.unwrap(), Renewed::Extended(_)));
    granted(&store, &bid("another")).await;
    // Two connections, each with the file and its log, and one shared memory file.
    let open = open_files(&bench.path());
    assert!(open <= 5, "{open} files are open");
}

#[tokio::test]
async fn calls_dropped_while_the_file_is_locked_leave_the_store_usable() {
    let bench = Bench::new();
    let config = SqlConfig::default().with_timeout(Duration::from_millis(400)).unwrap();
    let store = SqliteStore::open_with(bench.path(), config).await.unwrap();
    let grant = granted(&store, &bid("nightly")).await;
    let mut raw = bench.raw().await;
    run(&mut raw, "BEGIN IMMEDIATE").await;
    for _ in 0..200 {
        let call = tokio::time::timeout(Duration::from_millis(1), store.renew(&grant));
        assert!(call.await.is_err(), "the lock was not in the way");
    }
    let threads = fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 100, "{threads} threads: each dropped call left one");
    run(&mut raw, "COMMIT").await;
    eventually("the renewal gets through", async || matches!(store.renew(&grant).await, Ok(Renewed::Extended(_))))
        .await;
    assert_eq!(store.read(&name("nightly")).await.unwrap().unwrap().token, grant.token);
}
