//! PostgreSQL.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgRow, Postgres as Driver};
use sqlx::query::Query;
use sqlx::{ConnectOptions, Connection, Row as _, SqlStr};
use tenure_core::{
    Bid, Grant, LeaseClock, LeaseName, Operation, StoreDescriptor, StoreError, StoreErrorKind, StoreUrl,
    TokenDurability, WakeUpKind,
};

use crate::dialect::{Decision, Dialect, Effect, Health, Problem, TRUSTED_FOR, Verdict};
use crate::leases::Leases;
use crate::row::{Remaining, Row, Seen, as_micros};
use crate::text::shared;
use crate::{SqlConfig, SqlStore, TableName, poll};

mod listen;
mod sql;
mod url;

use sql::Statements;

/// Keeps leases in a table of PostgreSQL.
pub type PostgresStore = SqlStore<Postgres>;

impl SqlStore<Postgres> {
    /// Connects to `postgres://user:password@host:5432/database`.
    ///
    /// Settings in the query:
    ///
    /// | setting | meaning |
    /// |---|---|
    /// | `table`, `timeout` | as in [`SqlConfig`] |
    /// | `sslmode` | `verify-full`, `verify-ca`, `require` (encrypts without verifying) or `disable`; by default `disable` on this host (a loopback address or a socket) and `verify-full` elsewhere: nothing falls back to plain text in silence |
    /// | `sslrootcert`, `sslcert`, `sslkey` | files with certificates and a key |
    /// | `application_name` | `tenure` by default |
    /// | `host` | the directory of a Unix socket |
    /// | `pgbouncer` | `true` behind PgBouncer in transaction mode: see [`SqlConfig::with_transaction_pooling`] |
    /// | `listen` | `HOST:PORT` of the server itself, for wake-ups, where the URL leads to PgBouncer |
    ///
    /// The table must exist: see [`ensure_schema`](Self::ensure_schema). User, password and database that the URL does
    /// not name are taken from `PGUSER`, `PGPASSWORD` and `PGDATABASE`.
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
        let target = url::parse(url).map_err(|invalid| {
            StoreError::new(StoreErrorKind::Invalid, Operation::Connect, Postgres::NAME)
                .with_detail(invalid.to_string())
        })?;
        let options = target.options;
        let dialect = Postgres::new(Box::new(move || options.clone()), target.listen, &target.config);
        let store = Self::with_dialect(dialect, &target.config);
        store.greet().await?;
        Ok(store)
    }

    /// A store on the database of a pool that the service has already, with the default settings. The table must exist:
    /// see [`ensure_schema`](Self::ensure_schema).
    ///
    /// Only the pool's options are taken, at each connecting anew, so that changed credentials are used: lease
    /// statements run on connections of their own (at most two, and one while somebody watches), so that they never
    /// wait for the service's queries or join a transaction of its. Callbacks of the pool do not run on them.
    pub fn new(pool: PgPool) -> Self {
        let config = SqlConfig::default();
        let options = Box::new(move || (*pool.connect_options()).clone());
        Self::with_dialect(Postgres::new(options, None, &config), &config)
    }

    /// A store on the database of `options`, with settings; `listen` leads to the server itself, where `options` lead to
    /// PgBouncer.
    pub fn with_options(options: PgConnectOptions, listen: Option<PgConnectOptions>, config: SqlConfig) -> Self {
        let options = Box::new(move || options.clone());
        Self::with_dialect(Postgres::new(options, listen, &config), &config)
    }

    /// The statements that create the table, for those who run them by hand.
    pub fn ddl(table: &TableName) -> String {
        sql::ddl(table)
    }
}

/// The dialect of PostgreSQL.
pub struct Postgres {
    options: Box<dyn Fn() -> PgConnectOptions + Send + Sync>,
    listen: Option<PgConnectOptions>,
    /// Behind a pooler in transaction mode: what begins the transaction around each statement.
    begin: Option<SqlStr>,
    statements: Statements,
    table: TableName,
    timeout: Duration,
    lock_timeout: Duration,
    version: OnceLock<u32>,
}

