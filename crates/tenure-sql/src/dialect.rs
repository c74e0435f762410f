//! The one shape behind which the three databases differ: how to connect, five statements, and what errors mean.
//!
//! A dialect decides nothing about leases: each method is one decision made by the database. [`SqlStore`] bounds the
//! calls, keeps the connections and tells outcomes; it is the only caller.
//!
//! [`SqlStore`]: crate::SqlStore

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{Bid, Grant, LeaseName, StoreDescriptor, StoreErrorKind};

use crate::leases::Leases;
use crate::row::{Row, Seen};

/// One database technology. Sealed: the three dialects of this crate are all there are.
#[async_trait]
pub trait Dialect: fmt::Debug + Send + Sync + Sized + 'static {
    /// A connection, ready for lease statements.
    type Link: Send + 'static;

    /// The technology, as metrics and errors name it.
    const NAME: &'static str;

    /// What the store can do.
    fn describe(&self) -> StoreDescriptor;

    /// Creates what a connection needs to exist, such as a file.
    fn establish(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Opens a connection and sets its session up.
    async fn connect(&self) -> Result<Self::Link, Problem>;

    /// What to do with a connection that was not used for `idle`.
    fn health(&self, link: &Self::Link, idle: Duration) -> Health;

    /// What to do with a connection whose caller went away in the middle of a statement.
    fn abandoned(&self) -> Health;

    /// Asks the database for a sign of life.
    async fn ping(&self, link: &mut Self::Link) -> Result<(), Problem>;

    /// Takes the lease if it is free, has run out or is the candidate's own.
    async fn bid(&self, link: &mut Self::Link, bid: &Bid) -> Result<Decision, Problem>;

    /// Extends the lease if it is this term's and has not run out; says whether it was.
    async fn renew(&self, link: &mut Self::Link, grant: &Grant) -> Result<bool, Problem>;

    /// Extends each of up to [`BATCH`] terms, of as many leases, in one decision; the answer is in the order of `grants`.
    /// One that is not extended may be lost, or only be locked by somebody: nothing waits for it.
    async fn renew_many(&self, link: &mut Self::Link, grants: &[Grant]) -> Result<Vec<bool>, Problem>;

    /// Frees the lease if it is this term's and has not run out; says whether it was.
    async fn release(&self, link: &mut Self::Link, grant: &Grant) -> Result<bool, Problem>;

    /// The row of `name`.
    async fn find(&self, link: &mut Self::Link, name: &LeaseName) -> Result<Option<Row>, Problem>;

    /// Up to [`PAGE`] rows after the name `after`, in the order of names.
    async fn page(&self, link: &mut Self::Link, after: &str) -> Result<Vec<Row>, Problem>;

    /// Who holds each of `names`, as far as they have a row.
    async fn look(&self, link: &mut Self::Link, names: &[LeaseName]) -> Result<Vec<Seen>, Problem>;

    /// Creates what is missing and checks what is there.
    async fn prepare(&self, link: &mut Self::Link) -> Result<(), Problem>;

    /// Waits for changes of the leases that are watched, and wakes; returns when nobody watches any more.
    async fn watch(leases: Arc<Leases<Self>>);

    /// Whether a connection can be used after a call on it ended with `error`.
    fn usable_after(&self, error: &sqlx::Error) -> bool;

    /// What is known about the effect of a statement that ended with `error`, and what to tell the user.
    fn translate(&self, error: &sqlx::Error, effect: Effect) -> Verdict;
}

/// Rows that are listed in one statement.
pub(crate) const PAGE: u16 = 500;

/// Terms that are renewed in one statement: enough to make the statement's own cost small, and few enough to lock no row
/// for long.
pub(crate) const BATCH: usize = 256;

/// An idle connection to a server is asked for a sign of life after this: it costs a round trip, and saves a doubtful
/// write. While renewals follow one another no connection idles so long.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// What became of a bid.
#[derive(Clone, Debug)]
pub enum Decision {
    /// The candidate holds the lease.
    Won {
        /// The number of the term.
        token: i64,
        /// Whether the term before it was given up in order, or there was none.
        after_release: bool,
    },
    /// Somebody else does: this one, where the decision tells.
    Lost(Option<Row>),
}

/// What to do with a connection before it is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Use it.
    Good,
    /// Ping it first: it may have died, or may still be busy.
    Doubtful,
    /// Close it: it cannot be used again.
    Dead,
}

/// Whether a call may have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There was no connection yet.
    Connect,
    /// It only reads.
    Read,
    /// It may have been applied when its answer did not come.
    Write,
}

/// What an error means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub kind: StoreErrorKind,
    pub detail: Cow<'static, str>,
}

impl Verdict {
    pub fn new(kind: StoreErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// An error that tells nothing about what the database did.
    pub fn in_doubt(effect: Effect, detail: impl Into<Cow<'static, str>>) -> Self {
        let kind = match effect {
            Effect::Connect | Effect::Read => StoreErrorKind::Unavailable,
            Effect::Write => StoreErrorKind::Unknown,
        };
        Self::new(kind, detail)
    }
}

/// Why a dialect's method gave no answer.
#[derive(Debug)]
pub enum Problem {
    /// The client reports an error, which is yet to be translated.
    Client(sqlx::Error),
    /// The same, in the middle of a transaction: the connection has to be closed.
    Broken(sqlx::Error),
    /// The dialect knows what is wrong.
    Known(Verdict),
}

impl Problem {
    pub fn known(kind: StoreErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Known(Verdict::new(kind, detail))
    }
}

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        Self::Client(error)
    }
}

impl From<tenure_core::Invalid> for Problem {
    fn from(invalid: tenure_core::Invalid) -> Self {
        Self::known(StoreErrorKind::Invalid, invalid.to_string())
    }
}
