//! The server as an operator reaches it.

use redis::aio::ConnectionLike;
use redis::{AsyncCommands, Cmd, RedisResult, Value, cmd};
use tenure_conformance::{Admin, Foreign, Unable, async_trait};
use tenure_core::LeaseName;
use tenure_redis::redis;
use tokio::sync::Mutex;

/// A raw connection to a server or a cluster.
pub(crate) struct Operator<C>(pub(crate) Mutex<C>);

impl<C: ConnectionLike + Send + Sync> Operator<C> {
    async fn run(&self, command: &Cmd) -> Result<Value, Unable> {
        let answer: RedisResult<Value> = command.query_async(&mut *self.0.lock().await).await;
        answer.map_err(Unable::failed)
    }
}

fn keys(name: &LeaseName) -> [String; 2] {
    let tag = name.as_str().replace('%', "%25").replace('{', "%7B").replace('}', "%7D");
    [format!("tenure:{{{tag}}}:lease"), format!("tenure:{{{tag}}}:fence")]
}

#[async_trait]
impl<C: ConnectionLike + Send + Sync + 'static> Admin for Operator<C> {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let [lease, _] = keys(name);
        self.0.lock().await.del(lease).await.map_err(Unable::failed)
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        let [lease, _] = keys(name);
        let mut set = cmd("SET");
        match foreign {
            Foreign::Value => set.arg(lease).arg("leader-7").arg("PX").arg(60_000),
            Foreign::WithoutExpiry => set.arg(lease).arg("tenure/1 7 somebody\n15000 1764568490123456\n"),
            _ => return Err(Unable::lacks("this bench does not know that foreign record")),
        };
        self.run(&set).await.map(|_| ())
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.0.lock().await.del(&keys(name)).await.map_err(Unable::failed)
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let mut raw = String::new();
        for key in keys(name) {
            raw += &format!("{:?}", self.run(cmd("DUMP").arg(key)).await?);
        }
        Ok(raw)
    }

    /// The server would tell only with keyspace notifications turned on, which it is not by default.
    fn removal_wakes(&self) -> bool {
        false
    }
}
