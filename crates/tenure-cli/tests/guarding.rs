//! Whatever of tenure is killed or frozen, nothing runs past the lease, and the next one starts as soon as may be.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bench::{Bench, Running, is_alive, pids, until};
use rustix::process::{Pid, Signal, kill_process};

/// A program that writes its own number, and those of what it starts that hides from it: in a group of its own, in a
/// session of its own as an orphan, deaf to TERM, with every descriptor closed.
const TREE: &str = r#"trap "" TERM
    sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' &
    setsid sh -c 'echo $$ >> pids; exec sleep 300' &
    (setsid sh -c 'trap "" TERM; echo $$ >> pids; exec sleep 300 <&- >&- 2>&-' &)
    echo $$ >> pids
    while :; do sleep 1; done"#;

/// A leader whose tree is up: itself, the guard, and the tree with the program last.
struct Leader {
    tenure: Running,
    guard: i32,
    tree: Vec<i32>,
}

impl Leader {
    fn start(bench: &Bench, options: &[&str]) -> Self {
        let tenure = Running::start(bench.run(options, TREE));
        until("the tree is up", || pids(&bench.read("pids")).len() == 4);
        let mut tree = pids(&bench.read("pids"));
        let guard = children(tenure.pid().as_raw_nonzero().get())[0];
        let program = children(guard).into_iter().find(|pid| tree.contains(pid)).unwrap();
        tree.sort_unstable_by_key(|pid| *pid == program);
        Self { tenure, guard, tree }
    }

    fn is_tree_dead(&self) -> bool {
        !self.tree.iter().any(|pid| is_alive(*pid))
    }

    fn program(&self) -> i32 {
        self.tree[self.tree.len() - 1]
    }
}

fn children(parent: i32) -> Vec<i32> {
    pids(&fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default())
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The directory of the control group that tenure made for a program, if one could be had.
fn cgroup_of(pid: i32) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).filter(|path| path.contains("tenure-"))?;
    let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(|mount| PathBuf::from(mount).join(path));
    mounts.into_iter().find(|directory| directory.exists())
}

/// K21.
#[test]
fn a_tenure_that_is_killed_takes_the_whole_tree_with_it_and_the_next_one_starts_at_once() {
    let bench = Bench::new();
    let leader = Leader::start(&bench, &["--ttl", "60s"]);
    let mut next = Running::start(bench.run(&["--ttl", "60s"], "exit 3"));
    until("the next one waits", || !children(next.pid().as_raw_nonzero().get()).is_empty());
    leader.tenure.signal(Signal::KILL);
    let killed = Instant::now();
    until("the tree is dead", || leader.is_tree_dead());
    assert_eq!(next.code(), 3);
    // Milliseconds on an idle machine; without the guard it would be the ttl.
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
}

/// K21.
#[test]
fn a_tenure_that_is_frozen_past_the_lease_leaves_nothing_running() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "2s"]);
    let begun = Instant::now();
    leader.tenure.signal(Signal::STOP);
    until("the tree is dead", || leader.is_tree_dead());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    leader.tenure.signal(Signal::CONT);
    assert_eq!(leader.tenure.code(), 120);
}

#[test]
fn a_guard_that_is_killed_takes_the_program_with_it_and_tenure_kills_the_rest() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "60s"]);
    kill(leader.guard, Signal::KILL);
    let killed = Instant::now();
    until("the tree is dead", || leader.is_tree_dead());
    assert_eq!(leader.tenure.code(), 137, "as a program that was killed");
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    assert_eq!(bench.run(&["--try"], "true").status().unwrap().code(), Some(0), "the lease is free");
}

#[test]
fn a_guard_that_is_killed_before_its_term_is_replaced() {
    let bench = Bench::new();
    let mut leader = Running::start(bench.run(&["--ttl", "60s"], "until [ -e go ]; do sleep 0.01; done"));
    until("it leads", || bench.output(&["status", "nightly"]).status.success());
    let mut next = Running::start(bench.run(&["--ttl", "60s"], "exit 3"));
    let next_pid = next.pid().as_raw_nonzero().get();
    until("the guard is there before the term", || children(next_pid).iter().any(|guard| !children(*guard).is_empty()));
    for guard in children(next_pid) {
        kill(guard, Signal::KILL);
    }
    fs::write(bench.path("go"), "").unwrap();
    assert_eq!((leader.code(), next.code()), (0, 3));
}

#[test]
fn who_is_killed_while_it_waits_leaves_nothing_behind() {
    let bench = Bench::new();
    let _leader = Running::start(bench.run(&["--ttl", "60s"], "while :; do sleep 0.01; done"));
    until("it leads", || bench.output(&["status", "nightly"]).status.success());
    let waiting = Running::start(bench.run(&["--ttl", "60s"], "exit 3"));
    let guards = || children(waiting.pid().as_raw_nonzero().get());
    until("the guard and its stage are there", || guards().iter().any(|guard| !children(*guard).is_empty()));
    let guard = guards()[0];
    let stage = children(guard)[0];
    waiting.signal(Signal::KILL);
    until("all are gone", || !is_alive(guard) && !is_alive(stage));
}

#[test]
fn a_guard_that_is_frozen_hinders_nobody() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "2s", "--kill-grace", "100ms"]);
    kill(leader.guard, Signal::STOP);
    leader.tenure.signal(Signal::TERM);
    until("the tree is dead", || leader.is_tree_dead());
    assert_eq!(leader.tenure.code(), 137);
    assert!(!is_alive(leader.guard));
}

