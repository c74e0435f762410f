//! Wake-ups across connections that know nothing of each other.

use std::fs;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tenure_core::{LeaseStore, WakeUp};
use tokio::time::timeout;

use crate::bench::{Bench, bid, granted, name, run};

async fn woken(watch: &mut BoxStream<'static, WakeUp>) -> WakeUp {
    timeout(Duration::from_secs(10), watch.next()).await.expect("a wake-up within 10 s").unwrap()
}

#[tokio::test]
async fn a_grant_a_release_and_a_removal_elsewhere_wake() {
    let bench = Bench::new();
    let (here, there) = (bench.open().await, bench.open().await);
    let mut watch = here.watch(&name("nightly"));
    woken(&mut watch).await;
    for _ in 0..20 {
        let grant = granted(&there, &bid("nightly")).await;
        woken(&mut watch).await;
        let _ = there.release(&grant).await.unwrap();
        woken(&mut watch).await;
    }
    run(&mut bench.raw().await, "DELETE FROM tenure_leases").await;
    woken(&mut watch).await;
}

/// K20.
#[tokio::test]
async fn a_thousand_watches_of_one_store_are_served_by_one_connection() {
    let bench = Bench::new();
    let (here, there) = (bench.open().await, bench.open().await);
    let mut watches: Vec<_> = (0..1000).map(|n| here.watch(&name(&format!("lease-{n}")))).collect();
    for watch in &mut watches {
        woken(watch).await;
    }
    granted(&there, &bid("lease-999")).await;
    woken(&mut watches[999]).await;
    let open = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| *target == bench.path())
        .count();
    assert!(open <= 5, "{open} connections are open");
}

/// K17.
#[tokio::test]
async fn a_watch_survives_the_replacement_of_the_database() {
    let bench = Bench::new();
    let here = bench.open().await;
    let mut watch = here.watch(&name("nightly"));
    woken(&mut watch).await;
    for file in ["x.db", "x.db-wal", "x.db-shm"] {
        fs::remove_file(bench.directory.path().join(file)).unwrap();
    }
    let there = bench.open().await;
    granted(&there, &bid("nightly")).await;
    let woke = async {
        while here.read(&name("nightly")).await.ok().flatten().is_none() {
            woken(&mut watch).await;
        }
    };
    timeout(Duration::from_secs(10), woke).await.expect("the new database is watched");
}
