//! What the tests share: addresses of servers, a schema of its own for each test, and short ways to say things.

use std::env;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tenure_core::{Acquired, Bid, CandidateId, Grant, Label, LeaseName, LeaseStore, StoreUrl, WakeUp};
use tenure_sql::sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use tenure_sql::sqlx::{AssertSqlSafe, ConnectOptions, Connection, query_scalar, raw_sql};
use tenure_sql::{PostgresStore, SqlConfig, TableName};
use tokio::time::timeout;

/// Long enough for a busy machine: no test waits for it to pass.
pub(crate) const TTL: Duration = Duration::from_secs(120);

/// The address in the environment variable `key`.
pub(crate) fn server(key: &str) -> StoreUrl {
    let text = env::var(key).unwrap_or_else(|_| panic!("{key} is not set: run integration/test.sh"));
    StoreUrl::parse(&text).unwrap()
}

/// A schema of PostgreSQL that no other test uses.
pub(crate) struct PgBench {
    pub(crate) url: StoreUrl,
    pub(crate) schema: String,
}

impl PgBench {
    /// With the table in place.
    pub(crate) async fn new() -> Self {
        let bench = Self::empty().await;
        bench.store().await.ensure_schema().await.unwrap();
        bench
    }

    pub(crate) async fn empty() -> Self {
        let bench = Self { url: server("TENURE_TEST_POSTGRES"), schema: fresh("tenure_test") };
        bench.run(&format!("CREATE SCHEMA {}", bench.schema)).await;
        bench
    }

    pub(crate) fn table(&self) -> TableName {
        TableName::new(&format!("{}.leases", self.schema)).unwrap()
    }

    pub(crate) fn config(&self) -> SqlConfig {
        SqlConfig::default().with_table(self.table())
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        let host = &self.url.hosts()[0];
        PgConnectOptions::new_without_pgpass()
            .host(&host.host)
            .port(host.port.unwrap())
            .username(self.url.username().unwrap())
            .password(self.url.password().unwrap())
            .database(self.url.path().trim_start_matches('/'))
            .application_name(&self.schema)
            .ssl_mode(PgSslMode::Disable)
    }

    /// A client with connections of its own.
    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::with_options(self.options(), None, self.config())
    }

    pub(crate) async fn raw(&self) -> PgConnection {
        self.options().application_name("raw").connect().await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        let mut raw = self.raw().await;
        run(&mut raw, sql).await;
        raw.close().await.unwrap();
    }

    /// Connections that the server keeps for this bench's stores.
    pub(crate) async fn connections(&self) -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        query_scalar(sql).bind(&self.schema).fetch_one(&mut self.raw().await).await.unwrap()
    }

    /// Ends them, as an administrator would.
    pub(crate) async fn terminate(&self) {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1";
        let _: i64 = query_scalar(sql).bind(&self.schema).fetch_one(&mut self.raw().await).await.unwrap();
    }

    /// Every byte of the only row.
    pub(crate) async fn row(&self) -> String {
        let sql = format!("SELECT leases::text FROM {}.leases", self.schema);
        query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.raw().await).await.unwrap()
    }

    pub(crate) async fn done(self) {
        self.run(&format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }
}

pub(crate) async fn run(connection: &mut PgConnection, sql: &str) {
    raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

/// `prefix` with an ending that no other call gives.
pub(crate) fn fresh(prefix: &str) -> String {
    let candidate = CandidateId::draw(&Label::new(prefix).unwrap());
    candidate.as_str()[..prefix.len() + 17].to_owned()
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

pub(crate) async fn woken(watch: &mut BoxStream<'static, WakeUp>) -> WakeUp {
    timeout(Duration::from_secs(10), watch.next()).await.expect("a wake-up within 10 s").unwrap()
}

/// Waits until `condition` holds, for at most 10 s.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let given_up_at = tokio::time::Instant::now() + Duration::from_secs(10);
    while !condition().await {
        assert!(tokio::time::Instant::now() < given_up_at, "not within 10 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
