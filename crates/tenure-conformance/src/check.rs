//! A clause as a test: what the tests that `conformance!` makes call.

use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::RwLock;

use crate::child::CHILD;
use crate::report::Outcome;
use crate::run::perform;
use crate::{Harness, Plan, clauses, serve_child};

/// Tests run side by side in threads; a clause that runs alone keeps the others of this process waiting.
static GATE: RwLock<()> = RwLock::const_new(());

/// Names a directory to which each test adds a line: store, version, bench, clause, outcome, separated by tabs.
const REPORTS: &str = "TENURE_CONFORMANCE_REPORTS";

/// Bound on one clause; a store that needs more for one hangs.
const CLAUSE_WITHIN: Duration = Duration::from_secs(60);

/// Runs the clause of the test called `test` (`acquire_free`), and panics unless it passes or is skipped as expected.
///
/// `child` is the path of the test that serves as another process, as `module_path!` begins it.
///
/// # Panics
///
/// When the clause fails, or is skipped and `expected_skips` does not name it.
pub fn check<H, F>(test: &str, expected_skips: &[&str], child: &str, harness: impl FnOnce() -> F)
where
    H: Harness,
    F: Future<Output = H>,
{
    let id = test.replace('_', "-");
    let Some(clause) = clauses().into_iter().find(|clause| clause.id() == id) else {
        panic!("no clause is called {id:?}");
    };
    let outcome = runtime().block_on(async {
        let harness = harness().await;
        let (mut _alone, mut _beside) = (None, None);
        if clause.runs_alone() {
            _alone = Some(GATE.write().await);
        } else {
            _beside = Some(GATE.read().await);
        }
        let outcome = perform(&harness, clause, path_in_program(child), CLAUSE_WITHIN).await.clause.outcome;
        if let Some(directory) = std::env::var_os(REPORTS) {
            note(Path::new(&directory), child, &id, &outcome, &harness).await;
        }
        outcome
    });
    match outcome {
        Outcome::Passed => {}
        Outcome::Skipped(reason) if expected_skips.contains(&id.as_str()) => eprintln!("{id} skipped: {reason}"),
        Outcome::Skipped(reason) => panic!("{id} was skipped, which the list of skips does not expect: {reason}"),
        Outcome::Failed(reason) => {
            panic!("{id} failed: {reason}\n  clause: {}\n  trap: {}", clause.says(), clause.trap())
        }
    }
}

/// Panics when the list of expected skips names something that is no clause.
///
/// # Panics
///
/// See above.
pub fn check_skips(expected_skips: &[&str]) {
    if let Err(wrong) = Plan::default().expect_skips(expected_skips.iter().copied()).chosen() {
        panic!("{wrong}");
    }
}

/// Serves as another process when this program was started as one; does nothing in an ordinary test run.
///
/// # Panics
///
/// When the store cannot be reached or the line to the parent breaks.
pub fn check_child<H, F>(harness: impl FnOnce() -> F)
where
    H: Harness,
    F: Future<Output = H>,
{
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    runtime().block_on(async {
        match harness().await.store().await {
            Ok(store) => serve_child(&store).await.unwrap_or_else(|error| panic!("the line broke: {error}")),
            Err(error) => panic!("no client: {error}"),
        }
    });
}

/// Adds a line about a clause to the notes of its bench, for a table over many benches.
///
/// Only what `conformance!` made is a bench, not a lone call of [`check`].
async fn note(directory: &Path, child: &str, id: &str, outcome: &Outcome, harness: &impl Harness) {
    let Some((bench, _)) = child.rsplit_once("::conformance::") else { return };
    let (store, version) = match harness.store().await {
        Ok(store) => (store.describe().name, store.describe().version),
        Err(_) => ("unreachable".into(), None),
    };
    let word = match outcome {
        Outcome::Passed => "passed",
        Outcome::Skipped(_) => "skipped",
        Outcome::Failed(_) => "failed",
    };
    let line = format!("{store}\t{}\t{bench}\t{id}\t{word}\n", version.as_deref().unwrap_or("-"));
    let file = OpenOptions::new().create(true).append(true).open(directory.join(bench.replace("::", "-")));
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("no note can be written to {}: {error}", directory.display());
    }
}

/// The name of a test within its program: its path without the crate's name.
fn path_in_program(path: &str) -> Option<&str> {
    path.split_once("::").map(|(_, rest)| rest)
}

fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap_or_else(|error| panic!("no runtime: {error}"))
}
