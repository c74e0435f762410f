//! The ways to a store: a URL, or a client that the service has already.

use std::sync::{Arc, Mutex};

use redis::aio::ConnectionManager;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::SentinelClient;
use redis::{Client, RedisError};
use tenure_core::{Invalid, Operation, StoreError, StoreErrorKind, StoreUrl};

use crate::config::{Address, Bounds};
use crate::error::{Call, Failure, STORE};
use crate::link::Link;
use crate::seen::Seen;
use crate::source::{Connection, Refusal, Source};
use crate::store::{Inner, RedisStore};
use crate::survey::Survey;
use crate::watch::Hub;

const CONNECT: Call<'static> = Call { operation: Operation::Connect, lease: None, repeats: false };

impl RedisStore {
    /// Connects to the server, sentinels or cluster of `url`, and asks the server how durable it is.
    ///
    /// # Errors
    ///
    /// `Invalid` when the URL is none of the forms in the crate's documentation, else what connecting met.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing on the server.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let invalid = |error: Invalid| CONNECT.error(StoreErrorKind::Invalid, error.to_string());
        let address = Address::parse(url).map_err(invalid)?;
        warn_of_plain_password(&address);
        let source = Source::open(&address).map_err(|refusal| match refusal {
            Refusal::Invalid(error) => invalid(error),
            Refusal::Client(error) => refused_settings(error),
        })?;
        let store = Self::of_source(source, address.bounds);
        store.survey(CONNECT).await?;
        Ok(store)
    }

    /// Keeps leases through the service's own connection, which is shared with it.
    ///
    /// The manager does not replace a connection that has gone silent: give its client a TCP user time-out, and set
    /// its retries to 0 or 1 (6 take nine seconds). It tells nothing of releases either:
    /// [`listening_on`](Self::listening_on) does. [`from_client`](Self::from_client) needs none of this.
    pub fn new(manager: ConnectionManager) -> Self {
        Self::assemble(Link::given(Connection::Manager(Box::new(manager)), Bounds::default()), None)
    }

    /// Keeps leases on the server of `client`, through two connections of its own: one for calls, one to listen.
    ///
    /// # Errors
    ///
    /// `Invalid` when the client's settings are.
    pub fn from_client(client: &Client) -> Result<Self, StoreError> {
        let bounds = Bounds::default();
        Ok(Self::of_source(Source::of_client(client, &bounds).map_err(refused_settings)?, bounds))
    }

    /// Keeps leases on the master that the sentinels of `client` name, through connections of its own.
    pub fn from_sentinel(client: SentinelClient) -> Self {
        Self::of_source(Source::of_sentinel(client), Bounds::default())
    }

    /// Keeps leases in a cluster, through a connection of its own.
    ///
    /// The client does not say where its nodes are: [`listening_on`](Self::listening_on) does, for releases.
    pub fn from_cluster(client: ClusterClient) -> Self {
        Self::of_source(Source::of_cluster(client), Bounds::default())
    }

    /// Keeps leases in a cluster, through the service's own connection, which is shared with it.
    ///
    /// As with [`new`](Self::new), a node that has gone silent is for the connection's own settings to notice.
    pub fn from_cluster_connection(connection: ClusterConnection) -> Self {
        Self::assemble(Link::given(Connection::Cluster(connection), Bounds::default()), None)
    }

    /// The same store, waiting as long as `bounds` says.
    #[must_use]
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        let hub = self.inner.hub.as_ref().map(|hub| Hub::new(hub.source().clone(), bounds));
        Self::assemble(self.inner.link.with_bounds(bounds), hub)
    }

    /// The same store, hearing of grants and releases on a connection to the server of `client`: the same server, or
    /// any node of the same cluster.
    ///
    /// # Errors
    ///
    /// `Invalid` when the client's settings are.
    pub fn listening_on(self, client: &Client) -> Result<Self, StoreError> {
        let bounds = *self.inner.link.bounds();
        let source = Source::of_client(client, &bounds).map_err(refused_settings)?;
        Ok(Self::assemble(self.inner.link.with_bounds(bounds), Some(Hub::new(Arc::new(source), bounds))))
    }

    fn of_source(source: Source, bounds: Bounds) -> Self {
        let source = Arc::new(source);
        let hub = source.can_listen().then(|| Hub::new(source.clone(), bounds));
        Self::assemble(Link::own(source, bounds), hub)
    }

    fn assemble(link: Link, hub: Option<Hub>) -> Self {
        let inner = Inner { link, hub, seen: Seen::default(), survey: Mutex::new(Survey::NONE) };
        Self { inner: Arc::new(inner) }
    }

    /// Looks at the server, and says what its tokens are worth when that has changed.
    pub(crate) async fn survey(&self, call: Call<'_>) -> Result<(), StoreError> {
        let survey = Survey::of(&self.inner.link).await.map_err(|failure: Failure| call.failed(failure))?;
        let before = std::mem::replace(&mut *self.inner.survey(), survey.clone());
        if let Some(weakness) = survey.weakness.filter(|weakness| before.weakness != Some(*weakness)) {
            tracing::info!(target: "tenure", store = STORE, "fencing tokens are best effort: {weakness}");
        }
        Ok(())
    }
}

fn refused_settings(error: RedisError) -> StoreError {
    let detail = format!("the client refused the settings: {error}");
    CONNECT.error(StoreErrorKind::Invalid, detail)
}

/// Whoever is on the way can read it.
fn warn_of_plain_password(address: &Address) {
    let is_local = |host: &str| host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    let remote = address.hosts.iter().any(|(host, _)| !is_local(host));
    if address.password.is_some() && address.tls.is_none() && remote {
        tracing::warn!(target: "tenure", store = STORE, "the password goes over the network in the clear: use rediss://");
    }
}
