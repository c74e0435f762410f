//! The address of a store, and the secrets in it.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::Invalid;

/// The URL of a store, parsed, which never shows its password.
///
/// `scheme://[user[:password]@]host[:port][,host[:port]..][/path][?key=value[&..]]`, or `scheme:path` without hosts.
/// Several hosts are separated by commas. User, password, path and query are percent-decoded.
///
/// `Display` and `Debug` are made of scheme, hosts and path alone: what is not on that list, credentials and the query
/// (which may carry some), is left out. [`expose`](Self::expose) gives the whole text to a client.
///
/// ```
/// use tenure_core::StoreUrl;
///
/// let url: StoreUrl = "etcd://root:s3cret@h1:2379,h2:2379/prefix?timeout=3s".parse()?;
/// assert_eq!(url.to_string(), "etcd://h1:2379,h2:2379/prefix");
/// assert_eq!(url.password(), Some("s3cret"));
/// assert_eq!(url.query("timeout"), Some("3s"));
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    text: String,
    scheme: String,
    username: Option<String>,
    password: Option<String>,
    hosts: Vec<StoreHost>,
    path: String,
    query: Vec<(String, String)>,
}

/// One host of a [`StoreUrl`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StoreHost {
    /// Name or address; an IPv6 address stands without brackets.
    pub host: String,
    /// The port, where the URL names one.
    pub port: Option<u16>,
}

impl StoreUrl {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] says which part is wrong, and never repeats the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |what: &str| Invalid::new(format!("store url {what}; expected {SHAPE}"));
        let (scheme, rest) = text.split_once(':').ok_or_else(|| refuse("has no scheme"))?;
        if !is_scheme(scheme) {
            return Err(refuse("has no valid scheme"));
        }
        if text.chars().any(char::is_control) {
            return Err(refuse("holds a control character"));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.strip_prefix("//") {
            None => ("", rest),
            Some(rest) => rest.find('/').map_or((rest, ""), |at| rest.split_at(at)),
        };
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let (username, password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            None => (None, None),
            Some((name, password)) => (some_text(decode(name)?), some_text(decode(password)?)),
        };
        Ok(Self {
            text: text.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            username,
            password,
            hosts: parse_hosts(hosts)?,
            path: decode(path)?,
            query: parse_query(query)?,
        })
    }

    /// The scheme, in lower case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The user, decoded.
    pub fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The password, decoded. Keep it out of errors and logs.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The hosts, in the order given; none for `scheme:path` and `scheme:///path`.
    pub fn hosts(&self) -> &[StoreHost] {
        &self.hosts
    }

    /// The path, decoded, with its leading slash where there is one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the query parameter `key`, decoded; the last one if it stands several times.
    pub fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The query's parameters, decoded, in the order given.
    pub fn query_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Checks that the query has no parameter but `known` ones, so that a misspelt setting is not ignored.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the parameter and those that are known.
    pub fn check_query(&self, known: &[&str]) -> Result<(), Invalid> {
        match self.query.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => {
                Err(Invalid::new(format!("store url has the parameter {key:?}: {} takes none", self.scheme)))
            }
            Some((key, _)) => Err(Invalid::new(format!(
                "store url has the parameter {key:?}: {} takes {}",
                self.scheme,
                known.join(", ")
            ))),
        }
    }

    /// The whole text, secrets included, for the client that opens it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

const SHAPE: &str = "SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH][?KEY=VALUE] or SCHEME:PATH";

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn some_text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn decode(text: &str) -> Result<String, Invalid> {
    percent_decode_str(text)
        .decode_utf8()
        .map(Into::into)
        .map_err(|_| Invalid::new("store url holds a percent-encoded part that is not utf-8"))
}

fn parse_hosts(text: &str) -> Result<Vec<StoreHost>, Invalid> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_host).collect()
}

