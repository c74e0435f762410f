//! The requests that this store is made of, one function each: no decision is taken here.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, GetResponse, KeyValue, LeaseKeepAliveStream, LeaseKeeper,
    PutOptions, ResponseHeader, Txn, TxnOp, TxnOpResponse, TxnResponse,
};
use futures::future::try_join_all;
use tenure_core::StoreErrorKind;

use crate::endpoints::Endpoints;
use crate::error::{Effect, Failure, is_lease_gone, is_login_stale};
use crate::key::Keyspace;

/// Time after which a request without a ttl of its own goes to another member too.
pub(crate) const READ_PATIENCE: Duration = Duration::from_millis(300);

/// Reads in one transaction; etcd refuses more by default (`--max-txn-ops`).
const MOST_READS: usize = 128;

/// The cluster, and what it told about itself.
pub(crate) struct Etcd {
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) keys: Keyspace,
    pub(crate) about: Arc<About>,
    /// The newest revision that an answer named; 0 before the first.
    revision: AtomicI64,
}

/// What the cluster told about itself, as far as it was asked.
#[derive(Default)]
pub(crate) struct About {
    pub(crate) version: OnceLock<String>,
    pub(crate) members: OnceLock<usize>,
    /// In seconds; 0 until a grant was longer than asked.
    smallest_ttl: AtomicU64,
}

impl About {
    /// The shortest ttl that the cluster grants, as far as it is known: it raises shorter ones.
    pub(crate) fn smallest_ttl(&self) -> Duration {
        Duration::from_secs(self.smallest_ttl.load(Ordering::Relaxed).max(1))
    }
}

/// An etcd lease, and how long it lasts from its grant or its last keep-alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EtcdLease {
    pub(crate) id: i64,
    pub(crate) ttl: Duration,
}

/// When a key may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing lies there.
    Free,
    /// It was not changed since this revision.
    Unchanged(i64),
    /// It was made at this revision, and is bound to this etcd lease.
    Term { create_revision: i64, lease: i64 },
}

impl Condition {
    fn compares(self, key: &str) -> Vec<Compare> {
        match self {
            Self::Free => vec![Compare::create_revision(key, CompareOp::Equal, 0)],
            Self::Unchanged(revision) => vec![Compare::mod_revision(key, CompareOp::Equal, revision)],
            Self::Term { create_revision, lease } => vec![
                Compare::create_revision(key, CompareOp::Equal, create_revision),
                Compare::lease(key, CompareOp::Equal, lease),
            ],
        }
    }
}

/// What became of a conditional write.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// The condition held, and the write was applied at this revision.
    Applied(i64),
    /// It did not, and this is what lies under the key.
    Refused(Option<KeyValue>),
}

impl Etcd {
    pub(crate) fn new(endpoints: Endpoints, keys: Keyspace) -> Self {
        Self { endpoints: Arc::new(endpoints), keys, about: Arc::default(), revision: AtomicI64::new(0) }
    }

    /// The same cluster, with other keys.
    pub(crate) fn under(&self, keys: Keyspace) -> Self {
        let (endpoints, about) = (self.endpoints.clone(), self.about.clone());
        Self { endpoints, keys, about, revision: AtomicI64::new(self.revision()) }
    }

    /// Time after which a request about a lease of `ttl` goes to another member too: all members are asked within the
    /// fifth of the ttl that a caller waits by default. At least 50 ms, since a commit to a slow disk takes so long; at
    /// most 1 s.
    pub(crate) fn patience(&self, ttl: Duration) -> Duration {
        let members = u32::try_from(self.endpoints.len()).unwrap_or(u32::MAX);
        (ttl / 5 / members.max(2)).clamp(Duration::from_millis(50), Duration::from_secs(1))
    }

    /// The newest revision that any answer named; 0 before the first.
    pub(crate) fn revision(&self) -> i64 {
        self.revision.load(Ordering::Relaxed)
    }

    fn note(&self, header: Option<&ResponseHeader>) -> i64 {
        let revision = header.map_or(0, ResponseHeader::revision);
        self.revision.fetch_max(revision, Ordering::Relaxed);
        revision
    }

    /// Makes an etcd lease of `ttl`, or longer if the cluster raises it.
    pub(crate) async fn grant(&self, ttl: Duration) -> Result<EtcdLease, Failure> {
        let asked = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let request = |client: Client| async move { client.lease_client().grant(asked, None).await };
        let granted = self.endpoints.call(Effect::None, self.patience(ttl), request).await?;
        let seconds = granted.ttl().unsigned_abs();
        if granted.ttl() > asked {
            self.about.smallest_ttl.fetch_max(seconds, Ordering::Relaxed);
        }
        Ok(EtcdLease { id: granted.id(), ttl: Duration::from_secs(seconds) })
    }

