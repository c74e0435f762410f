//! The conformance suite's faults, on the wire of a client.

use std::sync::Arc;

use tenure_conformance::{FaultInjector, FaultsInFront, Unable, async_trait};
use tenure_core::{Fault, LeaseStore};

use crate::proxy::{Proxy, Wire};

pub(crate) struct OnTheWire {
    /// Repeats whole calls, which a proxy of bytes cannot.
    front: FaultsInFront,
    proxy: Proxy,
}

impl OnTheWire {
    /// Of a client that reaches its server through `proxy`.
    pub(crate) fn of(store: Arc<dyn LeaseStore>, proxy: Proxy) -> Self {
        Self { front: FaultsInFront::of(store), proxy }
    }
}

#[async_trait]
impl FaultInjector for OnTheWire {
    fn store(&self) -> Arc<dyn LeaseStore> {
        self.front.store()
    }

    async fn cause(&self, fault: Fault) -> Result<(), Unable> {
        let (wire, in_front) = match fault {
            Fault::None => (Wire::default(), Fault::None),
            Fault::LoseRequest => (Wire { requests_lost: true, ..Wire::default() }, Fault::None),
            Fault::LoseReply => (Wire { replies_lost: true, ..Wire::default() }, Fault::None),
            Fault::DelayRequest(request_delay) => (Wire { request_delay, ..Wire::default() }, Fault::None),
            Fault::DelayReply(reply_delay) => (Wire { reply_delay, ..Wire::default() }, Fault::None),
            Fault::Repeat(_) => (Wire::default(), fault),
            other => return Err(Unable::lacks(format!("a proxy on the wire cannot cause {other:?}"))),
        };
        self.proxy.set(wire);
        self.front.cause(in_front).await
    }
}

/// Calls `servers.sh VERB DIR NAME`.
pub(crate) async fn server_fault(verb: &str, name: &str) -> Result<(), Unable> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/servers/servers.sh");
    let directory = std::env::var("TENURE_TEST_SERVERS_DIR")
        .map_err(|_| Unable::failed("TENURE_TEST_SERVERS_DIR is not set: run integration/test.sh"))?;
    let status = tokio::process::Command::new("bash").arg(script).args([verb, &directory, name]).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(Unable::failed(format!("servers.sh {verb} {name}: {other:?}"))),
    }
}
