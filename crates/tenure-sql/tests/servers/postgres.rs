//! PostgreSQL: sessions, locks, lost connections, rights, errors.

use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{FutureExt, StreamExt, poll};
use tenure_core::{
    Acquired, FencingToken, LeaseStore, LossReason, Payload, Released, Renewed, StoreErrorKind, StoreUrl,
};
use tenure_sql::sqlx::postgres::PgPoolOptions;
use tenure_sql::sqlx::{AssertSqlSafe, query_scalar};
use tenure_sql::{PostgresStore, SqlConfig, TableName};

use crate::bench::{PgBench, TTL, bid, eventually, fresh, granted, name, run};
use crate::proxy::{Protocol, Proxy};

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_term_begins_goes_on_and_ends_as_the_contract_says() {
    let bench = PgBench::new().await;
    let store = bench.store().await;
    let first = bid("nightly").with_payload(Payload::new("10.0.0.7 é").unwrap());
    let grant = granted(&store, &first).await;
    assert!(grant.after_release);
    assert_eq!(granted(&store, &first).await.token, grant.token);
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
    assert!(second.after_release && !third.after_release);
    assert!(grant.token < second.token && second.token < third.token);
    let by = Some(third.candidate.clone());
    assert_eq!(store.renew(&second).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    assert!(store.describe().version.is_some());
    bench.done().await;
}

/// K05.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_refused_call_changes_not_a_byte_and_a_late_copy_shortens_nothing() {
    let bench = PgBench::new().await;
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
    let _ = store.renew(&grant.clone().with_ttl(late.ttl)).await.unwrap();
    let left = store.read(&grant.name).await.unwrap().unwrap().remaining;
    assert!(left > TTL / 2, "{left:?}");
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn names_are_isolated_and_listed() {
    let bench = PgBench::new().await;
    let store = bench.store().await;
    let mut names = vec!["a", "a/b", "{a}", "A", "a ", " a", "%61", "a%", "a_", "'; drop table x; --", "日本", "é"];
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
async fn defaults_of_a_role_change_nothing() {
    let bench = PgBench::new().await;
    let role = fresh("tenure_role");
    let schema = &bench.schema;
    bench
        .run(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE ON {schema}.leases TO {role};
             ALTER ROLE {role} SET default_transaction_isolation = 'serializable';
             ALTER ROLE {role} SET synchronous_commit = off;
             ALTER ROLE {role} SET statement_timeout = 1; ALTER ROLE {role} SET TimeZone = 'Asia/Kathmandu';
             ALTER ROLE {role} SET DateStyle = 'SQL, DMY'; ALTER ROLE {role} SET search_path = nowhere"
        ))
        .await;
    let options = bench.options().username(&role).password("x");
    let stores: Vec<_> = (0..4).map(|_| PostgresStore::with_options(options.clone(), None, bench.config())).collect();
    for _ in 0..20 {
        let bids: Vec<_> = (0..16).map(|_| bid("contended")).collect();
        let answers = join_all(bids.iter().enumerate().map(|(n, bid)| stores[n % 4].try_acquire(bid))).await;
        let mut grants = answers.into_iter().filter_map(|answer| match answer.unwrap() {
            Acquired::Granted(grant) => Some(grant),
            Acquired::Held(_) => None,
        });
        let grant = grants.next().expect("somebody got it");
        assert!(grants.next().is_none(), "two grants at once");
        assert_eq!(stores[0].release(&grant).await.unwrap(), Released::Freed);
    }
    drop(stores);
    bench.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_transaction_of_the_service_is_not_joined() {
    let bench = PgBench::empty().await;
    let options = bench.options().options([("search_path", &bench.schema)]);
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
    let store = PostgresStore::new(pool.clone());
    store.ensure_schema().await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    run(&mut transaction, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT now()").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut short = bid("nightly");
    short.ttl = Duration::from_millis(200);
    granted(&store, &short).await;
    let left = store.read(&short.name).await.unwrap().unwrap().remaining;
    assert!(left > Duration::from_millis(100), "counted from the start of a transaction: {left:?}");
    transaction.rollback().await.unwrap();
    drop((store, pool));
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_locked_row_is_unavailable_within_the_bound_and_never_a_loss() {
    let bench = PgBench::new().await;
    let config = bench.config().with_timeout(Duration::from_secs(1)).unwrap();
    let store = PostgresStore::with_options(bench.options(), None, config);
    let grant = granted(&store, &bid("nightly")).await;
    let mut raw = bench.raw().await;
    run(&mut raw, &format!("BEGIN; SELECT * FROM {}.leases FOR UPDATE", bench.schema)).await;
    for _ in 0..2 {
        let begun = Instant::now();
        let error = store.renew(&grant).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("waiting for the row of this lease took too long"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
    assert!(store.read(&grant.name).await.unwrap().is_some(), "reading waits for nothing");
    assert!(matches!(store.try_acquire(&bid("nightly")).await.unwrap(), Acquired::Held(_)));
    granted(&store, &bid("another")).await;
    run(&mut raw, "ROLLBACK").await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    bench.done().await;
}

/// K14.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn each_error_of_the_server_tells_what_is_known() {
    use StoreErrorKind::{Denied, Malformed, Unavailable, Unknown};
    let bench = PgBench::new().await;
    let schema = &bench.schema;
    bench
        .run(&format!(
            "CREATE TABLE {schema}.state (code text); INSERT INTO {schema}.state VALUES ('00000');
             CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE c text; BEGIN
                 SELECT code INTO c FROM {schema}.state;
                 IF c <> '00000' THEN RAISE EXCEPTION 'injected' USING ERRCODE = c; END IF;
                 RETURN NEW; END $$;
             CREATE TRIGGER fail BEFORE UPDATE ON {schema}.leases FOR EACH ROW EXECUTE FUNCTION {schema}.fail()"
        ))
        .await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    for (code, kind) in [
        ("40001", Unavailable),
        ("40P01", Unavailable),
        ("55P03", Unavailable),
        ("57014", Unavailable),
        ("25006", Unavailable),
        ("53100", Unavailable),
        ("53200", Unavailable),
        ("57P01", Unknown),
        ("XX000", Unknown),
        ("58030", Unknown),
        ("42501", Denied),
        ("23514", Malformed),
        ("22003", Malformed),
    ] {
        bench.run(&format!("UPDATE {schema}.state SET code = '{code}'")).await;
        let error = store.renew(&grant).await.unwrap_err();
        assert_eq!((error.kind(), error.lease()), (kind, Some(&grant.name)), "{code}: {error}");
        let text = error.to_string();
        assert!(text.contains("injected") && !text.contains('\n'), "{text}");
    }
    bench.run(&format!("UPDATE {schema}.state SET code = '00000'")).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    bench.done().await;
}

/// K12.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_thousand_dropped_calls_strand_no_connection() {
    let bench = PgBench::new().await;
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
    eventually("at most two connections are left", async || bench.connections().await <= 2).await;
    bench.done().await;
}

/// K01.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_wire_that_goes_dead_costs_one_call_and_no_connection() {
    let bench = PgBench::new().await;
    let host = &bench.url.hosts()[0];
    let proxy = Proxy::to(Protocol::Postgres, &host.host, host.port.unwrap()).await;
    let options = bench.options().host("127.0.0.1").port(proxy.address.port());
    let config = bench.config().with_timeout(Duration::from_secs(1)).unwrap();
    let store = PostgresStore::with_options(options, None, config);
    let grant = granted(&store, &bid("nightly")).await;
    proxy.hold();
    let begun = Instant::now();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!((error.kind(), error.detail()), (StoreErrorKind::Unknown, Some("no answer within 1s")));
    // Nothing can have been sent by these: they did not even get a connection.
    for _ in 0..3 {
        assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    proxy.let_go();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    eventually("what was cut off is gone", async || bench.connections().await <= 2).await;
    bench.done().await;
}

/// K12.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn connections_that_the_server_ended_while_idle_are_replaced_unnoticed() {
    let bench = PgBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    bench.terminate().await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    // One that was used a moment ago is believed in: a call in doubt, and the next succeeds.
    bench.terminate().await;
    eventually("the renewal gets through", async || matches!(store.renew(&grant).await, Ok(Renewed::Extended(_))))
        .await;
    assert_eq!(store.read(&grant.name).await.unwrap().unwrap().token, grant.token);
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn the_schema_is_created_by_many_at_once() {
    let bench = PgBench::empty().await;
    for round in 0..5 {
        let table = TableName::new(&format!("{}.t{round}", bench.schema)).unwrap();
        let config = SqlConfig::default().with_table(table);
        let stores: Vec<_> =
            (0..16).map(|_| PostgresStore::with_options(bench.options(), None, config.clone())).collect();
        for created in join_all(stores.iter().map(PostgresStore::ensure_schema)).await {
            created.unwrap();
        }
        granted(&stores[0], &bid("nightly")).await;
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn running_needs_three_rights_on_one_table() {
    let bench = PgBench::empty().await;
    let (role, schema) = (fresh("tenure_role"), &bench.schema);
    bench.run(&format!("CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA {schema} TO {role}")).await;
    let options = bench.options().username(&role).password("x");
    let store = PostgresStore::with_options(options, None, bench.config());
    let error = store.ensure_schema().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    bench.run(&PostgresStore::ddl(&bench.table())).await;
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("running needs select, insert and update on"), "{error}");
    bench.run(&format!("GRANT SELECT, INSERT, UPDATE ON {schema}.leases TO {role}")).await;
    store.ensure_schema().await.unwrap();
    let grant = granted(&store, &bid("nightly")).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    drop(store);
    bench.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_wrong_address_or_credential_is_told_without_the_secret() {
    let bench = PgBench::empty().await;
    let host = &bench.url.hosts()[0];
    let (host, port, user) = (&host.host, host.port.unwrap(), bench.url.username().unwrap());
    let password = bench.url.password().unwrap();
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    for (url, kind, told) in [
        (
            format!("postgres://{user}:canary@{host}:{port}/tenure"),
            StoreErrorKind::Denied,
            "refuses the user or the password",
        ),
        (
            format!("postgres://{user}:{password}@{host}:{port}/canary_db"),
            StoreErrorKind::Malformed,
            "does not exist: create it",
        ),
        (
            format!("postgres://{user}:canary@127.0.0.1:{free}/tenure"),
            StoreErrorKind::Unavailable,
            "cannot be reached (connection refused)",
        ),
    ] {
        let begun = Instant::now();
        let error = PostgresStore::connect(&StoreUrl::parse(&url).unwrap()).await.unwrap_err();
        let shown = format!("{error} {error:?} {:?}", std::error::Error::source(&error));
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(told), "{error}");
        assert!(
            !shown.contains("canary@") && !shown.contains(":canary") && !shown.contains(password)
                || password == "tenure",
            "{shown}"
        );
        assert!(begun.elapsed() < Duration::from_secs(2), "told late");
    }
    let store = PostgresStore::with_options(bench.options().password("canary"), None, bench.config());
    let shown = format!("{store:?} {:?}", store.read(&name("x")).await);
    assert!(!shown.contains("canary"), "{shown}");
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_missing_or_foreign_table_is_malformed_and_says_what_to_do() {
    let bench = PgBench::empty().await;
    let store = bench.store().await;
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Malformed);
    assert!(error.to_string().contains("create it with ensure_schema"), "{error}");
    bench.run(&format!("CREATE TABLE {}.leases (id int, name text)", bench.schema)).await;
    for error in [
        store.ensure_schema().await.unwrap_err(),
        store.try_acquire(&bid("nightly")).await.unwrap_err(),
        store.read(&name("nightly")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Malformed);
        assert!(error.to_string().contains("is not tenure's (column"), "{error}");
    }
    bench.done().await;
}

/// K18.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_server_that_takes_no_writes_is_unavailable() {
    let bench = PgBench::new().await;
    let options = bench.options().options([("default_transaction_read_only", "on")]);
    let store = PostgresStore::with_options(options, None, bench.config());
    let error = store.try_acquire(&bid("nightly")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("takes no writes"), "{error}");
    assert_eq!(store.read(&name("nightly")).await.unwrap(), None);
    bench.done().await;
}

/// K20.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn of_many_bids_at_once_exactly_one_is_granted() {
    let bench = PgBench::new().await;
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(bench.store().await);
    }
    let mut last = FencingToken(0);
    for round in 0..30 {
        let bids: Vec<_> = (0..64).map(|_| bid("contended")).collect();
        let answers = join_all(bids.iter().enumerate().map(|(n, bid)| stores[n % 8].try_acquire(bid))).await;
        let mut grants = answers.into_iter().filter_map(|answer| match answer.unwrap() {
            Acquired::Granted(grant) => Some(grant),
            Acquired::Held(_) => None,
        });
        let grant = grants.next().expect("somebody got it");
        assert!(grants.next().is_none(), "two grants in round {round}");
        assert!(grant.token > last);
        last = grant.token;
        assert_eq!(stores[round % 8].release(&grant).await.unwrap(), Released::Freed);
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn a_row_of_another_writer_is_reported_and_never_taken_over() {
    let bench = PgBench::new().await;
    let store = bench.store().await;
    let grant = granted(&store, &bid("nightly")).await;
    bench.run(&format!("UPDATE {}.leases SET payload = repeat('x', 2000)", bench.schema)).await;
    let before = bench.row().await;
    for error in [store.read(&grant.name).await.unwrap_err(), store.try_acquire(&bid("nightly")).await.unwrap_err()] {
        assert_eq!((error.kind(), error.lease()), (StoreErrorKind::Malformed, Some(&grant.name)));
    }
    assert_eq!(bench.row().await, before);
    let sql = format!("SELECT count(*) FROM {}.leases", bench.schema);
    let rows: i64 = query_scalar(AssertSqlSafe(sql)).fetch_one(&mut bench.raw().await).await.unwrap();
    assert_eq!(rows, 1);
    bench.done().await;
}

#[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn encryption_verifies_the_server_or_refuses_it() {
    let bench = PgBench::new().await;
    let host = &bench.url.hosts()[0];
    let (port, table) = (host.port.unwrap(), bench.table());
    let base = format!("postgres://postgres:tenure@localhost:{port}/tenure?table={table}");
    let authority = std::env::var("TENURE_TEST_CA").unwrap();
    let other = std::env::var("TENURE_TEST_OTHER_CA").unwrap();
    let open =
        async |settings: &str| PostgresStore::connect(&StoreUrl::parse(&format!("{base}&{settings}")).unwrap()).await;
    let store = open(&format!("sslmode=verify-full&sslrootcert={authority}")).await.unwrap();
    granted(&store, &bid("nightly")).await;
    let sql =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'tenure'";
    let encrypted: i64 = query_scalar(sql).fetch_one(&mut bench.raw().await).await.unwrap();
    assert!(encrypted >= 1);
    for settings in [format!("sslmode=verify-full&sslrootcert={other}"), "sslmode=verify-full".to_owned()] {
        let error = open(&settings).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("no encrypted connection to localhost"), "{error}");
    }
    bench.done().await;
}