    /// Ends an etcd lease, and with it every key bound to it; one that is gone is fine.
    pub(crate) async fn revoke(&self, lease: i64) -> Result<(), Failure> {
        let request = |client: Client| async move {
            match client.lease_client().revoke(lease).await {
                Err(error) if !is_lease_gone(&error) => Err(error),
                _ => Ok(()),
            }
        };
        self.endpoints.call(Effect::Write, READ_PATIENCE, request).await
    }

    /// Restarts the time of an etcd lease; whether there was one.
    pub(crate) async fn keep_alive(&self, lease: EtcdLease) -> Result<bool, Failure> {
        let request = |client: Client| async move { keep_alive(&client, lease.id).await };
        self.endpoints.call(Effect::None, self.patience(lease.ttl), request).await
    }

    /// Puts `value` under `key`, bound to `lease`, if `condition` holds; `None` when the etcd lease is gone.
    pub(crate) async fn put_if(
        &self,
        key: &str,
        condition: Condition,
        value: &[u8],
        lease: EtcdLease,
    ) -> Result<Option<Written>, Failure> {
        let put = TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease.id)));
        self.write_if(key, condition, put, self.patience(lease.ttl)).await
    }

    /// Deletes `key` if `condition` holds.
    pub(crate) async fn delete_if(
        &self,
        key: &str,
        condition: Condition,
        ttl: Duration,
    ) -> Result<Option<Written>, Failure> {
        self.write_if(key, condition, TxnOp::delete(key, None), self.patience(ttl)).await
    }

    async fn write_if(
        &self,
        key: &str,
        condition: Condition,
        write: TxnOp,
        patience: Duration,
    ) -> Result<Option<Written>, Failure> {
        let txn = Txn::new().when(condition.compares(key)).and_then([write]).or_else([TxnOp::get(key, None)]);
        let request = |client: Client| {
            let txn = txn.clone();
            async move {
                match client.kv_client().txn(txn).await {
                    Err(error) if is_lease_gone(&error) => Ok(None),
                    answer => answer.map(Some),
                }
            }
        };
        let Some(answer) = self.endpoints.call(Effect::Write, patience, request).await? else { return Ok(None) };
        let revision = self.note(answer.header());
        if answer.succeeded() {
            return Ok(Some(Written::Applied(revision)));
        }
        match answer.op_responses().pop() {
            Some(TxnOpResponse::Get(mut found)) => Ok(Some(Written::Refused(found.take_kvs().pop()))),
            _ => Err(Failure::new(StoreErrorKind::Unavailable, "the server answered a comparison without the record")),
        }
    }

    /// Reads `key`; linearizable.
    pub(crate) async fn get(&self, key: &str, patience: Duration) -> Result<Option<KeyValue>, Failure> {
        let request = |client: Client| async move { get(&client, key).await };
        let mut found = self.endpoints.call(Effect::None, patience, request).await?;
        self.note(found.header());
        Ok(found.take_kvs().pop())
    }

    /// Restarts the time of an etcd lease and reads `key`, both sent at once: whether there was the etcd lease, and what
    /// lies there. `wrong` says whether a record ends the matter whatever became of the keep-alive.
    pub(crate) async fn keep_alive_and_get(
        &self,
        lease: EtcdLease,
        key: &str,
        wrong: impl Fn(Option<&KeyValue>) -> bool + Sync,
    ) -> Result<(bool, Option<KeyValue>), Failure> {
        let wrong = &wrong;
        let request = |client: Client| async move {
            let (alive, found) = futures::join!(keep_alive(&client, lease.id), get(&client, key));
            let found = found?;
            match alive {
                Err(_) if wrong(found.kvs().first()) => Ok((false, found)),
                alive => Ok((alive?, found)),
            }
        };
        let (alive, mut found) = self.endpoints.call(Effect::Write, self.patience(lease.ttl), request).await?;
        self.note(found.header());
        Ok((alive, found.take_kvs().pop()))
    }

    /// Restarts the time of many etcd leases down one stream and reads as many keys beside it: which etcd leases there
    /// were, and what lies under each key.
    pub(crate) async fn keep_alive_and_get_many(
        &self,
        leases: &[i64],
        keys: &[String],
        shortest: Duration,
    ) -> Result<(HashSet<i64>, Vec<Option<KeyValue>>), Failure> {
        let request = |client: Client| async move {
            let reads = try_join_all(keys.chunks(MOST_READS).map(|keys| get_many(&client, keys)));
            futures::try_join!(keep_alive_many(&client, leases), reads)
        };
        let (alive, answers) = self.endpoints.call(Effect::Write, self.patience(shortest), request).await?;
        let mut found = Vec::with_capacity(keys.len());
        for answer in answers {
            self.note(answer.header());
            found.extend(answer.op_responses().into_iter().map(|read| match read {
                TxnOpResponse::Get(mut read) => read.take_kvs().pop(),
                _ => None,
            }));
        }
        Ok((alive, found))
    }

    /// The keys after `from` that begin with the prefix, at most `limit`.
    pub(crate) async fn page(&self, from: Vec<u8>, limit: i64) -> Result<GetResponse, Failure> {
        let end = end_of_prefix(self.keys.prefix());
        let request = |client: Client| {
            let options = GetOptions::new().with_range(end.clone()).with_limit(limit);
            let from = from.clone();
            async move { client.kv_client().get(from, Some(options)).await }
        };
        let found = self.endpoints.call(Effect::None, READ_PATIENCE, request).await?;
        self.note(found.header());
        Ok(found)
    }

    /// Time until an etcd lease runs out; `None` when it is gone.
    ///
    /// The server cuts off fractions of a second, so the time is up to one second too long, and never longer than `ttl`.
    pub(crate) async fn remaining(&self, lease: i64, ttl: Duration) -> Result<Option<Duration>, Failure> {
        let request = |client: Client| async move {
            match client.lease_client().time_to_live(lease, None).await {
                Err(error) if is_lease_gone(&error) => Ok(-1),
                answer => answer.map(|answer| answer.ttl()),
            }
        };
        let seconds = self.endpoints.call(Effect::None, READ_PATIENCE, request).await?;
        Ok(u64::try_from(seconds).ok().map(|seconds| Duration::from_secs(seconds + 1).min(ttl)))
    }
}

