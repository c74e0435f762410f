//! The conformance suite on a real API server, with the documented Role as the only rights, over TLS, with faults on the
//! wire.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench::proxy::{self, Proxy};
use bench::wire::{Mode, Wire};
use bench::{FORBIDDEN, NAMESPACE, TempFile, connect, fault, kubeconfig, leases, server, user_config, variable};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use tenure_conformance::{
    Admin, FaultInjector, FaultsInFront, Foreign, Harness, Trespass, Unable, async_trait, conformance,
};
use tenure_core::{Fault, LeaseName, LeaseStore, StoreError};
use tenure_kubernetes::{KubernetesStore, k8s_openapi, kube};

/// Clients reach the server through a proxy of the bench's own.
struct Bench {
    proxy: Proxy,
    config: TempFile,
}

impl Bench {
    async fn new() -> Self {
        bench::admin().await;
        let proxy = Proxy::to(&server()).await;
        Self { config: user_config(&proxy.address), proxy }
    }
}

#[async_trait]
impl Harness for Bench {
    async fn store(&self) -> Result<Arc<dyn LeaseStore>, StoreError> {
        Ok(Arc::new(connect(NAMESPACE, &self.config).await?))
    }

    fn spans_processes(&self) -> bool {
        true
    }

    async fn admin(&self) -> Result<Arc<dyn Admin>, Unable> {
        Ok(Arc::new(Operator(leases().await)))
    }

    async fn faulty(&self) -> Result<Arc<dyn FaultInjector>, Unable> {
        let wire = Wire::default();
        let user = bench::client(&PathBuf::from(variable("TENURE_TEST_KUBERNETES_USER_CONFIG"))).await;
        let store = KubernetesStore::new(wire.around(&user), NAMESPACE);
        Ok(Arc::new(OnTheWire { front: FaultsInFront::of(Arc::new(store)), wire }))
    }

    async fn restart(&self) -> Result<(), Unable> {
        for verb in ["kill", "start", "wait"] {
            fault(verb, "kubernetes").await;
        }
        Ok(())
    }

    async fn wrong_credentials(&self) -> Result<Trespass, Unable> {
        let ca = variable("TENURE_TEST_KUBERNETES_CA");
        let config = TempFile::new(&kubeconfig(&server(), "token: canary-7c1e", &ca));
        let store = connect(NAMESPACE, &config).await.map(|store| Arc::new(store) as Arc<dyn LeaseStore>);
        Ok(Trespass { store, secrets: vec!["canary-7c1e".to_owned()] })
    }

    async fn restricted(&self) -> Result<Trespass, Unable> {
        let store = connect(FORBIDDEN, &self.config).await.map(|store| Arc::new(store) as Arc<dyn LeaseStore>);
        Ok(Trespass { store, secrets: vec![bench::user_token()] })
    }

    async fn cut_watches(&self) -> Result<(), Unable> {
        self.proxy.set(proxy::Mode::Cut);
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.proxy.set(proxy::Mode::Pass);
        Ok(())
    }

    async fn connections(&self) -> Result<usize, Unable> {
        Ok(self.proxy.open())
    }
}

/// The namespace's leases, as an administrator reaches them.
struct Operator(Api<Lease>);

impl Operator {
    /// The object that keeps a lease: found by its annotation where its name is a hash.
    async fn object(&self, name: &LeaseName) -> Result<Option<Lease>, Unable> {
        let all = self.0.list(&kube::api::ListParams::default()).await.map_err(Unable::failed)?;
        Ok(all.items.into_iter().find(|lease| {
            let annotation = lease.metadata.annotations.as_ref().and_then(|all| all.get("tenure.rs/name"));
            annotation.or(lease.metadata.name.as_ref()).map(String::as_str) == Some(name.as_str())
        }))
    }
}

#[async_trait]
impl Admin for Operator {
    async fn remove(&self, name: &LeaseName) -> Result<(), Unable> {
        let Some(object) = self.object(name).await?.and_then(|lease| lease.metadata.name) else { return Ok(()) };
        self.0.delete(&object, &DeleteParams::default()).await.map(drop).map_err(Unable::failed)
    }

    async fn put_foreign(&self, name: &LeaseName, foreign: Foreign) -> Result<(), Unable> {
        self.remove(name).await?;
        let mut metadata = ObjectMeta { name: Some(name.as_str().into()), ..ObjectMeta::default() };
        let mut spec = LeaseSpec { holder_identity: Some("leader-7".into()), ..LeaseSpec::default() };
        match foreign {
            Foreign::Value => {
                metadata.annotations = Some([("tenure.rs/token".to_owned(), "first".to_owned())].into());
                spec.lease_duration_seconds = Some(60);
            }
            Foreign::WithoutExpiry => {}
            _ => return Err(Unable::lacks("this bench does not know that foreign record")),
        }
        let object = Lease { metadata, spec: Some(spec) };
        self.0.create(&PostParams::default(), &object).await.map(drop).map_err(Unable::failed)
    }

    async fn purge(&self, name: &LeaseName) -> Result<(), Unable> {
        self.remove(name).await
    }

    async fn raw(&self, name: &LeaseName) -> Result<String, Unable> {
        Ok(self.object(name).await?.map_or_else(String::new, |lease| format!("{lease:?}")))
    }

    /// The count goes with the object, for a client that did not see it.
    fn removal_resets_tokens(&self) -> bool {
        true
    }
}

struct OnTheWire {
    /// Repeats whole calls.
    front: FaultsInFront,
    wire: Wire,
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
            Fault::LoseReply => (Mode::LoseReplies, Fault::None),
            Fault::DelayRequest(delay) => (Mode::DelayRequests(delay), Fault::None),
            Fault::DelayReply(delay) => (Mode::DelayReplies(delay), Fault::None),
            Fault::Repeat(_) => (Mode::Pass, fault),
            other => return Err(Unable::lacks(format!("this wire cannot cause {other:?}"))),
        };
        self.wire.set(mode);
        self.front.cause(in_front).await
    }
}

conformance!(
    Bench::new().await,
    skips: [
        // The count goes with the object.
        "token-removed",
        // Nothing needs to be set up.
        "setup-missing", "setup-race",
        // The documented Role cannot list.
        "read-list",
        // Needs libfaketime.
        "time-wall-clock",
    ],
    ignore: "needs kubernetes: run integration/test.sh",
);
