//! MySQL and MariaDB.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlPool, MySqlQueryResult, MySqlRow};
use sqlx::{ConnectOptions, Connection, Row as _, SqlStr};
use tenure_core::{
    Bid, Grant, LeaseClock, LeaseName, Operation, StoreDescriptor, StoreError, StoreErrorKind, StoreUrl,
    TokenDurability, WakeUpKind,
};

use crate::dialect::{BATCH, Decision, Dialect, Effect, Health, Problem, TRUSTED_FOR, Verdict};
use crate::leases::Leases;
use crate::row::{Remaining, Row, Seen, as_micros, text};
use crate::text::{LOOK, filled, shared};
use crate::{SqlConfig, SqlStore, TableName, poll};

mod sql;
mod url;

use sql::Statements;

/// Keeps leases in a table of MySQL or MariaDB.
pub type MySqlStore = SqlStore<MySql>;

impl SqlStore<MySql> {
    /// Connects to `mysql://user:password@host:3306/database`; `mariadb://` is the same.
    ///
    /// Settings in the query:
    ///
    /// | setting | meaning |
    /// |---|---|
    /// | `table`, `timeout` | as in [`SqlConfig`] |
    /// | `sslmode` | `verify-full`, `verify-ca`, `require` (encrypts without verifying) or `disable`; by default `verify-full`, so that nothing falls back to plain text in silence, but on this host (a loopback address or a socket) whatever the server offers |
    /// | `sslrootcert`, `sslcert`, `sslkey` | files with certificates and a key |
    /// | `socket` | the path of a Unix socket |
    ///
    /// The table must exist: see [`ensure_schema`](Self::ensure_schema).
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Invalid`] for a URL of another shape, [`StoreErrorKind::Denied`] for wrong credentials or a
    /// certificate that does not verify, [`StoreErrorKind::Unavailable`] when the server does not answer.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let (options, config) = url::parse(url).map_err(|invalid| {
            StoreError::new(StoreErrorKind::Invalid, Operation::Connect, MySql::NAME).with_detail(invalid.to_string())
        })?;
        let store = Self::with_options(options, config);
        store.greet().await?;
        Ok(store)
    }

    /// A store on the database of a pool that the service has already, with the default settings. The table must exist:
    /// see [`ensure_schema`](Self::ensure_schema).
    ///
    /// Only the pool's options are taken, at each connecting anew, so that changed credentials are used: lease
    /// statements run on connections of their own (at most two), so that they never wait for the service's queries or
    /// join a transaction of its. Callbacks of the pool do not run on them.
    pub fn new(pool: MySqlPool) -> Self {
        let config = SqlConfig::default();
        let options = Box::new(move || (*pool.connect_options()).clone());
        Self::with_dialect(MySql::new(options, &config), &config)
    }

    /// A store on the database of `options`, with settings.
    pub fn with_options(options: MySqlConnectOptions, config: SqlConfig) -> Self {
        Self::with_dialect(MySql::new(Box::new(move || options.clone()), &config), &config)
    }

    /// The statements that create the table, for those who run them by hand.
    pub fn ddl(table: &TableName) -> String {
        sql::ddl(table)
    }
}

/// The dialect of MySQL and MariaDB.
pub struct MySql {
    options: Box<dyn Fn() -> MySqlConnectOptions + Send + Sync>,
    statements: Statements,
    session: SqlStr,
    table: TableName,
    server: OnceLock<Server>,
}

/// What the server told when the first connection was made.
struct Server {
    version: String,
    /// Whether a commit is on the disk when it is confirmed.
    durable: bool,
}

impl MySql {
    fn new(options: Box<dyn Fn() -> MySqlConnectOptions + Send + Sync>, config: &SqlConfig) -> Self {
        // Whole seconds only, and at least one.
        let lock_timeout = config.lock_timeout().as_secs().max(1);
        Self {
            options,
            statements: Statements::new(config.table()),
            session: shared(sql::session(lock_timeout)),
            table: config.table().clone(),
            server: OnceLock::new(),
        }
    }

    fn address(&self) -> String {
        let options = (self.options)();
        match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        }
    }

    /// Takes a lease that has no row yet; says whether nobody else was faster.
    async fn insert(&self, link: &mut MySqlConnection, bid: &Bid) -> Result<bool, Problem> {
        let done = sqlx::query(self.statements.insert.clone())
            .bind(bid.name.as_str().as_bytes())
            .bind(bid.candidate.as_str().as_bytes())
            .bind(as_micros(bid.ttl))
            .bind(as_micros(bid.ttl))
            .bind(bid.payload.as_str().as_bytes())
            .execute(link)
            .await;
        match done {
            Ok(_) => Ok(true),
            Err(error) if crate::error::mysql_is_duplicate(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Renews many terms in a transaction that is open: MySQL has no way to tell which rows an update found.
    async fn extend(&self, link: &mut MySqlConnection, grants: &[Grant]) -> Result<Vec<bool>, sqlx::Error> {
        let mut query = sqlx::query_as::<_, (Vec<u8>, Option<Vec<u8>>, i64)>(self.statements.lock_many.clone());
        for grant in filled(grants, BATCH) {
            query = query.bind(grant.name.as_str().as_bytes());
        }
        let found: HashSet<_> = query.fetch_all(&mut *link).await?.into_iter().collect();
        let term = |grant: &Grant| {
            let candidate = grant.candidate.as_str().as_bytes().to_vec();
            (grant.name.as_str().as_bytes().to_vec(), Some(candidate), grant.token.value().cast_signed())
        };
        let extended: Vec<bool> = grants.iter().map(|grant| found.contains(&term(grant))).collect();
        let mut by_ttl = BTreeMap::<_, Vec<&Grant>>::new();
        for (grant, _) in grants.iter().zip(&extended).filter(|(_, extended)| **extended) {
            by_ttl.entry(as_micros(grant.ttl)).or_default().push(grant);
        }
        for (ttl, grants) in by_ttl {
            let mut query = sqlx::query(self.statements.extend_many.clone()).bind(ttl).bind(ttl);
            for grant in filled(&grants, BATCH) {
                query = query.bind(grant.name.as_str().as_bytes());
            }
            query.execute(&mut *link).await?;
        }
        Ok(extended)
    }

    async fn probe(&self, link: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        sqlx::query(self.statements.probe.clone()).fetch_all(link).await.map(drop)
    }
}

#[async_trait]
impl Dialect for MySql {
    type Link = MySqlConnection;

    const NAME: &'static str = "mysql";

    fn describe(&self) -> StoreDescriptor {
        let defaults = StoreDescriptor::new(Self::NAME);
        let (min, max) = (defaults.min_ttl, defaults.max_ttl);
        let server = self.server.get();
        let token = match server {
            Some(server) if server.durable => TokenDurability::SingleNode,
            _ => TokenDurability::BestEffort,
        };
        defaults
            .with_version(server.map(|server| server.version.clone()))
            .with_ttl_limits(min, max, Duration::from_micros(1))
            .with_token(token)
            .with_wake_up(WakeUpKind::Poll)
            .with_clock(LeaseClock::ServerWall)
    }

    async fn connect(&self) -> Result<MySqlConnection, Problem> {
        let mut link = (self.options)().disable_statement_logging().connect().await?;
        let rows = sqlx::raw_sql(self.session.clone()).fetch_all(&mut link).await?;
        if let Some(row) = rows.first() {
            let (version, flush) = (row.try_get(0)?, row.try_get::<i64, _>(1)?);
            let _ = self.server.set(Server { version, durable: flush == 1 });
        }
        Ok(link)
    }

    fn health(&self, _: &MySqlConnection, idle: Duration) -> Health {
        if idle < TRUSTED_FOR { Health::Good } else { Health::Doubtful }
    }

    /// The answer would come when the next statement's is expected.
    fn abandoned(&self) -> Health {
        Health::Dead
    }

    async fn ping(&self, link: &mut MySqlConnection) -> Result<(), Problem> {
        Ok(link.ping().await?)
    }

    async fn bid(&self, link: &mut MySqlConnection, bid: &Bid) -> Result<Decision, Problem> {
        let candidate = bid.candidate.as_str().as_bytes();
        let done = sqlx::query(self.statements.bid.clone())
            .bind(candidate)
            .bind(candidate)
            .bind(candidate)
            .bind(candidate)
            .bind(as_micros(bid.ttl))
            .bind(as_micros(bid.ttl))
            .bind(candidate)
            .bind(as_micros(bid.ttl))
            .bind(bid.payload.as_str().as_bytes())
            .bind(bid.name.as_str().as_bytes())
            .bind(candidate)
            .execute(&mut *link)
            .await?;
        let number = done.last_insert_id();
        if number != 0 {
            let token = i64::try_from(number / 2).unwrap_or(i64::MAX);
            return Ok(Decision::Won { token, after_release: number % 2 == 1 });
        }
        match self.find(link, &bid.name).await? {
            // A trigger on the table swallowed the number: read back what was done.
            Some(row) if done.rows_affected() > 0 && row.candidate.as_deref() == Some(bid.candidate.as_str()) => {
                Ok(Decision::Won { token: row.token, after_release: false })
            }
            Some(row) => Ok(Decision::Lost(Some(row))),
            None if self.insert(link, bid).await? => Ok(Decision::Won { token: 1, after_release: true }),
            None => Ok(Decision::Lost(None)),
        }
    }

    async fn renew(&self, link: &mut MySqlConnection, grant: &Grant) -> Result<bool, Problem> {
        let done = sqlx::query(self.statements.renew.clone())
            .bind(as_micros(grant.ttl))
            .bind(as_micros(grant.ttl))
            .bind(grant.name.as_str().as_bytes())
            .bind(grant.candidate.as_str().as_bytes())
            .bind(grant.token.value().cast_signed())
            .execute(link)
            .await?;
        Ok(matched(&done))
    }

    async fn renew_many(&self, link: &mut MySqlConnection, grants: &[Grant]) -> Result<Vec<bool>, Problem> {
        // An error leaves the transaction open, and the connection is closed for it: the server rolls back.
        sqlx::raw_sql("START TRANSACTION").execute(&mut *link).await.map_err(Problem::Broken)?;
        let extended = self.extend(link, grants).await.map_err(Problem::Broken)?;
        sqlx::raw_sql("COMMIT").execute(link).await.map_err(Problem::Broken)?;
        Ok(extended)
    }

    async fn release(&self, link: &mut MySqlConnection, grant: &Grant) -> Result<bool, Problem> {
        let done = sqlx::query(self.statements.release.clone())
            .bind(grant.name.as_str().as_bytes())
            .bind(grant.candidate.as_str().as_bytes())
            .bind(grant.token.value().cast_signed())
            .execute(link)
            .await?;
        Ok(matched(&done))
    }

    async fn find(&self, link: &mut MySqlConnection, name: &LeaseName) -> Result<Option<Row>, Problem> {
        let query = sqlx::query(self.statements.find.clone()).bind(name.as_str().as_bytes());
        query.fetch_all(link).await?.first().map(row).transpose()
    }

    async fn page(&self, link: &mut MySqlConnection, after: &str) -> Result<Vec<Row>, Problem> {
        let query = sqlx::query(self.statements.page.clone()).bind(after.as_bytes());
        query.fetch_all(link).await?.iter().map(row).collect()
    }

    async fn look(&self, link: &mut MySqlConnection, names: &[LeaseName]) -> Result<Vec<Seen>, Problem> {
        let mut all = Vec::with_capacity(names.len());
        for names in names.chunks(LOOK) {
            let mut query = sqlx::query(self.statements.look.clone());
            for name in filled(names, LOOK) {
                query = query.bind(name.as_str().as_bytes());
            }
            for row in query.fetch_all(&mut *link).await? {
                let candidate = row.try_get::<Option<Vec<u8>>, _>(1)?.map(text).transpose()?;
                all.push(Seen { name: text(row.try_get(0)?)?, candidate, token: row.try_get(2)? });
            }
        }
        Ok(all)
    }

    /// Looks first: creating asks for a right that running does not need, even where the table is there already.
    async fn prepare(&self, link: &mut MySqlConnection) -> Result<(), Problem> {
        match self.probe(link).await {
            Err(error) if crate::error::mysql_table_is_missing(&error) => {}
            other => return Ok(other?),
        }
        sqlx::raw_sql(self.statements.create.clone()).execute(&mut *link).await?;
        Ok(self.probe(link).await?)
    }

    async fn watch(leases: Arc<Leases<Self>>) {
        poll::run(&leases).await;
    }

    fn usable_after(&self, error: &sqlx::Error) -> bool {
        crate::error::mysql_leaves_session(error)
    }

    fn translate(&self, error: &sqlx::Error, effect: Effect) -> Verdict {
        crate::error::mysql(error, effect, &self.table, &self.address())
    }
}

/// Whether a change found its row. The number that it handed over says so, and is lost where the table has a trigger; the
/// count says so too, where the connection counts rows that were found, as this client's do.
fn matched(done: &MySqlQueryResult) -> bool {
    done.last_insert_id() != 0 || done.rows_affected() > 0
}

fn row(row: &MySqlRow) -> Result<Row, Problem> {
    Ok(Row {
        name: text(row.try_get(0)?)?,
        candidate: row.try_get::<Option<Vec<u8>>, _>(1)?.map(text).transpose()?,
        token: row.try_get(2)?,
        remaining: row.try_get::<Option<i64>, _>(3)?.map_or(Remaining::Missing, Remaining::Known),
        ttl: row.try_get(4)?,
        acquired_at: row.try_get(5)?,
        payload: text(row.try_get(6)?)?,
    })
}

impl fmt::Debug for MySql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySql").field("server", &self.address()).field("table", &self.table).finish_non_exhaustive()
    }
}
