//! The conformance suite on one server, on a cluster of three and on a server with logins, with faults on the wire.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::sync::Arc;
use std::time::Duration;

use bench::proxy::{Mode, Proxy};
use bench::{fault, raw, variable};
use etcd_client::{Client, PutOptions};
use futures::future::join_all;
use tenure_conformance::{Admin, FaultInjector, FaultsInFront, Foreign, Harness, Trespass, Unable, async_trait};
use tenure_core::{Fault, LeaseName, LeaseStore, StoreError};
use tenure_etcd::{EtcdStore, etcd_client};

/// Clients reach each member through a proxy of the bench's own.
struct Bench {
    /// What `servers.sh` calls the servers.
    servers: &'static str,
    members: Vec<String>,
    /// `SCHEME://USER`, and what follows the members' addresses.
    around: (String, String),
    proxies: Arc<Vec<Proxy>>,
}

impl Bench {
    async fn single() -> Self {
        Self::of("etcd", "TENURE_TEST_ETCD", ("etcd://".to_owned(), String::new())).await
    }

    async fn cluster() -> Self {
        Self::of("etcd3", "TENURE_TEST_ETCD3", ("etcd://".to_owned(), String::new())).await
    }

    /// With TLS both ways, and as a user whose one right is to read and write under the prefix.
    #[cfg(feature = "tls-rustls")]
    async fn login() -> Self {
        Self::of("etcd-tls", "TENURE_TEST_ETCD_TLS", ("etcds://tenure:tenure@".to_owned(), format!("?{}", files())))
            .await
    }

    async fn of(servers: &'static str, addresses: &str, around: (String, String)) -> Self {
        let members: Vec<String> = variable(addresses).split(',').map(str::to_owned).collect();
        Self { servers, around, proxies: Arc::new(in_front_of(&members).await), members }
    }

    async fn connect(&self, proxies: &[Proxy]) -> Result<EtcdStore, StoreError> {
        let addresses: Vec<&str> = proxies.iter().map(|proxy| proxy.address.as_str()).collect();
        let url = format!("{}{}{}", self.around.0, addresses.join(","), self.around.1);
        EtcdStore::connect(&url.parse().unwrap()).await
    }

    async fn operator(&self) -> Client {
        #[cfg(feature = "tls-rustls")]
        if self.servers == "etcd-tls" {
            return bench::root().await;
        }
        raw(&self.members.iter().map(String::as_str).collect::<Vec<_>>()).await
    }
}

async fn in_front_of(members: &[String]) -> Vec<Proxy> {
    join_all(members.iter().map(|member| Proxy::to(member))).await
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(self.connect(&self.proxies).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        let keys = EtcdStore::new(self.operator().await);
        Ok(Arc::new(Operator { client: self.operator().await, keys }))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let proxies = in_front_of(&self.members).await;
        let store = self.connect(&proxies).await?;
        Ok(Arc::new(OnTheWire { front: FaultsInFront::of(Arc::new(store)), proxies }))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            fault(verb, self.servers).await;
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
        self.proxies.iter().for_each(|proxy| proxy.set(Mode::Cut));
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.proxies.iter().for_each(|proxy| proxy.set(Mode::Pass));
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.proxies.iter().map(Proxy::open).sum())
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

/// What the server with TLS wants of a client, as settings of a URL.
#[cfg(feature = "tls-rustls")]
fn files() -> String {
    let (ca, cert, key) = ("TENURE_TEST_CA", "TENURE_TEST_CLIENT_CERT", "TENURE_TEST_CLIENT_KEY");
    format!("ca={}&cert={}&key={}", variable(ca), variable(cert), variable(key))
}

/// A login at the server that wants one, for somebody who must not get in.
#[cfg(feature = "tls-rustls")]
async fn trespass(login: &str) -> Result<Trespass, Unable> {
    let url = format!("etcds://{login}@{}?{}", variable("TENURE_TEST_ETCD_TLS"), files()).parse().unwrap();
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
    proxies: Vec<Proxy>,
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
        self.proxies.iter().for_each(|proxy| proxy.set(mode));
        self.front.cause(in_front).await
    }
}

mod single {
    use super::Bench;
    // etcd needs no set-up. Without the feature `tls-rustls` there is no server with logins; without libfaketime no
    // clock can be shifted.
    tenure_conformance::conformance!(
        Bench::single().await,
        skips: ["setup-missing", "setup-race", "setup-credentials", "setup-rights", "time-wall-clock"],
        ignore: "needs etcd: run integration/test.sh",
    );
}

mod cluster {
    use super::Bench;
    tenure_conformance::conformance!(
        Bench::cluster().await,
        skips: ["setup-missing", "setup-race", "setup-credentials", "setup-rights", "time-wall-clock"],
        ignore: "needs etcd: run integration/test.sh",
    );
}

#[cfg(feature = "tls-rustls")]
mod login {
    use super::Bench;
    tenure_conformance::conformance!(
        Bench::login().await,
        skips: ["setup-missing", "setup-race", "time-wall-clock"],
        ignore: "needs etcd: run integration/test.sh",
    );
}