impl Postgres {
    fn new(
        options: Box<dyn Fn() -> PgConnectOptions + Send + Sync>,
        listen: Option<PgConnectOptions>,
        config: &SqlConfig,
    ) -> Self {
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = on; SET LOCAL statement_timeout = {}; \
             SET LOCAL lock_timeout = {}",
            statement_timeout(config).as_millis(),
            config.lock_timeout().as_millis()
        );
        Self {
            options,
            listen,
            begin: config.transaction_pooling().then(|| shared(begin)),
            statements: Statements::new(config.table()),
            table: config.table().clone(),
            timeout: config.timeout(),
            lock_timeout: config.lock_timeout(),
            version: OnceLock::new(),
        }
    }

    /// The options of a session for lease statements. What they set at start-up outweighs the settings of the role, of
    /// the database and of the pool: a role's default may be SERIALIZABLE, or a commit that does not wait for the disk.
    fn session(&self) -> PgConnectOptions {
        let options = named((self.options)()).disable_statement_logging();
        if self.begin.is_some() {
            // PgBouncer refuses start-up settings that it does not track.
            return options.extra_float_digits(None).statement_cache_capacity(0);
        }
        options.options([
            ("default_transaction_isolation", "read committed".to_owned()),
            ("synchronous_commit", "on".to_owned()),
            ("statement_timeout", (self.timeout * 3 / 4).as_millis().to_string()),
            ("lock_timeout", self.lock_timeout.as_millis().to_string()),
        ])
    }

    async fn rows(
        &self,
        link: &mut PgConnection,
        query: Query<'_, Driver, PgArguments>,
    ) -> Result<Vec<PgRow>, Problem> {
        let Some(begin) = &self.begin else {
            return Ok(query.fetch_all(link).await?);
        };
        // An error leaves the transaction open, and the connection is closed for it: the pooler rolls back.
        sqlx::raw_sql(begin.clone()).execute(&mut *link).await?;
        let rows = query.persistent(false).fetch_all(&mut *link).await?;
        sqlx::raw_sql("COMMIT").execute(link).await?;
        Ok(rows)
    }

    async fn probe(&self, link: &mut PgConnection) -> Result<(), Problem> {
        self.rows(link, sqlx::query(self.statements.probe.clone())).await.map(drop)
    }

    fn address(&self) -> String {
        address(&(self.options)())
    }

    /// Whether wake-ups come from the server.
    fn listens(&self) -> bool {
        self.begin.is_none() || self.listen.is_some()
    }
}

fn statement_timeout(config: &SqlConfig) -> Duration {
    config.timeout() * 3 / 4
}

fn named(options: PgConnectOptions) -> PgConnectOptions {
    if options.get_application_name().is_none() { options.application_name("tenure") } else { options }
}

