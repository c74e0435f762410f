//! What can go wrong in a store call, sorted by what is known about its effect.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::LeaseName;

type Source = Box<dyn Error + Send + Sync>;

/// Says what a failed call may have done and what a candidate does about it.
///
/// When a translation cannot tell, a write is [`Unknown`](Self::Unknown).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Surely not applied: connection refused, no quorum, pool timed out. Tried again.
    Unavailable,
    /// Perhaps applied: time-out or reset after the request left. Tried again; a deadline never moves by it.
    Unknown,
    /// Not applied: wrong password, certificate, missing right. Ends a campaign; a leader goes on trying until its
    /// deadline, since credentials rotate.
    Denied,
    /// Not applied: something foreign lies where the lease should be, or the table is missing.
    Malformed,
    /// Refused before anything was sent: a bad name, a ttl under the store's minimum.
    Invalid,
    /// Not applied: the store cannot do this (server too old, command disabled).
    Unsupported,
}

impl StoreErrorKind {
    /// Whether the same call may work later without anybody changing anything.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::Unknown)
    }

    /// The kind as one word, for metrics and machine-readable output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::Malformed => "malformed",
            Self::Invalid => "invalid",
            Self::Unsupported => "unsupported",
        }
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "store unavailable",
            Self::Unknown => "outcome unknown",
            Self::Denied => "denied",
            Self::Malformed => "malformed record",
            Self::Invalid => "invalid request",
            Self::Unsupported => "not supported",
        })
    }
}

/// Names the store call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a connection.
    Connect,
    /// Setting the store up.
    Prepare,
    /// A bid.
    Acquire,
    /// A renewal.
    Renew,
    /// A release.
    Release,
    /// Reading one lease.
    Read,
    /// Listing leases.
    List,
    /// Waiting for changes.
    Watch,
}

impl Operation {
    /// The operation as one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Prepare => "prepare",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Read => "read",
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A store call that gave no outcome: its kind, the operation, the store and the lease, and the client's own error as
/// the source.
///
/// `Display` is one lower-case line without the source and without secrets; a backend must not put a secret into the
/// source either. Two errors are equal when they say the same; the source is not compared.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    operation: Operation,
    store: Cow<'static, str>,
    lease: Option<LeaseName>,
    detail: Option<Cow<'static, str>>,
    source: Option<Source>,
}

impl StoreError {
    /// An error of `kind` in `operation` on the store called `store` (`redis`, `etcd`).
    pub fn new(kind: StoreErrorKind, operation: Operation, store: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, operation, store: store.into(), lease: None, detail: None, source: None }
    }

    /// The same error, for one lease.
    #[must_use]
    pub fn with_lease(mut self, lease: &LeaseName) -> Self {
        self.lease = Some(lease.clone());
        self
    }

    /// The same error, with one lower-case phrase on what was wrong, what is allowed and what to do.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same error, with what the client reported.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What is known about the call's effect.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The call that failed.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The name of the store's technology.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The lease that the call was about.
    pub fn lease(&self) -> Option<&LeaseName> {
        self.lease.as_ref()
    }

    /// What was wrong, in words.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.store, self.operation)?;
        if let Some(lease) = &self.lease {
            write!(f, " of lease {lease:?}")?;
        }
        write!(f, ": {}", self.kind)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl PartialEq for StoreError {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.operation, &self.store, &self.lease, &self.detail)
            == (other.kind, other.operation, &other.store, &other.lease, &other.detail)
    }
}

impl Eq for StoreError {}

impl Hash for StoreError {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.operation, &self.store, &self.lease, &self.detail).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_without_the_source() {
        let error = StoreError::new(StoreErrorKind::Unknown, Operation::Renew, "redis")
            .with_lease(&LeaseName::new("nightly").unwrap())
            .with_detail("no answer within 3s")
            .with_source("secret stuff");
        assert_eq!(error.to_string(), "redis renew of lease \"nightly\": outcome unknown: no answer within 3s");
        assert_eq!(error.source().unwrap().to_string(), "secret stuff");
    }
}
