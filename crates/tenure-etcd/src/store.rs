//! The store: the contract's calls, each within a bound.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp};
use futures::stream::BoxStream;
use tenure_core::{
    Acquired, Bid, FencingToken, Grant, Invalid, LeaseClock, LeaseName, LeaseRecord, LeaseStore, Operation, Released,
    Renewed, StoreDescriptor, StoreError, StoreUrl, TokenDurability, WakeUp, WakeUpKind,
};

use crate::bound::bounded;
use crate::config::EtcdConfig;
use crate::endpoints::Endpoints;
use crate::error::{Effect, Failure, STORE};
use crate::etcd::{Etcd, READ_PATIENCE};
use crate::key::Keyspace;
use crate::record::Record;
use crate::spare::Spares;
use crate::watch::Watches;
use crate::{batch, bid, list, probe, term};

/// How much later than its ttl a lease may be free: etcd looks for leases that ran out every 500 ms, and 100 ms are
/// left for the commit of the removal to a slow disk.
const LATENESS: Duration = Duration::from_millis(600);

/// Keeps leases in etcd.
///
/// Clones share connections, watch and everything else. See the [crate's documentation](crate) for how it works and
/// what it promises.
#[derive(Clone)]
pub struct EtcdStore {
    etcd: Arc<Etcd>,
    spares: Arc<Spares>,
    watches: Arc<Watches>,
}

impl EtcdStore {
    /// Connects to the cluster that `url` names, and learns its version, its size and its smallest ttl.
    ///
    /// `etcd://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]..][/PREFIX]`; the prefix is `/tenure` by default. `etcds://` uses
    /// TLS (feature `tls-rustls`), with the parameters `ca`, `cert` and `key`: paths of PEM files. Without `ca` the
    /// system's roots are trusted. Each member has a connection of its own, so members that are down cost no calls.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for a URL of another shape, [`Unavailable`] when no member answers,
    /// [`Denied`] for a wrong password, a certificate that is refused or a role without rights on the
    /// prefix, [`Unsupported`] for a server older than 3.4 or without the TLS feature. None of them
    /// shows the user or the password.
    ///
    /// [`Invalid`]: tenure_core::StoreErrorKind::Invalid
    /// [`Unavailable`]: tenure_core::StoreErrorKind::Unavailable
    /// [`Denied`]: tenure_core::StoreErrorKind::Denied
    /// [`Unsupported`]: tenure_core::StoreErrorKind::Unsupported
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves nothing behind but an empty etcd lease of a second or two.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let url = "etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/billing".parse()?;
    /// let store = tenure_etcd::EtcdStore::connect(&url).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let invalid = |invalid| Failure::from(invalid).into_error(Operation::Connect, None);
        let config = Arc::new(EtcdConfig::from_url(url).map_err(invalid)?);
        let store = Self::of(Etcd::new(Endpoints::of_config(&config), config.keys.clone()));
        let probe = async { probe::look(&store.etcd).await.map_err(Failure::of_first_request) };
        bounded(Operation::Connect, None, Effect::None, probe).await?;
        Ok(store)
    }

    /// Uses a client that the program has already, with the prefix `/tenure`.
    ///
    /// The client's own time-outs, login and TLS apply. Set `with_connect_timeout`, `with_timeout`, `with_keep_alive`
    /// (6 s or more: etcd closes connections that are pinged more often than every 5 s), `with_require_leader` and, where
    /// there is a user, `with_auto_token_refresh`. Every call is bounded here all the same. A client that was given
    /// several members chooses one by chance for each request; a request that a dead member refuses is sent again.
    ///
    /// The smallest ttl of the cluster is taken as 1 s, and a token as only as durable as one server, until
    /// [`prepare`](LeaseStore::prepare) has asked.
    pub fn new(client: Client) -> Self {
        Self::of(Etcd::new(Endpoints::of_client(client), Keyspace::standard()))
    }

    /// Puts the leases under `prefix` instead.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is longer than 200 bytes or holds a control character.
    pub fn with_prefix(self, prefix: &str) -> Result<Self, Invalid> {
        let keys = Keyspace::new(prefix)?;
        Ok(Self::of(self.etcd.under(keys)))
    }

    /// The comparison that holds as long as the term `token` of `name` does: put it into a transaction of your own, and
    /// what the transaction writes is refused once the lease has passed on.
    ///
    /// This is the strictest of all fences, since lease and data lie in one store. It works within one cluster only;
    /// elsewhere the resource itself has to remember the largest token.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use tenure_etcd::etcd_client::{Client, Txn, TxnOp};
    /// # use tenure_core::Grant;
    /// # async fn example(store: tenure_etcd::EtcdStore, mut client: Client, grant: Grant) -> Result<(), Box<dyn std::error::Error>> {
    /// let fence = store.fence(&grant.name, grant.token);
    /// let txn = Txn::new().when([fence]).and_then([TxnOp::put("/billing/cursor", "42", None)]);
    /// if !client.txn(txn).await?.succeeded() {
    ///     // The lease passed on: nothing was written.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fence(&self, name: &LeaseName, token: FencingToken) -> Compare {
        // No revision is larger than i64::MAX, so a token that is can be no term's.
        let revision = i64::try_from(token.value()).unwrap_or(i64::MAX);
        Compare::create_revision(self.etcd.keys.key_of(name), CompareOp::Equal, revision)
    }

    /// The key under which the lease `name` lies, for tools and for other programs that look at it.
    pub fn key_of(&self, name: &LeaseName) -> String {
        self.etcd.keys.key_of(name)
    }

    fn of(etcd: Etcd) -> Self {
        let etcd = Arc::new(etcd);
        Self { watches: Watches::new(etcd.clone()), spares: Arc::default(), etcd }
    }
}

