//! Which store is harmed, how candidates reach it, and what can be done to its servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::proxies::Proxy;

/// A store that `servers.sh` has started, or a file.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) store: String,
    /// Addresses of the members that candidates connect to.
    members: Vec<String>,
    /// What `servers.sh` calls what can be paused and killed.
    pub(crate) servers: Vec<String>,
    /// Of this run: the SQLite file, a kubeconfig for each candidate.
    folder: PathBuf,
}

impl Target {
    pub(crate) fn new(store: &str, folder: &Path) -> anyhow::Result<Self> {
        let variable = match store {
            "sqlite" => None,
            "redis" => Some("TENURE_TEST_REDIS"),
            "postgres" => Some("TENURE_TEST_POSTGRES"),
            "mariadb" => Some("TENURE_TEST_MYSQL"),
            "etcd" => Some("TENURE_TEST_ETCD"),
            "etcd3" => Some("TENURE_TEST_ETCD3"),
            "kubernetes" => Some("TENURE_TEST_KUBERNETES"),
            other => {
                bail!("no store is called {other}: sqlite, redis, postgres, mariadb, etcd, etcd3 and kubernetes are")
            }
        };
        let servers = match store {
            "sqlite" => Vec::new(),
            "etcd3" => ["etcd3-1", "etcd3-2", "etcd3-3"].map(str::to_owned).to_vec(),
            store => vec![store.to_owned()],
        };
        let members = match variable {
            None => Vec::new(),
            Some(name) => {
                let address =
                    std::env::var(name).with_context(|| format!("{name} is not set: run integration/chaos.sh"))?;
                let hosts = address.split("://").last().unwrap_or_default();
                let hosts = hosts.split('@').next_back().unwrap_or_default().split('/').next().unwrap_or_default();
                hosts.split(',').map(str::to_owned).collect()
            }
        };
        Ok(Self { store: store.to_owned(), members, servers, folder: folder.to_owned() })
    }

    /// Proxies of a candidate's own.
    pub(crate) async fn proxies(&self) -> Vec<Proxy> {
        let mut proxies = Vec::new();
        for member in &self.members {
            proxies.push(Proxy::to(member).await);
        }
        proxies
    }

    /// How a candidate reaches the store by way of `proxies`.
    pub(crate) fn url(&self, label: &str, proxies: &[Proxy]) -> String {
        let hosts: Vec<&str> = proxies.iter().map(|proxy| proxy.address.as_str()).collect();
        let hosts = hosts.join(",");
        match self.store.as_str() {
            "sqlite" => format!("sqlite://{}", self.file().display()),
            "redis" => format!("redis://{hosts}"),
            "postgres" => format!("postgres://postgres:tenure@{hosts}/tenure"),
            "mariadb" => format!("mysql://root:tenure@{hosts}/tenure"),
            "kubernetes" => {
                let config = self.folder.join(format!("kubeconfig-{label}"));
                let ca = std::env::var("TENURE_TEST_KUBERNETES_CA").expect("the server's authority");
                let token = std::env::var("TENURE_TEST_KUBERNETES_ADMIN_TOKEN").expect("a token");
                let text = format!(
                    "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                     clusters: [{{name: c, cluster: {{server: \"https://{hosts}\", certificate-authority: \"{ca}\"}}}}]\n\
                     users: [{{name: c, user: {{token: {token}}}}}]\n\
                     contexts: [{{name: c, context: {{cluster: c, user: c, namespace: default}}}}]\n"
                );
                std::fs::write(&config, text).expect("the kubeconfig is written");
                format!("kubernetes://default?kubeconfig={}", config.display())
            }
            _ => format!("etcd://{hosts}"),
        }
    }

    /// Whether one of several members leads the others.
    pub(crate) fn has_leader(&self) -> bool {
        self.store == "etcd3"
    }

    /// The member that leads the others by now; `None` while none does.
    pub(crate) async fn leader(&self) -> Option<String> {
        for (member, name) in self.members.iter().zip(&self.servers) {
            let status = tokio::time::timeout(Duration::from_secs(1), status_of(member)).await;
            let Some(status) = status.ok().flatten() else { continue };
            let id = |value: &Value| value.as_str().map(str::to_owned);
            if let (Some(leader), Some(own)) = (id(&status["leader"]), id(&status["header"]["member_id"]))
                && leader == own
            {
                return Some(name.clone());
            }
        }
        None
    }

    /// The file of SQLite.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("leases.db")
    }
}

/// What a member of etcd says of itself and of its leader.
async fn status_of(member: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(member).await.ok()?;
    let request = "POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// Calls `servers.sh VERB DIR NAME`; harm that does not come about is none.
pub(crate) async fn server(verb: &str, name: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../servers/servers.sh");
    let directory =
        std::env::var("TENURE_TEST_SERVERS_DIR").expect("TENURE_TEST_SERVERS_DIR: run integration/chaos.sh");
    let done = Command::new("bash").arg(script).args([verb, &directory, name]).output().await.expect("bash");
    assert!(done.status.success(), "servers.sh {verb} {name}: {}", String::from_utf8_lossy(&done.stderr));
}
