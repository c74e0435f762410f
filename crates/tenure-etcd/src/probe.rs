//! What a store asks its cluster before it is used.

use std::time::Duration;

use etcd_client::Client;
use tenure_core::StoreErrorKind;

use crate::error::{Effect, Failure};
use crate::etcd::{Etcd, READ_PATIENCE};

/// The first version whose watches can be asked for progress, and whose leases expire from a heap.
const OLDEST: (u32, u32) = (3, 4);

/// Learns version, size and smallest ttl, and whether this login may read under the prefix.
pub(crate) async fn look(etcd: &Etcd) -> Result<(), Failure> {
    let readable = etcd.page(etcd.keys.prefix().into(), 1);
    let members = async { Ok(members(etcd).await.ok()) };
    let smallest_ttl = async {
        learn_smallest_ttl(etcd).await;
        Ok(())
    };
    // The first failure ends it: with no member in reach, each request waits for a connection of its own.
    let (version, _, members, ()) = futures::try_join!(version(etcd), readable, members, smallest_ttl)?;
    let parts: Option<(u32, u32)> = (|| {
        let mut parts = version.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    })();
    if parts.is_some_and(|parts| parts < OLDEST) {
        let detail = format!("the server is etcd {version}: 3.4 or newer is needed");
        return Err(Failure::new(StoreErrorKind::Unsupported, detail));
    }
    // Both stay as they were found first.
    let _ = etcd.about.version.set(version);
    let _ = members.map(|members| etcd.about.members.set(members));
    Ok(())
}

async fn version(etcd: &Etcd) -> Result<String, Failure> {
    let request = |client: Client| async move { client.maintenance_client().status().await };
    Ok(etcd.endpoints.call(Effect::None, READ_PATIENCE, request).await?.version().to_owned())
}

/// How many members vote.
async fn members(etcd: &Etcd) -> Result<usize, Failure> {
    let request = |client: Client| async move { client.cluster_client().member_list().await };
    let answer = etcd.endpoints.call(Effect::None, READ_PATIENCE, request).await?;
    Ok(answer.members().iter().filter(|member| !member.is_learner()).count())
}

/// Asks for an etcd lease of 1 s, which the cluster raises to the shortest that it grants: 1.5 election timeouts. A
/// program that only looks may lack the right; the smallest ttl stays unknown then.
async fn learn_smallest_ttl(etcd: &Etcd) {
    if let Ok(lease) = etcd.grant(Duration::from_secs(1)).await {
        // It runs out in a moment if this fails.
        let _ = etcd.revoke(lease.id).await;
    }
}
