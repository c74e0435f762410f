//! The contract, kept with Lease objects.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use tenure_core::clock::{Clock, SystemClock};
use tenure_core::{
    Acquired, Bid, Grant, LeaseClock, LeaseName, LeaseRecord, LeaseStore, Operation, Released, Renewed,
    StoreDescriptor, StoreError, StoreErrorKind, StoreUrl, TokenDurability, WakeUp, WakeUpKind,
};
use tokio::time::timeout;

use crate::call::Call;
use crate::config::{CALL_BOUND, Target};
use crate::error::{Effect, Failure, STORE};
use crate::record::{self, Found};
use crate::sightings::Sightings;
use crate::source::Source;
use crate::{term, watch};

/// Leases as `Lease` objects of one namespace. Clones share the client, and what it has seen of records.
///
/// Made by [`connect`](Self::connect) from a URL, or from a client that the service has already.
#[derive(Clone)]
pub struct KubernetesStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) source: Source,
    pub(crate) namespace: String,
    pub(crate) timeout: Duration,
    pub(crate) sightings: Sightings,
    version: OnceLock<String>,
}

/// Renewals of a batch that are under way at once.
const ABREAST: usize = 16;

/// Objects that are listed by one request.
const PAGE: u32 = 500;

impl KubernetesStore {
    /// The Role that a candidate needs, as a manifest: bind it to the candidates' service account.
    pub const ROLE: &str = include_str!("../role.yaml");

    /// Connects to the cluster that `kubernetes://NAMESPACE` means: by `$KUBECONFIG` or `~/.kube/config`, or in a pod by
    /// its service account.
    ///
    /// Settings in the query:
    ///
    /// | setting | meaning |
    /// |---|---|
    /// | `context` | the kubeconfig's context; its current one by default |
    /// | `kubeconfig` | another file |
    /// | `timeout` | the bound on one call, connecting included; 3 s by default |
    ///
    /// Without a namespace the context's, or the pod's, is used. When the server refuses the credentials, or its
    /// certificate is not trusted any more, the files are read again.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Invalid`] for a URL of another shape or a kubeconfig that cannot be read,
    /// [`StoreErrorKind::Denied`] for refused credentials or an untrusted certificate, [`StoreErrorKind::Unavailable`]
    /// when the server does not answer, [`StoreErrorKind::Unsupported`] without the TLS feature. None of them shows a
    /// credential.
    ///
    /// # Cancel safety
    ///
    /// Changes nothing.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let refused = |failure: Failure| failure.into_error(Operation::Connect, None);
        let target =
            Target::of(url).map_err(|invalid| refused(Failure::new(StoreErrorKind::Invalid, invalid.to_string())))?;
        let bound = target.timeout;
        let (source, namespace) = Source::made(target).await.map_err(refused)?;
        let store = Self::with_source(source, namespace, bound, SystemClock::new());
        store.greet().await.map_err(refused)?;
        Ok(store)
    }

    /// Keeps leases in `namespace` by a client that the program has already, with a bound of 3 s on each call.
    ///
    /// The client's own TLS, login and retries apply. A client with kube's default retries repeats writes: what it then
    /// gets as a conflict is looked at again. Switch them off by `Config::default_retry` where you can.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self::with_source(Source::Given(client), namespace.into(), CALL_BOUND, SystemClock::new())
    }

    /// The same, with the clock by which records of other candidates run out, for tests.
    pub fn with_clock(client: Client, namespace: impl Into<String>, clock: impl Clock) -> Self {
        Self::with_source(Source::Given(client), namespace.into(), CALL_BOUND, clock)
    }

    fn with_source(source: Source, namespace: String, timeout: Duration, clock: impl Clock) -> Self {
        let sightings = Sightings::new(Arc::new(clock));
        Self { inner: Arc::new(Inner { source, namespace, timeout, sightings, version: OnceLock::new() }) }
    }

    /// Asks for the server's version, so that what is wrong with the address or the login is told at once.
    async fn greet(&self) -> Result<(), Failure> {
        let ask = |client: Client| async move { client.apiserver_version().await };
        match timeout(self.inner.timeout, self.inner.source.send(ask)).await {
            Ok(Ok(version)) => {
                let _ = self.inner.version.set(version.git_version);
                Ok(())
            }
            // The right to ask is not among those that are needed.
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => Ok(()),
            Ok(Err(error)) => Err(Failure::of_request(error, Effect::Read)),
            Err(_) => Err(Failure::silence(false, self.inner.timeout)),
        }
    }

    fn check(&self, operation: Operation, name: &LeaseName, ttl: Duration) -> Result<(), StoreError> {
        let failed = |what: String| Failure::new(StoreErrorKind::Invalid, what).into_error(operation, Some(name));
        self.describe().check_ttl(ttl).map_err(|invalid| failed(invalid.to_string()))
    }
}

