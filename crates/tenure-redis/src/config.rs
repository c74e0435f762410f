//! Where the server is and how long to wait for it: the settings, and their form in a URL.

use std::time::Duration;

use redis::ProtocolVersion;
use tenure_core::{Invalid, StoreHost, StoreUrl};

/// How long a store waits before it gives a call or a connection up.
///
/// | bound | default | URL | meaning |
/// |---|---|---|---|
/// | `call` | 3 s | `timeout` | one store call, connecting included; the driver's own bound (ttl/5) is as long for a ttl of 15 s |
/// | `connect` | 1 s | `connect_timeout` | one attempt to connect, the handshake and a question to Sentinel included |
/// | `silence` | 500 ms | `silence` | calls that were given up after waiting this long together, with no answer in between, condemn their connection: the next call opens another |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    call: Duration,
    connect: Duration,
    silence: Duration,
}

impl Bounds {
    /// Bounds of `call` and `connect`, and `silence` as in the table.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when one of them is zero or longer than an hour, or when `connect` is longer than `call`.
    pub fn new(call: Duration, connect: Duration, silence: Duration) -> Result<Self, Invalid> {
        for (what, bound) in [("call", call), ("connect", connect), ("silence", silence)] {
            if bound.is_zero() || bound > Duration::from_secs(3600) {
                return Err(Invalid::new(format!(
                    "redis {what} bound of {bound:?}: more than 0 and at most 1 h is allowed"
                )));
            }
        }
        if connect > call {
            return Err(Invalid::new(format!(
                "redis connect bound of {connect:?} is longer than the call bound of {call:?}: a call includes connecting"
            )));
        }
        Ok(Self { call, connect, silence })
    }

    /// The bound on one store call, connecting included.
    pub const fn call(&self) -> Duration {
        self.call
    }

    /// The bound on one attempt to connect.
    pub const fn connect(&self) -> Duration {
        self.connect
    }

    /// The unanswered waiting that condemns a connection.
    pub const fn silence(&self) -> Duration {
        self.silence
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self { call: Duration::from_secs(3), connect: Duration::from_secs(1), silence: Duration::from_millis(500) }
    }
}

/// A URL's settings, parsed.
pub(crate) struct Address {
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) topology: Topology,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
    pub(crate) protocol: ProtocolVersion,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) bounds: Bounds,
}

/// What the hosts of a URL are.
pub(crate) enum Topology {
    Single,
    Sentinel { service: String, username: Option<String>, password: Option<String> },
    Cluster,
}

/// Paths of PEM files.
#[derive(Default)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<String>,
    pub(crate) client: Option<(String, String)>,
}

const PARAMETERS: [&str; 11] = [
    "sentinel",
    "sentinel_user",
    "sentinel_password",
    "cluster",
    "ca",
    "cert",
    "key",
    "protocol",
    "timeout",
    "connect_timeout",
    "silence",
];

impl Address {
    pub(crate) fn parse(url: &StoreUrl) -> Result<Self, Invalid> {
        url.check_query(&PARAMETERS)?;
        let topology = topology(url)?;
        let default_port = if matches!(topology, Topology::Sentinel { .. }) { 26379 } else { 6379 };
        let hosts: Vec<_> = url
            .hosts()
            .iter()
            .map(|StoreHost { host, port, .. }| (host.clone(), port.unwrap_or(default_port)))
            .collect();
        match (&topology, hosts.len()) {
            (_, 0) => return Err(Invalid::new("redis url names no host: redis://HOST[:PORT]/[DATABASE] is expected")),
            (Topology::Single, 2..) => {
                return Err(Invalid::new(
                    "redis url names several hosts: add ?cluster=true for a cluster, ?sentinel=NAME for sentinels, or name one host",
                ));
            }
            _ => {}
        }
        let database = database(url.path())?;
        if matches!(topology, Topology::Cluster) && database != 0 {
            return Err(Invalid::new(format!("redis url names database {database}: a cluster has database 0 only")));
        }
        Ok(Self {
            hosts,
            topology,
            username: url.username().map(str::to_owned),
            password: url.password().map(str::to_owned),
            database,
            protocol: protocol(url)?,
            tls: tls_files(url)?,
            bounds: bounds(url)?,
        })
    }
}

fn topology(url: &StoreUrl) -> Result<Topology, Invalid> {
    let cluster = match url.query("cluster") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Invalid::new("redis url parameter cluster is neither true nor false")),
    };
    match url.query("sentinel") {
        Some(_) if cluster => {
            Err(Invalid::new("redis url has both cluster and sentinel: a server is behind one of them"))
        }
        Some("") => {
            Err(Invalid::new("redis url parameter sentinel is empty: the name of the monitored master is expected"))
        }
        Some(service) => Ok(Topology::Sentinel {
            service: service.to_owned(),
            username: url.query("sentinel_user").map(str::to_owned),
            password: url.query("sentinel_password").map(str::to_owned),
        }),
        None if url.query("sentinel_user").or(url.query("sentinel_password")).is_some() => {
            Err(Invalid::new("redis url has credentials for sentinels but no parameter sentinel=NAME"))
        }
        None if cluster => Ok(Topology::Cluster),
        None => Ok(Topology::Single),
    }
}

