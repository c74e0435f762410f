//! One call of the store: its requests, its bound, and what is known of its effect when it ends without an answer.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use tenure_core::{LeaseName, Operation, StoreError, StoreErrorKind};
use tokio::time::timeout;

use crate::error::{Effect, Failure};
use crate::object_name;
use crate::record::Found;
use crate::store::Inner;

pub(crate) struct Call<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) name: &'a LeaseName,
    operation: Operation,
    /// A write left, and its answer did not come yet.
    in_doubt: AtomicBool,
}

/// What a write met.
pub(crate) enum Written {
    Done(Box<Found>),
    /// The object is not the one that was read any more, or there is one by now.
    Conflict,
    /// There is no object any more.
    Gone,
}

impl<'a> Call<'a> {
    pub(crate) fn new(inner: &'a Inner, operation: Operation, name: &'a LeaseName) -> Self {
        Self { inner, name, operation, in_doubt: AtomicBool::new(false) }
    }

    /// Runs `body`, which makes its requests through this call, within the store's bound.
    pub(crate) async fn bounded<T>(&self, body: impl Future<Output = Result<T, Failure>>) -> Result<T, StoreError> {
        let failure = match timeout(self.inner.timeout, body).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::silence(self.in_doubt.load(Ordering::Relaxed), self.inner.timeout),
        };
        Err(failure.into_error(self.operation, Some(self.name)))
    }

    /// The object as it is, and how long its record has still to run.
    pub(crate) async fn get(&self) -> Result<Option<(Found, Duration)>, Failure> {
        let object = &object_name::of(self.name).0;
        let get = |client| async move { self.api(client).get_opt(object).await };
        let answer = self.inner.source.send(get).await;
        match answer.map_err(|error| Failure::of_request(error, Effect::Read))? {
            Some(lease) => self.parse(lease).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn create(&self, lease: &Lease) -> Result<Written, Failure> {
        self.write(|client| async move { self.api(client).create(&PostParams::default(), lease).await }).await
    }

    /// Writes `lease` in the place of the very object that it was made from.
    pub(crate) async fn replace(&self, lease: &Lease) -> Result<Written, Failure> {
        let object = &object_name::of(self.name).0;
        self.write(|client| async move { self.api(client).replace(object, &PostParams::default(), lease).await }).await
    }

    async fn write<F>(&self, request: impl Fn(kube::Client) -> F) -> Result<Written, Failure>
    where
        F: Future<Output = Result<Lease, kube::Error>>,
    {
        self.in_doubt.store(true, Ordering::Relaxed);
        let answer = self.inner.source.send(request).await;
        self.in_doubt.store(false, Ordering::Relaxed);
        match answer {
            Ok(lease) => self.parse(lease).map(|(found, _)| Written::Done(Box::new(found))),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Written::Conflict),
            Err(kube::Error::Api(status)) if status.is_not_found() && !status.message.contains("namespaces") => {
                Ok(Written::Gone)
            }
            Err(error) => Err(Failure::of_request(error, Effect::Write)),
        }
    }

    fn parse(&self, lease: Lease) -> Result<(Found, Duration), Failure> {
        let found = Found::parse(self.name, lease).map_err(|wrong| Failure::new(StoreErrorKind::Malformed, wrong))?;
        let remaining = self.inner.sightings.remaining(self.name, &found);
        Ok((found, remaining))
    }

    fn api(&self, client: kube::Client) -> Api<Lease> {
        Api::namespaced(client, &self.inner.namespace)
    }
}
