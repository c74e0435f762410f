//! PostgreSQL behind PgBouncer in transaction mode.

use futures::future::join_all;
use tenure_core::{Acquired, FencingToken, LeaseStore, Released, Renewed, StoreErrorKind, StoreUrl, WakeUpKind};
use tenure_sql::PostgresStore;

use crate::bench::{PgBench, bid, granted, name, server, woken};

async fn pooled(bench: &PgBench, settings: &str) -> PostgresStore {
    let url = server("TENURE_TEST_PGBOUNCER");
    let text = format!("{}?table={}&pgbouncer=true{settings}", url.expose(), bench.table());
    PostgresStore::connect(&StoreUrl::parse(&text).unwrap()).await.unwrap()
}

/// K12.
#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn many_clients_over_few_connections_keep_every_promise() {
    let bench = PgBench::empty().await;
    let mut stores = Vec::new();
    for _ in 0..12 {
        stores.push(pooled(&bench, "").await);
    }
    for created in join_all(stores.iter().map(PostgresStore::ensure_schema)).await {
        created.unwrap();
    }
    let mut last = FencingToken(0);
    for _ in 0..20 {
        let bids: Vec<_> = (0..24).map(|_| bid("contended")).collect();
        let answers = join_all(bids.iter().enumerate().map(|(n, bid)| stores[n % 12].try_acquire(bid))).await;
        let mut grants = answers.into_iter().filter_map(|answer| match answer.unwrap() {
            Acquired::Granted(grant) => Some(grant),
            Acquired::Held(_) => None,
        });
        let grant = grants.next().expect("somebody got it");
        assert!(grants.next().is_none() && grant.token > last);
        last = grant.token;
        let renewals = join_all(stores.iter().map(|store| store.renew(&grant))).await;
        assert!(renewals.into_iter().all(|renewed| renewed.unwrap() == Renewed::Extended(grant.clone())));
        assert_eq!(stores[0].release(&grant).await.unwrap(), Released::Freed);
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn wake_ups_come_from_polling_or_from_a_direct_connection() {
    let bench = PgBench::new().await;
    let there = bench.store().await;
    let direct = &bench.url.hosts()[0];
    let listen = format!("&listen={}:{}", direct.host, direct.port.unwrap());
    for (settings, kind) in [("", WakeUpKind::Poll), (listen.as_str(), WakeUpKind::Push)] {
        let here = pooled(&bench, settings).await;
        assert_eq!(here.describe().wake_up, kind);
        let mut watch = here.watch(&name(&bench.schema));
        woken(&mut watch).await;
        let grant = granted(&there, &bid(&bench.schema)).await;
        woken(&mut watch).await;
        let _ = there.release(&grant).await.unwrap();
        woken(&mut watch).await;
    }
    bench.done().await;
}

#[tokio::test]
#[ignore = "needs a server: run integration/test.sh"]
async fn without_the_setting_the_pooler_refuses_the_session_at_once() {
    let url = server("TENURE_TEST_PGBOUNCER");
    let error = PostgresStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("pgbouncer=true"), "{error}");
}
