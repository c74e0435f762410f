//! What the tests share: a directory with a database, and short ways to say things.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tenure_core::{Acquired, Bid, CandidateId, Grant, Label, LeaseName, LeaseStore};
use tenure_sql::SqliteStore;
use tenure_sql::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tenure_sql::sqlx::{AssertSqlSafe, ConnectOptions, query};

/// Long enough for a busy machine: no test waits for it to pass.
pub(crate) const TTL: Duration = Duration::from_secs(120);

pub(crate) struct Bench {
    pub(crate) directory: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("x.db")
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).await.unwrap()
    }

    /// A connection of somebody else's.
    pub(crate) async fn raw(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.path()).create_if_missing(true).connect().await.unwrap()
    }
}

pub(crate) async fn run(connection: &mut SqliteConnection, sql: &str) {
    query(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

pub(crate) fn name(text: &str) -> LeaseName {
    LeaseName::new(text).unwrap()
}

pub(crate) fn bid(lease: &str) -> Bid {
    Bid::new(name(lease), CandidateId::draw(&Label::new("worker").unwrap()), TTL)
}

pub(crate) async fn granted(store: &impl LeaseStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

/// Waits until `condition` holds, for at most 10 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let given_up_at = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition().await {
        assert!(tokio::time::Instant::now() < given_up_at, "not within 10 s: {what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