fn address(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None if options.get_host().starts_with('/') => options.get_host().to_owned(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

#[async_trait]
impl Dialect for Postgres {
    type Link = PgConnection;

    const NAME: &'static str = "postgres";

    fn describe(&self) -> StoreDescriptor {
        let defaults = StoreDescriptor::new(Self::NAME);
        let (min, max) = (defaults.min_ttl, defaults.max_ttl);
        defaults
            .with_version(self.version.get().map(|number| version(*number)))
            .with_ttl_limits(min, max, Duration::from_micros(1))
            .with_token(TokenDurability::SingleNode)
            .with_wake_up(if self.listens() { WakeUpKind::Push } else { WakeUpKind::Poll })
            .with_clock(LeaseClock::ServerWall)
    }

    async fn connect(&self) -> Result<PgConnection, Problem> {
        let link = self.session().connect().await?;
        if let Some(number) = link.server_version_num() {
            let _ = self.version.set(number);
        }
        Ok(link)
    }

    fn health(&self, _: &PgConnection, idle: Duration) -> Health {
        if idle < TRUSTED_FOR { Health::Good } else { Health::Doubtful }
    }

    /// The answer would come when the next statement's is expected.
    fn abandoned(&self) -> Health {
        Health::Dead
    }

    async fn ping(&self, link: &mut PgConnection) -> Result<(), Problem> {
        Ok(link.ping().await?)
    }

    async fn bid(&self, link: &mut PgConnection, bid: &Bid) -> Result<Decision, Problem> {
        let query = sqlx::query(self.statements.bid.clone())
            .bind(bid.name.as_str())
            .bind(bid.candidate.as_str())
            .bind(as_micros(bid.ttl))
            .bind(bid.payload.as_str());
        let rows = self.rows(link, query).await?;
        let Some(found) = rows.first() else { return Ok(Decision::Lost(None)) };
        Ok(match found.try_get::<Option<bool>, _>(7)? {
            Some(after_release) => Decision::Won { token: found.try_get(2)?, after_release },
            None => Decision::Lost(Some(row(found)?)),
        })
    }

    async fn renew(&self, link: &mut PgConnection, grant: &Grant) -> Result<bool, Problem> {
        let query = sqlx::query(self.statements.renew.clone())
            .bind(grant.name.as_str())
            .bind(grant.candidate.as_str())
            .bind(grant.token.value().cast_signed())
            .bind(as_micros(grant.ttl));
        Ok(!self.rows(link, query).await?.is_empty())
    }

    async fn renew_many(&self, link: &mut PgConnection, grants: &[Grant]) -> Result<Vec<bool>, Problem> {
        let names: Vec<&str> = grants.iter().map(|grant| grant.name.as_str()).collect();
        let candidates: Vec<&str> = grants.iter().map(|grant| grant.candidate.as_str()).collect();
        let tokens: Vec<i64> = grants.iter().map(|grant| grant.token.value().cast_signed()).collect();
        let ttls: Vec<i64> = grants.iter().map(|grant| as_micros(grant.ttl)).collect();
        let query =
            sqlx::query(self.statements.renew_many.clone()).bind(names).bind(candidates).bind(tokens).bind(ttls);
        let name = |row: &PgRow| row.try_get::<String, _>(0);
        let extended: HashSet<String> =
            self.rows(link, query).await?.iter().map(name).collect::<Result<_, sqlx::Error>>()?;
        Ok(grants.iter().map(|grant| extended.contains(grant.name.as_str())).collect())
    }

    async fn release(&self, link: &mut PgConnection, grant: &Grant) -> Result<bool, Problem> {
        let query = sqlx::query(self.statements.release.clone())
            .bind(grant.name.as_str())
            .bind(grant.candidate.as_str())
            .bind(grant.token.value().cast_signed());
        Ok(!self.rows(link, query).await?.is_empty())
    }

    async fn find(&self, link: &mut PgConnection, name: &LeaseName) -> Result<Option<Row>, Problem> {
        let query = sqlx::query(self.statements.find.clone()).bind(name.as_str());
        self.rows(link, query).await?.first().map(row).transpose()
    }

    async fn page(&self, link: &mut PgConnection, after: &str) -> Result<Vec<Row>, Problem> {
        let query = sqlx::query(self.statements.page.clone()).bind(after);
        self.rows(link, query).await?.iter().map(row).collect()
    }

    async fn look(&self, link: &mut PgConnection, names: &[LeaseName]) -> Result<Vec<Seen>, Problem> {
        let names: Vec<&str> = names.iter().map(LeaseName::as_str).collect();
        let query = sqlx::query(self.statements.look.clone()).bind(names);
        let seen = |row: &PgRow| Ok(Seen { name: row.try_get(0)?, candidate: row.try_get(1)?, token: row.try_get(2)? });
        self.rows(link, query).await?.iter().map(seen).collect()
    }

    /// Looks first: creating asks for a right that running does not need, even where the table is there already.
    async fn prepare(&self, link: &mut PgConnection) -> Result<(), Problem> {
        match self.probe(link).await {
            Err(Problem::Client(error)) if crate::error::postgres_table_is_missing(&error) => {}
            other => return other,
        }
        if self.begin.is_some() {
            sqlx::raw_sql("ROLLBACK").execute(&mut *link).await?;
        }
        match sqlx::raw_sql(self.statements.create.clone()).execute(&mut *link).await {
            Err(error) if !crate::error::postgres_table_was_created(&error) => return Err(error.into()),
            _ => {}
        }
        self.probe(link).await
    }

    async fn watch(leases: Arc<Leases<Self>>) {
        if leases.dialect.listens() {
            listen::run(&leases).await;
        } else {
            poll::run(&leases).await;
        }
    }

    fn usable_after(&self, error: &sqlx::Error) -> bool {
        self.begin.is_none() && crate::error::postgres_leaves_session(error)
    }

    fn translate(&self, error: &sqlx::Error, effect: Effect) -> Verdict {
        crate::error::postgres(error, effect, &self.table, &self.address())
    }
}

fn row(row: &PgRow) -> Result<Row, Problem> {
    Ok(Row {
        name: row.try_get(0)?,
        candidate: row.try_get(1)?,
        token: row.try_get(2)?,
        remaining: row.try_get::<Option<i64>, _>(3)?.map_or(Remaining::Missing, Remaining::Known),
        ttl: row.try_get(4)?,
        acquired_at: row.try_get(5)?,
        payload: row.try_get(6)?,
    })
}

/// `150018` is 15.18, and `90624` is 9.6.24.
fn version(number: u32) -> String {
    if number >= 100_000 {
        format!("{}.{}", number / 10_000, number % 10_000)
    } else {
        format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("server", &self.address()).field("table", &self.table).finish_non_exhaustive()
    }
}
