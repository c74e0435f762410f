//! How a store on a SQLite file is made.

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tenure_core::clock::{Clock, SystemClock};
use tenure_core::{Invalid, Operation, StoreError, StoreErrorKind, StoreUrl};

use super::{Sqlite, file, sql};
use crate::dialect::Dialect;
use crate::{SqlConfig, SqlStore, TableName};

/// Keeps leases in a SQLite file, for the candidates of one host.
pub type SqliteStore = SqlStore<Sqlite>;

impl SqlStore<Sqlite> {
    /// Opens `sqlite:///absolute/path.db` or `sqlite:relative.db`, and creates the file and its table where they are
    /// missing. Settings in the query: `table` and `timeout`, as in [`SqlConfig`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`StoreErrorKind::Invalid`] for a URL of another shape.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may leave the file and the table created or not; calling again finishes it.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let (path, config) = settings(url).map_err(|invalid| refused(&invalid))?;
        Self::open_with(path, config).await
    }

    /// Opens the file at `path`, and creates it and its table where they are missing.
    ///
    /// # Errors
    ///
    /// - [`StoreErrorKind::Invalid`]: the path is a directory, no regular file, or in a directory that does not exist.
    /// - [`StoreErrorKind::Denied`]: the file or its directory may not be read and written.
    /// - [`StoreErrorKind::Malformed`]: the file is no SQLite database, or its table is not Tenure's.
    /// - [`StoreErrorKind::Unsupported`]: the path lies on a file system of other hosts, or the host does not tell
    ///   which boot it runs.
    /// - [`StoreErrorKind::Unavailable`]: the disk is full, or another process keeps the file locked.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may leave the file and the table created or not; calling again finishes it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqlConfig::default()).await
    }

    /// [`open`](Self::open) with settings.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    ///
    /// As [`open`](Self::open).
    pub async fn open_with(path: impl AsRef<Path>, config: SqlConfig) -> Result<Self, StoreError> {
        let path = file::absolute(path.as_ref()).map_err(|invalid| refused(&invalid))?;
        let store = Self::with_options(SqliteConnectOptions::new().filename(&path), config, SystemClock::new());
        store.set_up(Operation::Connect).await?;
        Ok(store)
    }

    /// A store on the file of a pool that the service has already, with the default settings. Call
    /// [`ensure_schema`](Self::ensure_schema) where the table may be missing.
    ///
    /// Only the pool's options are taken: lease statements run on connections of their own (at most two, and one while
    /// somebody watches), so that they never wait for the service's queries or join a transaction of its. A database
    /// in memory is refused by the first call: it is not shared.
    pub fn new(pool: SqlitePool) -> Self {
        Self::with_options((*pool.connect_options()).clone(), SqlConfig::default(), SystemClock::new())
    }

    /// A store on the file of `options`, with settings and a clock of the caller's. All candidates must use the same
    /// clock; another than [`SystemClock`] is for tests.
    ///
    /// `synchronous` is set to `FULL` and the busy timeout to half of the call's; the other options are kept.
    pub fn with_options(options: SqliteConnectOptions, config: SqlConfig, clock: impl Clock) -> Self {
        Self::with_dialect(Sqlite::new(options, &config, clock), &config)
    }

    /// The statements that create the table, for those who run them by hand.
    pub fn ddl(table: &TableName) -> String {
        sql::ddl(table)
    }
}

/// The path and the settings in a URL.
fn settings(url: &StoreUrl) -> Result<(PathBuf, SqlConfig), Invalid> {
    if url.scheme() != "sqlite" {
        return Err(Invalid::new(format!("store url has the scheme {:?}: sqlite is expected", url.scheme())));
    }
    url.check_query(&["table", "timeout"])?;
    if !url.hosts().is_empty() || url.username().is_some() || url.password().is_some() {
        return Err(Invalid::new(
            "sqlite url names a host, which a file has not: write sqlite:///absolute/path.db (three slashes) or \
             sqlite:relative.db (none)",
        ));
    }
    let config = SqlConfig::from_url(url)?;
    Ok((PathBuf::from(url.path()), config))
}

fn refused(invalid: &Invalid) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Operation::Connect, Sqlite::NAME).with_detail(invalid.to_string())
}
