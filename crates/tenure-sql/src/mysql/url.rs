//! What a `mysql://` URL says.

use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use tenure_core::{Invalid, StoreUrl};

use crate::SqlConfig;
use crate::tls;

const KNOWN: [&str; 7] = ["table", "timeout", "sslmode", "sslrootcert", "sslcert", "sslkey", "socket"];

pub(super) fn parse(url: &StoreUrl) -> Result<(MySqlConnectOptions, SqlConfig), Invalid> {
    if !matches!(url.scheme(), "mysql" | "mariadb") {
        return Err(Invalid::new(format!("store url has the scheme {:?}: mysql is expected", url.scheme())));
    }
    url.check_query(&KNOWN)?;
    let config = SqlConfig::from_url(url)?;
    let mut options = MySqlConnectOptions::new();
    options = match (url.hosts(), url.query("socket")) {
        ([], None) => options,
        ([host], None) => options.host(&host.host).port(host.port.unwrap_or(3306)),
        ([], Some(path)) if path.starts_with('/') => options.socket(path),
        (_, Some(_)) => {
            return Err(Invalid::new(
                "store url has the parameter socket: it names the path of a unix socket, begins with a slash, and \
                 stands in a url without a host",
            ));
        }
        _ => {
            return Err(Invalid::new(
                "store url names several hosts: mysql takes one; use an address that follows the primary",
            ));
        }
    };
    if let Some(user) = url.username() {
        options = options.username(user);
    }
    if let Some(password) = url.password() {
        options = options.password(password);
    }
    match url.path().strip_prefix('/').unwrap_or(url.path()) {
        "" if config.table().schema().is_none() => {
            return Err(Invalid::new(
                "store url names no database: mysql://host/database is expected, or a table setting with one",
            ));
        }
        "" => {}
        database => options = options.database(database),
    }
    Ok((encrypted(options, url)?, config))
}

fn encrypted(options: MySqlConnectOptions, url: &StoreUrl) -> Result<MySqlConnectOptions, Invalid> {
    let local = options.get_socket().is_some() || tls::stays_on_this_host(options.get_host());
    let mode = match url.query("sslmode") {
        Some("disable") => MySqlSslMode::Disabled,
        Some("require") => MySqlSslMode::Required,
        Some("verify-ca") => MySqlSslMode::VerifyCa,
        Some("verify-full") => MySqlSslMode::VerifyIdentity,
        Some(other) => return Err(tls::refuse_mode(other)),
        None if options.get_socket().is_some() => MySqlSslMode::Disabled,
        // MySQL asks for encryption where a password is seen for the first time; nobody is in between here.
        None if local => MySqlSslMode::Preferred,
        None => MySqlSslMode::VerifyIdentity,
    };
    if !matches!(mode, MySqlSslMode::Disabled | MySqlSslMode::Preferred) {
        tls::check_built_in("sslmode=disable")?;
    }
    let mut options = options.ssl_mode(mode);
    if let Some(path) = url.query("sslrootcert") {
        options = options.ssl_ca(path);
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

    fn target(text: &str) -> Result<(MySqlConnectOptions, SqlConfig), String> {
        parse(&text.parse().unwrap()).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn every_part_of_the_url_is_used() {
        let (options, config) = target("mysql://us%65r:s3cret@127.0.0.1:3307/my%20db?table=ops.t&timeout=2s").unwrap();
        assert_eq!((options.get_host(), options.get_port()), ("127.0.0.1", 3307));
        assert_eq!((options.get_username(), options.get_database()), ("user", Some("my db")));
        assert_eq!(config.table().to_string(), "ops.t");
        let (options, _) = target("mariadb:///db?socket=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(options.get_socket().unwrap().to_str(), Some("/run/mysqld/mysqld.sock"));
    }

    #[test]
    fn plain_text_is_said_or_stays_on_this_host() {
        let mode = |text: &str| target(text).map(|(options, _)| options.get_ssl_mode());
        assert!(matches!(mode("mysql://localhost/db").unwrap(), MySqlSslMode::Preferred));
        assert!(matches!(mode("mysql://db.example/db?sslmode=disable").unwrap(), MySqlSslMode::Disabled));
        let remote = mode("mysql://db.example/db");
        if cfg!(any(feature = "tls-rustls", feature = "tls-native")) {
            assert!(matches!(remote.unwrap(), MySqlSslMode::VerifyIdentity));
        } else {
            let refusal = remote.unwrap_err();
            assert!(refusal.contains("tls-rustls") && refusal.contains("sslmode=disable"), "{refusal}");
        }
        assert!(mode("mysql://localhost/db?sslmode=preferred").unwrap_err().contains("verify-full, verify-ca"));
    }

    #[test]
    fn a_refusal_names_the_part_and_no_secret() {
        for (text, part) in [
            ("postgres://u:canary@h/db", "scheme"),
            ("mysql://u:canary@h1,h2/db", "several hosts"),
            ("mysql://u:canary@localhost", "no database"),
            ("mysql://u:canary@localhost/db?socket=/x", "socket"),
            ("mysql://u:canary@localhost/db?charset=x", "\"charset\""),
        ] {
            let refusal = target(text).map(drop).unwrap_err();
            assert!(refusal.contains(part) && !refusal.contains("canary"), "{refusal}");
        }
    }
}
