//! A client in a real child process.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use tenure_conformance::{ChildProcess, Elsewhere, Surroundings, Unable, serve_child};
use tenure_core::{
    Acquired, Bid, CandidateId, Label, LeaseName, LeaseStore, LossReason, MemoryStore, Payload, Released, Renewed,
    StoreErrorKind,
};
use tokio::process::Command;

/// Set for the child, which is this program again.
const SERVE: &str = "TENURE_CONFORMANCE_TEST_SERVE";

fn this_program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["serves", "--exact", "--nocapture", "--test-threads=1"]).env(SERVE, "1");
    command
}

/// Not a test of its own: what the child runs.
#[tokio::test]
async fn serves() {
    if std::env::var_os(SERVE).is_some() {
        serve_child(&MemoryStore::new()).await.unwrap();
    }
}

fn bid(name: &str) -> Bid {
    let candidate = CandidateId::draw(&Label::new("worker \"7\"").unwrap());
    Bid::new(LeaseName::new(name).unwrap(), candidate, Duration::from_secs(60))
        .with_payload(Payload::new("a\nb").unwrap())
}

#[tokio::test]
async fn calls_are_made_over_there_until_it_is_killed() {
    let process = ChildProcess::start(this_program(), &Surroundings::default()).await.unwrap();
    let store = process.store();
    assert_eq!(store.describe().name, "memory");
    let bid = bid("nightly/{a} é");
    let Acquired::Granted(grant) = store.try_acquire(&bid).await.unwrap() else { panic!("held") };
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.read(&bid.name).await.unwrap().unwrap().payload, bid.payload);
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(store.read(&bid.name).await.unwrap(), None);
    process.kill().await.unwrap();
    assert_eq!(store.read(&bid.name).await.unwrap_err().kind(), StoreErrorKind::Unknown);
}

#[tokio::test]
async fn a_wall_clock_that_is_not_where_it_shall_be_fails_instead_of_proving_nothing() {
    let ahead = Surroundings::default().with_wall_clock_ahead(10 * 365 * 24 * 3600);
    match ChildProcess::start(this_program(), &ahead).await {
        // With libfaketime: the child's clock was compared, so it is ahead, and its leases still last.
        Ok(process) => {
            let bid = bid("shifted");
            assert!(matches!(process.store().try_acquire(&bid).await.unwrap(), Acquired::Granted(_)));
            let left = process.store().read(&bid.name).await.unwrap().unwrap().remaining;
            assert!(left > Duration::from_secs(30), "{left:?}");
        }
        // Without: the clause is skipped, with this reason.
        Err(Unable::Lacks(reason)) => assert!(reason.contains("libfaketime"), "{reason}"),
        Err(failed) => panic!("{failed}"),
    }
}

#[tokio::test]
async fn a_program_that_serves_nothing_is_an_error() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--list"]);
    let failed = ChildProcess::start(command, &Surroundings::default()).await.unwrap_err();
    assert_eq!(failed, Unable::Failed("the child process ended".to_owned()));
}
