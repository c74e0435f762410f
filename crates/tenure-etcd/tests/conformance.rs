//! The conformance suite on a real server, with faults on the wire.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::sync::Arc;
use std::time::Duration;

use bench::proxy::{Mode, Proxy};
use bench::{admin, fault, server};
use etcd_client::{Client, PutOptions};
use tenure_conformance::{
    Admin, FaultInjector, FaultsInFront, Foreign, Harness, Trespass, Unable, async_trait, conformance,
};
use tenure_core::{Fault, LeaseName, LeaseStore, StoreError, StoreUrl};
use tenure_etcd::{EtcdStore, etcd_client};

/// Clients reach the server through a proxy of the bench's own.
struct Bench {
    proxy: Arc<Proxy>,
}

impl Bench {
    async fn new() -> Self {
        Self { proxy: Arc::new(Proxy::to(&server()).await) }
    }

    fn url(&self) -> StoreUrl {
        format!("etcd://{}", self.proxy.address).parse().unwrap()
    }
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(EtcdStore::connect(&self.url()).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        let keys = EtcdStore::new(admin().await);
        Ok(Arc::new(Operator { client: admin().await, keys }))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let proxy = Proxy::to(&server()).await;
        let url = format!("etcd://{}", proxy.address).parse().unwrap();
        let store = EtcdStore::connect(&url).await?;
        Ok(Arc::new(OnTheWire { front: FaultsInFront::of(Arc::new(store)), proxy }))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            fault(verb, "etcd").await;
        }
        Ok(())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        trespass("tenure:canary-7c1e").await
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        trespass("guest:tenure").await
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        self.proxy.set(Mode::Cut);
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.proxy.set(Mode::Pass);
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.proxy.open())
    }
}

struct Operator {
    client: Client,
    /// Knows which key belongs to a name.
    keys: EtcdStore,
}

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        self.client.kv_client().delete(self.keys.key_of(name), None).await.map_err(Unable::failed)?;
        Ok(())
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        let (value, options) = match foreign {
            Foreign::Value => {
                let lease = self.client.lease_client().grant(60, None).await.map_err(Unable::failed)?;
                ("leader-7", Some(PutOptions::new().with_lease(lease.id())))
            }
            Foreign::WithoutExpiry => {
                (r#"{"v":1,"candidate":"x","payload":"","ttl":2,"acquired_at":null,"lease":"7"}"#, None)
            }
            _ => return Err(Unable::lacks("this bench does not know that foreign record")),
        };
        self.client.kv_client().put(self.keys.key_of(name), value, options).await.map_err(Unable::failed)?;
        Ok(())
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        let found = self.client.kv_client().get(self.keys.key_of(name), None).await.map_err(Unable::failed)?;
        Ok(found.kvs().first().map_or_else(String::new, |kv| format!("{kv:?}")))
    }
}

/// A login at the server that wants one, for somebody who must not get in.
#[cfg(feature = "tls-rustls")]
async fn trespass(login: &str) -> Result<Trespass, Unable> {
    use bench::variable;
    let files = format!(
        "ca={}&cert={}&key={}",
        variable("TENURE_TEST_CA"),
        variable("TENURE_TEST_CLIENT_CERT"),
        variable("TENURE_TEST_CLIENT_KEY")
    );
    let url = format!("etcds://{login}@{}?{files}", variable("TENURE_TEST_ETCD_TLS")).parse().unwrap();
    let store = EtcdStore::connect(&url).await.map(|store| Arc::new(store) as Arc<dyn LeaseStore>);
    Ok(Trespass { store, secrets: vec![login.to_owned()] })
}

#[cfg(not(feature = "tls-rustls"))]
async fn trespass(_: &str) -> Result<Trespass, Unable> {
    Err(Unable::lacks("the server with logins wants tls: turn on the feature tls-rustls"))
}

struct OnTheWire {
    /// Repeats whole calls, which a proxy of bytes cannot.
    front: FaultsInFront,
    proxy: Proxy,
}

#[async_trait]
impl FaultInjector for OnTheWire {
    fn store(&self) -> Arc<dyn LeaseStore> {
        self.front.store()
    }

    async fn cause(&self, fault: Fault) -> Result<(), Unable> {
        let (mode, in_front) = match fault {
            Fault::None => (Mode::Pass, Fault::None),
            Fault::LoseRequest => (Mode::LoseRequests, Fault::None),
            Fault::LoseReply => (Mode::LoseAnswers, Fault::None),
            Fault::DelayRequest(delay) => (Mode::DelayRequests(delay), Fault::None),
            Fault::DelayReply(delay) => (Mode::DelayAnswers(delay), Fault::None),
            Fault::Repeat(_) => (Mode::Pass, fault),
            other => return Err(Unable::lacks(format!("a proxy on the wire cannot cause {other:?}"))),
        };
        self.proxy.set(mode);
        self.front.cause(in_front).await
    }
}

// etcd needs no set-up. Without the feature `tls-rustls` there is no server with logins; without libfaketime no clock
// can be shifted.
conformance!(
    Bench::new().await,
    skips: ["setup-missing", "setup-race", "setup-credentials", "setup-rights", "time-wall-clock"],
    ignore: "needs etcd: run integration/test.sh",
);