/// One keep-alive, on a stream of its own: whether there was the etcd lease.
async fn keep_alive(client: &Client, lease: i64) -> Result<bool, Error> {
    Ok(open_keep_alives(client, lease).await?.is_some())
}

/// Opens a stream of keep-alives with one for `lease`; `None` when there is no such etcd lease. The client takes the
/// first reply itself, and tells of a ttl of 0 as an error.
async fn open_keep_alives(client: &Client, lease: i64) -> Result<Option<(LeaseKeeper, LeaseKeepAliveStream)>, Error> {
    let mut login_is_fresh = false;
    loop {
        match client.lease_client().keep_alive(lease).await {
            Ok(opened) => return Ok(Some(opened)),
            Err(error) if is_lease_gone(&error) => return Ok(None),
            // The client renews its login by itself for single requests, but not when a stream is refused.
            Err(error) if is_login_stale(&error) && !login_is_fresh => client.refresh_token().await?,
            Err(error) => return Err(error),
        }
        login_is_fresh = true;
    }
}

/// One keep-alive for each of `leases`, all down one stream: those that there are. What the sender says proves nothing;
/// a reply with a ttl above 0 does.
async fn keep_alive_many(client: &Client, leases: &[i64]) -> Result<HashSet<i64>, Error> {
    let mut alive = HashSet::new();
    let mut rest = leases.iter();
    let (mut keeper, mut replies) = loop {
        let Some(&first) = rest.next() else { return Ok(alive) };
        if let Some(opened) = open_keep_alives(client, first).await? {
            alive.insert(first);
            break opened;
        }
    };
    let rest = rest.as_slice();
    let send = async {
        for &lease in rest {
            keeper.id = lease;
            keeper.keep_alive().await?;
        }
        Ok::<(), Error>(())
    };
    let receive = async {
        for _ in rest {
            match replies.message().await? {
                Some(reply) if reply.ttl() > 0 => alive.insert(reply.id()),
                Some(_) => false,
                None => return Err(Error::LeaseKeepAliveError("the server ended the stream".into())),
            };
        }
        Ok(())
    };
    futures::try_join!(send, receive)?;
    Ok(alive)
}

/// Reads many keys from one snapshot, in order.
async fn get_many(client: &Client, keys: &[String]) -> Result<TxnResponse, Error> {
    let reads: Vec<TxnOp> = keys.iter().map(|key| TxnOp::get(key.as_str(), None)).collect();
    client.kv_client().txn(Txn::new().and_then(reads)).await
}

async fn get(client: &Client, key: &str) -> Result<GetResponse, Error> {
    client.kv_client().get(key, None).await
}

/// The first key after all that begin with `prefix`, which ends in a slash: the slash's successor instead.
pub(crate) fn end_of_prefix(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
