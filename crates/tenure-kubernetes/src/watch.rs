//! Who is told of changes: a watch on the one object of a lease.
//!
//! A renewal wakes nobody, but it is *seen*: a follower that looked only every few seconds would time a holder that died
//! from its own last look, and not from the holder's last renewal.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tenure_core::{CandidateId, FencingToken, LeaseName, StoreErrorKind, WakeUp};
use tokio::time::{sleep, timeout};

use crate::error::{Effect, Failure};
use crate::object_name;
use crate::record::Found;
use crate::store::Inner;

/// Time before the first attempt to watch again, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest time between two attempts: waiting candidates look by themselves every few seconds anyway.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Seconds after which the server ends a watch: one that is silent for longer is dead without knowing it.
const LASTS: u32 = 60;

/// Wakes for every change of `name` that comes after the first [`WakeUp::Resync`].
pub(crate) fn of(inner: Arc<Inner>, name: LeaseName) -> BoxStream<'static, WakeUp> {
    let follow = Follow::new(inner, name);
    stream::unfold(follow, |mut follow| async move { Some((follow.next().await, follow)) }).boxed()
}

struct Follow {
    inner: Arc<Inner>,
    name: LeaseName,
    events: Option<BoxStream<'static, Result<WatchEvent<Lease>, kube::Error>>>,
    /// What to go on from; `None` where nothing is known.
    version: Option<String>,
    /// Holder and token as last seen; `None` before anything was.
    known: Option<(Option<CandidateId>, FencingToken)>,
    /// Whether something may have been missed.
    gap: bool,
    pause: Duration,
    warned: bool,
}

impl Follow {
    fn new(inner: Arc<Inner>, name: LeaseName) -> Self {
        Self { inner, name, events: None, version: None, known: None, gap: true, pause: FIRST_PAUSE, warned: false }
    }

    async fn next(&mut self) -> WakeUp {
        loop {
            let Some(events) = &mut self.events else {
                if let Some(wake) = self.open().await {
                    return wake;
                }
                continue;
            };
            match timeout(Duration::from_secs(u64::from(LASTS) + 5), events.next()).await {
                Ok(Some(Ok(event))) => {
                    if let Some(wake) = self.hear(event) {
                        return wake;
                    }
                }
                // The server ends every watch some time; the next goes on from the version that was seen last. Not at once:
                // something in between may end each of them as soon as it stands.
                Ok(None) | Err(_) => {
                    self.events = None;
                    sleep(FIRST_PAUSE.mul_f64(0.5 + fastrand::f64())).await;
                }
                Ok(Some(Err(error))) => self.broken(Failure::of_request(error, Effect::Read)).await,
            }
        }
    }

    /// Opens the watch, and tells of a gap once it stands.
    async fn open(&mut self) -> Option<WakeUp> {
        let object = object_name::of(&self.name).0.into_owned();
        let params = WatchParams::default().fields(&format!("metadata.name={object}")).timeout(LASTS);
        let version = self.version.clone().unwrap_or_default();
        let (params, version, namespace) = (&params, &version, &self.inner.namespace);
        let watch = |client| async move { Api::<Lease>::namespaced(client, namespace).watch(params, version).await };
        let opened = match timeout(self.inner.timeout, self.inner.source.send(watch)).await {
            Ok(Ok(events)) => Ok(events.boxed()),
            Ok(Err(error)) => Err(Failure::of_request(error, Effect::Read)),
            Err(_) => Err(Failure::silence(false, self.inner.timeout)),
        };
        match opened {
            Ok(events) => {
                (self.events, self.pause, self.warned) = (Some(events), FIRST_PAUSE, false);
                std::mem::take(&mut self.gap).then_some(WakeUp::Resync)
            }
            Err(failure) => {
                self.broken(failure).await;
                None
            }
        }
    }

    fn hear(&mut self, event: WatchEvent<Lease>) -> Option<WakeUp> {
        match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                self.version.clone_from(&lease.metadata.resource_version);
                // What cannot be read is for the next look to report.
                let Ok(found) = Found::parse(&self.name, lease) else { return Some(WakeUp::Changed) };
                self.inner.sightings.remaining(&self.name, &found);
                let now = (found.holder, found.token);
                if self.known.as_ref() == Some(&now) {
                    return None;
                }
                let wake = if now.0.is_some() { WakeUp::Taken } else { WakeUp::Vacated };
                self.known = Some(now);
                Some(wake)
            }
            WatchEvent::Deleted(lease) => {
                (self.version, self.known) = (lease.metadata.resource_version, None);
                Some(WakeUp::Vacated)
            }
            WatchEvent::Bookmark(bookmark) => {
                self.version = Some(bookmark.metadata.resource_version);
                None
            }
            // Most often 410: what lies between is forgotten by the server.
            WatchEvent::Error(_) => {
                (self.events, self.version, self.gap) = (None, None, true);
                None
            }
        }
    }

    /// Waits before the next attempt, which begins from what is there then.
    async fn broken(&mut self, failure: Failure) {
        (self.events, self.version, self.gap) = (None, None, true);
        self.log(&failure);
        sleep(self.pause.mul_f64(0.5 + fastrand::f64())).await;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }

    /// Tells an operator once why candidates are slower than they could be.
    fn log(&mut self, failure: &Failure) {
        let lease = &self.name;
        if self.warned || matches!(failure.kind(), StoreErrorKind::Unavailable) {
            tracing::debug!(target: "tenure", ?failure, %lease, "the watch broke; trying again");
        } else {
            tracing::warn!(target: "tenure", ?failure, %lease, "the watch is refused; candidates poll until it is not");
            self.warned = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::Status;

    use super::*;
    use crate::KubernetesStore;

    #[tokio::test]
    async fn a_version_that_the_server_forgot_in_mid_stream_is_a_gap_that_will_be_told() {
        let silent = |_: Request<Body>| pending::<Result<Response<Body>, Infallible>>();
        let store = KubernetesStore::new(Client::new(tower::service_fn(silent), "default"), "default");
        let mut follow = Follow::new(store.inner, LeaseName::new("nightly").unwrap());
        (follow.gap, follow.version, follow.events) = (false, Some("7".to_owned()), Some(stream::pending().boxed()));
        let gone = Status::failure("too old resource version: 7 (9)", "Expired").with_code(410);
        assert_eq!(follow.hear(WatchEvent::Error(gone.boxed())), None);
        assert!(follow.gap && follow.version.is_none() && follow.events.is_none(), "it opens anew, and resyncs");
    }
}
