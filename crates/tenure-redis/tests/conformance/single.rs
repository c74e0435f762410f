//! One server, as a user with the documented rights and no others, with faults on the wire.

use std::net::SocketAddr;
use std::sync::Arc;

use redis::{Client, cmd};
use tenure_conformance::{Admin, FaultInjector, Harness, Trespass, Unable, async_trait, conformance};
use tenure_core::{Fault, LeaseStore, StoreError, StoreUrl};
use tenure_redis::{RedisStore, redis};
use tokio::sync::Mutex;

use crate::operator::Operator;
use crate::proxy::{Fate, Proxy};
use crate::{environment, fault};

/// The documented rights: what running needs, wake-ups, listing, and reading how durable the server is.
const RIGHTS: &str = "+evalsha +eval +get +set +pttl +pexpire +del +hmget +hget +hset +hincrby +time \
                      +publish +subscribe +unsubscribe +ping +scan +info +config|get";

/// The user that has them.
const USER: &str = "tenure-app:app-secret@";

/// Clients reach the server through a proxy of the bench's own.
struct Bench {
    server: String,
    proxy: Proxy,
}

impl Bench {
    async fn new() -> Self {
        let server = environment("TENURE_TEST_REDIS");
        let bench = Self { proxy: proxy(&server).await, server };
        bench.admit("tenure-app", "app-secret", RIGHTS).await.unwrap();
        bench
    }

    /// A user who may use Tenure's keys and channels as `rights` say.
    async fn admit(&self, user: &str, password: &str, rights: &str) -> Result<(), Unable> {
        let client = Client::open(self.server.as_str()).map_err(Unable::failed)?;
        let mut connection = client.get_multiplexed_async_connection().await.map_err(Unable::failed)?;
        let mut acl = cmd("ACL");
        acl.arg("SETUSER").arg(user).arg("reset").arg("on").arg(format!(">{password}")).arg("~tenure:*");
        acl.arg("&tenure:*").arg(rights.split_whitespace().collect::<Vec<_>>());
        acl.query_async(&mut connection).await.map_err(Unable::failed)
    }

    fn url(&self, user: &str) -> StoreUrl {
        url(&self.proxy, user)
    }

    async fn trespass(&self, user: &str, password: &str) -> Trespass {
        let store = RedisStore::connect(&self.url(&format!("{user}:{password}@"))).await;
        Trespass {
            store: store.map(|store| Arc::new(store) as Arc<dyn LeaseStore>),
            secrets: vec![password.to_owned()],
        }
    }
}

fn url(proxy: &Proxy, user: &str) -> StoreUrl {
    proxy.url().replace("redis://", &format!("redis://{user}")).parse().unwrap()
}

async fn proxy(server: &str) -> Proxy {
    let target: SocketAddr = server.trim_start_matches("redis://").trim_end_matches('/').parse().unwrap();
    Proxy::to(target).await
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(RedisStore::connect(&self.url(USER)).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        let client = Client::open(self.server.as_str()).map_err(Unable::failed)?;
        let connection = client.get_multiplexed_async_connection().await.map_err(Unable::failed)?;
        Ok(Arc::new(Operator(Mutex::new(connection))))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let proxy = proxy(&self.server).await;
        proxy.spare_handshakes();
        Ok(Arc::new(OnTheWire { store: Arc::new(RedisStore::connect(&url(&proxy, USER)).await?), proxy }))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            fault(verb, "redis").await?;
        }
        // The server keeps users in memory only.
        self.admit("tenure-app", "app-secret", RIGHTS).await
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        self.proxy.cut();
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.proxy.open())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        Ok(self.trespass("nobody", "wrong-secret").await)
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        self.admit("tenure-reader", "reader-secret", "+evalsha +eval +get +pttl").await?;
        Ok(self.trespass("tenure-reader", "reader-secret").await)
    }
}

struct OnTheWire {
    store: Arc<RedisStore>,
    proxy: Proxy,
}

#[async_trait]
impl FaultInjector for OnTheWire {
    fn store(&self) -> Arc<dyn LeaseStore> {
        self.store.clone()
    }

    async fn cause(&self, fault: Fault) -> Result<(), Unable> {
        match fault {
            Fault::None => self.proxy.decree(Fate::Pass, Fate::Pass),
            Fault::LoseRequest => self.proxy.decree(Fate::Lose, Fate::Pass),
            Fault::LoseReply => self.proxy.decree(Fate::Pass, Fate::Lose),
            Fault::DelayRequest(delay) => self.proxy.decree(Fate::Delay(delay), Fate::Pass),
            Fault::DelayReply(delay) => self.proxy.decree(Fate::Pass, Fate::Delay(delay)),
            Fault::Repeat(delay) => self.proxy.decree(Fate::Repeat(delay), Fate::Pass),
            other => return Err(Unable::lacks(format!("a proxy on the wire cannot cause {other:?}"))),
        }
        Ok(())
    }
}

conformance!(Bench::new().await, skips: ["setup-missing", "setup-race", "watch-removal"], ignore: "needs Redis: run integration/test.sh");