#[async_trait]
impl LeaseStore for EtcdStore {
    fn describe(&self) -> StoreDescriptor {
        const SECOND: Duration = Duration::from_secs(1);
        let about = &self.etcd.about;
        let most = StoreDescriptor::new(STORE).max_ttl;
        let token = match about.members.get() {
            Some(3..) => TokenDurability::Durable,
            _ => TokenDurability::SingleNode,
        };
        StoreDescriptor::new(STORE)
            .with_version(about.version.get().cloned())
            .with_ttl_limits(about.smallest_ttl(), most, SECOND)
            .with_lateness(LATENESS)
            .with_token(token)
            .with_wake_up(WakeUpKind::Push)
            .with_clock(LeaseClock::ServerMonotonic)
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let name = Some(&bid.name);
        self.describe()
            .check_ttl(bid.ttl)
            .map_err(|invalid| Failure::from(invalid).into_error(Operation::Acquire, name))?;
        bounded(Operation::Acquire, name, Effect::Write, bid::place(&self.etcd, &self.spares, bid)).await
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        bounded(Operation::Renew, Some(&grant.name), Effect::Write, term::renew(&self.etcd, grant)).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        bounded(Operation::Release, Some(&grant.name), Effect::Write, term::release(&self.etcd, grant)).await
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let read = async {
            let Some(found) = self.etcd.get(&self.etcd.keys.key_of(name), READ_PATIENCE).await? else {
                return Ok(None);
            };
            let record = Record::read(&found).map_err(|why| Failure::malformed(found.key(), &why))?;
            list::with_time_left(&self.etcd, name, &record).await
        };
        bounded(Operation::Read, Some(name), Effect::None, read).await
    }

    /// Asks the cluster for its version, its size and its smallest ttl; there is nothing to set up.
    async fn prepare(&self) -> Result<(), StoreError> {
        bounded(Operation::Prepare, None, Effect::None, probe::look(&self.etcd)).await
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        list::all(self.etcd.clone())
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        batch::renew(&self.etcd, grants).await
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        self.watches.of(name)
    }
}

/// Shows no login.
impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore")
            .field("members", &self.etcd.endpoints.len())
            .field("prefix", &self.etcd.keys.prefix())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
