//! What of the suite is run, and how.

use std::fmt;
use std::time::Duration;

use crate::report::ClauseReport;
use crate::{Clause, clauses};

type Progress = dyn Fn(&ClauseReport) + Send + Sync;

/// Says which clauses run, how many at once, and which of them the bench is known to lack the means for.
///
/// The default is everything, with any skip accepted.
pub struct Plan {
    only: Vec<String>,
    expected_skips: Option<Vec<String>>,
    at_once: usize,
    clause_within: Duration,
    progress: Option<Box<Progress>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            expected_skips: None,
            // Most clauses wait for leases to run out most of the time; sixteen of them keep two cores busy enough.
            at_once: 16,
            clause_within: Duration::from_secs(60),
            progress: None,
        }
    }
}

impl Plan {
    /// Only these clauses: ids (`acquire-contended`) or groups (`acquire`).
    #[must_use]
    pub fn only<I: Into<String>>(mut self, ids_or_groups: impl IntoIterator<Item = I>) -> Self {
        self.only = ids_or_groups.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts that these clauses are skipped, and no others: any other skip fails.
    #[must_use]
    pub fn expect_skips<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.expected_skips = Some(ids.into_iter().map(Into::into).collect());
        self
    }

    /// With so many clauses at once; at least one.
    #[must_use]
    pub fn at_once(mut self, count: usize) -> Self {
        self.at_once = count.max(1);
        self
    }

    /// With this bound on each clause: one that takes longer fails. 60 s.
    #[must_use]
    pub fn clause_within(mut self, bound: Duration) -> Self {
        self.clause_within = bound;
        self
    }

    /// Tells `watcher` of each clause when it ends.
    #[must_use]
    pub fn on_progress(mut self, watcher: impl Fn(&ClauseReport) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(watcher));
        self
    }

    pub(crate) fn bound(&self) -> Duration {
        self.clause_within
    }

    pub(crate) fn width(&self) -> usize {
        self.at_once
    }

    /// The clauses that are asked for; or what is wrong with the plan.
    pub(crate) fn chosen(&self) -> Result<Vec<Clause>, String> {
        let all = clauses();
        let known = |asked: &String| all.iter().any(|clause| clause.id() == asked || clause.group() == asked);
        if let Some(unknown) = self.only.iter().find(|asked| !known(asked)) {
            return Err(format!("no clause and no group is called {unknown:?}"));
        }
        let is_id = |id: &String| all.iter().any(|clause| clause.id() == id);
        if let Some(unknown) = self.expected_skips.iter().flatten().find(|id| !is_id(id)) {
            return Err(format!("no clause is called {unknown:?}, so none can be skipped by that name"));
        }
        let asked = |clause: &Clause| {
            self.only.is_empty() || self.only.iter().any(|asked| clause.id() == asked || clause.group() == asked)
        };
        Ok(all.into_iter().filter(asked).collect())
    }

    pub(crate) fn accepts_skip(&self, id: &str) -> bool {
        self.expected_skips.as_ref().is_none_or(|expected| expected.iter().any(|skip| skip == id))
    }

    pub(crate) fn tell(&self, ended: &ClauseReport) {
        if let Some(watcher) = &self.progress {
            watcher(ended);
        }
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("only", &self.only)
            .field("expected_skips", &self.expected_skips)
            .field("at_once", &self.at_once)
            .finish_non_exhaustive()
    }
}
