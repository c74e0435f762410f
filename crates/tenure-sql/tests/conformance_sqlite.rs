//! The conformance suite on SQLite.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use tempfile::TempDir;
use tenure_conformance::{Admin, Foreign, Harness, Unable, async_trait, conformance};
use tenure_core::clock::SystemClock;
use tenure_core::{LeaseName, LeaseStore, StoreError};
use tenure_sql::sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tenure_sql::sqlx::{ConnectOptions, query, query_scalar};
use tenure_sql::{SqlConfig, SqliteStore};

/// One file for all tests, all their processes and all runs.
const PATH: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/tenure-sql-conformance.db");

struct Bench {
    /// Where nothing was set up yet.
    empty: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { empty: tempfile::tempdir().unwrap() }
    }
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(SqliteStore::open(PATH).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let options = SqliteConnectOptions::new().filename(self.empty.path().join("x.db"));
        let store = || SqliteStore::with_options(options.clone(), SqlConfig::default(), SystemClock::new());
        Ok((0..count).map(|_| Arc::new(store()) as Arc<dyn LeaseStore>).collect())
    }

    /// Each has a thread; its file may stay open for a while, since closing it would drop the locks of the others.
    async fn connections(&self) -> Result<usize, Unable> {
        let threads = std::fs::read_dir("/proc/self/task").map_err(Unable::failed)?;
        let names = threads.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
        Ok(names.filter(|name| name.starts_with("sqlx-sqlite")).count())
    }
}

struct Operator;

impl Operator {
    async fn connection() -> Result<SqliteConnection, Unable> {
        SqliteConnectOptions::new().filename(PATH).connect().await.map_err(Unable::failed)
    }
}

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let sql = "DELETE FROM tenure_leases WHERE name = ?";
        let done = query(sql).bind(name.as_str()).execute(&mut Self::connection().await?).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        if foreign != Foreign::Value {
            return Err(Unable::lacks("the table takes no row without an expiry"));
        }
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(Unable::failed)?;
        let namespace = std::fs::read_link("/proc/self/ns/time").map_err(Unable::failed)?;
        let sql = "INSERT OR REPLACE INTO tenure_leases VALUES (?, '', 1, 1 << 60, 1, 0, '', 0, ?, ?)";
        let row = query(sql).bind(name.as_str()).bind(boot.trim()).bind(namespace.to_string_lossy().into_owned());
        let done = row.execute(&mut Self::connection().await?).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let sql = "SELECT format('%s|%s|%d|%d|%d|%d|%s|%d|%s|%s', name, candidate, token, expires_at, ttl, acquired_at, \
                   payload, after_release, boot_id, time_namespace) FROM tenure_leases WHERE name = ?";
        let row = query_scalar(sql).bind(name.as_str()).fetch_optional(&mut Self::connection().await?).await;
        Ok(row.map_err(Unable::failed)?.unwrap_or_default())
    }

    fn removal_resets_tokens(&self) -> bool {
        true
    }
}

conformance!(Bench::new(), skips: [
    // There is no server to restart, and no connection to cut.
    "token-server", "watch-cut", "watch-gap",
    // The counter is the row, and goes with it.
    "token-removed",
    // The table takes no row without an expiry.
    "expiry-outsider",
    // Faults happen in front of the client: a file has no wire.
    "doubt-words",
    // Whoever may open the file may write it.
    "setup-credentials", "setup-rights",
    // Needs libfaketime.
    "time-wall-clock",
]);
