//! A database of MySQL or MariaDB that no other test uses.

use tenure_core::StoreUrl;
use tenure_sql::sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use tenure_sql::sqlx::{AssertSqlSafe, ConnectOptions, Connection, query_scalar, raw_sql};
use tenure_sql::{MySqlStore, SqlConfig, TableName};

use crate::bench::{fresh, server};

pub(crate) struct MyBench {
    pub(crate) url: StoreUrl,
    pub(crate) database: String,
}

impl MyBench {
    /// With the table in place.
    pub(crate) async fn new() -> Self {
        let bench = Self::empty().await;
        bench.store().await.ensure_schema().await.unwrap();
        bench
    }

    pub(crate) async fn empty() -> Self {
        let bench = Self { url: server("TENURE_TEST_MYSQL"), database: fresh("tenure_test") };
        let mut raw = bench.server().connect().await.unwrap();
        run(&mut raw, &format!("CREATE DATABASE {}", bench.database)).await;
        bench
    }

    fn server(&self) -> MySqlConnectOptions {
        let host = &self.url.hosts()[0];
        MySqlConnectOptions::new()
            .host(&host.host)
            .port(host.port.unwrap())
            .username(self.url.username().unwrap())
            .password(self.url.password().unwrap())
            .ssl_mode(MySqlSslMode::Disabled)
    }

    pub(crate) fn options(&self) -> MySqlConnectOptions {
        self.server().database(&self.database)
    }

    pub(crate) fn config(&self) -> SqlConfig {
        SqlConfig::default().with_table(TableName::new("leases").unwrap())
    }

    /// A client with connections of its own.
    pub(crate) async fn store(&self) -> MySqlStore {
        MySqlStore::with_options(self.options(), self.config())
    }

    pub(crate) async fn raw(&self) -> MySqlConnection {
        self.options().connect().await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        let mut raw = self.raw().await;
        run(&mut raw, sql).await;
        raw.close().await.unwrap();
    }

    /// The connections that the server keeps for this bench's stores.
    pub(crate) async fn connections(&self) -> Vec<i64> {
        let mut raw = self.server().connect().await.unwrap();
        let sql = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE db = ?";
        query_scalar(sql).bind(&self.database).fetch_all(&mut raw).await.unwrap()
    }

    /// Ends them, as the server does with those that idle for too long.
    pub(crate) async fn terminate(&self) {
        let mut raw = self.server().connect().await.unwrap();
        for id in self.connections().await {
            run(&mut raw, &format!("KILL {id}")).await;
        }
    }

    /// Every byte of the only row.
    pub(crate) async fn row(&self) -> String {
        let sql = "SELECT CONCAT_WS('|', HEX(name), HEX(candidate), token, expires_at, ttl, acquired_at, HEX(payload), \
                   after_release) FROM leases";
        query_scalar(sql).fetch_one(&mut self.raw().await).await.unwrap()
    }

    pub(crate) async fn done(self) {
        self.run(&format!("DROP DATABASE {}", self.database)).await;
    }
}

pub(crate) async fn run(connection: &mut MySqlConnection, sql: &str) {
    raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}
