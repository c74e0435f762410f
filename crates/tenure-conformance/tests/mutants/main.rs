//! The suite itself is tested: stores that are wrong on purpose, one mistake of the field each, are caught by the
//! clause made for it, and the right store by none.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream;
use tenure_conformance::{Outcome, Plan, clauses, run};

mod bench;
mod map;
mod mistake;
mod names;
mod server;
mod store;
mod watch;

use bench::Bench;
use map::MAP;
use mistake::Mistake;

/// Runs at once: most of them wait for something to run out.
const AT_ONCE: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_store_passes_every_clause() {
    let report = run(&Bench::right(), Plan::default().expect_skips(Vec::<String>::new())).await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(report.passed(), clauses().len());
    assert_eq!(report.leftovers, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mistake_is_caught_by_the_clause_made_for_it() {
    let pairs = MAP.iter().flat_map(|(clause, mistakes)| mistakes.iter().map(move |mistake| (*clause, *mistake)));
    let survivors: Vec<_> = stream::iter(pairs)
        .map(|(clause, mistake)| async move { survives(clause, mistake).await })
        .buffer_unordered(AT_ONCE)
        .filter_map(|survivor| async { survivor })
        .collect()
        .await;
    assert!(survivors.is_empty(), "{} not caught:\n{}", survivors.len(), survivors.join("\n"));
}

/// What happened instead of a failure of the clause.
async fn survives(clause: &str, mistake: Mistake) -> Option<String> {
    let report = run(&Bench::wrong(mistake), Plan::default().only([clause])).await;
    match &report.clauses[..] {
        [only] if matches!(only.outcome, Outcome::Failed(_)) => {
            println!("{clause} catches {mistake:?}: {}", only.outcome.reason().unwrap_or_default());
            None
        }
        _ => Some(format!("{mistake:?} by {clause}: {report}")),
    }
}

#[test]
fn every_clause_has_a_mistake_and_every_mistake_a_clause() {
    let mapped: Vec<&str> = MAP.iter().map(|(clause, _)| *clause).collect();
    let ids: Vec<&str> = clauses().iter().map(|clause| clause.id()).collect();
    assert_eq!(mapped, ids, "the map names each clause once, in the order of the suite");
    assert!(MAP.iter().all(|(_, mistakes)| !mistakes.is_empty()), "a clause that catches nothing proves nothing");
    let caught: HashSet<Mistake> = MAP.iter().flat_map(|(_, mistakes)| mistakes.iter().copied()).collect();
    let nobodys: Vec<_> = Mistake::ALL.iter().filter(|mistake| !caught.contains(mistake)).collect();
    assert!(nobodys.is_empty(), "no clause is made for {nobodys:?}");
}
