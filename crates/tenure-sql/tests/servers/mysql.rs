//! MySQL and MariaDB: sessions, locks, lost connections, rights, errors.

use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{FutureExt, StreamExt, poll};
use tenure_core::{
    Acquired, FencingToken, LeaseStore, LossReason, Payload, Released, Renewed, StoreErrorKind, StoreUrl,
    TokenDurability,
};
use tenure_sql::sqlx::mysql::MySqlPoolOptions;
use tenure_sql::{MySqlStore, SqlConfig, TableName};

use crate::bench::{TTL, bid, eventually, fresh, granted, name, woken};
use crate::my_bench::{MyBench, run};
use crate::proxy::{Protocol, Proxy};

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_term_begins_goes_on_and_ends_as_the_contract_says() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let first = bid("nightly").with_payload(Payload::new("10.0.0.7 é").unwrap());
    let grant = granted(&store, &first).await;
    assert!(grant.after_release);
    let again = granted(&store, &first).await;
    assert_eq!((again.token, again.after_release), (grant.token, true));
    let Acquired::Held(record) = store.try_acquire(&bid("nightly")).await.unwrap() else { panic!("granted twice") };
    assert_eq!((&record.holder, record.token, record.payload.as_str()), (&grant.candidate, grant.token, "10.0.0.7 é"));
    assert!(record.remaining <= TTL && record.remaining > TTL / 2, "{:?}", record.remaining);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert_eq!(store.release(&grant).await.unwrap(), Released::NotHeld);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(store.read(&grant.name).await.unwrap(), None);
    let mut short = bid("nightly");
    short.ttl = Duration::from_millis(50);
    let second = granted(&store, &short).await;
    tokio::time::sleep(short.ttl).await;
    let third = granted(&store, &bid("nightly")).await;
    let again = granted(&store, &{
        let mut same = bid("nightly");
        same.candidate = third.candidate.clone();
        same
    })
    .await;
    assert!(second.after_release && !third.after_release && !again.after_release);
    assert!(grant.token < second.token && second.token < third.token && third.token == again.token);
    let by = Some(third.candidate.clone());
    assert_eq!(store.renew(&second).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    let described = store.describe();
    assert!(described.version.is_some());
    assert_eq!(described.token, TokenDurability::SingleNode);
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_renewal_that_changes_no_value_is_one_all_the_same() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    let short = grant.clone().with_ttl(Duration::from_millis(10));
    assert!(matches!(store.renew(&short).await.unwrap(), Renewed::Extended(_)));
    let before = bench.row().await;
    for _ in 0..3 {
        assert!(matches!(store.renew(&short).await.unwrap(), Renewed::Extended(_)));
    }
    assert_eq!(bench.row().await, before, "a late copy moved the expiry, or the test changes something");
    bench.done().await;
}

