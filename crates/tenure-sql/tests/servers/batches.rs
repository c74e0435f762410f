//! Many renewals in one statement, or in one transaction.

use std::time::{Duration, Instant};

use tenure_core::{FencingToken, LeaseStore, LossReason, Released, Renewed, StoreErrorKind};
use tenure_sql::{MySqlStore, PostgresStore};

use crate::bench::{PgBench, TTL, bid, granted, name};
use crate::my_bench::MyBench;

/// A batch with everything in it that can be: `remove`, `expire` and `age` change the table by hand.
async fn answers_as_one_by_one<S: LeaseStore>(store: &S, by_hand: impl AsyncFn(&str)) {
    let mut grants = Vec::new();
    for n in 0..300 {
        grants.push(granted(store, &bid(&format!("lease-{n}"))).await);
    }
    assert_eq!(store.release(&grants[7]).await.unwrap(), Released::Freed);
    assert_eq!(store.release(&grants[8]).await.unwrap(), Released::Freed);
    let successor = granted(store, &bid("lease-8")).await;
    by_hand("DELETE FROM leases WHERE name = 'lease-9'").await;
    grants[10].token = FencingToken(99);
    by_hand("UPDATE leases SET expires_at = '2001-01-01' WHERE name = 'lease-11'").await;
    by_hand("UPDATE leases SET expires_at = expires_at - interval '20' second").await;
    grants[12].ttl = TTL * 2;
    let answers = store.renew_many(&grants).await;
    assert_eq!(answers.len(), grants.len());
    for (n, (grant, answer)) in grants.iter().zip(answers).enumerate() {
        let expected = match n {
            7 | 9 => Renewed::Lost(LossReason::Removed),
            8 => Renewed::Lost(LossReason::Superseded { by: Some(successor.candidate.clone()) }),
            10 => Renewed::Lost(LossReason::Superseded { by: Some(grant.candidate.clone()) }),
            11 => Renewed::Lost(LossReason::EXPIRED),
            _ => Renewed::Extended(grant.clone()),
        };
        assert_eq!(answer.unwrap(), expected, "lease-{n}");
    }
    let left = async |lease: &str| store.read(&name(lease)).await.unwrap().unwrap().remaining;
    assert!(left("lease-299").await > TTL - Duration::from_secs(19), "not extended");
    assert!(left("lease-12").await > TTL && left("lease-13").await <= TTL);
}

/// A row that somebody locks fails by itself, within the bound of a call, after the others were extended.
async fn one_locked_row_holds_up_no_other<S: LeaseStore>(
    store: &S,
    lock: impl AsyncFnOnce(),
    unlock: impl AsyncFnOnce(),
) {
    let mut grants = Vec::new();
    for n in 0..20 {
        grants.push(granted(store, &bid(&format!("lease-{n}"))).await);
    }
    lock().await;
    let begun = Instant::now();
    let answers = store.renew_many(&grants).await;
    assert!(begun.elapsed() < Duration::from_secs(4));
    for (n, answer) in answers.into_iter().enumerate() {
        match answer {
            Err(error) if n == 3 => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
            Ok(Renewed::Extended(_)) if n != 3 => {}
            other => panic!("lease-{n}: {other:?}"),
        }
    }
    unlock().await;
    for answer in store.renew_many(&grants).await {
        assert!(matches!(answer, Ok(Renewed::Extended(_))));
    }
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_batch_on_postgres_answers_as_renewals_one_by_one_do() {
    let bench = PgBench::new().await;
    let store: PostgresStore = bench.store().await;
    let schema = format!("SET search_path = {}; ", bench.schema);
    answers_as_one_by_one(&store, async |sql| bench.run(&format!("{schema}{sql}")).await).await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_batch_on_mysql_answers_as_renewals_one_by_one_do() {
    let bench = MyBench::new().await;
    let store: MySqlStore = bench.store().await;
    answers_as_one_by_one(&store, async |sql| bench.run(sql).await).await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_locked_row_of_a_batch_on_postgres_holds_up_no_other() {
    let bench = PgBench::new().await;
    let store = bench.store().await;
    let raw = tokio::sync::Mutex::new(bench.raw().await);
    let sql = format!("BEGIN; SELECT * FROM {}.leases WHERE name = 'lease-3' FOR UPDATE", bench.schema);
    one_locked_row_holds_up_no_other(
        &store,
        async || crate::bench::run(&mut *raw.lock().await, &sql).await,
        async || crate::bench::run(&mut *raw.lock().await, "ROLLBACK").await,
    )
    .await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_locked_row_of_a_batch_on_mysql_holds_up_no_other() {
    let bench = MyBench::new().await;
    let config = bench.config().with_timeout(Duration::from_secs(3)).unwrap();
    let store = MySqlStore::with_options(bench.options(), config);
    let raw = tokio::sync::Mutex::new(bench.raw().await);
    let sql = "START TRANSACTION; SELECT * FROM leases WHERE name = 'lease-3' FOR UPDATE";
    one_locked_row_holds_up_no_other(
        &store,
        async || crate::my_bench::run(&mut *raw.lock().await, sql).await,
        async || crate::my_bench::run(&mut *raw.lock().await, "ROLLBACK").await,
    )
    .await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_batch_that_fails_half_way_changes_nothing_and_locks_nothing() {
    let bench = MyBench::new().await;
    bench
        .run(
            "CREATE TRIGGER fail BEFORE UPDATE ON leases FOR EACH ROW BEGIN
                 IF NEW.ttl = 5000000 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'injected'; END IF;
             END",
        )
        .await;
    let store = bench.store().await;
    let (first, second) = (granted(&store, &bid("a")).await, granted(&store, &bid("b")).await);
    let before = store.read(&first.name).await.unwrap().unwrap().ttl;
    // Ttls are written in rising order: the first update succeeds, the second fails.
    let grants = [first.clone().with_ttl(Duration::from_secs(4)), second.clone().with_ttl(Duration::from_secs(5))];
    for answer in store.renew_many(&grants).await {
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    assert_eq!(store.read(&first.name).await.unwrap().unwrap().ttl, before, "the first update was not rolled back");
    let other = bench.store().await;
    assert!(matches!(other.renew(&first).await.unwrap(), Renewed::Extended(_)), "a row stayed locked");
    bench.done().await;
}
