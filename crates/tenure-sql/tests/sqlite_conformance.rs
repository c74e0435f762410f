//! The conformance suite on a SQLite file.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Row, SqliteConnection};
use tenure_conformance::{Admin, Foreign, Harness, Unable, async_trait, conformance};
use tenure_core::clock::SystemClock;
use tenure_core::{LeaseName, LeaseStore, StoreError};
use tenure_sql::{SqlConfig, SqliteStore};

/// One file for all clauses, each of which has names of its own, and for a second process.
struct Bench {
    path: PathBuf,
}

impl Bench {
    fn new() -> Self {
        Self { path: Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance.db") }
    }
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(SqliteStore::open(&self.path).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(self.path.clone())))
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let path = self.path.with_file_name(format!("unprepared-{:?}.db", std::time::Instant::now()));
        let client = || {
            let options = SqliteConnectOptions::new().filename(&path);
            let store = SqliteStore::with_options(options, SqlConfig::default(), SystemClock::new());
            Arc::new(store) as Arc<dyn LeaseStore>
        };
        Ok((0..count).map(|_| client()).collect())
    }
}

struct Operator(PathBuf);

impl Operator {
    async fn open(&self) -> Result<SqliteConnection, Unable> {
        SqliteConnectOptions::new().filename(&self.0).connect().await.map_err(Unable::failed)
    }
}

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let removal = sqlx::query("DELETE FROM tenure_leases WHERE name = ?").bind(name.as_str());
        removal.execute(&mut self.open().await?).await.map_err(Unable::failed)?;
        Ok(())
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        if foreign != Foreign::Value {
            return Err(Unable::lacks("a row without an expiry is refused by the table itself"));
        }
        // A row that the table takes and no candidate wrote: a holder without a name.
        let row = sqlx::query(
            "INSERT OR REPLACE INTO tenure_leases VALUES
             (?, '', 1, 9000000000000000000, 1, 1, '', 0, ?, ?)",
        );
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(Unable::failed)?;
        let namespace = std::fs::read_link("/proc/self/ns/time").map_err(Unable::failed)?;
        let row = row.bind(name.as_str()).bind(boot.trim()).bind(namespace.to_string_lossy());
        row.execute(&mut self.open().await?).await.map_err(Unable::failed)?;
        Ok(())
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let row = sqlx::query(
            "SELECT format('%s %d %d %s', candidate, token, expires_at, payload) FROM tenure_leases WHERE name = ?",
        );
        let row = row.bind(name.as_str()).fetch_optional(&mut self.open().await?).await.map_err(Unable::failed)?;
        Ok(row.map_or_else(String::new, |row| row.get::<String, _>(0)))
    }

    fn removal_resets_tokens(&self) -> bool {
        // The counter is the row.
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
