//! The only place that knows what etcd and its client report.

use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::sync::Arc;

use etcd_client::Error;
use tenure_core::{Invalid, LeaseName, Operation, StoreError, StoreErrorKind};
use tonic::{Code, ConnectError, Status};

/// What the store calls itself.
pub(crate) const STORE: &str = "etcd";

/// Whether a request whose answer is missing can have changed who holds a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It cannot: a read, a login, an etcd lease without a key.
    None,
    /// It can.
    Write,
}

impl Effect {
    /// What is known when no answer came.
    const fn in_doubt(self) -> StoreErrorKind {
        match self {
            Self::None => StoreErrorKind::Unavailable,
            Self::Write => StoreErrorKind::Unknown,
        }
    }
}

/// A request that gave no answer to work with; becomes a [`StoreError`] where operation and lease are known.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: StoreErrorKind,
    /// Whether a server answered, if only to refuse.
    pub(crate) from_server: bool,
    detail: Option<Cow<'static, str>>,
    /// Shared, since one request may fail for many terms.
    source: Option<Arc<Error>>,
}

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, from_server: false, detail: Some(detail.into()), source: None }
    }

    /// What lies under `key` is not a lease of ours.
    pub(crate) fn malformed(key: &[u8], why: &str) -> Self {
        let key = String::from_utf8_lossy(key);
        let detail = format!("what lies under the key {key:?} is not a lease: {why}; remove it or choose another name");
        Self::new(StoreErrorKind::Malformed, detail)
    }

    /// No answer came in time.
    pub(crate) fn no_answer(effect: Effect, bound: std::time::Duration) -> Self {
        Self::new(effect.in_doubt(), format!("no answer within {bound:?}"))
    }

    /// The same failure of a request that can have been applied by another part of the call.
    pub(crate) fn in_doubt(self) -> Self {
        Self { kind: StoreErrorKind::Unknown, ..self }
    }

    /// The same failure of a first request. A server that speaks TLS and a client that does not, or the other way round,
    /// show as a connection that breaks, and so does a client certificate that is missing.
    pub(crate) fn of_first_request(self) -> Self {
        match &self.detail {
            Some(detail) if detail == BROKE => {
                let hint =
                    "the connection broke: does the server speak tls (etcds://), does it want a client certificate?";
                Self { detail: Some(hint.into()), ..self }
            }
            _ => self,
        }
    }

    /// Whichever of two failures of one request says less: a doubt stays, and what may pass hides what will not.
    pub(crate) fn or_vaguer(self, other: Self) -> Self {
        let vagueness = |failure: &Self| match failure.kind {
            StoreErrorKind::Unknown => 2,
            StoreErrorKind::Unavailable => 1,
            _ => 0,
        };
        if vagueness(&other) > vagueness(&self) { other } else { self }
    }

    pub(crate) fn into_error(self, operation: Operation, lease: Option<&LeaseName>) -> StoreError {
        let mut error = StoreError::new(self.kind, operation, STORE);
        if let Some(lease) = lease {
            error = error.with_lease(lease);
        }
        if let Some(detail) = self.detail {
            error = error.with_detail(detail);
        }
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self::new(StoreErrorKind::Invalid, invalid.to_string())
    }
}

/// Says what the client's error means for a request of this effect.
pub(crate) fn translate(error: Error, effect: Effect) -> Failure {
    let (kind, detail) = classify(&error, effect);
    let from_server = is_answer(&error);
    Failure { kind, from_server, detail: detail.map(Cow::Borrowed), source: Some(Arc::new(error)) }
}

/// Whether the etcd lease that a request named does not exist (any more): the request changed nothing.
pub(crate) fn is_lease_gone(error: &Error) -> bool {
    match error {
        // The client's words for a keep-alive answered with ttl 0.
        Error::LeaseKeepAliveError(text) => text == "lease not found",
        Error::GRpcStatus(status) => {
            status.code() == Code::NotFound && status.message().contains("requested lease not found")
        }
        _ => false,
    }
}

/// Whether the server does not take the login token (any more).
pub(crate) fn is_login_stale(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.code() == Code::Unauthenticated)
}

