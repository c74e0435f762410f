//! What a program gets, how it is stopped, and that nothing of it is left.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use bench::{Bench, Running, is_alive, pids, text, until};
use rustix::process::Signal;

#[test]
fn a_program_gets_its_term_and_nothing_of_how_to_reach_the_store() {
    let bench = Bench::new();
    let mut command = bench.run(&["--id", "worker-7"], "env; echo fds; ls /proc/self/fd");
    command.env("TENURE_STORE_FILE", "");
    let output = command.output().unwrap();
    let all = text(&output.stdout);
    let (environment, descriptors) = all.split_once("fds\n").unwrap();
    let ours: Vec<_> = environment.lines().filter(|line| line.starts_with("TENURE_")).collect();
    let value = |name: &str| ours.iter().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap_or("missing");
    assert_eq!((value("TENURE_NAME"), value("TENURE_TTL_MS")), ("nightly", "1000"));
    assert_eq!((value("TENURE_TOKEN"), value("TENURE_STORE_KIND")), ("1", "sqlite"));
    assert!(value("TENURE_CANDIDATE").starts_with("worker-7_"));
    assert_eq!(ours.len(), 5, "{ours:?}");
    // 3 is the directory that ls itself has open.
    assert_eq!(pids(descriptors), [0, 1, 2, 3]);
}

#[test]
fn an_inherited_descriptor_does_not_reach_the_program() {
    let bench = Bench::new();
    let file = File::create(bench.path("open")).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let output = bench.run(&[], "ls /proc/self/fd").output().unwrap();
    assert_eq!(pids(&text(&output.stdout)), [0, 1, 2, 3], "descriptor {} came through", file.as_raw_fd());
}

/// K21.
#[test]
fn a_stop_reaches_the_program_once_and_the_lease_outlives_it() {
    let bench = Bench::new();
    let script =
        "trap 'echo term >> log; sleep 0.3; echo end >> log; exit 4' TERM; echo on > log; while :; do sleep 0.05; done";
    let mut leader = Running::start(bench.run(&["--ttl", "5s"], script));
    bench.until_written("log", "on");
    let mut next = Running::start(bench.run(&["--ttl", "5s"], "echo next >> log"));
    leader.signal(Signal::TERM);
    assert_eq!(leader.code(), 4, "exits as the program did");
    assert_eq!(next.code(), 0);
    assert_eq!(bench.read("log"), "on\nterm\nend\nnext\n");
}

#[test]
fn a_second_stop_kills_at_once() {
    let bench = Bench::new();
    let script = "trap 'echo term > term' TERM; echo on > log; while :; do sleep 0.05; done";
    let mut leader = Running::start(bench.run(&["--ttl", "60s"], script));
    bench.until_written("log", "on");
    leader.signal(Signal::TERM);
    bench.until_written("term", "term");
    let asked = Instant::now();
    leader.signal(Signal::TERM);
    assert_eq!(leader.code(), 137);
    assert!(asked.elapsed() < Duration::from_secs(5), "the grace of 12 s was waited for");
}

#[test]
fn a_program_that_ignores_the_stop_is_killed_after_the_grace() {
    let bench = Bench::new();
    let mut leader =
        Running::start(bench.run(
            &["--ttl", "2s", "--kill-grace", "300ms"],
            "trap '' TERM; echo on > log; while :; do sleep 0.05; done",
        ));
    bench.until_written("log", "on");
    leader.signal(Signal::TERM);
    assert_eq!(leader.code(), 137);
    assert_eq!(bench.output(&["status", "nightly"]).status.code(), Some(1), "and the lease was freed");
}

/// K21.
#[test]
fn nothing_that_a_program_started_outlives_a_lost_lease() {
    let bench = Bench::new();
    // Ignores TERM; a session of its own; a double fork that closes everything.
    let script = "trap '' TERM
        sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.05; done' &
        setsid sh -c 'trap \"\" TERM; echo $$ >> pids; while :; do sleep 0.05; done' &
        (setsid sh -c 'exec <&- >&- 2>&-; echo $$ >> pids; exec sleep 60' &)
        echo $$ >> pids; while :; do sleep 0.05; done";
    let mut leader = Running::start(bench.run(&["--ttl", "1s"], script));
    until("all have started", || pids(&bench.read("pids")).len() == 4);
    let started = pids(&bench.read("pids"));
    assert!(started.iter().all(|pid| is_alive(*pid)));
    // The store is gone: no renewal can succeed.
    std::fs::rename(bench.path("leases.db"), bench.path("gone.db")).unwrap();
    std::fs::create_dir(bench.path("leases.db")).unwrap();
    assert_eq!(leader.code(), 120);
    assert_eq!(started.into_iter().filter(|pid| is_alive(*pid)).collect::<Vec<_>>(), []);
}

/// K07.
#[test]
fn what_a_program_leaves_behind_is_gone_before_the_next_one_starts() {
    let bench = Bench::new();
    let leaves = "(setsid sh -c 'echo $$ > pid; exec sleep 60' &); until [ -s pid ]; do sleep 0.01; done; exit 8";
    assert_eq!(bench.run(&[], leaves).status().unwrap().code(), Some(8));
    assert!(!is_alive(pids(&bench.read("pid"))[0]));
}

#[test]
fn other_signals_are_passed_on() {
    let bench = Bench::new();
    let script = "trap 'echo usr1 >> log' USR1; trap 'echo usr2 >> log; exit 0' USR2; echo on > log; while :; do sleep 0.02; done";
    let mut leader = Running::start(bench.run(&["--ttl", "30s"], script));
    bench.until_written("log", "on");
    leader.signal(Signal::USR1);
    bench.until_written("log", "usr1");
    leader.signal(Signal::USR2);
    assert_eq!(leader.code(), 0);
}

#[test]
fn a_store_that_is_down_for_less_than_the_lease_changes_nothing() {
    let bench = Bench::new();
    let mut leader =
        Running::start(bench.run(&["--ttl", "3s"], "echo on > log; until [ -e go ]; do sleep 0.05; done; exit 2"));
    bench.until_written("log", "on");
    let down = Instant::now();
    // A lock keeps every renewal out.
    let mut database = bench.database();
    database.execute("BEGIN EXCLUSIVE");
    // Longer than a renewal interval, shorter than what the term has left.
    until("a while has passed", || down.elapsed() > Duration::from_millis(1200));
    database.execute("ROLLBACK");
    until("longer than the ttl has passed", || down.elapsed() > Duration::from_millis(3500));
    std::fs::write(bench.path("go"), "").unwrap();
    assert_eq!(leader.code(), 2, "lost over a short outage");
}

#[test]
fn the_outcome_is_one_line_of_json_on_the_descriptor_that_was_named() {
    let bench = Bench::new();
    for (script, code, line) in [
        ("exit 3", 3, "\"outcome\":\"exited\",\"code\":3,\"signal\":null,\"token\":1,\"reason\":null}"),
        ("kill -9 $$", 137, "\"outcome\":\"exited\",\"code\":137,\"signal\":9,\"token\":2,\"reason\":null}"),
    ] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::io::fcntl_setfd(&writer, rustix::io::FdFlags::empty()).unwrap();
        let status_fd = writer.as_raw_fd().to_string();
        let status = bench.run(&["--status-fd", &status_fd], script).status().unwrap();
        drop(writer);
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        assert_eq!(status.code(), Some(code));
        assert_eq!(told, format!("{{\"v\":1,{line}\n"));
    }
}
