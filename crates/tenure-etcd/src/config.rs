//! How a store is reached, as its URL says.

use std::fmt;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error};
use tenure_core::{Invalid, StoreUrl};

use crate::error::{Effect, Failure, translate};
use crate::key::Keyspace;

/// Longest time one store call may take, if its caller does not give up sooner: the driver does, after a fraction of
/// the ttl. 5 s is etcd's own bound on a request.
pub(crate) const CALL_BOUND: Duration = Duration::from_secs(5);

/// Longest time until a TCP connection stands; a server that is alive answers in a round trip.
const CONNECT_BOUND: Duration = Duration::from_secs(2);

/// Time between two HTTP/2 pings on a connection in use. etcd closes connections that are pinged more often than every
/// 5 s (`--grpc-keepalive-min-time`).
const PING_EVERY: Duration = Duration::from_secs(6);

/// Time that a ping may stay unanswered before the connection is given up.
const PING_BOUND: Duration = Duration::from_secs(3);

const DEFAULT_PORT: u16 = 2379;

/// A parsed address: where the members are, who logs in, what is trusted, and where the leases lie.
#[derive(Clone)]
pub(crate) struct EtcdConfig {
    /// `http://host:port` or `https://host:port`, in the order given.
    pub(crate) members: Vec<String>,
    pub(crate) keys: Keyspace,
    user: Option<(String, String)>,
    tls: Option<TlsFiles>,
}

/// Paths of PEM files; read each time a connection is opened, so that renewed certificates are taken up.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "tls-rustls"), allow(dead_code, reason = "parsed and refused without the feature"))]
struct TlsFiles {
    ca: Option<String>,
    cert: Option<String>,
    key: Option<String>,
}

impl EtcdConfig {
    /// Reads `etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]..][/PREFIX]`, or `etcds://` with TLS and the parameters
    /// `ca`, `cert` and `key`.
    pub(crate) fn from_url(url: &StoreUrl) -> Result<Self, Invalid> {
        let tls = match url.scheme() {
            "etcd" => {
                url.check_query(&[])?;
                None
            }
            "etcds" => {
                url.check_query(&["ca", "cert", "key"])?;
                Some(TlsFiles::from_url(url)?)
            }
            other => {
                return Err(Invalid::new(format!(
                    "store url has the scheme {other:?}: this store takes etcd and etcds"
                )));
            }
        };
        if url.hosts().is_empty() {
            return Err(Invalid::new("store url names no host: expected etcd://HOST[:PORT][,HOST[:PORT]..][/PREFIX]"));
        }
        let user = match (url.username(), url.password()) {
            (None, None) => None,
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
            _ => return Err(Invalid::new("store url names a user or a password: etcd needs both, USER:PASSWORD@HOST")),
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let members = url.hosts().iter().map(|at| {
            let port = at.port.unwrap_or(DEFAULT_PORT);
            if at.host.contains(':') {
                format!("{scheme}://[{}]:{port}", at.host)
            } else {
                format!("{scheme}://{}:{port}", at.host)
            }
        });
        Ok(Self { members: members.collect(), keys: Keyspace::new(url.path())?, user, tls })
    }

    /// Makes a client for one member, without a connection: that comes with its first request, and so does the login.
    pub(crate) async fn open(&self, member: &str) -> Result<Client, Failure> {
        let options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_BOUND)
            .with_timeout(CALL_BOUND)
            .with_keep_alive(PING_EVERY, PING_BOUND)
            // etcd counts pings on an idle connection as abuse.
            .with_keep_alive_while_idle(false)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        let options = match &self.tls {
            Some(files) => files.apply(options)?,
            None => options,
        };
        Client::connect([member], Some(options)).await.map_err(|error| translate(error, Effect::None))
    }

    /// Logs `client` in, if there is a user; it logs itself in again when its token runs out.
    pub(crate) async fn log_in(&self, client: &Client) -> Result<(), Error> {
        match &self.user {
            // Clones of a client share user and token.
            Some(user) => client.clone().update_user(Some(user.clone())).await,
            None => Ok(()),
        }
    }
}

