//! The server, the identities and the faults that the tests share.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tenure_core::{Acquired, Bid, CandidateId, Grant, Label, LeaseName, LeaseRecord, LeaseStore, StoreError};
use tenure_kubernetes::{KubernetesStore, k8s_openapi, kube};
use tokio::sync::OnceCell;

// A proxy of bytes knows no protocol.
pub mod gate;
#[path = "../../../tenure-etcd/tests/bench/proxy.rs"]
pub mod proxy;
pub mod wire;

/// Long enough for a busy machine, where nothing waits for it to pass.
pub const TTL: Duration = Duration::from_secs(30);

/// Far longer than anything here takes when it works.
pub const LONG: Duration = Duration::from_secs(20);

/// Where the user with the minimal Role may keep leases, and where it may do nothing.
pub const NAMESPACE: &str = "tenure-test";
pub const FORBIDDEN: &str = "tenure-forbidden";

/// The value of a variable that `integration/test.sh` sets; a test without its server fails.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run integration/test.sh"))
}

/// `host:port` of the API server.
pub fn server() -> String {
    variable("TENURE_TEST_KUBERNETES").trim_start_matches("https://").to_owned()
}

pub fn user_token() -> String {
    variable("TENURE_TEST_KUBERNETES_USER_TOKEN")
}

/// A client of the administrator, who may do everything.
pub async fn admin() -> Client {
    static READY: OnceCell<()> = OnceCell::const_new();
    let client = client(Path::new(&variable("TENURE_TEST_KUBERNETES_CONFIG"))).await;
    READY.get_or_init(|| set_up(client.clone())).await;
    client
}

pub async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Both namespaces, and the documented Role in one of them. Other test programs may do the same at once.
async fn set_up(client: Client) {
    for name in [NAMESPACE, FORBIDDEN] {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        made(Api::all(client.clone()).create(&PostParams::default(), &namespace).await);
    }
    let metadata = ObjectMeta { name: Some("tenure".into()), ..ObjectMeta::default() };
    let rule = |verbs: &[&str]| PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".into()]),
        resources: Some(vec!["leases".into()]),
        verbs: verbs.iter().map(|&verb| verb.into()).collect(),
        ..PolicyRule::default()
    };
    let role = Role { metadata: metadata.clone(), rules: Some(vec![rule(&["get", "update", "watch", "create"])]) };
    made(Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &role).await);
    let binding = RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "Role".into(),
            name: "tenure".into(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "User".into(),
            name: "tenure".into(),
            namespace: None,
        }]),
    };
    made(Api::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &binding).await);
    // The server learns of a Role a little later than it says so.
    let user = self::client(Path::new(&variable("TENURE_TEST_KUBERNETES_USER_CONFIG"))).await;
    until("the role counts", || async {
        Api::<Lease>::namespaced(user.clone(), NAMESPACE).get_opt("none").await.is_ok()
    })
    .await;
}

fn made<T>(result: Result<T, kube::Error>) {
    match result {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => panic!("{error}"),
    }
}

/// A kubeconfig that leads to `address` as whoever has `token`, trusting the certificate authority in the file `ca`.
pub fn kubeconfig(address: &str, token: &str, ca: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: t\n\
         clusters: [{{name: t, cluster: {{server: \"https://{address}\", certificate-authority: \"{ca}\"}}}}]\n\
         users: [{{name: t, user: {{{token}}}}}]\n\
         contexts: [{{name: t, context: {{cluster: t, user: t, namespace: {NAMESPACE}}}}}]\n"
    )
}

/// A file of this test's own, removed with it.
pub struct TempFile(pub PathBuf);

impl TempFile {
    pub fn new(text: &str) -> Self {
        let path = std::env::temp_dir().join(fresh("tenure-test").as_str());
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }

    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A kubeconfig of the user with the minimal Role, by way of `address`.
pub fn user_config(address: &str) -> TempFile {
    let token = format!("token: {}", user_token());
    TempFile::new(&kubeconfig(address, &token, &variable("TENURE_TEST_KUBERNETES_CA")))
}

pub async fn connect(namespace: &str, kubeconfig: &TempFile) -> Result<KubernetesStore, StoreError> {
    let url = format!("kubernetes://{namespace}?kubeconfig={}", kubeconfig.path());
    KubernetesStore::connect(&url.parse().unwrap()).await
}

/// A store by URL, with the minimal Role, by way of `address`.
pub async fn store_at(address: &str) -> KubernetesStore {
    admin().await;
    connect(NAMESPACE, &user_config(address)).await.unwrap()
}

pub async fn store() -> KubernetesStore {
    store_at(&server()).await
}

pub async fn leases() -> Api<Lease> {
    Api::namespaced(admin().await, NAMESPACE)
}

/// The object of a lease whose name Kubernetes takes as it is.
pub async fn object(name: &LeaseName) -> Lease {
    leases().await.get(name.as_str()).await.unwrap()
}

/// Creates an object by hand.
pub async fn put(name: &LeaseName, spec: Option<LeaseSpec>) {
    let metadata = ObjectMeta { name: Some(name.as_str().into()), ..ObjectMeta::default() };
    leases().await.create(&PostParams::default(), &Lease { metadata, spec }).await.unwrap();
}

/// A name that no other test, and no other run, uses, and Kubernetes takes as it is.
pub fn fresh(what: &str) -> LeaseName {
    let nonce = candidate("x");
    LeaseName::new(format!("{what}-{}", nonce.as_str().strip_prefix("x_").unwrap())).unwrap()
}

pub fn candidate(label: &str) -> CandidateId {
    CandidateId::draw(&Label::new(label).unwrap())
}

/// A new candidate's bid for `name`.
pub fn bid(name: &LeaseName) -> Bid {
    bid_for(name, TTL)
}

pub fn bid_for(name: &LeaseName, ttl: Duration) -> Bid {
    Bid::new(name.clone(), candidate("worker"), ttl)
}

pub async fn granted(store: &impl LeaseStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

pub async fn held(store: &impl LeaseStore, bid: &Bid) -> LeaseRecord {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => panic!("granted: {grant:?}"),
        Acquired::Held(record) => record,
    }
}

/// Waits until `condition` holds, at most [`LONG`].
pub async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let looking = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("not within {LONG:?}: {what}"));
}

/// Calls `servers.sh VERB DIR NAME`: stop, kill, start, pause, resume, wait.
pub async fn fault(verb: &str, name: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integration/servers/servers.sh");
    let directory = variable("TENURE_TEST_SERVERS_DIR");
    let done = tokio::process::Command::new("bash").arg(script).args([verb, &directory, name]).status().await.unwrap();
    assert!(done.success(), "servers.sh {verb} {name}");
}
