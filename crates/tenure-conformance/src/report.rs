//! What came of a run.

use std::fmt;
use std::time::Duration;

use tenure_core::StoreDescriptor;

use crate::Clause;
use crate::clause::Stop;
use crate::figures::{Figure, Figures};
use crate::run::Performed;

mod json;
mod junit;

/// What came of a run: each clause with its outcome, and what was measured.
///
/// `Display` is the text report, whose last line reads `61 passed, 0 failed, 3 skipped`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The store's technology; empty when it did not answer.
    pub store: String,
    /// Its version, where it is known.
    pub version: Option<String>,
    /// Each clause, in the order of the suite.
    pub clauses: Vec<ClauseReport>,
    /// What was measured.
    pub figures: Figures,
    /// Names of leases whose records could not be removed.
    pub leftovers: Vec<String>,
}

/// What came of one clause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClauseReport {
    /// The clause: `acquire-contended`.
    pub id: &'static str,
    /// What it says.
    pub says: &'static str,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub took: Duration,
}

/// How a clause ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The store does what the clause says.
    Passed,
    /// It does not, as the reason says.
    Failed(String),
    /// The bench lacks the means, as the reason says.
    Skipped(String),
}

impl Outcome {
    /// The outcome as one word.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    /// Why it failed or was skipped.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(reason) | Self::Skipped(reason) => Some(reason),
        }
    }
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Failed(reason) => Self::Failed(reason),
            Stop::Skipped(reason) => Self::Skipped(reason),
            Stop::TooSlow(reason) => Self::Failed(format!("{reason} (this machine was too slow, each time)")),
        }
    }
}

impl Report {
    /// Whether nothing failed and something passed.
    pub fn is_ok(&self) -> bool {
        self.failed() == 0 && self.passed() > 0
    }

    /// How many clauses passed.
    pub fn passed(&self) -> usize {
        self.clauses.iter().filter(|clause| clause.outcome == Outcome::Passed).count()
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.clauses.iter().filter(|clause| matches!(clause.outcome, Outcome::Failed(_))).count()
    }

    /// How many were skipped.
    pub fn skipped(&self) -> usize {
        self.clauses.iter().filter(|clause| matches!(clause.outcome, Outcome::Skipped(_))).count()
    }

    /// The report as one line of JSON.
    pub fn to_json(&self) -> String {
        json::render(self)
    }

    /// The report as JUnit XML, which CI systems read.
    pub fn to_junit(&self) -> String {
        junit::render(self)
    }

    pub(crate) fn of_store(store: StoreDescriptor) -> Self {
        Self {
            store: store.name.into_owned(),
            version: store.version,
            clauses: Vec::new(),
            figures: Figures::default(),
            leftovers: Vec::new(),
        }
    }

    /// A run in which nothing ran has failed.
    pub(crate) fn of_nothing(reason: &str) -> Self {
        let mut report = Self::of_store(StoreDescriptor::new(""));
        report.clauses.push(ClauseReport {
            id: "plan",
            says: "A run runs something.",
            outcome: Outcome::Failed(reason.to_owned()),
            took: Duration::ZERO,
        });
        report
    }

    /// A store that does not answer keeps none of its promises.
    pub(crate) fn unanswered(chosen: &[Clause], stop: &Stop) -> Self {
        let (Stop::Failed(reason) | Stop::Skipped(reason) | Stop::TooSlow(reason)) = stop;
        let mut report = Self::of_store(StoreDescriptor::new(""));
        report.clauses.extend(chosen.iter().map(|clause| ClauseReport {
            id: clause.id(),
            says: clause.says(),
            outcome: Outcome::Failed(format!("the store does not answer: {reason}")),
            took: Duration::ZERO,
        }));
        report
    }

    pub(crate) fn add(&mut self, performed: Performed) {
        self.clauses.push(performed.clause);
        self.figures.merge(performed.figures);
        self.leftovers.extend(performed.leftovers);
    }

    pub(crate) fn sort_like(&mut self, clauses: &[Clause]) {
        self.clauses.sort_by_key(|report| clauses.iter().position(|clause| clause.id() == report.id));
        self.leftovers.sort_unstable();
    }
}

/// Leftovers that the text report names; it counts the others.
const NAMED_LEFTOVERS: usize = 5;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = if self.store.is_empty() { "a store that does not answer" } else { &self.store };
        writeln!(f, "conformance of {store} {}", self.version.as_deref().unwrap_or_default())?;
        for ClauseReport { id, says, outcome, took } in &self.clauses {
            writeln!(f, "{:<7}  {id:<28} {:>6} ms  {says}", outcome.as_str(), took.as_millis())?;
            if let Some(reason) = outcome.reason() {
                writeln!(f, "         {reason}")?;
            }
        }
        for figure in Figure::ALL {
            if let Some(summary) = self.figures.summary(figure) {
                writeln!(f, "{}: p50 {}, max {} (of {})", figure.as_str(), summary.p50, summary.max, summary.count)?;
            }
        }
        if !self.leftovers.is_empty() {
            let named: Vec<_> = self.leftovers.iter().take(NAMED_LEFTOVERS).map(|name| format!("{name:?}")).collect();
            let more = if self.leftovers.len() > named.len() { ", .." } else { "" };
            writeln!(f, "records of {} leases could not be removed: {}{more}", self.leftovers.len(), named.join(", "))?;
        }
        write!(f, "{} passed, {} failed, {} skipped", self.passed(), self.failed(), self.skipped())
    }
}

#[cfg(test)]
mod tests;