fn database(path: &str) -> Result<i64, Invalid> {
    match path.trim_start_matches('/') {
        "" => Ok(0),
        number => number
            .parse()
            .ok()
            .filter(|n| (0..=i64::from(u16::MAX)).contains(n))
            .ok_or_else(|| Invalid::new("redis url path is not a database number: redis://HOST/0 is expected")),
    }
}

fn protocol(url: &StoreUrl) -> Result<ProtocolVersion, Invalid> {
    match url.query("protocol") {
        None | Some("resp3") => Ok(ProtocolVersion::RESP3),
        Some("resp2") => Ok(ProtocolVersion::RESP2),
        Some(_) => Err(Invalid::new("redis url parameter protocol is neither resp2 nor resp3")),
    }
}

fn tls_files(url: &StoreUrl) -> Result<Option<TlsFiles>, Invalid> {
    let path = |key| url.query(key).map(str::to_owned);
    let client = match (path("cert"), path("key")) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        _ => return Err(Invalid::new("redis url has one of cert and key: a client certificate needs both")),
    };
    let files = TlsFiles { ca: path("ca"), client };
    match url.scheme() {
        "rediss" => Ok(Some(files)),
        "redis" if files.ca.is_none() && files.client.is_none() => Ok(None),
        "redis" => Err(Invalid::new("redis url has certificates without tls: write rediss:// to use them")),
        other => Err(Invalid::new(format!("store url scheme {other}: redis and rediss are expected"))),
    }
}

fn bounds(url: &StoreUrl) -> Result<Bounds, Invalid> {
    let duration = |key: &str, default: Duration| match url.query(key) {
        None => Ok(default),
        Some(text) => humantime::parse_duration(text).map_err(|_| {
            Invalid::new(format!(
                "redis url parameter {key} is no duration: a number with a unit, as in 500ms, is expected"
            ))
        }),
    };
    let default = Bounds::default();
    let call = duration("timeout", default.call)?;
    Bounds::new(call, duration("connect_timeout", default.connect.min(call))?, duration("silence", default.silence)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        Address::parse(&url.parse().unwrap()).unwrap()
    }

    fn refusal(url: &str) -> String {
        match Address::parse(&url.parse().unwrap()) {
            Ok(_) => panic!("{url} was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_part_of_a_url_lands_where_it_belongs() {
        let single = address("redis://u:p@h/3?timeout=2s&silence=200ms");
        assert_eq!(single.hosts, [("h".to_owned(), 6379)]);
        assert_eq!((single.username.as_deref(), single.password.as_deref()), (Some("u"), Some("p")));
        assert_eq!((single.database, single.bounds.call()), (3, Duration::from_secs(2)));
        assert!(single.tls.is_none() && single.protocol == ProtocolVersion::RESP3);

        let sentinel = address("rediss://h1,h2:26380/?sentinel=main&sentinel_password=x&ca=/ca.pem&protocol=resp2");
        assert_eq!(sentinel.hosts, [("h1".to_owned(), 26379), ("h2".to_owned(), 26380)]);
        assert!(
            matches!(sentinel.topology, Topology::Sentinel { service, password: Some(_), .. } if service == "main")
        );
        assert_eq!(sentinel.tls.unwrap().ca.as_deref(), Some("/ca.pem"));

        assert!(matches!(address("redis://a:7000,b:7001?cluster=true").topology, Topology::Cluster));
    }

    #[test]
    fn a_short_call_bound_shortens_the_connect_bound() {
        assert_eq!(address("redis://h?timeout=300ms").bounds.connect(), Duration::from_millis(300));
    }

    #[test]
    fn each_refusal_says_what_to_write_instead() {
        assert!(refusal("redis:").contains("names no host"));
        assert!(refusal("redis://a,b").contains("add ?cluster=true"));
        assert!(refusal("redis://a?cluster=yes").contains("neither true nor false"));
        assert!(refusal("redis://a?cluster=true&sentinel=m").contains("both cluster and sentinel"));
        assert!(refusal("redis://a/x").contains("not a database number"));
        assert!(refusal("redis://a/1?cluster=true").contains("database 0 only"));
        assert!(refusal("redis://a?ca=/x").contains("write rediss://"));
        assert!(refusal("rediss://a?cert=/x").contains("needs both"));
        assert!(refusal("redis://a?sentinel_user=x").contains("no parameter sentinel"));
        assert!(refusal("redis://a?timeout=3").contains("is no duration"));
        assert!(refusal("redis://a?timeout=1s&connect_timeout=2s").contains("a call includes connecting"));
        assert!(refusal("redis://a?tiemout=3s").contains("timeout"));
        assert!(refusal("etcd://a").contains("redis and rediss are expected"));
    }

    #[test]
    fn no_refusal_repeats_a_secret() {
        for url in [
            "redis://u:canary@a,b",
            "redis://a?sentinel=&sentinel_password=canary",
            "redis://u:canary@a/x",
            "redis://a?timeout=canary",
            "redis://a/canary",
        ] {
            assert!(!refusal(url).contains("canary"), "{url}");
        }
    }
}
