//! Leases as others see them: with the time they have left.

use std::sync::Arc;

use etcd_client::KeyValue;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tenure_core::{LeaseName, LeaseRecord, Operation, StoreError};

use crate::bound::bounded;
use crate::error::{Effect, Failure};
use crate::etcd::{Etcd, READ_PATIENCE};
use crate::key::Place;
use crate::record::Record;

/// Keys per request: at 2 KiB each, a quarter of what the client takes in one answer (4 MiB).
const PAGE: i64 = 512;

/// Requests for the time left that are under way at once.
const ABREAST: usize = 16;

/// All leases under the prefix that somebody holds.
pub(crate) fn all(etcd: Arc<Etcd>) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
    let first = Some(etcd.keys.prefix().as_bytes().to_vec());
    let pages = stream::try_unfold((etcd.clone(), first), |(etcd, from)| async move {
        let Some(from) = from else { return Ok(None) };
        let mut page = bounded(Operation::List, None, Effect::None, etcd.page(from, PAGE)).await?;
        let more = page.more();
        let keys = page.take_kvs();
        // The successor of a key is the key and a zero byte.
        let next = keys.last().filter(|_| more).map(|last| [last.key(), &[0]].concat());
        Ok(Some((keys, (etcd, next))))
    });
    pages
        .map_ok(|keys| stream::iter(keys.into_iter().map(Ok)))
        .try_flatten()
        .map(move |key| {
            let etcd = etcd.clone();
            async move { shown(&etcd, key?).await }
        })
        .buffer_unordered(ABREAST)
        .filter_map(|shown| async move { shown.transpose() })
        .boxed()
}

async fn shown(etcd: &Etcd, kv: KeyValue) -> Result<Option<LeaseRecord>, StoreError> {
    let malformed = |why: &str| Failure::malformed(kv.key(), why);
    let name = match etcd.keys.place_of(kv.key()) {
        Place::Lease(name) => name,
        Place::Foreign => return Err(malformed("its key names none").into_error(Operation::List, None)),
        Place::Elsewhere => return Ok(None),
    };
    let record = Record::read(&kv).map_err(|why| malformed(&why).into_error(Operation::List, Some(&name)))?;
    let looked = with_time_left(etcd, &name, &record);
    bounded(Operation::List, Some(&name), Effect::None, looked).await
}

/// The record with the time that it has left; `None` when it was gone before that could be asked.
pub(crate) async fn with_time_left(
    etcd: &Etcd,
    name: &LeaseName,
    record: &Record,
) -> Result<Option<LeaseRecord>, Failure> {
    if let Some(remaining) = etcd.remaining(record.bound_to, record.ttl).await? {
        return Ok(Some(record.shown(name, remaining)));
    }
    // The etcd lease is unknown where it was asked for: the record is gone with it, or that member lags behind.
    let now = etcd.get(&etcd.keys.key_of(name), READ_PATIENCE).await?;
    let unchanged = now.is_some_and(|now| now.mod_revision() == record.mod_revision);
    Ok(unchanged.then(|| record.shown(name, record.ttl)))
}
