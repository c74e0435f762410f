//! One thing that every store must do.

use std::fmt;

use futures::future::BoxFuture;
use tenure_core::{Invalid, StoreError};

use crate::Unable;
use crate::bench::Bench;
use crate::unable::chain;

/// One thing that every store must do, and how it is seen.
#[derive(Clone, Copy)]
pub struct Clause {
    id: &'static str,
    says: &'static str,
    trap: &'static str,
    alone: bool,
    pub(crate) body: Body,
}

pub(crate) type Body = for<'b> fn(&'b Bench<'b>) -> BoxFuture<'b, Verdict>;

impl Clause {
    pub(crate) const fn new(id: &'static str, says: &'static str, trap: &'static str, body: Body) -> Self {
        Self { id, says, trap, alone: false, body }
    }

    /// The same clause, run while no other is: because it disturbs others or loads the machine.
    #[must_use]
    pub(crate) const fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Its name: `acquire-contended`.
    pub const fn id(&self) -> &'static str {
        self.id
    }

    /// The group it belongs to: `acquire`.
    pub fn group(&self) -> &'static str {
        self.id.split_once('-').map_or(self.id, |(group, _)| group)
    }

    /// What must hold, in one sentence.
    pub const fn says(&self) -> &'static str {
        self.says
    }

    /// The mistake, seen in the field, that it catches.
    pub const fn trap(&self) -> &'static str {
        self.trap
    }

    /// Whether it runs while no other clause does.
    pub const fn runs_alone(&self) -> bool {
        self.alone
    }
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clause").field("id", &self.id).finish_non_exhaustive()
    }
}

pub(crate) type Verdict = Result<(), Stop>;

/// Why a clause ended before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(String),
    Skipped(String),
    /// The machine was too slow for what the clause had to do within a ttl, as the reason says: another try may tell.
    TooSlow(String),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(format!("a call failed: {}", chain(&error)))
    }
}

impl From<Unable> for Stop {
    fn from(unable: Unable) -> Self {
        match unable {
            Unable::Lacks(reason) => Self::Skipped(reason.into_owned()),
            failed @ Unable::Failed(_) => Self::Failed(failed.to_string()),
        }
    }
}

impl From<Invalid> for Stop {
    fn from(invalid: Invalid) -> Self {
        Self::Failed(format!("the suite made an invalid value: {invalid}"))
    }
}

impl From<tokio::task::JoinError> for Stop {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Failed(format!("a task of the clause ended early: {error}"))
    }
}

/// Fails the clause with a message.
macro_rules! fail {
    ($($message:tt)+) => {
        return Err($crate::clause::Stop::Failed(format!($($message)+)))
    };
}

/// Fails the clause with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            $crate::clause::fail!($($message)+);
        }
    };
}

/// Skips the clause with a reason.
macro_rules! skip {
    ($($reason:tt)+) => {
        return Err($crate::clause::Stop::Skipped(format!($($reason)+)))
    };
}

/// A clause from the function that checks it: id, sentence, trap.
macro_rules! clause {
    ($id:literal, $body:ident, $says:literal, $trap:literal) => {
        $crate::clause::Clause::new($id, $says, $trap, |bench| Box::pin($body(bench)))
    };
}

pub(crate) use {clause, ensure, fail, skip};