/// K05.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_refused_call_changes_not_a_byte_and_a_late_copy_shortens_nothing() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let own = bid("nightly");
    let grant = granted(&store, &own).await;
    let before = bench.row().await;
    let mut stranger = grant.clone();
    stranger.candidate = bid("nightly").candidate;
    let mut later = grant.clone();
    later.token = FencingToken(grant.token.value() + 1);
    for wrong in [&stranger, &later] {
        assert!(matches!(store.renew(wrong).await.unwrap(), Renewed::Lost(_)));
        assert_eq!(store.release(wrong).await.unwrap(), Released::NotHeld);
    }
    assert!(matches!(store.try_acquire(&bid("nightly")).await.unwrap(), Acquired::Held(_)));
    assert_eq!(bench.row().await, before);
    let mut late = own.clone();
    late.ttl = Duration::from_millis(10);
    assert_eq!(granted(&store, &late).await.token, grant.token);
    let left = store.read(&grant.name).await.unwrap().unwrap().remaining;
    assert!(left > TTL / 2, "{left:?}");
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn names_are_isolated_and_listed() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let long = "x".repeat(200);
    let mut names =
        vec!["a", "a/b", "{a}", "A", "a ", " a", "%61", "a%", "a_", "'; drop table x; --", "日本", "é", "e", &long];
    for text in &names {
        assert_eq!(granted(&store, &bid(text)).await.token, FencingToken(1), "{text:?}");
    }
    let mut listed: Vec<_> = store.list().map(|record| record.unwrap().name.to_string()).collect().await;
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, names);
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_transaction_of_the_service_is_not_joined() {
    let bench = MyBench::empty().await;
    let pool = MySqlPoolOptions::new().max_connections(1).connect_with(bench.options()).await.unwrap();
    let store = MySqlStore::new(pool.clone());
    store.ensure_schema().await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    run(&mut transaction, "SELECT * FROM tenure_leases").await;
    let grant = granted(&store, &bid("nightly")).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    transaction.rollback().await.unwrap();
    assert_eq!(store.read(&grant.name).await.unwrap().unwrap().token, grant.token);
    drop((store, pool));
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_locked_row_is_unavailable_within_the_bound_and_never_a_loss() {
    let bench = MyBench::new().await;
    let config = bench.config().with_timeout(Duration::from_secs(4)).unwrap();
    let store = MySqlStore::with_options(bench.options(), config);
    let grant = granted(&store, &bid("nightly")).await;
    let mut raw = bench.raw().await;
    run(&mut raw, "START TRANSACTION; SELECT * FROM leases FOR UPDATE").await;
    let begun = Instant::now();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("waiting for the row of this lease took too long"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4));
    assert!(store.read(&grant.name).await.unwrap().is_some(), "reading waits for nothing");
    run(&mut raw, "ROLLBACK").await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn each_error_of_the_server_tells_what_is_known() {
    use StoreErrorKind::{Denied, Malformed, Unavailable, Unknown, Unsupported};
    let bench = MyBench::new().await;
    bench
        .run(
            "CREATE TABLE state (number INT); INSERT INTO state VALUES (0);
             CREATE TRIGGER fail BEFORE UPDATE ON leases FOR EACH ROW BEGIN
                 DECLARE n INT; SELECT number INTO n FROM state;
                 IF n <> 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = n, MESSAGE_TEXT = 'injected'; END IF;
             END",
        )
        .await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    for (number, kind) in [
        (1205, Unavailable),
        (1213, Unavailable),
        (1290, Unavailable),
        (1836, Unavailable),
        (1114, Unavailable),
        (1665, Unsupported),
        (1142, Denied),
        (1644, Malformed),
        (1366, Malformed),
        (1317, Unknown),
        (1053, Unknown),
        (1030, Unknown),
        (9999, Unknown),
    ] {
        bench.run(&format!("UPDATE state SET number = {number}")).await;
        let error = store.renew(&grant).await.unwrap_err();
        assert_eq!((error.kind(), error.lease()), (kind, Some(&grant.name)), "{number}: {error}");
        let text = error.to_string();
        assert!(text.contains("injected") && !text.contains('\n'), "{text}");
    }
    // The trigger that is left takes the number away that a change hands over: the outcome is the same.
    bench.run("UPDATE state SET number = 0").await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    let next = granted(&store, &bid("nightly")).await;
    assert_eq!(next.token.value(), grant.token.value() + 1);
    assert!(matches!(store.try_acquire(&bid("nightly")).await.unwrap(), Acquired::Held(_)));
    bench.done().await;
}

/// K12.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_thousand_dropped_calls_strand_no_connection() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    for n in 0..1000 {
        let mut call = match n % 4 {
            0 => async { drop(store.try_acquire(&bid("nightly")).await) }.boxed_local(),
            1 => store.renew(&grant).map(drop).boxed_local(),
            2 => store.read(&grant.name).map(drop).boxed_local(),
            _ => async { drop(store.try_acquire(&bid(&format!("orphan-{n}"))).await) }.boxed_local(),
        };
        for _ in 0..=(n % 7) {
            if matches!(poll!(&mut call), Poll::Ready(())) {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    granted(&store, &bid("another")).await;
    eventually("at most two connections are left", async || bench.connections().await.len() <= 2).await;
    bench.done().await;
}

/// K01.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_wire_that_goes_dead_costs_one_call_and_no_connection() {
    let bench = MyBench::new().await;
    let host = &bench.url.hosts()[0];
    let proxy = Proxy::to(Protocol::MySql, &host.host, host.port.unwrap()).await;
    let options = bench.options().host("127.0.0.1").port(proxy.address.port());
    let config = bench.config().with_timeout(Duration::from_millis(500)).unwrap();
    let store = MySqlStore::with_options(options, config);
    let grant = granted(&store, &bid("nightly")).await;
    proxy.hold();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!((error.kind(), error.detail()), (StoreErrorKind::Unknown, Some("no answer within 500ms")));
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    proxy.let_go();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    eventually("what was cut off is gone", async || bench.connections().await.len() <= 2).await;
    bench.done().await;
}

/// K12.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn connections_that_the_server_ended_while_idle_are_replaced_unnoticed() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    bench.terminate().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    bench.terminate().await;
    eventually("the renewal gets through", async || matches!(store.renew(&grant).await, Ok(Renewed::Extended(_))))
        .await;
    assert_eq!(store.read(&grant.name).await.unwrap().unwrap().token, grant.token);
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn the_schema_is_created_by_many_at_once() {
    let bench = MyBench::empty().await;
    for round in 0..5 {
        let table = TableName::new(&format!("{}.t{round}", bench.database)).unwrap();
        let config = SqlConfig::default().with_table(table);
        let stores: Vec<_> = (0..16).map(|_| MySqlStore::with_options(bench.options(), config.clone())).collect();
        for created in join_all(stores.iter().map(MySqlStore::ensure_schema)).await {
            created.unwrap();
        }
        granted(&stores[0], &bid("nightly")).await;
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn running_needs_three_rights_on_one_table() {
    let bench = MyBench::empty().await;
    let (user, database) = (fresh("u")[..16].to_owned(), &bench.database);
    bench.run(&format!("CREATE USER {user} IDENTIFIED BY 'x'; GRANT USAGE ON *.* TO {user}")).await;
    bench.run(&MySqlStore::ddl(bench.config().table())).await;
    bench.run("CREATE TABLE other (x INT)").await;
    bench.run(&format!("GRANT SELECT ON {database}.other TO {user}")).await;
    let options = bench.options().username(&user).password("x");
    let store = MySqlStore::with_options(options, bench.config());
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("running needs select, insert and update on leases"), "{error}");
    assert_eq!(store.ensure_schema().await.unwrap_err().kind(), StoreErrorKind::Denied);
    bench.run(&format!("GRANT SELECT, INSERT, UPDATE ON {database}.leases TO {user}")).await;
    let options = bench.options().username(&user).password("x");
    let store = MySqlStore::with_options(options, bench.config());
    store.ensure_schema().await.unwrap();
    let grant = granted(&store, &bid("nightly")).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    drop(store);
    bench.run(&format!("DROP USER {user}")).await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_wrong_address_or_credential_is_told_without_the_secret() {
    let bench = MyBench::empty().await;
    let host = &bench.url.hosts()[0];
    let (host, port, user) = (&host.host, host.port.unwrap(), bench.url.username().unwrap());
    let password = bench.url.password().unwrap();
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for (url, kind, told) in [
        (
            format!("mysql://{user}:canary@{host}:{port}/tenure"),
            StoreErrorKind::Denied,
            "refuses the user or the password",
        ),
        (
            format!("mysql://{user}:{password}@{host}:{port}/canary_db"),
            StoreErrorKind::Malformed,
            "create it, or name another",
        ),
        (
            format!("mysql://{user}:canary@127.0.0.1:{free}/tenure"),
            StoreErrorKind::Unavailable,
            "cannot be reached (connection refused)",
        ),
    ] {
        let begun = Instant::now();
        let error = MySqlStore::connect(&StoreUrl::parse(&url).unwrap()).await.unwrap_err();
        let shown = format!("{error} {error:?} {:?}", std::error::Error::source(&error));
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(!shown.contains("canary@") && !shown.contains(":canary"), "{shown}");
        assert!(begun.elapsed() < Duration::from_secs(2), "told late");
    }
    let store = MySqlStore::with_options(bench.options().password("canary"), bench.config());
    let shown = format!("{store:?} {:?}", store.read(&name("x")).await);
    assert!(!shown.contains("canary"), "{shown}");
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_missing_or_foreign_table_is_malformed_and_says_what_to_do() {
    let bench = MyBench::empty().await;
    let store = bench.store().await;
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Malformed);
    assert!(error.to_string().contains("create it with ensure_schema"), "{error}");
    bench.run("CREATE TABLE leases (id INT, name TEXT)").await;
    for error in [
        store.ensure_schema().await.unwrap_err(),
        store.try_acquire(&bid("nightly")).await.unwrap_err(),
        store.read(&name("nightly")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Malformed);
        assert!(error.to_string().contains("is not tenure's (Unknown column"), "{error}");
    }
    bench.done().await;
}

/// K20.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn of_many_bids_at_once_exactly_one_is_granted() {
    let bench = MyBench::new().await;
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(bench.store().await);
    }
    for round in 0..30 {
        // A name of its own each time, too, where the insert decides.
        for lease in ["contended".to_owned(), format!("new-{round}")] {
            let bids: Vec<_> = (0..64).map(|_| bid(&lease)).collect();
            let answers = join_all(bids.iter().enumerate().map(|(n, bid)| stores[n % 8].try_acquire(bid))).await;
            let mut grants = answers.into_iter().filter_map(|answer| match answer.unwrap() {
                Acquired::Granted(grant) => Some(grant),
                Acquired::Held(_) => None,
            });
            let grant = grants.next().expect("somebody got it");
            assert!(grants.next().is_none(), "two grants in round {round}");
            let token = if lease == "contended" { round as u64 + 1 } else { 1 };
            assert_eq!(grant.token, FencingToken(token));
            assert_eq!(stores[round % 8].release(&grant).await.unwrap(), Released::Freed);
        }
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_row_of_another_writer_is_reported_and_never_taken_over() {
    let bench = MyBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    bench.run("UPDATE leases SET payload = X'FF'").await;
    let before = bench.row().await;
    for error in [store.read(&grant.name).await.unwrap_err(), store.try_acquire(&bid("nightly")).await.unwrap_err()] {
        assert_eq!((error.kind(), error.lease()), (StoreErrorKind::Malformed, Some(&grant.name)));
    }
    assert_eq!(bench.row().await, before);
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_watch_looks_once_a_second_for_all_names() {
    let bench = MyBench::new().await;
    let (here, there) = (bench.store().await, bench.store().await);
    let mut watches: Vec<_> = (0..100).map(|n| here.watch(&name(&format!("lease-{n}")))).collect();
    for watch in &mut watches {
        woken(watch).await;
    }
    let grant = granted(&there, &bid("lease-99")).await;
    woken(&mut watches[99]).await;
    let _ = there.release(&grant).await.unwrap();
    woken(&mut watches[99]).await;
    assert!(bench.connections().await.len() <= 3);
    bench.done().await;
}

#[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn encryption_verifies_the_server_or_refuses_it() {
    let bench = MyBench::new().await;
    let port = bench.url.hosts()[0].port.unwrap();
    let base = format!("mysql://root:tenure@localhost:{port}/{}?table=leases", bench.database);
    let authority = std::env::var("TENURE_TEST_CA").unwrap();
    let other = std::env::var("TENURE_TEST_OTHER_CA").unwrap();
    let open =
        async |settings: &str| MySqlStore::connect(&StoreUrl::parse(&format!("{base}&{settings}")).unwrap()).await;
    let store = open(&format!("sslmode=verify-full&sslrootcert={authority}")).await.unwrap();
    granted(&store, &bid("nightly")).await;
    for settings in [format!("sslmode=verify-full&sslrootcert={other}"), "sslmode=verify-full".to_owned()] {
        let error = open(&settings).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("no encrypted connection to localhost"), "{error}");
    }
    bench.done().await;
}
