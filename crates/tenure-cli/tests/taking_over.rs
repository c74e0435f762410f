//! One at a time, and the next one soon.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::time::{Duration, Instant};

use bench::{Bench, Running, is_alive, pids, text, until};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn of_three_started_at_once_the_program_runs_in_one_at_a_time() {
    let bench = Bench::new();
    // Making a directory fails where there is one: two at once would show.
    let script = "mkdir running || echo overlap >> log; echo $TENURE_TOKEN >> log; sleep 0.2; rmdir running";
    let mut all: Vec<_> = (0..3).map(|_| Running::start(bench.run(&[], script))).collect();
    assert_eq!(all.iter_mut().map(Running::code).collect::<Vec<_>>(), [0, 0, 0]);
    let tokens = pids(&bench.read("log"));
    assert!(tokens.len() == 3 && tokens.is_sorted_by(|a, b| a < b), "{:?}", bench.read("log"));
}

#[test]
fn when_the_program_ends_the_next_one_starts_soon() {
    let bench = Bench::new();
    let mut first =
        Running::start(bench.run(&["--ttl", "30s"], "echo on > first; until [ -e go ]; do sleep 0.01; done"));
    bench.until_written("first", "on");
    let mut second = Running::start(bench.run(&["--ttl", "30s"], "date +%s%N > second"));
    until("the second one waits", || text(&bench.output(&["status", "nightly"]).stdout).contains("leads"));
    std::fs::write(bench.path("go"), "").unwrap();
    assert_eq!(first.code(), 0);
    let ended = Instant::now();
    assert_eq!(second.code(), 0);
    // The acceptance is 100 ms on an idle machine; tests run side by side on a busy one. A ttl would be 30 s.
    assert!(ended.elapsed() < Duration::from_secs(2), "{:?}", ended.elapsed());
}

#[test]
fn when_the_leader_and_its_program_are_killed_the_next_one_starts_within_the_ttl() {
    let bench = Bench::new();
    let leader = Running::start(bench.run(&["--ttl", "2s"], "echo $$ > pid; exec sleep 60"));
    until("the program runs", || !pids(&bench.read("pid")).is_empty());
    let program = pids(&bench.read("pid"))[0];
    let mut next = Running::start(bench.run(&["--ttl", "2s"], "exit 3"));
    until("the next one waits", || is_alive(next.pid().as_raw_nonzero().get()));
    leader.signal(Signal::KILL);
    kill_process(Pid::from_raw(program).unwrap(), Signal::KILL).unwrap();
    let killed = Instant::now();
    assert_eq!(next.code(), 3);
    assert!(killed.elapsed() < Duration::from_millis(4500), "{:?}", killed.elapsed());
}

#[test]
fn a_lease_that_is_held_on_exit_or_for_a_minimum_is_not_free_before() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["--on-exit", "hold"], "exit 5").status().unwrap().code(), Some(5));
    assert_eq!(bench.run(&["--try"], "true").status().unwrap().code(), Some(124), "it runs out by itself");
    until("it has run out", || bench.run(&["--try"], "true").status().unwrap().code() == Some(0));

    let begin = Instant::now();
    let mut quick = Running::start(bench.run(&["--min-hold", "1500ms"], "echo ran > quick; exit 6"));
    bench.until_written("quick", "ran");
    let mut next = Running::start(bench.run(&[], "exit 0"));
    assert_eq!(next.code(), 0);
    assert!(begin.elapsed() >= Duration::from_millis(1500), "{:?}", begin.elapsed());
    assert_eq!(quick.code(), 6);
}

#[test]
fn after_a_loss_a_candidate_that_rejoins_starts_the_program_anew_under_a_higher_token() {
    let bench = Bench::new();
    let script = "echo $TENURE_TOKEN >> tokens; [ $(wc -l < tokens) -ge 2 ] && exit 9; sleep 60";
    let mut leader = Running::start(bench.run(&["--on-lost", "rejoin", "--ttl", "1s"], script));
    bench.until_written("tokens", "1");
    // Frozen past its lease, with its program.
    bench.freeze_between_writes(&leader);
    until("another one led meanwhile", || bench.run(&["--try"], "true").status().unwrap().code() == Some(0));
    leader.signal(Signal::CONT);
    assert_eq!(leader.code(), 9);
    let tokens = pids(&bench.read("tokens"));
    assert!(tokens.len() == 2 && tokens[1] > tokens[0] + 1, "{tokens:?}");
}
