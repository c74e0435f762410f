//! A run that tells over HTTP how things stand, and metrics of both kinds of candidates.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::net::TcpListener;

use bench::{Bench, Running, text, until};
use rustix::process::Signal;

/// The value of a metric of the lease `nightly`, as Prometheus would read it; `labels` beside name and store.
fn metric(bench: &Bench, metric: &str, labels: &str) -> Option<f64> {
    let (_, all) = bench.ask("a", "GET /metrics")?;
    let line = format!("{metric}{{name=\"nightly\",store=\"sqlite\"{labels}}} ");
    all.lines().find_map(|found| found.strip_prefix(&line))?.parse().ok()
}

#[test]
fn a_run_is_asked_as_a_candidate_without_a_program_is() {
    let bench = Bench::new();
    let mut run =
        Running::start(bench.run(&["--listen", &bench.listen("a")], "until [ -e done ]; do sleep 0.01; done"));
    until("it leads", || bench.status_of("a", "/leader") == 200);
    let (_, status) = bench.ask("a", "GET /v1/status").unwrap();
    assert!(status.contains("\"leads\":true,") && status.contains("\"token\":1,"), "{status}");
    assert_eq!((bench.status_of("a", "/livez"), bench.status_of("a", "/readyz")), (200, 200));
    std::fs::write(bench.path("done"), "").unwrap();
    assert_eq!(run.code(), 0);
    assert!(!bench.path("a").exists(), "the socket is gone");
}

#[test]
fn a_program_that_was_told_to_stop_leads_nobodys_requests_here() {
    let bench = Bench::new();
    let script =
        "trap 'until [ -e done ]; do sleep 0.01; done; exit 3' TERM; touch ready; while :; do sleep 0.01; done";
    let mut run = Running::start(bench.run(&["--ttl", "60s", "--listen", &bench.listen("a")], script));
    until("the program is ready", || bench.path("ready").exists() && bench.status_of("a", "/leader") == 200);
    run.signal(Signal::TERM);
    until("others go elsewhere", || bench.status_of("a", "/leader") == 503);
    assert_eq!(
        bench.run(&["--try"], "true").status().unwrap().code(),
        Some(124),
        "the lease is kept until it has ended"
    );
    std::fs::write(bench.path("done"), "").unwrap();
    assert_eq!(run.code(), 3);
}

#[test]
fn resigning_stops_the_program_and_frees_the_lease() {
    let bench = Bench::new();
    let script = "trap 'touch stopped; exit 0' TERM; while :; do sleep 0.01; done";
    let mut run = Running::start(bench.run(&["--ttl", "60s", "--listen", &bench.listen("a")], script));
    until("it leads", || bench.status_of("a", "/leader") == 200);
    let mut next = Running::start(bench.run(&["--wait", "20s"], "[ -e stopped ]"));
    until("it is asked to resign", || bench.ask("a", "POST /v1/resign").is_some_and(|(status, _)| status == 202));
    assert_eq!(run.code(), 120);
    assert_eq!(next.code(), 0, "the next one began after the program had stopped");
}

#[test]
fn who_rejoins_leads_again_after_it_has_resigned() {
    let bench = Bench::new();
    let listen = bench.listen("a");
    let script = "echo $TENURE_TOKEN >> tokens; [ $TENURE_TOKEN = 2 ] || while :; do sleep 0.01; done";
    let mut run = Running::start(bench.run(&["--on-lost", "rejoin", "--listen", &listen], script));
    bench.until_written("tokens", "1");
    until("it is asked to resign", || bench.ask("a", "POST /v1/resign").is_some_and(|(status, _)| status == 202));
    assert_eq!(run.code(), 0);
    assert_eq!(bench.read("tokens"), "1\n2\n");
}

#[test]
fn a_place_that_is_taken_is_125_before_the_first_bid() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let output = bench.run(&["--listen", &taken.local_addr().unwrap().to_string()], "true").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("cannot listen on 127.0.0.1"), "{}", text(&output.stderr));
    assert!(!bench.path("leases.db").exists(), "nothing was bid for");
}

#[test]
fn metrics_tell_of_a_leader_from_its_first_bid_to_its_loss() {
    let bench = Bench::new();
    let arguments = ["serve", "--name", "nightly", "--ttl", "1s", "--listen", &bench.listen("a")];
    let _leader = Running::start(bench.tenure(&arguments));
    until("it leads", || metric(&bench, "tenure_leader", "") == Some(1.0));
    assert_eq!(metric(&bench, "tenure_fencing_token", ""), Some(1.0));
    assert_eq!(metric(&bench, "tenure_transitions_total", ""), Some(1.0));
    assert_eq!(metric(&bench, "tenure_acquire_attempts_total", ",outcome=\"granted\""), Some(1.0));
    assert_eq!(metric(&bench, "tenure_handover_duration_seconds_count", ""), Some(1.0));
    let left = metric(&bench, "tenure_lease_remaining_seconds", "").unwrap();
    assert!(left > 0.0 && left <= 1.0, "{left}");
    until("it renews", || metric(&bench, "tenure_renewals_total", ",outcome=\"extended\"").is_some_and(|n| n >= 2.0));
    assert!(metric(&bench, "tenure_renewal_duration_seconds_count", "").is_some_and(|n| n >= 2.0));
    assert!(metric(&bench, "tenure_store_request_duration_seconds_count", ",op=\"renew\"").is_some_and(|n| n >= 2.0));
    for reason in ["expired", "superseded", "removed", "suspended", "malformed"] {
        let lost = metric(&bench, "tenure_losses_total", &format!(",reason=\"{reason}\""));
        assert_eq!(lost, Some(0.0), "{reason} is there before it happens");
    }
    assert_eq!(metric(&bench, "tenure_work_overruns_total", ""), Some(0.0));
    bench.database().execute("UPDATE tenure_leases SET candidate = 'somebody', token = token + 1");
    until("the loss is counted", || metric(&bench, "tenure_losses_total", ",reason=\"superseded\"") == Some(1.0));
}

#[test]
fn a_follower_says_that_it_does_not_lead() {
    let bench = Bench::new();
    let _leader = Running::start(bench.run(&["--ttl", "60s"], "while :; do sleep 0.01; done"));
    let arguments = ["serve", "--name", "nightly", "--ttl", "60s", "--listen", &bench.listen("a")];
    until("somebody leads", || bench.output(&["status", "nightly"]).status.success());
    let _follower = Running::start(bench.tenure(&arguments));
    until("it follows", || {
        metric(&bench, "tenure_acquire_attempts_total", ",outcome=\"held\"").is_some_and(|n| n >= 1.0)
    });
    assert_eq!(metric(&bench, "tenure_leader", ""), Some(0.0));
    assert_eq!(metric(&bench, "tenure_lease_remaining_seconds", ""), Some(0.0));
}
