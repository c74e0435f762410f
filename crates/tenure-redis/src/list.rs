//! All leases that somebody holds, by `SCAN`.

use std::collections::HashSet;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use redis::{Value, cmd};
use tenure_core::{LeaseRecord, LeaseStore, Operation, StoreError};

use crate::error::Call;
use crate::keys::{LEASE_PATTERN, name_of};
use crate::source::Node;
use crate::store::RedisStore;

/// Keys that the server looks at for one answer: under a millisecond of its time.
const SCAN_COUNT: usize = 1000;
/// Records read at once.
const READS: usize = 32;

const CALL: Call<'static> = Call { operation: Operation::List, lease: None, repeats: false };

/// Where the scan stands.
struct Scan {
    store: RedisStore,
    nodes: Vec<Node>,
    cursor: String,
    /// `SCAN` may name a key twice.
    named: HashSet<String>,
}

pub(crate) fn records(store: RedisStore) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
    let reader = store.clone();
    stream::once(Scan::begin(store))
        .map_ok(|scan| stream::try_unfold(scan, Scan::next))
        .try_flatten()
        .map_ok(|keys| stream::iter(keys.into_iter().map(Ok)))
        .try_flatten()
        .map_ok(move |key| read(reader.clone(), key))
        .try_buffered(READS)
        .try_filter_map(async |record| Ok(record))
        .boxed()
}

async fn read(store: RedisStore, key: String) -> Result<Option<LeaseRecord>, StoreError> {
    match name_of(&key) {
        None => Err(CALL.foreign(&key, "is none of tenure's")),
        Some(name) => store.read(&name).await,
    }
}

impl Scan {
    async fn begin(store: RedisStore) -> Result<Self, StoreError> {
        let nodes = if store.inner.link.is_cluster() { primaries(&store).await? } else { vec![Node::Any] };
        Ok(Self { store, nodes, cursor: "0".to_owned(), named: HashSet::new() })
    }

    /// The next keys; `None` after the last.
    async fn next(mut self) -> Result<Option<(Vec<String>, Self)>, StoreError> {
        let Some(node) = self.nodes.last() else { return Ok(None) };
        let mut scan = cmd("SCAN");
        scan.arg(&self.cursor).arg("MATCH").arg(LEASE_PATTERN).arg("COUNT").arg(SCAN_COUNT);
        let link = &self.store.inner.link;
        let answer = link.run_on(node, scan, link.deadline()).await.map_err(|failure| CALL.failed(failure))?;
        let (cursor, keys): (String, Vec<Vec<u8>>) =
            redis::from_redis_value(answer).map_err(|_| CALL.not_understood())?;
        if cursor == "0" {
            self.nodes.pop();
        }
        self.cursor = cursor;
        let keys = keys.into_iter().map(|key| String::from_utf8_lossy(&key).into_owned());
        let new = keys.filter(|key| self.named.insert(key.clone())).collect();
        Ok(Some((new, self)))
    }
}

/// The cluster's nodes that hold keys.
async fn primaries(store: &RedisStore) -> Result<Vec<Node>, StoreError> {
    let mut slots = cmd("CLUSTER");
    slots.arg("SLOTS");
    let link = &store.inner.link;
    let answer = link.run_on(&Node::Any, slots, link.deadline()).await.map_err(|failure| CALL.failed(failure))?;
    let Value::Array(ranges) = answer else { return Err(CALL.not_understood()) };
    let nodes: Option<HashSet<Node>> = ranges.into_iter().map(primary).collect();
    nodes.map(|nodes| nodes.into_iter().collect()).ok_or_else(|| CALL.not_understood())
}

/// The first node of a range is its primary: `[first slot, last slot, [host, port, ..], ..]`.
fn primary(range: Value) -> Option<Node> {
    let Value::Array(range) = range else { return None };
    let Some(Value::Array(node)) = range.into_iter().nth(2) else { return None };
    let mut node = node.into_iter();
    let host: String = redis::from_redis_value(node.next()?).ok()?;
    let port: u16 = redis::from_redis_value(node.next()?).ok()?;
    Some(Node::At(host, port))
}
