//! Behind Sentinel and on a cluster, with faults in front of the client.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::sentinel::{SentinelClient, SentinelServerType};
use redis::{Client, RedisResult, cmd};
use tenure_conformance::{Admin, Harness, Unable, async_trait};
use tenure_core::{LeaseStore, StoreError};
use tenure_redis::{RedisStore, redis};
use tokio::sync::Mutex;

use crate::environment;
use crate::operator::Operator;

async fn connect(url: String) -> Result<Arc<dyn LeaseStore>, StoreError> {
    Ok(Arc::new(RedisStore::connect(&url.parse().unwrap()).await?))
}

fn urls(variable: &str) -> Vec<String> {
    environment(variable).split(',').map(|host| format!("redis://{host}")).collect()
}

async fn cut_subscriptions(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    cmd("CLIENT").arg("KILL").arg("TYPE").arg("pubsub").query_async::<u32>(connection).await.map(|_| ())
}

struct Sentinel;

impl Sentinel {
    async fn master() -> RedisResult<MultiplexedConnection> {
        let service = environment("TENURE_TEST_REDIS_SENTINEL_MASTER");
        let sentinels = urls("TENURE_TEST_REDIS_SENTINEL");
        SentinelClient::build(sentinels, service, None, SentinelServerType::Master)?.get_async_connection().await
    }
}

#[async_trait]
impl Harness for Sentinel {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        let service = environment("TENURE_TEST_REDIS_SENTINEL_MASTER");
        connect(format!("redis://{}?sentinel={service}", environment("TENURE_TEST_REDIS_SENTINEL"))).await
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(Mutex::new(Self::master().await.map_err(Unable::failed)?))))
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        let mut master = Self::master().await.map_err(Unable::failed)?;
        cut_subscriptions(&mut master).await.map_err(Unable::failed)
    }
}

struct Cluster;

#[async_trait]
impl Harness for Cluster {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        connect(format!("redis://{}?cluster=true", environment("TENURE_TEST_REDIS_CLUSTER"))).await
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        let client = ClusterClient::new(urls("TENURE_TEST_REDIS_CLUSTER")).map_err(Unable::failed)?;
        Ok(Arc::new(Operator(Mutex::new(client.get_async_connection().await.map_err(Unable::failed)?))))
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        for node in urls("TENURE_TEST_REDIS_CLUSTER") {
            let client = Client::open(node).map_err(Unable::failed)?;
            let mut node = client.get_multiplexed_async_connection().await.map_err(Unable::failed)?;
            cut_subscriptions(&mut node).await.map_err(Unable::failed)?;
        }
        Ok(())
    }
}

mod sentinel {
    use super::Sentinel;
    tenure_conformance::conformance!(Sentinel, skips: [
        "cancel-storm",
        "doubt-words",
        "setup-credentials",
        "setup-missing",
        "setup-race",
        "setup-rights",
        "token-server",
        "watch-removal",
    ], ignore: "needs Redis: run integration/test.sh");
}

mod cluster {
    use super::Cluster;
    tenure_conformance::conformance!(Cluster, skips: [
        "cancel-storm",
        "doubt-words",
        "setup-credentials",
        "setup-missing",
        "setup-race",
        "setup-rights",
        "token-server",
        "watch-removal",
    ], ignore: "needs Redis: run integration/test.sh");
}
