//! What a run makes of plans, benches and stores that are not as they should be.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure_conformance::{Harness, Outcome, Plan, StoreHarness, check, check_skips, run};
use tenure_core::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, LeaseStore, MemoryStore, Operation, Released, Renewed,
    StoreDescriptor, StoreError, StoreErrorKind, async_trait,
};

/// What a store known by its URL alone is not tested for.
const SKIPPED_WITHOUT_A_BENCH: [&str; 19] = [
    "acquire-foreign",
    "token-server",
    "token-removed",
    "renew-removed",
    "renew-foreign",
    "release-removed",
    "expiry-outsider",
    "read-foreign",
    "watch-removal",
    "watch-cut",
    "watch-gap",
    "doubt-words",
    "time-wall-clock",
    "time-zone",
    "setup-race",
    "setup-missing",
    "setup-credentials",
    "setup-rights",
    "torture-killed",
];

#[tokio::test]
async fn a_store_alone_is_tested_and_what_is_not_is_said() {
    let harness = StoreHarness::new(MemoryStore::new());
    let mut expected: Vec<_> = SKIPPED_WITHOUT_A_BENCH.to_vec();
    expected.push("batch-foreign");
    let report = run(&harness, Plan::default().expect_skips(expected.clone())).await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.skipped(), expected.len());
    assert!(report.clauses.iter().all(|clause| clause.outcome == Outcome::Passed || clause.outcome.reason().is_some()));
    assert!(report.to_string().ends_with(&format!("{} passed, 0 failed, {} skipped", report.passed(), expected.len())));
}

#[tokio::test]
async fn without_an_admin_client_everything_is_released_and_the_names_are_listed() {
    let store = MemoryStore::new();
    let harness = StoreHarness::new(store.clone()).with_prefix("shared");
    let report = run(&harness, Plan::default().only(["acquire-held", "read-list"])).await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.leftovers.len(), 4, "{:?}", report.leftovers);
    for name in &report.leftovers {
        assert!(name.starts_with("shared-"), "{name}");
        assert_eq!(store.read(&LeaseName::new(name).unwrap()).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_skip_that_is_not_expected_fails() {
    let plan = || Plan::default().only(["setup-rights", "acquire-free"]);
    let harness = StoreHarness::new(MemoryStore::new());
    assert!(run(&harness, plan()).await.is_ok(), "without a list any skip is accepted");
    assert!(run(&harness, plan().expect_skips(["setup-rights"])).await.is_ok());
    let report = run(&harness, plan().expect_skips(["time-zone"])).await;
    assert_eq!((report.passed(), report.failed(), report.skipped()), (1, 1, 0), "{report}");
    assert!(!report.is_ok());
}

#[tokio::test]
async fn a_run_of_nothing_fails() {
    let harness = StoreHarness::new(MemoryStore::new());
    let skipped = run(&harness, Plan::default().only(["setup-rights"])).await;
    assert!(!skipped.is_ok(), "nothing but skips is nothing: {skipped}");
    for plan in [Plan::default().only(["aquire"]), Plan::default().expect_skips(["setup-right"])] {
        let report = run(&harness, plan).await;
        assert_eq!((report.failed(), report.is_ok()), (1, false), "{report}");
    }
}

#[tokio::test]
async fn each_clause_is_told_of_when_it_ends() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let plan = Plan::default().only(["release"]).on_progress({
        let told = Arc::clone(&told);
        move |clause| told.lock().unwrap().push(clause.id)
    });
    let report = run(&StoreHarness::new(MemoryStore::new()), plan).await;
    let mut told = told.lock().unwrap().clone();
    let mut ids: Vec<_> = report.clauses.iter().map(|clause| clause.id).collect();
    told.sort_unstable();
    ids.sort_unstable();
    assert_eq!(told, ids);
}

/// A store with a trouble of its own.
#[derive(Debug)]
enum Troubled {
    Unreachable,
    Hangs,
    Panics(MemoryStore),
    BusyAtFirst(MemoryStore, AtomicUsize),
}

impl Troubled {
    async fn trouble(&self, operation: Operation) -> Result<&MemoryStore, StoreError> {
        let unavailable =
            |why| Err(StoreError::new(StoreErrorKind::Unavailable, operation, "troubled").with_detail(why));
        match self {
            Self::Unreachable => unavailable("connection refused"),
            Self::Hangs => pending().await,
            Self::Panics(_) if operation == Operation::Release => panic!("no release today"),
            Self::BusyAtFirst(_, calls) if !calls.fetch_add(1, SeqCst).is_multiple_of(3) => unavailable("busy"),
            Self::Panics(store) | Self::BusyAtFirst(store, _) => Ok(store),
        }
    }
}

#[async_trait]
impl LeaseStore for Troubled {
    fn describe(&self) -> StoreDescriptor {
        MemoryStore::new().describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        self.trouble(Operation::Acquire).await?.try_acquire(bid).await
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        self.trouble(Operation::Renew).await?.renew(grant).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        self.trouble(Operation::Release).await?.release(grant).await
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        self.trouble(Operation::Read).await?.read(name).await
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_fails_every_clause() {
    let harness = StoreHarness::new(Troubled::Unreachable);
    let report = run(&harness, Plan::default().only(["acquire", "setup-rights"])).await;
    assert_eq!((report.passed(), report.skipped()), (0, 0), "{report}");
    assert!(report.clauses[0].outcome.reason().unwrap().contains("connection refused"), "{report}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_fails_within_a_bound() {
    let harness = StoreHarness::new(Troubled::Hangs);
    let report = run(&harness, Plan::default().only(["release"]).clause_within(Duration::from_secs(5))).await;
    assert!(!report.is_ok(), "{report}");
    assert_eq!(report.passed(), 0);
}

#[tokio::test]
async fn a_store_that_panics_fails_the_clause_and_not_the_run() {
    let harness = StoreHarness::new(Troubled::Panics(MemoryStore::new()));
    let report = run(&harness, Plan::default().only(["release-frees", "acquire-free"])).await;
    assert_eq!((report.passed(), report.failed()), (1, 1), "{report}");
    assert!(report.to_string().contains("panicked: no release today"), "{report}");
}

#[tokio::test]
async fn a_busy_store_is_asked_again() {
    let harness = StoreHarness::new(Troubled::BusyAtFirst(MemoryStore::new(), AtomicUsize::new(1)));
    let report = run(&harness, Plan::default().only(["release-frees", "renew-grant"])).await;
    assert!(report.is_ok(), "{report}");
}

fn harness() -> impl Harness {
    StoreHarness::new(MemoryStore::new())
}

#[test]
fn a_test_passes_when_its_clause_passes_or_is_skipped_as_expected() {
    check("acquire_free", &[], "run::x", || async { harness() });
    check("setup_rights", &["setup-rights"], "run::x", || async { harness() });
    check_skips(&["setup-rights"]);
}

#[test]
#[should_panic(expected = "setup-rights was skipped, which the list of skips does not expect")]
fn a_test_fails_when_its_clause_is_skipped_unexpectedly() {
    check("setup_rights", &["setup-race"], "run::x", || async { harness() });
}

#[test]
#[should_panic(expected = "the store does not answer")]
fn a_test_fails_when_the_store_does_not_answer() {
    check("setup_rights", &["setup-rights"], "run::x", || async { StoreHarness::new(Troubled::Unreachable) });
}

#[test]
#[should_panic(expected = "no clause is called \"setup-right\"")]
fn a_list_of_skips_that_names_no_clause_fails() {
    check_skips(&["setup-right"]);
}
