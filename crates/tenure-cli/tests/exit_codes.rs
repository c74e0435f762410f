//! Every row of the table of exit codes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use bench::{Bench, Running, text};
use rustix::process::Signal;

#[test]
fn the_programs_own_code_comes_through() {
    let bench = Bench::new();
    for code in [0, 1, 7, 120, 125, 255] {
        let output = bench.run(&[], &format!("exit {code}")).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    }
}

#[test]
fn death_by_a_signal_is_128_and_the_signal() {
    let bench = Bench::new();
    assert_eq!(bench.run(&[], "kill -KILL $$").status().unwrap().code(), Some(137));
    assert_eq!(bench.run(&[], "kill -TERM $$").status().unwrap().code(), Some(143));
}

#[test]
fn who_never_led_exits_124_or_as_asked() {
    let bench = Bench::new();
    let mut leader = Running::start(bench.run(&[], "echo on > leader; sleep 60"));
    bench.until_written("leader", "on");
    for (options, code) in [
        (&["--try"][..], 124),
        (&["--try", "-E", "0"], 0),
        (&["--wait", "200ms"], 124),
        (&["--wait", "200ms", "-E", "255"], 255),
    ] {
        let output = bench.run(options, "echo ran > other").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {}", text(&output.stderr));
    }
    assert_eq!(bench.read("other"), "", "the program ran without leadership");
    leader.signal(Signal::TERM);
    assert_eq!(leader.code(), 143);
}

#[test]
fn a_lost_leadership_is_120() {
    let bench = Bench::new();
    let mut leader = Running::start(bench.run(&[], "echo on > leader; sleep 60"));
    bench.until_written("leader", "on");
    bench.database().execute("DELETE FROM tenure_leases");
    assert_eq!(leader.code(), 120);
}

#[test]
fn what_tenure_itself_cannot_do_is_125() {
    let bench = Bench::new();
    let missing = format!("sqlite://{}", bench.path("no/such/directory/x.db").display());
    for (arguments, message) in [
        (&["run", "--", "true"][..], "no lease is named"),
        (&["run", "--name", "n"], "CMD"),
        (&["run", "--name", "", "--", "true"], "lease name is empty"),
        (&["run", "--name", "n", "-E", "600", "--", "true"], "600"),
        (&["run", "--name", "n", "--ttl", "1x", "--", "true"], "a duration is written as"),
        (&["run", "--name", "n", "--ttl", "10ms", "--", "true"], "must not exceed the validity"),
        (&["run", "--name", "n", "--kill-grace", "14s", "--", "true"], "must not exceed the validity"),
        (&["run", "--name", "n", "--stop-signal", "NONE", "--", "true"], "a signal is a number or one of"),
        (&["run", "--name", "n", "--try", "--wait", "1s", "--", "true"], "cannot be used with"),
        (&["run", "--name", "n", "--id", "", "--", "true"], "candidate label is empty"),
        (&["run", "--name", "n", "--status-fd", "77", "--", "true"], "--status-fd 77"),
        (&["run", "--name", "n", "--store", "mongodb://h", "--", "true"], "the scheme \"mongodb\" is not known"),
        (&["run", "--name", "n", "--store", &missing, "--", "true"], "does not exist"),
        (&["run", "--name", "n", "--store-file", "nowhere", "--", "true"], "cannot read nowhere"),
    ] {
        let output = bench.output(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert_eq!(text(&output.stdout), "", "stdout is for answers: {arguments:?}");
    }
}

#[test]
fn a_program_that_cannot_be_run_is_126_or_127_and_the_lease_is_freed_first() {
    let bench = Bench::new();
    std::fs::write(bench.path("plain"), "no program").unwrap();
    let plain = bench.path("plain").display().to_string();
    for (program, code) in [("no-such-program", 127), ("/no/such/program", 127), (plain.as_str(), 126), ("/", 126)] {
        let output = bench.output(&["run", "--name", "nightly", "--", program]);
        assert_eq!(output.status.code(), Some(code), "{program}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(program));
        assert_eq!(bench.output(&["status", "nightly"]).status.code(), Some(1), "the lease was not freed");
    }
}

/// K21.
#[test]
fn who_is_stopped_while_waiting_exits_by_the_signal_within_a_second() {
    let bench = Bench::new();
    let leader = Running::start(bench.run(&["--ttl", "30s"], "echo on > leader; sleep 60"));
    bench.until_written("leader", "on");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::QUIT, 131), (Signal::HUP, 129)] {
        let mut command = bench.run(&["-v"], "echo ran > other");
        command.stderr(std::fs::File::create(bench.path("log")).unwrap());
        let mut waiting = Running::start(command);
        bench.until_written("log", "");
        std::thread::yield_now();
        wait_for_handlers(&waiting);
        let asked = std::time::Instant::now();
        waiting.signal(signal);
        assert_eq!(waiting.code(), code);
        assert!(asked.elapsed().as_secs_f64() < 1.5, "{:?}", asked.elapsed());
    }
    assert_eq!(bench.read("other"), "");
    drop(leader);
}

/// Waits until the process handles TERM: before that, any program dies of it.
fn wait_for_handlers(process: &Running) {
    let status = format!("/proc/{}/status", process.0.id());
    bench::until("the signals are handled", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim).unwrap_or("0");
        u64::from_str_radix(caught, 16).unwrap_or(0) & (1 << 14) != 0
    });
}
