//! From a URL to a namespace of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tenure_core::{Invalid, StoreUrl};

use crate::error::Failure;

/// A fifth of the default ttl: what a candidate gives one call.
pub(crate) const CALL_BOUND: Duration = Duration::from_secs(3);

/// Where a store made from a URL finds its cluster. Read again whenever its credentials or certificates are refused.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The configuration's own default where the URL names none.
    pub(crate) namespace: Option<String>,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    pub(crate) timeout: Duration,
}

impl Target {
    pub(crate) fn of(url: &StoreUrl) -> Result<Self, Invalid> {
        let refuse = |what: &str| Err(Invalid::new(format!("store url {what}; expected {SHAPE}")));
        url.check_query(&["context", "kubeconfig", "timeout"])?;
        if url.username().is_some() || url.password().is_some() {
            return refuse("names a user: credentials come from the kubeconfig or the pod's service account");
        }
        if !matches!(url.path(), "" | "/") {
            return refuse("has a path");
        }
        let namespace = match url.hosts() {
            [] => None,
            [host] if host.port.is_none() => Some(host.host.clone()),
            [_] => return refuse("names a port: the server's address comes from the kubeconfig or the pod"),
            _ => return refuse("names several namespaces"),
        };
        if let Some(namespace) = &namespace
            && !is_namespace(namespace)
        {
            return refuse("names no possible namespace: lower-case letters, digits and inner hyphens, at most 63");
        }
        Ok(Self {
            namespace,
            kubeconfig: url.query("kubeconfig").map(PathBuf::from),
            context: url.query("context").map(str::to_owned),
            timeout: timeout(url)?,
        })
    }

    /// The cluster's address and credentials as they are now.
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path).map_err(Failure::of_kubeconfig)?;
                Config::from_custom_kubeconfig(file, &options).await.map_err(Failure::of_kubeconfig)?
            }
            None => match Config::from_kubeconfig(&options).await {
                Ok(config) => config,
                // No file, and none was asked for: a pod's service account.
                Err(error) if self.context.is_none() => {
                    Config::incluster().map_err(|_| Failure::of_kubeconfig(error))?
                }
                Err(error) => return Err(Failure::of_kubeconfig(error)),
            },
        };
        // The driver repeats what may be repeated; the client would do so up to fifteen times, writes too.
        config.default_retry = false;
        config.connect_timeout = Some(self.timeout);
        Ok(config)
    }
}

const SHAPE: &str = "kubernetes://[NAMESPACE][?context=NAME][&kubeconfig=FILE][&timeout=DURATION]";

/// A label of RFC 1123.
fn is_namespace(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn timeout(url: &StoreUrl) -> Result<Duration, Invalid> {
    let Some(text) = url.query("timeout") else { return Ok(CALL_BOUND) };
    match humantime::parse_duration(text) {
        Ok(timeout) if (Duration::from_millis(10)..=Duration::from_secs(600)).contains(&timeout) => Ok(timeout),
        _ => Err(Invalid::new(format!("timeout of {text:?} is not allowed: 10ms to 10m, such as 3s"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, String> {
        Target::of(&url.parse().unwrap()).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn a_url_names_a_namespace_and_how_to_find_its_cluster() {
        let target = target("kubernetes://jobs?context=prod&kubeconfig=/etc/kube%20config&timeout=1500ms").unwrap();
        assert_eq!(target.namespace.as_deref(), Some("jobs"));
        assert_eq!(target.kubeconfig.as_deref(), Some("/etc/kube config".as_ref()));
        assert_eq!((target.context.as_deref(), target.timeout), (Some("prod"), Duration::from_millis(1500)));
        assert_eq!(self::target("kubernetes:").unwrap().namespace, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_shape() {
        for (url, why) in [
            ("kubernetes://user:canary@jobs", "names a user"),
            ("kubernetes://jobs:6443", "names a port"),
            ("kubernetes://a,b", "names several namespaces"),
            ("kubernetes://Jobs", "names no possible namespace"),
            ("kubernetes://jobs/path", "has a path"),
            ("kubernetes://jobs?contxt=prod", "contxt"),
            ("kubernetes://jobs?timeout=0s", "10ms to 10m"),
        ] {
            let refusal = target(url).unwrap_err();
            assert!(refusal.contains(why) && !refusal.contains("canary"), "{url}: {refusal}");
        }
    }
}
