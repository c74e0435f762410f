//! SQLite: one file for all candidates of one host.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row as _};
use tenure_core::clock::Clock;
use tenure_core::{
    Bid, Grant, Invalid, LeaseClock, LeaseName, StoreDescriptor, StoreErrorKind, TokenDurability, WakeUpKind,
};

use crate::dialect::{Decision, Dialect, Effect, Health, Problem, Verdict};
use crate::leases::Leases;
use crate::row::{Remaining, Row, Seen, as_micros};
use crate::text::{LOOK, filled};
use crate::{SqlConfig, TableName};

mod file;
mod filesystem;
mod host;
mod inotify;
mod open;
mod sql;
mod watch;

pub use open::SqliteStore;

use file::FileId;

use host::Host;
use sql::Statements;

/// The dialect of SQLite.
pub struct Sqlite {
    path: PathBuf,
    options: SqliteConnectOptions,
    /// Why there are no leases here, where that is known from the start.
    host: Result<Host, Verdict>,
    clock: Arc<dyn Clock>,
    statements: Statements,
    table: TableName,
    lock_timeout: Duration,
    version: OnceLock<String>,
}

/// A connection, and the file that it has open.
pub struct Link {
    raw: SqliteConnection,
    file: Option<FileId>,
}

impl Sqlite {
    fn new(options: SqliteConnectOptions, config: &SqlConfig, clock: impl Clock) -> Self {
        let place = file::absolute(options.get_filename()).and_then(|path| match config.table().schema() {
            None => Ok(path),
            Some(_) => Err(Invalid::new(format!(
                "table {:?} names a schema, which sqlite has not: name the table alone",
                config.table().to_string()
            ))),
        });
        let path = place.clone().unwrap_or_default();
        let options = options
            .filename(&path)
            .create_if_missing(false)
            .busy_timeout(config.lock_timeout())
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(false)
            .disable_statement_logging();
        Self {
            path,
            options,
            host: place.map_or_else(
                |invalid| Err(Verdict::new(StoreErrorKind::Invalid, invalid.to_string())),
                |_| Host::detect(),
            ),
            clock: Arc::new(clock),
            statements: Statements::new(config.table()),
            table: config.table().clone(),
            lock_timeout: config.lock_timeout(),
            version: OnceLock::new(),
        }
    }

    fn host(&self) -> Result<&Host, Problem> {
        self.host.as_ref().map_err(|verdict| Problem::Known(verdict.clone()))
    }

    /// Read before a statement and passed in: when the statement waits for a lock, a value gone stale makes a lease
    /// look younger, and the new one end sooner, than they do. Both are safe.
    fn now(&self) -> i64 {
        as_micros(self.clock.now().since_origin())
    }

    async fn open(&self) -> Result<Link, Problem> {
        file::check(&self.path).map_err(Problem::Known)?;
        let raw = self.options.connect().await?;
        Ok(Link { raw, file: FileId::of(&self.path) })
    }

    /// Whether the path still leads to the file that the connection has open. One that was removed or replaced would
    /// keep its leases apart from those of everyone who opens the path now.
    fn is_current(&self, link: &Link) -> bool {
        FileId::of(&self.path) == link.file
    }
}

#[async_trait]
impl Dialect for Sqlite {
    type Link = Link;

    const NAME: &'static str = "sqlite";

    fn describe(&self) -> StoreDescriptor {
        let unit = Duration::from_micros(1);
        let defaults = StoreDescriptor::new(Self::NAME);
        let (min, max) = (defaults.min_ttl, defaults.max_ttl);
        defaults
            .with_version(self.version.get().cloned())
            .with_ttl_limits(min, max, unit)
            .with_token(TokenDurability::SingleNode)
            .with_wake_up(WakeUpKind::Push)
            .with_clock(LeaseClock::HostBootTime)
    }

    fn establish(&self) -> Result<(), Problem> {
        self.host()?;
        file::create(&self.path).map_err(Problem::Known)
    }

    async fn connect(&self) -> Result<Link, Problem> {
        self.host()?;
        self.open().await
    }

    fn health(&self, link: &Link, _: Duration) -> Health {
        if self.is_current(link) { Health::Good } else { Health::Dead }
    }

    /// The worker thread goes on with the statement, and then with the next: closing the connection would only leave
    /// more threads that wait for one lock.
    fn abandoned(&self) -> Health {
        Health::Doubtful
    }

    async fn ping(&self, link: &mut Link) -> Result<(), Problem> {
        Ok(link.raw.ping().await?)
    }

    async fn bid(&self, link: &mut Link, bid: &Bid) -> Result<Decision, Problem> {
        let host = self.host()?;
        // All rows, here and below: an error of the commit comes after the row that the statement returns.
        let rows: Vec<(i64, bool)> = sqlx::query_as(self.statements.bid.clone())
            .bind(bid.name.as_str())
            .bind(bid.candidate.as_str())
            .bind(self.now())
            .bind(as_micros(bid.ttl))
            .bind(calendar())
            .bind(bid.payload.as_str())
            .bind(&*host.boot_id)
            .bind(&*host.time_namespace)
            .fetch_all(&mut link.raw)
            .await?;
        Ok(match rows.first() {
            Some(&(token, after_release)) => Decision::Won { token, after_release },
            None => Decision::Lost(None),
        })
    }

