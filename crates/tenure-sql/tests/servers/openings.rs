//! A connection that is being opened outlives the caller who wanted it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::poll;
use tenure_core::LeaseStore;
use tenure_sql::sqlx::mysql::MySqlConnectOptions;
use tenure_sql::sqlx::postgres::PgConnectOptions;
use tenure_sql::{MySqlStore, PostgresStore, SqlConfig};
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::bench::{bid, eventually};

/// A server that takes connections and says nothing.
async fn mute() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::<AtomicUsize>::default();
    let count = accepted.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            open.push(connection);
        }
    });
    (port, accepted)
}

/// MySQL locks out a host after 100 handshakes in a row that broke off: one each for dropped calls would be soon enough.
async fn dropped_calls_share_an_opening(store: impl LeaseStore, accepted: Arc<AtomicUsize>) {
    for _ in 0..50 {
        let bid = bid("nightly");
        let mut call = store.try_acquire(&bid);
        while accepted.load(Ordering::SeqCst) == 0 {
            assert!(poll!(&mut call).is_pending());
            sleep(Duration::from_millis(1)).await;
        }
        assert!(poll!(&mut call).is_pending());
    }
    // What was opened beside the first would have been heard of by now.
    sleep(Duration::from_millis(50)).await;
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn calls_that_are_dropped_while_mysql_shakes_hands_share_one_connection() {
    let (port, accepted) = mute().await;
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("x");
    dropped_calls_share_an_opening(MySqlStore::with_options(options, SqlConfig::default()), accepted).await;
}

#[tokio::test]
async fn calls_that_are_dropped_while_postgres_shakes_hands_share_one_connection() {
    let (port, accepted) = mute().await;
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).username("x");
    dropped_calls_share_an_opening(PostgresStore::with_options(options, None, SqlConfig::default()), accepted).await;
}

#[tokio::test]
async fn an_opening_that_took_too_long_is_given_up_for_a_fresh_one() {
    let (port, accepted) = mute().await;
    let options = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).username("x");
    let config = SqlConfig::default().with_timeout(Duration::from_millis(100)).unwrap();
    let store = PostgresStore::with_options(options, None, config);
    eventually("a second connection is tried", async || {
        assert!(store.try_acquire(&bid("nightly")).await.is_err());
        accepted.load(Ordering::SeqCst) > 1
    })
    .await;
}