fn parse_host(text: &str) -> Result<StoreHost, Invalid> {
    let refuse =
        |what: &str| Invalid::new(format!("store url {what}; expected HOST or HOST:PORT, separated by commas"));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| refuse("has an unclosed bracket in a host"))?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(refuse("has text between a bracketed host and its port")),
            }
        }
        None => text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(refuse("has an empty host"));
    }
    if text.starts_with('[') == host.contains(':') {
        let port = port
            .map(|port| {
                port.parse().ok().filter(|&port| port > 0).ok_or_else(|| refuse("has a port that is not 1 to 65535"))
            })
            .transpose()?;
        return Ok(StoreHost { host: decode(host)?, port });
    }
    Err(refuse("has an ipv6 address without brackets"))
}

fn parse_query(text: &str) -> Result<Vec<(String, String)>, Invalid> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key)?, decode(value)?))
        })
        .collect()
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        if self.text[self.scheme.len() + 1..].starts_with("//") {
            f.write_str("//")?;
        }
        for (n, StoreHost { host, port }) in self.hosts.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            if host.contains(':') {
                write!(f, "{comma}[{host}]")?;
            } else {
                write!(f, "{comma}{host}")?;
            }
            if let Some(port) = port {
                write!(f, ":{port}")?;
            }
        }
        f.write_str(&self.path)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl FromStr for StoreUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_and_decoded() {
        let url = StoreUrl::parse("Redis://us%65r:p%40ss:w@[::1]:6379,b/x%20y?a=1&b=%26").unwrap();
        assert_eq!((url.scheme(), url.username(), url.password()), ("redis", Some("user"), Some("p@ss:w")));
        assert_eq!(url.hosts().len(), 2);
        assert_eq!((url.hosts()[0].host.as_str(), url.hosts()[0].port), ("::1", Some(6379)));
        assert_eq!((url.hosts()[1].host.as_str(), url.hosts()[1].port), ("b", None));
        assert_eq!((url.path(), url.query("b")), ("/x y", Some("&")));
        assert_eq!(url.to_string(), "redis://[::1]:6379,b/x y");
    }

    #[test]
    fn urls_without_hosts_keep_their_path() {
        assert_eq!(StoreUrl::parse("memory:").unwrap().path(), "");
        assert_eq!(StoreUrl::parse("sqlite:///var/x.db").unwrap().path(), "/var/x.db");
        assert_eq!(StoreUrl::parse("sqlite:x.db").unwrap().path(), "x.db");
        assert_eq!(StoreUrl::parse("sqlite:///var/x.db").unwrap().to_string(), "sqlite:///var/x.db");
    }

    #[test]
    fn a_secret_shows_up_nowhere() {
        for text in [
            "redis://user:canary@h/0",
            "redis://user:can%61ry@h/0",
            "redis://canary@h",
            "postgres://h/db?password=canary",
            "postgres://h/db?password=can%61ry",
        ] {
            let url = StoreUrl::parse(text).unwrap();
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("canary") && !shown.contains("can%61ry"), "{shown}");
        }
        for text in [
            "canary",
            "://canary@h",
            "redis://u:canary@h:x",
            "redis://u:canary@",
            "redis://u:canary@[::1",
            "r://u:canary@%ff",
        ] {
            if let Err(error) = StoreUrl::parse(text) {
                assert!(!error.to_string().contains("canary"), "{error}");
            }
        }
    }

    #[test]
    fn each_refusal_says_what_is_wrong_and_what_is_expected() {
        let refusal = |text| StoreUrl::parse(text).unwrap_err().to_string();
        assert!(refusal("localhost").starts_with("store url has no scheme; expected SCHEME://"));
        assert!(refusal("re dis://h").starts_with("store url has no valid scheme"));
        assert!(refusal("redis://h:99999").starts_with("store url has a port that is not 1 to 65535"));
        assert!(refusal("redis://a,,b").starts_with("store url has an empty host"));
        assert!(refusal("redis://::1").starts_with("store url has an ipv6 address without brackets"));
        assert!(refusal("redis://h\n").starts_with("store url holds a control character"));
        let url = StoreUrl::parse("redis://h?tuemout=3").unwrap();
        assert_eq!(
            url.check_query(&["timeout"]).unwrap_err().to_string(),
            "store url has the parameter \"tuemout\": redis takes timeout"
        );
    }
}
