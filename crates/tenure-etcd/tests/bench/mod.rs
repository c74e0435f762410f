//! The servers and the faults that the tests share.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, KeyValue};
use tenure_core::{Acquired, Bid, CandidateId, Grant, Label, LeaseName, LeaseRecord, LeaseStore};
use tenure_etcd::{EtcdStore, etcd_client};

pub mod proxy;

/// The smallest ttl that etcd grants with its default settings.
pub const TTL: Duration = Duration::from_secs(2);

/// Far longer than anything here takes when it works.
pub const LONG: Duration = Duration::from_secs(20);

/// The value of a variable that `integration/test.sh` sets; a test without its server fails.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run integration/test.sh"))
}

/// `host:port` of the single server.
pub fn server() -> String {
    variable("TENURE_TEST_ETCD")
}

/// A raw client, for looking and meddling.
pub async fn admin() -> Client {
    raw(&[&server()]).await
}

pub async fn raw(members: &[&str]) -> Client {
    let options = ConnectOptions::new().with_connect_timeout(Duration::from_secs(1)).with_timeout(LONG);
    Client::connect(members, Some(options)).await.unwrap()
}

/// The administrator of the server with TLS and logins.
#[cfg(feature = "tls-rustls")]
pub async fn root() -> Client {
    let read = |name: &str| std::fs::read(variable(name)).unwrap();
    let tls = etcd_client::TlsOptions::new()
        .ca_certificate(etcd_client::Certificate::from_pem(read("TENURE_TEST_CA")))
        .identity(etcd_client::Identity::from_pem(read("TENURE_TEST_ROOT_CERT"), read("TENURE_TEST_ROOT_KEY")));
    let options = ConnectOptions::new().with_tls(tls).with_user("root", "tenure").with_timeout(LONG);
    let at = format!("https://{}", variable("TENURE_TEST_ETCD_TLS"));
    Client::connect([at], Some(options)).await.unwrap()
}

/// A store on `members`, by URL, under the usual prefix.
pub async fn store_at(members: &str) -> EtcdStore {
    EtcdStore::connect(&format!("etcd://{members}").parse().unwrap()).await.unwrap()
}

pub async fn store() -> EtcdStore {
    store_at(&server()).await
}

/// A name that no other test, and no other run, uses.
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

/// A new candidate's bid for `name` and `ttl`.
pub fn bid_for(name: &LeaseName, ttl: Duration) -> Bid {
    Bid::new(name.clone(), candidate("worker"), ttl)
}

pub async fn granted(store: &EtcdStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

pub async fn held(store: &EtcdStore, bid: &Bid) -> LeaseRecord {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => panic!("granted: {grant:?}"),
        Acquired::Held(record) => record,
    }
}

/// What lies under the key of `name`, byte for byte.
pub async fn raw_record(store: &EtcdStore, name: &LeaseName) -> Option<KeyValue> {
    admin().await.get(store.key_of(name), None).await.unwrap().take_kvs().pop()
}

/// Seconds that an etcd lease has left; -1 when there is none.
pub async fn seconds_left(lease: i64) -> i64 {
    admin().await.lease_client().time_to_live(lease, None).await.unwrap().ttl()
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