#[test]
fn a_guard_that_was_frozen_and_wakes_up_obeys_the_newest_deadline() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "1s"]);
    kill(leader.guard, Signal::STOP);
    // Several renewals later than the deadline that it knows.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(is_alive(leader.program()), "tenure leads all the time");
    kill(leader.guard, Signal::CONT);
    std::thread::sleep(Duration::from_millis(300));
    assert!(is_alive(leader.program()), "and goes on");
    leader.tenure.signal(Signal::TERM);
    assert_eq!(leader.tenure.code(), 137);
}

#[test]
fn a_stop_that_is_sent_to_all_processes_at_once_leaves_the_program_its_grace() {
    let bench = Bench::new();
    let script = "trap 'sleep 0.3; echo clean > done; exit 4' TERM; echo up > up; while :; do sleep 0.01; done";
    let mut run = Running::start(bench.run(&["--ttl", "10s"], script));
    bench.until_written("up", "up");
    let tenure = run.pid().as_raw_nonzero().get();
    let guard = children(tenure)[0];
    let program = children(guard)[0];
    // As systemd does with a unit's control group.
    for pid in [guard, tenure, program] {
        kill(pid, Signal::TERM);
    }
    assert_eq!(run.code(), 4);
    assert_eq!(bench.read("done"), "clean\n");
}

#[test]
fn the_program_dies_at_once_when_both_are_killed_in_either_order() {
    for guard_first in [true, false] {
        let bench = Bench::new();
        let leader = Leader::start(&bench, &["--ttl", "60s"]);
        let cgroup = cgroup_of(leader.program());
        let tenure = leader.tenure.pid().as_raw_nonzero().get();
        let (first, second) = if guard_first { (leader.guard, tenure) } else { (tenure, leader.guard) };
        kill(first, Signal::KILL);
        // It may be gone by itself already.
        let _ = kill_process(Pid::from_raw(second).unwrap(), Signal::KILL);
        let killed = Instant::now();
        until("the program is dead", || !is_alive(leader.program()));
        assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
        // What hid from the program may be left then where there is no control group, as the documentation says.
        if let Some(cgroup) = cgroup {
            until("what escaped is dead", || leader.is_tree_dead());
            until("the control group is gone", || !cgroup.exists());
        }
        for pid in leader.tree.iter().filter(|pid| is_alive(**pid)) {
            kill(*pid, Signal::KILL);
        }
    }
}

#[test]
fn a_control_group_goes_with_its_program_and_so_does_the_warden() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "60s", "--kill-grace", "100ms"]);
    // Without the right to make one there is nothing to see.
    let Some(cgroup) = cgroup_of(leader.program()) else { return };
    let tenure = leader.tenure.pid().as_raw_nonzero().get();
    until("the warden is there", || children(tenure).len() == 2);
    let warden = *children(tenure).iter().find(|pid| **pid != leader.guard).unwrap();
    let known_as = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    until("the warden hears signals", || known_as(warden) == "tenure-warden\n");
    assert_eq!(known_as(leader.guard), "tenure-guard\n");
    let in_it = pids(&fs::read_to_string(cgroup.join("cgroup.procs")).unwrap());
    assert!(leader.tree.iter().all(|pid| in_it.contains(pid)), "the whole tree is in it: {in_it:?}");
    assert!(!in_it.contains(&tenure) && !in_it.contains(&leader.guard) && !in_it.contains(&warden), "{in_it:?}");
    kill(warden, Signal::TERM);
    leader.tenure.signal(Signal::TERM);
    assert_eq!(leader.tenure.code(), 137);
    until("all is gone", || !cgroup.exists() && !is_alive(warden));
}

#[test]
fn a_lease_that_was_removed_by_hand_ends_the_program_in_a_moment() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "60s"]);
    bench.database().execute("UPDATE tenure_leases SET candidate = NULL");
    let removed = Instant::now();
    until("the tree is dead", || leader.is_tree_dead());
    // The acceptance is 100 ms on an idle machine; the next renewal would be due after 20 s.
    assert!(removed.elapsed() < Duration::from_secs(3), "{:?}", removed.elapsed());
    assert_eq!(leader.tenure.code(), 120);
}

#[test]
fn what_ignores_every_signal_is_dead_before_a_graceful_stop_gives_the_lease_away() {
    let bench = Bench::new();
    let mut leader = Leader::start(&bench, &["--ttl", "10s", "--kill-grace", "200ms"]);
    leader.tenure.signal(Signal::TERM);
    assert_eq!(leader.tenure.code(), 137);
    assert!(leader.is_tree_dead());
    assert_eq!(bench.run(&["--try"], "true").status().unwrap().code(), Some(0), "the lease is free");
}

#[test]
fn neither_the_guard_nor_the_program_shows_the_store_and_the_program_gets_no_descriptor() {
    let bench = Bench::new();
    let leader = Leader::start(&bench, &["--ttl", "60s"]);
    for pid in [leader.guard, leader.program()] {
        for file in ["cmdline", "environ"] {
            let shown = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap()).into_owned();
            assert!(!shown.contains("leases.db"), "{file}: {shown}");
        }
    }
    let open: Vec<_> = fs::read_dir(format!("/proc/{}/fd", leader.program())).unwrap().flatten().collect();
    let above: Vec<_> = open.iter().filter(|fd| fd.file_name().to_str().unwrap().parse::<i32>().unwrap() > 2).collect();
    // The shell itself may hold its script open under a high number; it reads none here.
    assert!(above.is_empty(), "{above:?}");
}

#[test]
fn without_a_guard_the_program_is_tenures_own_child() {
    let bench = Bench::new();
    let mut run = Running::start(bench.run(&["--guard", "off", "--ttl", "60s"], "echo $$ > pid; exec sleep 300"));
    until("the program runs", || !pids(&bench.read("pid")).is_empty());
    assert_eq!(children(run.pid().as_raw_nonzero().get()), pids(&bench.read("pid")));
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 128 + 15);
}