#[async_trait]
impl LeaseStore for KubernetesStore {
    fn describe(&self) -> StoreDescriptor {
        // `leaseDurationSeconds` has 32 bits, and a sign.
        let longest = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        StoreDescriptor::new(STORE)
            .with_version(self.inner.version.get().cloned())
            .with_ttl_limits(Duration::from_secs(1), longest, Duration::from_secs(1))
            // Every renewal is seen through the watch; the rest is the way of an answer.
            .with_lateness(Duration::from_millis(500))
            .with_token(TokenDurability::Durable)
            .with_wake_up(WakeUpKind::Push)
            .with_clock(LeaseClock::Observer)
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        self.check(Operation::Acquire, &bid.name, bid.ttl)?;
        let call = Call::new(&self.inner, Operation::Acquire, &bid.name);
        call.bounded(term::bid(&call, bid)).await
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        self.check(Operation::Renew, &grant.name, grant.ttl)?;
        let call = Call::new(&self.inner, Operation::Renew, &grant.name);
        call.bounded(term::renew(&call, grant)).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let call = Call::new(&self.inner, Operation::Release, &grant.name);
        call.bounded(term::release(&call, grant)).await
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let call = Call::new(&self.inner, Operation::Read, name);
        let found = call.bounded(call.get()).await?;
        Ok(found.and_then(|(found, remaining)| found.record(name, remaining).filter(|_| !remaining.is_zero())))
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        let store = self.clone();
        stream::try_unfold(Some(String::new()), move |token| {
            let store = store.clone();
            async move {
                let Some(token) = token else { return Ok::<_, StoreError>(None) };
                let (records, next) = store.page(token).await?;
                Ok(Some((stream::iter(records.into_iter().map(Ok)), next)))
            }
        })
        .try_flatten()
        .boxed()
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        // Owned, so that the stream of futures is general enough for the trait.
        let renewals: Vec<_> = grants.iter().map(|grant| self.renew(grant)).collect();
        stream::iter(renewals).buffered(ABREAST).collect().await
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        watch::of(self.inner.clone(), name.clone())
    }
}

impl KubernetesStore {
    /// The held leases of one page, and where the next begins.
    async fn page(&self, token: String) -> Result<(Vec<LeaseRecord>, Option<String>), StoreError> {
        let failed = |failure: Failure| failure.into_error(Operation::List, None);
        let mut params = ListParams::default().limit(PAGE);
        if !token.is_empty() {
            params = params.continue_token(&token);
        }
        let (params, namespace) = (&params, &self.inner.namespace);
        let list = |client| async move { Api::<Lease>::namespaced(client, namespace).list(params).await };
        let listed = match timeout(self.inner.timeout, self.inner.source.send(list)).await {
            Ok(answer) => answer.map_err(|error| failed(Failure::of_request(error, Effect::Read)))?,
            Err(_) => return Err(failed(Failure::silence(false, self.inner.timeout))),
        };
        let next = listed.metadata.continue_.filter(|token| !token.is_empty());
        let records = listed.items.into_iter().filter_map(|lease| {
            let name = record::name_of(&lease)?;
            let found = Found::parse(&name, lease).ok()?;
            let remaining = self.inner.sightings.remaining(&name, &found);
            found.record(&name, remaining).filter(|_| !remaining.is_zero())
        });
        Ok((records.collect(), next))
    }
}

impl fmt::Debug for KubernetesStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesStore").field("namespace", &self.inner.namespace).finish_non_exhaustive()
    }
}
