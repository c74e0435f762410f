//! Why a bench cannot do something.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use tenure_core::StoreError;

/// Says why the bench did not do what a clause asked of it.
///
/// A bench that *lacks* the means skips the clause, with the reason; one that has them and *failed* fails the clause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unable {
    /// This bench has no means to do it.
    Lacks(Cow<'static, str>),
    /// It should have worked.
    Failed(String),
}

impl Unable {
    /// The bench has no means to do it, because of `reason`: one lower-case phrase, shown beside the skipped clause.
    pub fn lacks(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Lacks(reason.into())
    }

    /// The bench tried and failed, because of `error`.
    pub fn failed(error: impl fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for Unable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks(reason) => f.write_str(reason),
            Self::Failed(error) => write!(f, "the bench failed: {error}"),
        }
    }
}

impl Error for Unable {}

impl From<StoreError> for Unable {
    fn from(error: StoreError) -> Self {
        Self::Failed(chain(&error))
    }
}

/// An error and all its sources, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