impl TlsFiles {
    fn from_url(url: &StoreUrl) -> Result<Self, Invalid> {
        let path = |key: &str| url.query(key).map(str::to_owned);
        let files = Self { ca: path("ca"), cert: path("cert"), key: path("key") };
        if files.cert.is_some() != files.key.is_some() {
            return Err(Invalid::new(
                "store url has one of the parameters cert and key: a client certificate needs both",
            ));
        }
        Ok(files)
    }

    #[cfg(feature = "tls-rustls")]
    fn apply(&self, options: ConnectOptions) -> Result<ConnectOptions, Failure> {
        use etcd_client::{Certificate, Identity, TlsOptions};
        let read = |what: &str, path: &str| {
            std::fs::read(path).map_err(|error| Invalid::new(format!("cannot read the {what} file {path:?}: {error}")))
        };
        let mut tls = match &self.ca {
            Some(path) => TlsOptions::new().ca_certificate(Certificate::from_pem(read("ca", path)?)),
            None => TlsOptions::new().with_enabled_roots(),
        };
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity(Identity::from_pem(read("cert", cert)?, read("key", key)?));
        }
        Ok(options.with_tls(tls))
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[expect(clippy::unused_self, reason = "the other build uses it")]
    fn apply(&self, _: ConnectOptions) -> Result<ConnectOptions, Failure> {
        Err(Failure::new(
            tenure_core::StoreErrorKind::Unsupported,
            "etcds:// needs the feature \"tls-rustls\" of tenure-etcd: turn it on, or bring a client of your own",
        ))
    }
}

/// Shows no user and no password.
impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig").field("members", &self.members).field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<EtcdConfig, String> {
        EtcdConfig::from_url(&StoreUrl::parse(text).unwrap()).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn every_part_of_a_url_is_used() {
        let plain = config("etcd://h1:2380,h2,[::1]:1/svc/leases").unwrap();
        assert_eq!(plain.members, ["http://h1:2380", "http://h2:2379", "http://[::1]:1"]);
        assert_eq!(plain.keys.prefix(), "/svc/leases/");
        assert!(plain.user.is_none() && plain.tls.is_none());
        let tls = config("etcds://u:p%40w@h?ca=/etc/ca.pem&cert=c&key=k").unwrap();
        assert_eq!(tls.members, ["https://h:2379"]);
        assert_eq!(tls.keys.prefix(), "/tenure/");
        assert_eq!(tls.user, Some(("u".to_owned(), "p@w".to_owned())));
        assert_eq!(tls.tls.unwrap().ca.as_deref(), Some("/etc/ca.pem"));
    }

    #[test]
    fn each_refusal_says_what_is_allowed() {
        let refusal = |text| config(text).unwrap_err();
        assert_eq!(refusal("redis://h"), "store url has the scheme \"redis\": this store takes etcd and etcds");
        assert!(refusal("etcd:").starts_with("store url names no host: expected etcd://HOST"));
        assert_eq!(refusal("etcd://h?ca=x"), "store url has the parameter \"ca\": etcd takes none");
        assert_eq!(refusal("etcds://h?tls=x"), "store url has the parameter \"tls\": etcds takes ca, cert, key");
        assert!(refusal("etcds://h?cert=x").contains("a client certificate needs both"));
        assert!(refusal("etcd://user@h").contains("etcd needs both"));
    }

    #[test]
    fn a_password_is_not_shown() {
        let shown = format!("{:?}", config("etcd://root:canary@h/x").unwrap());
        assert!(shown.contains("http://h:2379") && !shown.contains("canary") && !shown.contains("root"), "{shown}");
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[tokio::test]
    async fn without_the_feature_tls_is_refused_with_its_name() {
        let failure = config("etcds://h").unwrap().open("https://h:2379").await.err().unwrap();
        assert_eq!(failure.kind, tenure_core::StoreErrorKind::Unsupported);
        assert!(format!("{failure:?}").contains("tls-rustls"));
    }

    #[cfg(feature = "tls-rustls")]
    #[tokio::test]
    async fn a_missing_file_is_named() {
        let failure = config("etcds://h?ca=/nowhere/ca.pem").unwrap().open("https://h:2379").await.err().unwrap();
        assert_eq!(failure.kind, tenure_core::StoreErrorKind::Invalid);
        assert!(format!("{failure:?}").contains("/nowhere/ca.pem"), "{failure:?}");
    }
}
