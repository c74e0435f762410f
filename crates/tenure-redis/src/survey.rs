//! What the server says of itself: its version, and whether what it acknowledged survives a crash.

use std::collections::HashMap;

use redis::{Value, cmd};
use tenure_core::TokenDurability;

use crate::error::Failure;
use crate::link::Link;
use crate::source::{Node, Source};

/// What one look at the server showed.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    pub(crate) version: Option<String>,
    /// Why tokens can fall back; `None` when one server's disk keeps them.
    pub(crate) weakness: Option<&'static str>,
}

impl Survey {
    /// Before anybody looked.
    pub(crate) const NONE: Self = Self { version: None, weakness: Some("the server's configuration was not read") };

    pub(crate) fn durability(&self) -> TokenDurability {
        match self.weakness {
            None => TokenDurability::SingleNode,
            Some(_) => TokenDurability::BestEffort,
        }
    }

    /// Asks the server; what it may not be asked counts as the worst.
    ///
    /// # Errors
    ///
    /// That of connecting, or of a server that answers nothing at all.
    pub(crate) async fn of(link: &Link) -> Result<Self, Failure> {
        let info = match link.run_on(&Node::Any, cmd("INFO"), link.deadline()).await {
            Ok(answer) => lines(answer),
            // No right, or no such command behind a proxy; but somebody is there.
            Err(Failure::Answered(error)) if error.code().is_some_and(is_about_the_command) => HashMap::new(),
            Err(failure) => return Err(failure),
        };
        let version = info.get("redis_version").cloned();
        let weakness = match link.source().map(|source| &**source) {
            Some(Source::Sentinel(_)) => Some("replication is asynchronous: a failover can lose what was acknowledged"),
            _ if link.is_cluster() => Some("replication is asynchronous: a failover can lose what was acknowledged"),
            _ => weakness(&info, settings(link).await?.as_ref()),
        };
        Ok(Self { version, weakness })
    }
}

/// The settings that durability hangs on; `None` when they may not be read.
async fn settings(link: &Link) -> Result<Option<HashMap<String, String>>, Failure> {
    let mut found = HashMap::new();
    for key in ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory-policy"] {
        let mut command = cmd("CONFIG");
        // One at a time: several in one command need Redis 7.
        command.arg("GET").arg(key);
        match link.run_on(&Node::Any, command, link.deadline()).await {
            Ok(answer) => found.extend(redis::from_redis_value::<HashMap<String, String>>(answer).unwrap_or_default()),
            Err(Failure::Answered(error)) if error.code().is_some_and(is_about_the_command) => return Ok(None),
            Err(failure) => return Err(failure),
        }
    }
    Ok(Some(found))
}

fn weakness(info: &HashMap<String, String>, settings: Option<&HashMap<String, String>>) -> Option<&'static str> {
    let is = |facts: &HashMap<String, String>, key, value: &str| facts.get(key).is_some_and(|found| found == value);
    let Some(settings) = settings else { return Some("the server's configuration may not be read (CONFIG GET)") };
    if !is(info, "role", "master") || !is(info, "cluster_enabled", "0") {
        Some("the server is not known to be a master of its own")
    } else if !is(info, "connected_slaves", "0") {
        Some("the server has replicas: a failover can lose what was acknowledged")
    } else if !is(settings, "appendonly", "yes") {
        Some("appendonly is off: a crash loses what was acknowledged")
    } else if !is(settings, "appendfsync", "always") {
        Some("appendfsync is not always: a crash can lose what was acknowledged")
    } else if !is(settings, "no-appendfsync-on-rewrite", "no") {
        Some("no-appendfsync-on-rewrite is on: a crash can lose what was acknowledged")
    } else if !is(settings, "maxmemory-policy", "noeviction") {
        Some("maxmemory-policy is not noeviction: leases can be evicted")
    } else {
        None
    }
}

fn is_about_the_command(code: &str) -> bool {
    matches!(code, "ERR" | "NOPERM")
}

fn lines(info: Value) -> HashMap<String, String> {
    let text = redis::from_redis_value::<String>(info).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> HashMap<String, String> {
        text.split_whitespace().filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
    }

    const MASTER: &str = "role=master cluster_enabled=0 connected_slaves=0";
    const DURABLE: &str = "appendonly=yes appendfsync=always no-appendfsync-on-rewrite=no maxmemory-policy=noeviction";

    #[test]
    fn only_a_lone_master_that_syncs_every_write_and_evicts_nothing_is_durable() {
        assert_eq!(weakness(&facts(MASTER), Some(&facts(DURABLE))), None);
        assert!(weakness(&facts(MASTER), None).is_some());
        for (good, bad) in [
            ("role=master", "role=slave"),
            ("cluster_enabled=0", "cluster_enabled=1"),
            ("connected_slaves=0", "connected_slaves=1"),
            ("appendonly=yes", "appendonly=no"),
            ("appendfsync=always", "appendfsync=everysec"),
            ("no-appendfsync-on-rewrite=no", "no-appendfsync-on-rewrite=yes"),
            ("maxmemory-policy=noeviction", "maxmemory-policy=volatile-lru"),
        ] {
            let (info, settings) = (MASTER.replace(good, bad), DURABLE.replace(good, bad));
            assert!(weakness(&facts(&info), Some(&facts(&settings))).is_some(), "{bad}");
        }
    }
}
