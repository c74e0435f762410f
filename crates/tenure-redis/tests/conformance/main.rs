//! The conformance suite on one server, behind Sentinel and on a cluster.

#![allow(clippy::unwrap_used)]

use tenure_conformance::Unable;
use tokio::process::Command;

mod operator;
mod single;
mod topologies;

#[allow(dead_code, reason = "the tests of the server use the other part")]
#[path = "../server/proxy.rs"]
mod proxy;

/// The value of `variable`, which `integration/test.sh` sets. A suite that lacks its server fails.
fn environment(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run integration/test.sh"))
}

/// Does to a server what `integration/servers/servers.sh` can.
async fn fault(verb: &str, server: &str) -> Result<(), Unable> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/servers/servers.sh");
    let folder = environment("TENURE_TEST_SERVERS_DIR");
    let done = Command::new("bash").args([script, verb, &folder, server]).output().await.map_err(Unable::failed)?;
    if done.status.success() {
        return Ok(());
    }
    Err(Unable::failed(format!("servers.sh {verb} {server}: {}", String::from_utf8_lossy(&done.stderr))))
}
