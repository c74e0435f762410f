//! Wake-ups that PostgreSQL sends. All tables of a database share one channel: each test watches names of its own.

use std::time::Duration;

use futures::StreamExt;
use tenure_core::{LeaseStore, Renewed, WakeUp, WakeUpKind};
use tokio::time::timeout;

use crate::bench::{PgBench, bid, eventually, granted, name, woken};

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_grant_and_a_release_elsewhere_wake_and_a_renewal_does_not() {
    let bench = PgBench::new().await;
    let (here, there) = (bench.store().await, bench.store().await);
    assert_eq!(here.describe().wake_up, WakeUpKind::Push);
    let mut watch = here.watch(&name(&bench.schema));
    assert_eq!(woken(&mut watch).await, WakeUp::Changed);
    for _ in 0..20 {
        let grant = granted(&there, &bid(&bench.schema)).await;
        assert_eq!(woken(&mut watch).await, WakeUp::Changed);
        let _ = there.release(&grant).await.unwrap();
        assert_eq!(woken(&mut watch).await, WakeUp::Changed);
    }
    let grant = granted(&there, &bid(&bench.schema)).await;
    woken(&mut watch).await;
    for n in 0..5 {
        assert_eq!(there.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
        granted(&there, &bid(&format!("{}-{n}", bench.schema))).await;
        let _ = there.try_acquire(&bid(&bench.schema)).await.unwrap();
    }
    assert!(timeout(Duration::from_millis(300), watch.next()).await.is_err(), "woken for nothing");
    bench.done().await;
}

/// K17.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_cut_is_told_once_and_no_later_change_is_missed() {
    let bench = PgBench::new().await;
    let (here, there) = (bench.store().await, bench.store().await);
    let mut watch = here.watch(&name(&bench.schema));
    woken(&mut watch).await;
    for _ in 0..3 {
        bench.terminate().await;
        assert_eq!(woken(&mut watch).await, WakeUp::Resync);
        let grant = loop {
            if let Ok(tenure_core::Acquired::Granted(grant)) = there.try_acquire(&bid(&bench.schema)).await {
                break grant;
            }
        };
        assert_eq!(woken(&mut watch).await, WakeUp::Changed);
        let _ = there.release(&grant).await.unwrap();
        assert_eq!(woken(&mut watch).await, WakeUp::Changed);
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_thousand_watches_share_one_connection_that_goes_with_the_last() {
    let bench = PgBench::new().await;
    let (here, there) = (bench.store().await, bench.store().await);
    let mut watches: Vec<_> = (0..1000).map(|n| here.watch(&name(&format!("{}-{n}", bench.schema)))).collect();
    for watch in &mut watches {
        woken(watch).await;
    }
    assert_eq!(bench.connections().await, 1);
    granted(&there, &bid(&format!("{}-999", bench.schema))).await;
    woken(&mut watches[999]).await;
    drop((watches, there));
    eventually("the listener's connection is closed", async || bench.connections().await == 0).await;
    let mut again = here.watch(&name(&format!("{}-1", bench.schema)));
    woken(&mut again).await;
    drop((again, here));
    eventually("that one too", async || bench.connections().await == 0).await;
    bench.done().await;
}

#[test]
#[ignore = "needs a server: run integration/test.sh"]
fn a_runtime_that_ends_while_somebody_watches_ends_in_peace() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let (bench, here) = first.block_on(async {
        let bench = PgBench::new().await;
        let here = bench.store().await;
        let mut watch = here.watch(&name(&bench.schema));
        woken(&mut watch).await;
        (bench, here)
    });
    drop(first);
    // The store goes on in another runtime, with another task.
    second.block_on(async {
        let mut watch = here.watch(&name(&bench.schema));
        woken(&mut watch).await;
        let other = bench.store().await;
        granted(&other, &bid(&bench.schema)).await;
        woken(&mut watch).await;
        drop((watch, here, other));
        bench.done().await;
    });
}