fn is_answer(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => status.source().is_none() && !is_client_timeout(status),
        Error::LeaseKeepAliveError(_) => is_lease_gone(error),
        _ => false,
    }
}

type Meaning = (StoreErrorKind, Option<&'static str>);

fn classify(error: &Error, effect: Effect) -> Meaning {
    match error {
        Error::GRpcStatus(status) => classify_status(status, effect),
        Error::TransportError(error) => classify_cause(error, effect),
        Error::InvalidArgs(_) | Error::InvalidUri(_) => {
            (StoreErrorKind::Invalid, Some("the client refused the address"))
        }
        _ => (effect.in_doubt(), None),
    }
}

fn classify_status(status: &Status, effect: Effect) -> Meaning {
    use StoreErrorKind::{Denied, Invalid, Unavailable, Unsupported};
    if let Some(cause) = status.source() {
        return classify_cause(cause, effect);
    }
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        Code::Unauthenticated => (Denied, Some("the server does not take the login")),
        Code::PermissionDenied => (Denied, Some("the user's role lacks a right on the store's prefix")),
        Code::InvalidArgument if says("authentication failed") => (Denied, Some("wrong user or password")),
        Code::InvalidArgument if says("user name is empty") => {
            (Denied, Some("the server asks for a user: put one into the url, or log the client in"))
        }
        Code::InvalidArgument if says("user name not found") => (Denied, Some("the user does not exist any more")),
        // Somebody changed a user or a role while the request was under way; it was refused for that alone.
        Code::InvalidArgument if says("revision of auth store is old") => (Unavailable, None),
        Code::InvalidArgument => (Invalid, Some("the server refused the request")),
        Code::FailedPrecondition if says("authentication is not enabled") => {
            (Denied, Some("the server has authentication switched off: leave user and password out"))
        }
        Code::Unimplemented => (Unsupported, Some("the server does not know the request: etcd 3.4 or newer is needed")),
        Code::ResourceExhausted if says("database space exceeded") => {
            (Unavailable, Some("the server is out of space: compact and defragment it, then disarm the alarm"))
        }
        Code::ResourceExhausted if says("etcdserver: ") => (Unavailable, None),
        Code::Unavailable if says("no leader") => (Unavailable, Some("the cluster has no leader")),
        Code::Unavailable if says("not capable") || says("not supported for learner") => (Unavailable, None),
        _ if is_client_timeout(status) => (effect.in_doubt(), Some("no answer within the client's time-out")),
        _ => (effect.in_doubt(), None),
    }
}

const NOT_CONNECTED: &str = "no connection to the server";
const NO_TLS: &str = "no tls with the server: it may want a plain connection (etcd://)";
const BROKE: &str = "the connection broke";

/// Looks for a cause that proves that the request never left, or for a certificate that somebody refused.
fn classify_cause(cause: &(dyn std::error::Error + 'static), effect: Effect) -> Meaning {
    let chain = || std::iter::successors(Some(cause), |&cause: &&(dyn std::error::Error + 'static)| cause.source());
    // The TLS library's own types are not in reach; its messages name the certificate.
    if chain().any(|cause| cause.to_string().to_ascii_lowercase().contains("certificate")) {
        return (StoreErrorKind::Denied, Some("a certificate was refused"));
    }
    if chain().any(|cause| cause.is::<ConnectError>()) {
        let in_tls =
            chain().any(|cause| cause.to_string().contains("tls") || cause.to_string().contains("corrupt message"));
        return (StoreErrorKind::Unavailable, Some(if in_tls { NO_TLS } else { NOT_CONNECTED }));
    }
    let never_left = chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable
        )
    });
    if never_left {
        return (StoreErrorKind::Unavailable, Some(NOT_CONNECTED));
    }
    (effect.in_doubt(), Some(BROKE))
}

/// Whether the client gave up, not the server.
fn is_client_timeout(status: &Status) -> bool {
    status.code() == Code::Cancelled && status.message().contains("Timeout expired")
}

#[cfg(test)]
mod tests;
