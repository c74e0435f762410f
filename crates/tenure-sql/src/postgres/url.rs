//! What a `postgres://` URL says.

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tenure_core::{Invalid, StoreHost, StoreUrl};

use crate::SqlConfig;
use crate::tls;

/// Where to connect, and how.
pub(super) struct Target {
    pub(super) options: PgConnectOptions,
    pub(super) listen: Option<PgConnectOptions>,
    pub(super) config: SqlConfig,
}

const KNOWN: [&str; 10] = [
    "table",
    "timeout",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "host",
    "pgbouncer",
    "listen",
];

pub(super) fn parse(url: &StoreUrl) -> Result<Target, Invalid> {
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(Invalid::new(format!("store url has the scheme {:?}: postgres is expected", url.scheme())));
    }
    url.check_query(&KNOWN)?;
    let mut config = SqlConfig::from_url(url)?;
    if flag(url, "pgbouncer")? {
        config = config.with_transaction_pooling();
    }
    let host = host(url)?;
    let mut options = PgConnectOptions::new_without_pgpass().port(host.as_ref().and_then(|h| h.port).unwrap_or(5432));
    if let Some(host) = &host {
        options = options.host(&host.host);
    }
    if let Some(user) = url.username() {
        options = options.username(user);
    }
    if let Some(password) = url.password() {
        options = options.password(password);
    }
    match url.path().strip_prefix('/').unwrap_or(url.path()) {
        "" => {}
        database => options = options.database(database),
    }
    if let Some(name) = url.query("application_name") {
        options = options.application_name(name);
    }
    options = encrypted(options, url)?;
    let listen = url.query("listen").map(|text| direct(&options, text)).transpose()?;
    Ok(Target { options, listen, config })
}

fn host(url: &StoreUrl) -> Result<Option<StoreHost>, Invalid> {
    let socket = url.query("host");
    match (url.hosts(), socket) {
        ([], None) => Ok(None),
        ([host], None) => Ok(Some(host.clone())),
        ([], Some(directory)) if directory.starts_with('/') => {
            // `StoreHost` has no constructor: it comes from a URL.
            let text = format!("postgres://{}", directory.replace('%', "%25").replace('/', "%2f"));
            Ok(StoreUrl::parse(&text)?.hosts().first().cloned())
        }
        (_, Some(_)) => Err(Invalid::new(
            "store url has the parameter host: it names the directory of a unix socket, begins with a slash, and stands \
             in a url without another host",
        )),
        _ => Err(Invalid::new(
            "store url names several hosts: postgres takes one; use an address that follows the primary",
        )),
    }
}

fn flag(url: &StoreUrl, key: &str) -> Result<bool, Invalid> {
    match url.query(key) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(Invalid::new(format!("store url has {key}={other:?}: true or false is expected"))),
    }
}

/// The server itself, beside a pooler: the same user, database and encryption.
fn direct(options: &PgConnectOptions, text: &str) -> Result<PgConnectOptions, Invalid> {
    match StoreUrl::parse(&format!("postgres://{text}")).as_ref().map(StoreUrl::hosts) {
        Ok([host]) => Ok(options.clone().host(&host.host).port(host.port.unwrap_or(5432))),
        _ => Err(Invalid::new("store url has a parameter listen that is not HOST or HOST:PORT")),
    }
}

fn encrypted(options: PgConnectOptions, url: &StoreUrl) -> Result<PgConnectOptions, Invalid> {
    let mode = match url.query("sslmode") {
        Some("disable") => PgSslMode::Disable,
        Some("require") => PgSslMode::Require,
        Some("verify-ca") => PgSslMode::VerifyCa,
        Some("verify-full") => PgSslMode::VerifyFull,
        Some(other) => return Err(tls::refuse_mode(other)),
        None if tls::stays_on_this_host(options.get_host()) => PgSslMode::Disable,
        None => PgSslMode::VerifyFull,
    };
    if !matches!(mode, PgSslMode::Disable) {
        tls::check_built_in("sslmode=disable")?;
    }
    let mut options = options.ssl_mode(mode);
    if let Some(path) = url.query("sslrootcert") {
        options = options.ssl_root_cert(path);
    }
    if let Some(path) = url.query("sslcert") {
        options = options.ssl_client_cert(path);
    }
    if let Some(path) = url.query("sslkey") {
        options = options.ssl_client_key(path);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Result<Target, String> {
        parse(&text.parse().unwrap()).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn every_part_of_the_url_is_used() {
        let text = "postgres://us%65r:s3cret@127.0.0.1:5433/my%20db?table=ops.t&timeout=1s&application_name=x";
        let target = target(text).unwrap();
        let options = &target.options;
        assert_eq!((options.get_host(), options.get_port()), ("127.0.0.1", 5433));
        assert_eq!((options.get_username(), options.get_database()), ("user", Some("my db")));
        assert_eq!(options.get_application_name(), Some("x"));
        assert_eq!(target.config.table().to_string(), "ops.t");
        assert!(!target.config.transaction_pooling() && target.listen.is_none());
    }

    #[test]
    fn a_socket_and_a_pooler_are_settings() {
        assert_eq!(target("postgres:///db?host=/run/pg").unwrap().options.get_host(), "/run/pg");
        let pooled = target("postgres://127.0.0.1:6432/db?pgbouncer=true&listen=127.0.0.2").unwrap();
        assert!(pooled.config.transaction_pooling());
        let listen = pooled.listen.unwrap();
        assert_eq!((listen.get_host(), listen.get_port()), ("127.0.0.2", 5432));
    }

    #[test]
    fn plain_text_is_said_or_stays_on_this_host() {
        let mode = |text: &str| target(text).map(|target| target.options.get_ssl_mode());
        for local in ["postgres://127.0.0.1/db", "postgres://[::1]/db", "postgres://localhost/db"] {
            assert!(matches!(mode(local).unwrap(), PgSslMode::Disable), "{local}");
        }
        assert!(matches!(mode("postgres://db.example/db?sslmode=disable").unwrap(), PgSslMode::Disable));
        let remote = mode("postgres://db.example/db");
        if cfg!(any(feature = "tls-rustls", feature = "tls-native")) {
            assert!(matches!(remote.unwrap(), PgSslMode::VerifyFull));
            assert!(matches!(mode("postgres://localhost/db?sslmode=require").unwrap(), PgSslMode::Require));
        } else {
            let refusal = remote.unwrap_err();
            assert!(refusal.contains("tls-rustls") && refusal.contains("sslmode=disable"), "{refusal}");
        }
        for silent in ["prefer", "allow"] {
            let refusal = mode(&format!("postgres://localhost/db?sslmode={silent}")).unwrap_err();
            assert!(refusal.contains("verify-full, verify-ca, require or disable is expected"), "{refusal}");
        }
    }

    #[test]
    fn a_refusal_names_the_part_and_no_secret() {
        for (text, part) in [
            ("mysql://u:canary@h/db", "scheme"),
            ("postgres://u:canary@h1,h2/db", "several hosts"),
            ("postgres://u:canary@localhost/db?pgbouncer=yes", "pgbouncer"),
            ("postgres://u:canary@localhost/db?listen=:", "listen"),
            ("postgres://u:canary@localhost/db?host=/run", "host"),
            ("postgres://u:canary@localhost/db?user=x", "\"user\""),
        ] {
            let refusal = target(text).map(drop).unwrap_err();
            assert!(refusal.contains(part) && !refusal.contains("canary"), "{refusal}");
        }
    }
}
