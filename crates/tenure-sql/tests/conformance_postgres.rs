//! The conformance suite on PostgreSQL, and behind PgBouncer in transaction mode, as a role with the three rights that
//! running needs.

#![cfg(feature = "postgres")]
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "tests that share a bench with others")]

use std::sync::Arc;

use tenure_conformance::{Admin, FaultInjector, Foreign, Harness, Trespass, Unable, async_trait};
use tenure_core::{LeaseName, LeaseStore, StoreError, StoreUrl};
use tenure_sql::sqlx::postgres::PgConnectOptions;
use tenure_sql::sqlx::{query, query_scalar};
use tenure_sql::{PostgresStore, SqlConfig, TableName};

use bench::{PgBench, fresh, server};
use faults::{OnTheWire, server_fault};
use proxy::{Protocol, Proxy};

#[path = "servers/bench.rs"]
mod bench;
#[path = "servers/faults.rs"]
mod faults;
#[path = "servers/proxy.rs"]
mod proxy;

const PASSWORD: &str = "app-5b1d";

/// A role of this bench's own, by which the server knows its clients, and which may do nothing but run.
struct Bench {
    operator: PgBench,
    role: String,
    /// What clients connect to, where it is not the server itself.
    pooler: Option<StoreUrl>,
}

impl Bench {
    async fn direct() -> Self {
        Self::new(None).await
    }

    async fn pooled() -> Self {
        Self::new(Some(server("TENURE_TEST_PGBOUNCER"))).await
    }

    async fn new(pooler: Option<StoreUrl>) -> Self {
        let role = fresh("app");
        let operator = PgBench { url: server("TENURE_TEST_POSTGRES"), schema: role.clone() };
        PostgresStore::with_options(operator.options(), None, SqlConfig::default()).prepare().await.unwrap();
        operator.run(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")).await;
        // Grants on one table by many tests at once would meet in its catalogue row.
        let grant = format!("GRANT SELECT, INSERT, UPDATE ON tenure_leases TO {role}");
        operator.run(&format!("BEGIN; SELECT pg_advisory_xact_lock(7); {grant}; COMMIT")).await;
        Self { operator, role, pooler }
    }

    /// The address of what clients connect to.
    fn host(&self) -> (&str, u16) {
        let host = &self.pooler.as_ref().unwrap_or(&self.operator.url).hosts()[0];
        (&host.host, host.port.unwrap())
    }

    fn options(&self) -> PgConnectOptions {
        let (host, port) = self.host();
        self.operator.options().host(host).port(port).username(&self.role).password(PASSWORD)
    }

    fn store_with(&self, options: PgConnectOptions, config: SqlConfig) -> PostgresStore {
        if self.pooler.is_none() {
            return PostgresStore::with_options(options, None, config);
        }
        let listen = self.operator.options().username(&self.role).password(PASSWORD);
        PostgresStore::with_options(options, Some(listen), config.with_transaction_pooling())
    }

    async fn open(&self, options: PgConnectOptions) -> Result<Arc<dyn LeaseStore>, StoreError> {
        let store = self.store_with(options, SqlConfig::default());
        store.prepare().await?;
        Ok(Arc::new(store))
    }
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
        Ok(Arc::new(Operator(PgBench { url: self.operator.url.clone(), schema: "operator".to_owned() })))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let (host, port) = self.host();
        let proxy = Proxy::to(Protocol::Postgres, host, port).await;
        let options = self.options().host("127.0.0.1").port(proxy.address.port());
        Ok(Arc::new(OnTheWire::of(self.open(options).await?, proxy)))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            server_fault(verb, "postgres").await?;
        }
        Ok(())
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        self.operator.terminate().await;
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        if self.pooler.is_some() {
            return Err(Unable::lacks("the pooler keeps connections as it sees fit"));
        }
        usize::try_from(self.operator.connections().await).map_err(Unable::failed)
    }

    async fn unprepared(&self, count: usize) -> Result<Vec<Arc<dyn LeaseStore>>, Unable> {
        let config = SqlConfig::default().with_table(TableName::new(&fresh("unprepared")).map_err(Unable::failed)?);
        let (host, port) = self.host();
        let store = || self.store_with(self.operator.options().host(host).port(port), config.clone());
        Ok((0..count).map(|_| Arc::new(store()) as Arc<dyn LeaseStore>).collect())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        let options = self.options().password("canary-7c1e");
        Ok(Trespass { store: self.open(options).await, secrets: vec!["canary-7c1e".to_owned()] })
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        let role = fresh("guest");
        self.operator.run(&format!("CREATE ROLE {role} LOGIN PASSWORD 'canary-9d2f'")).await;
        let options = self.options().username(&role).password("canary-9d2f");
        let store = self.store_with(options, SqlConfig::default());
        Ok(Trespass { store: Ok(Arc::new(store)), secrets: vec!["canary-9d2f".to_owned()] })
    }
}

struct Operator(PgBench);

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let sql = "DELETE FROM tenure_leases WHERE name = $1";
        let done = query(sql).bind(name.as_str()).execute(&mut self.0.raw().await).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        if foreign != Foreign::Value {
            return Err(Unable::lacks("the table takes no row without an expiry"));
        }
        let sql = "INSERT INTO tenure_leases VALUES ($1, '', 1, now() + interval '1 hour', 1, now(), '', false) \
                   ON CONFLICT (name) DO UPDATE SET candidate = '', expires_at = excluded.expires_at";
        let done = query(sql).bind(name.as_str()).execute(&mut self.0.raw().await).await;
        done.map(drop).map_err(Unable::failed)
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let sql = "SELECT tenure_leases::text FROM tenure_leases WHERE name = $1";
        let row = query_scalar(sql).bind(name.as_str()).fetch_optional(&mut self.0.raw().await).await;
        Ok(row.map_err(Unable::failed)?.unwrap_or_default())
    }

    fn removal_resets_tokens(&self) -> bool {
        true
    }

    fn removal_wakes(&self) -> bool {
        false
    }
}

macro_rules! suite {
    ($bench:expr) => {
        tenure_conformance::conformance!(
            $bench,
            skips: [
                // The counter is the row, and goes with it.
                "token-removed",
                // The table takes no row without an expiry.
                "expiry-outsider",
                // The server tells of what Tenure's own statements notify.
                "watch-removal",
                // Needs libfaketime.
                "time-wall-clock",
            ],
            ignore: "needs a server: run integration/test.sh",
        );
    };
}

mod direct {
    use super::Bench;
    suite!(Bench::direct().await);
}

mod pooled {
    use super::Bench;
    suite!(Bench::pooled().await);
}
