//! The conformance suite on MySQL or MariaDB, as a user with the three rights that running needs.

#![cfg(all(feature = "mysql", feature = "postgres"))]
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "tests that share a bench with others")]

use std::sync::Arc;

use tenure_conformance::{Admin, FaultInjector, Foreign, Harness, Trespass, Unable, async_trait, conformance};
use tenure_core::{LeaseName, LeaseStore, StoreError};
use tenure_sql::sqlx::mysql::MySqlConnectOptions;
use tenure_sql::sqlx::{query, query_scalar};
use tenure_sql::{MySqlStore, SqlConfig, TableName};

use bench::{fresh, server};
use faults::{OnTheWire, server_fault};
use my_bench::MyBench;
use proxy::{Protocol, Proxy};

#[path = "servers/bench.rs"]
mod bench;
#[path = "servers/faults.rs"]
mod faults;
#[path = "servers/my_bench.rs"]
mod my_bench;
#[path = "servers/proxy.rs"]
mod proxy;

const TABLE: &str = "tenure_leases";
const PASSWORD: &str = "app-5b1d";

/// A user of this bench's own, by whom the server knows its clients, and who may do nothing but run.
struct Bench {
    operator: MyBench,
    user: String,
}

impl Bench {
    async fn new() -> Self {
        let operator = operator();
        let (user, database) = (fresh("a")[..16].to_owned(), &operator.database);
        MySqlStore::with_options(operator.options(), config(TABLE)).prepare().await.unwrap();
        operator.run(&format!("CREATE USER {user} IDENTIFIED BY '{PASSWORD}'")).await;
        operator.run(&format!("GRANT SELECT, INSERT, UPDATE ON {database}.{TABLE} TO {user}")).await;
        Self { operator, user }
    }

    fn options(&self) -> MySqlConnectOptions {
        self.operator.options().username(&self.user).password(PASSWORD)
    }

    async fn open(&self, options: MySqlConnectOptions) -> Result<Arc<dyn LeaseStore>, StoreError> {
        let store = MySqlStore::with_options(options, config(TABLE));
        store.prepare().await?;
        Ok(Arc::new(store))
    }

    /// The connections that the server keeps for this bench's stores.
    async fn standing(&self) -> Vec<i64> {
        let sql = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist WHERE user = ?";
        query_scalar(sql).bind(&self.user).fetch_all(&mut self.operator.raw().await).await.unwrap()
    }
}

fn operator() -> MyBench {
    let url = server("TENURE_TEST_MYSQL");
    let database = url.path().trim_start_matches('/').to_owned();
    MyBench { url, database }
}

fn config(table: &str) -> SqlConfig {
    SqlConfig::default().with_table(TableName::new(table).unwrap())
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        self.open(self.options()).await
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(operator())))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let host = &self.operator.url.hosts()[0];
        let proxy = Proxy::to(Protocol::MySql, &host.host, host.port.unwrap()).await;
        let options = self.options().host("127.0.0.1").port(proxy.address.port());
        Ok(Arc::new(OnTheWire::of(self.open(options).await?, proxy)))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            server_fault(verb, "mariadb").await?;
        }
        Ok(())
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        for id in self.standing().await {
            self.operator.run(&format!("KILL {id}")).await;
        }
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.standing().await.len())
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let config = config(&fresh("unprepared"));
        let store = || MySqlStore::with_options(self.operator.options(), config.clone());
        Ok((0..count).map(|_| Arc::new(store()) as Arc<dyn LeaseStore>).collect())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        let options = self.options().password("canary-7c1e");
        Ok(Trespass { store: self.open(options).await, secrets: vec!["canary-7c1e".to_owned()] })
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        let (user, database) = (&fresh("u")[..16], &self.operator.database);
        self.operator.run(&format!("CREATE USER {user} IDENTIFIED BY 'canary-9d2f'")).await;
        self.operator.run(&format!("GRANT CREATE ON {database}.elsewhere TO {user}")).await;
        let options = self.operator.options().username(user).password("canary-9d2f");
        let store = MySqlStore::with_options(options, config(TABLE));
        Ok(Trespass { store: Ok(Arc::new(store)), secrets: vec!["canary-9d2f".to_owned()] })
    }
}

struct Operator(MyBench);

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let sql = "DELETE FROM tenure_leases WHERE name = ?";
        let done = query(sql).bind(name.as_str().as_bytes()).execute(&mut self.0.raw().await).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        if foreign != Foreign::Value {
            return Err(Unable::lacks("the table takes no row without an expiry"));
        }
        let sql = "REPLACE INTO tenure_leases VALUES (?, '', 1, '2999-01-01', 1, UTC_TIMESTAMP(6), '', FALSE)";
        let done = query(sql).bind(name.as_str().as_bytes()).execute(&mut self.0.raw().await).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let sql = "SELECT CONCAT_WS('|', HEX(name), HEX(candidate), token, expires_at, ttl, acquired_at, HEX(payload), \
                   after_release) FROM tenure_leases WHERE name = ?";
        let row = query_scalar(sql).bind(name.as_str().as_bytes()).fetch_optional(&mut self.0.raw().await).await;
        Ok(row.map_err(Unable::failed)?.unwrap_or_default())
    }

    fn removal_resets_tokens(&self) -> bool {
        true
    }
}

conformance!(
    Bench::new().await,
    skips: [
        // The counter is the row, and goes with it.
        "token-removed",
        // The table takes no row without an expiry.
        "expiry-outsider",
        // The server tells nothing: a watch looks once a second.
        "watch-cut", "watch-gap", "watch-grant", "watch-release", "watch-removal", "watch-several", "watch-start",
        // Needs libfaketime.
        "time-wall-clock",
    ],
    ignore: "needs a server: run integration/test.sh",
);
