//! Several processes, one file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use futures::StreamExt;
use tenure_core::{Acquired, Bid, CandidateId, Label, LeaseStore, Released};
use tenure_sql::SqliteStore;

use crate::bench::{Bench, bid, granted, name};

const ROLE: &str = "TENURE_SQL_CHILD_ROLE";
const DIRECTORY: &str = "TENURE_SQL_CHILD_DIRECTORY";
const ROUNDS: u32 = 25;
const HOLD: Duration = Duration::from_secs(2);

/// Starts this test binary again, to do what `role` says in `child`.
fn spawn(bench: &Bench, role: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "processes::child", "--nocapture", "--include-ignored"])
        .env(ROLE, role)
        .env(DIRECTORY, bench.directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn succeed(children: Vec<Child>) {
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
#[ignore = "not a test of its own: the other tests run it in child processes"]
fn child() {
    let (Ok(role), Ok(directory)) = (env::var(ROLE), env::var(DIRECTORY)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = Path::new(&directory);
    runtime.block_on(async {
        let store = SqliteStore::open(directory.join("x.db")).await.unwrap();
        match role.as_str() {
            "open" => {}
            "count" => count(&store, &directory.join("counter")).await,
            "hold" => {
                let mut bid = bid("nightly");
                bid.ttl = HOLD;
                granted(&store, &bid).await;
                fs::write(directory.join("held"), "").unwrap();
                std::future::pending::<()>().await;
            }
            other => panic!("no role {other:?}"),
        }
    });
}

/// Adds one to a number in a file, which takes two steps, `ROUNDS` times under the lease.
async fn count(store: &SqliteStore, counter: &Path) {
    let mut watch = store.watch(&name("counter"));
    for _ in 0..ROUNDS {
        let bid = bid("counter");
        let grant = loop {
            match store.try_acquire(&bid).await.unwrap() {
                Acquired::Granted(grant) => break grant,
                Acquired::Held(_) => drop(tokio::time::timeout(Duration::from_millis(100), watch.next()).await),
            }
        };
        let number: u32 = fs::read_to_string(counter).unwrap().parse().unwrap();
        tokio::task::yield_now().await;
        fs::write(counter, (number + 1).to_string()).unwrap();
        assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    }
}

#[tokio::test]
async fn processes_that_count_under_the_lease_lose_no_step() {
    let bench = Bench::new();
    let counter = bench.directory.path().join("counter");
    fs::write(&counter, "0").unwrap();
    succeed((0..6).map(|_| spawn(&bench, "count")).collect());
    assert_eq!(fs::read_to_string(&counter).unwrap(), (6 * ROUNDS).to_string());
    let last = granted(&bench.open().await, &bid("counter")).await;
    assert_eq!(last.token.value(), u64::from(6 * ROUNDS) + 1);
}

#[test]
fn processes_that_create_the_file_at_once_all_succeed() {
    for _ in 0..5 {
        let bench = Bench::new();
        succeed((0..8).map(|_| spawn(&bench, "open")).collect());
    }
}

/// K08.
#[tokio::test]
async fn the_lease_of_a_killed_process_is_free_after_its_ttl_and_not_before() {
    let bench = Bench::new();
    let store = bench.open().await;
    let mut holder = spawn(&bench, "hold");
    let mark = bench.directory.path().join("held");
    crate::bench::eventually("the child holds the lease", async || mark.exists()).await;
    holder.kill().unwrap();
    holder.wait().unwrap();
    let seen = Instant::now();
    let record = store.read(&name("nightly")).await.unwrap().expect("the killed process's lease goes on");
    let candidate = CandidateId::draw(&Label::new("successor").unwrap());
    let bid = Bid::new(name("nightly"), candidate, HOLD);
    loop {
        match store.try_acquire(&bid).await.unwrap() {
            Acquired::Held(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            Acquired::Granted(grant) => {
                assert!(seen.elapsed() >= record.remaining - Duration::from_millis(5), "taken over early");
                assert!(!grant.after_release);
                break;
            }
        }
        assert!(seen.elapsed() < HOLD * 5, "never taken over");
    }
}

#[tokio::test]
async fn of_many_bids_at_once_exactly_one_is_granted() {
    let bench = Bench::new();
    let mut stores = Vec::new();
    for _ in 0..8 {
        stores.push(bench.open().await);
    }
    let mut last = 0;
    for round in 0..20 {
        let bids: Vec<Bid> = (0..64).map(|_| bid("contended")).collect();
        let answers =
            futures::future::join_all(bids.iter().enumerate().map(|(n, bid)| stores[n % 8].try_acquire(bid))).await;
        let mut grants = answers.into_iter().filter_map(|answer| match answer.unwrap() {
            Acquired::Granted(grant) => Some(grant),
            Acquired::Held(_) => None,
        });
        let grant = grants.next().expect("somebody got it");
        assert!(grants.next().is_none(), "two grants in round {round}");
        assert!(grant.token.value() > last);
        last = grant.token.value();
        assert_eq!(stores[round % 8].release(&grant).await.unwrap(), Released::Freed);
    }
}