    async fn renew(&self, link: &mut Link, grant: &Grant) -> Result<bool, Problem> {
        let host = self.host()?;
        let rows = sqlx::query(self.statements.renew.clone())
            .bind(grant.name.as_str())
            .bind(grant.candidate.as_str())
            .bind(self.now())
            .bind(grant.token.value().cast_signed())
            .bind(&*host.boot_id)
            .bind(&*host.time_namespace)
            .bind(as_micros(grant.ttl))
            .fetch_all(&mut link.raw)
            .await?;
        Ok(!rows.is_empty())
    }

    async fn renew_many(&self, link: &mut Link, grants: &[Grant]) -> Result<Vec<bool>, Problem> {
        let host = self.host()?;
        let mut extended = HashSet::new();
        for grants in grants.chunks(sql::TERMS) {
            let mut query = sqlx::query_scalar::<_, String>(self.statements.renew_many.clone())
                .bind(self.now())
                .bind(&*host.boot_id)
                .bind(&*host.time_namespace);
            for grant in filled(grants, sql::TERMS) {
                query = query
                    .bind(grant.name.as_str())
                    .bind(grant.candidate.as_str())
                    .bind(grant.token.value().cast_signed())
                    .bind(as_micros(grant.ttl));
            }
            extended.extend(query.fetch_all(&mut link.raw).await?);
        }
        Ok(grants.iter().map(|grant| extended.contains(grant.name.as_str())).collect())
    }

    async fn release(&self, link: &mut Link, grant: &Grant) -> Result<bool, Problem> {
        let host = self.host()?;
        let rows = sqlx::query(self.statements.release.clone())
            .bind(grant.name.as_str())
            .bind(grant.candidate.as_str())
            .bind(self.now())
            .bind(grant.token.value().cast_signed())
            .bind(&*host.boot_id)
            .bind(&*host.time_namespace)
            .fetch_all(&mut link.raw)
            .await?;
        Ok(!rows.is_empty())
    }

    async fn find(&self, link: &mut Link, name: &LeaseName) -> Result<Option<Row>, Problem> {
        let host = self.host()?;
        let rows = sqlx::query(self.statements.find.clone())
            .bind(self.now())
            .bind(&*host.boot_id)
            .bind(&*host.time_namespace)
            .bind(name.as_str())
            .fetch_all(&mut link.raw)
            .await?;
        rows.first().map(row).transpose()
    }

    async fn page(&self, link: &mut Link, after: &str) -> Result<Vec<Row>, Problem> {
        let host = self.host()?;
        let rows = sqlx::query(self.statements.page.clone())
            .bind(self.now())
            .bind(&*host.boot_id)
            .bind(&*host.time_namespace)
            .bind(after)
            .fetch_all(&mut link.raw)
            .await?;
        rows.iter().map(row).collect()
    }

    async fn look(&self, link: &mut Link, names: &[LeaseName]) -> Result<Vec<Seen>, Problem> {
        let mut all = Vec::with_capacity(names.len());
        for names in names.chunks(LOOK) {
            let mut query = sqlx::query_as::<_, (String, Option<String>, i64)>(self.statements.look.clone());
            for name in filled(names, LOOK) {
                query = query.bind(name.as_str());
            }
            let rows = query.fetch_all(&mut link.raw).await?;
            all.extend(rows.into_iter().map(|(name, candidate, token)| Seen { name, candidate, token }));
        }
        Ok(all)
    }

    async fn prepare(&self, link: &mut Link) -> Result<(), Problem> {
        let given_up_at = tokio::time::Instant::now() + self.lock_timeout;
        let rows = loop {
            match sqlx::raw_sql(self.statements.prepare.clone()).fetch_all(&mut link.raw).await {
                // Several processes switch a new file to write-ahead logging at once: SQLite waits for no lock there.
                Err(error) if crate::error::sqlite_is_busy(&error) && tokio::time::Instant::now() < given_up_at => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                other => break other?,
            }
        };
        let text = |row: Option<&SqliteRow>| row.and_then(|row| row.try_get::<String, _>(0).ok());
        let mode = text(rows.first()).unwrap_or_default();
        if mode != "wal" {
            return Err(Problem::known(
                StoreErrorKind::Unsupported,
                format!(
                    "the database {:?} stays in journal mode {mode:?}: write-ahead logging is needed; choose a path on a \
                     local disk",
                    self.path
                ),
            ));
        }
        if let Some(version) = text(rows.last()) {
            let _ = self.version.set(version);
        }
        Ok(())
    }

    async fn watch(leases: Arc<Leases<Self>>) {
        watch::run(&leases).await;
    }

    /// Each statement is its own transaction: one that failed is rolled back.
    fn usable_after(&self, error: &sqlx::Error) -> bool {
        !matches!(error, sqlx::Error::WorkerCrashed | sqlx::Error::Io(_))
    }

    fn translate(&self, error: &sqlx::Error, effect: Effect) -> Verdict {
        crate::error::sqlite(error, effect, &self.table, &self.path, || file::check(&self.path).err())
    }
}

/// A row; no time left is told for one that was written in another time namespace of this boot.
fn row(row: &SqliteRow) -> Result<Row, Problem> {
    Ok(Row {
        name: row.try_get(0)?,
        candidate: row.try_get(1)?,
        token: row.try_get(2)?,
        remaining: row.try_get::<Option<i64>, _>(3)?.map_or(Remaining::OtherClock, Remaining::Known),
        ttl: row.try_get(4)?,
        acquired_at: row.try_get(5)?,
        payload: row.try_get(6)?,
    })
}

/// The calendar time, for display only.
fn calendar() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, as_micros)
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).field("table", &self.table).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
