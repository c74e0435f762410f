//! Running clauses.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use tokio::time::{Instant, timeout};

use crate::bench::Bench;
use crate::clause::{Stop, Verdict};
use crate::figures::Figures;
use crate::report::{ClauseReport, Outcome, Report};
use crate::{Clause, Harness, Plan};

/// Runs the suite, or the part of it that `plan` names, on the store of `harness`.
///
/// Clauses run side by side, each on names of its own; those that load the machine or disturb others run alone, at
/// the end. A store that does not answer fails every clause.
///
/// # Cancel safety
///
/// A dropped run leaves leases behind; they run out within a minute.
pub async fn run(harness: &dyn Harness, plan: Plan) -> Report {
    let chosen = match plan.chosen() {
        Ok(chosen) if chosen.is_empty() => return Report::of_nothing("the plan names no clause"),
        Ok(chosen) => chosen,
        Err(wrong) => return Report::of_nothing(&wrong),
    };
    let descriptor = match open(harness, None).await {
        Ok(bench) => bench.descriptor().clone(),
        Err(stop) => return Report::unanswered(&chosen, &stop),
    };
    let mut report = Report::of_store(descriptor);
    let (alone, beside): (Vec<Clause>, Vec<Clause>) = chosen.iter().partition(|clause| clause.runs_alone());
    let plan = &plan;
    let first = stream::iter(beside).map(|clause| judge(harness, clause, plan)).buffer_unordered(plan.width());
    let then = stream::iter(alone).then(|clause| judge(harness, clause, plan));
    let mut ended = std::pin::pin!(first.chain(then));
    while let Some(performed) = ended.next().await {
        report.add(performed);
    }
    report.sort_like(&chosen);
    report
}

/// What came of one clause.
pub(crate) struct Performed {
    pub(crate) clause: ClauseReport,
    pub(crate) figures: Figures,
    pub(crate) leftovers: Vec<String>,
}

async fn judge(harness: &dyn Harness, clause: Clause, plan: &Plan) -> Performed {
    let mut performed = perform(harness, clause, None, plan.bound()).await;
    if let Outcome::Skipped(reason) = &performed.clause.outcome
        && !plan.accepts_skip(clause.id())
    {
        performed.clause.outcome = Outcome::Failed(format!("skipped, which was not expected: {reason}"));
    }
    plan.tell(&performed.clause);
    performed
}

/// Runs one clause to its end, whatever that is, and tidies up.
pub(crate) async fn perform(harness: &dyn Harness, clause: Clause, child: Option<&str>, within: Duration) -> Performed {
    let started = Instant::now();
    let opened = open(harness, child).await;
    let outcome = match &opened {
        Ok(bench) => match timeout(within, caught(attempts(bench, clause))).await {
            Ok(Ok(())) => Outcome::Passed,
            Ok(Err(stop)) => stop.into(),
            Err(_) => Outcome::Failed(format!("did not end within {within:?}: some call has no bound")),
        },
        Err(Stop::Failed(reason) | Stop::Skipped(reason) | Stop::TooSlow(reason)) => {
            Outcome::Failed(format!("the store does not answer: {reason}"))
        }
    };
    let took = started.elapsed();
    let (figures, leftovers) = match &opened {
        Ok(bench) => (bench.take_figures(), bench.tidy().await),
        Err(_) => Default::default(),
    };
    Performed { clause: ClauseReport { id: clause.id(), says: clause.says(), outcome, took }, figures, leftovers }
}

async fn open<'h>(harness: &'h dyn Harness, child: Option<&'h str>) -> Result<Bench<'h>, Stop> {
    caught(Bench::open(harness, child)).await
}

/// How often a clause is tried that this machine is too slow for.
const TRIES: usize = 5;

async fn attempts(bench: &Bench<'_>, clause: Clause) -> Verdict {
    for _ in 1..TRIES {
        match (clause.body)(bench).await {
            Err(Stop::TooSlow(_)) => {}
            verdict => return verdict,
        }
    }
    (clause.body)(bench).await
}

/// Takes a panic of the store for a failure: the other clauses go on.
pub(crate) async fn caught<T>(call: impl Future<Output = Result<T, Stop>>) -> Result<T, Stop> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => Err(Stop::Failed(format!("panicked: {}", words(&*panic)))),
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
