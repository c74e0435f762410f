//! `status`, `watch`, `check`, `conformance`, `schema`: what they answer, to people and to programs.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::io::BufRead;

use bench::{Bench, Running, text, until};
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", text(bytes)))
}

fn leading(bench: &Bench) -> Running {
    let leader = Running::start(
        bench.run(&["--ttl", "30s", "--id", "worker-7", "--payload", "10.0.0.7:80"], "echo on > on; sleep 60"),
    );
    bench.until_written("on", "on");
    leader
}

#[test]
fn status_tells_who_leads_and_by_its_exit_code_whether() {
    let bench = Bench::new();
    let nobody = bench.output(&["status", "nightly", "-o", "json"]);
    assert_eq!(nobody.status.code(), Some(1));
    let answer = json(&nobody.stdout);
    assert_eq!((&answer["v"], &answer["name"], &answer["leader"]), (&1.into(), &"nightly".into(), &Value::Null));

    let _leader = leading(&bench);
    let somebody = bench.output(&["status", "nightly", "-o", "json"]);
    assert_eq!(somebody.status.code(), Some(0));
    let answer = json(&somebody.stdout);
    let leader = &answer["leader"];
    assert_eq!(
        (&answer["store"], &leader["label"], &leader["token"]),
        (&"sqlite".into(), &"worker-7".into(), &1.into())
    );
    assert_eq!(leader["payload"], "10.0.0.7:80");
    assert!(leader["candidate"].as_str().unwrap().starts_with("worker-7_"));
    assert!((1..=30_000).contains(&leader["expires_in_ms"].as_u64().unwrap()));
    assert!(answer["observed_at"].as_str().unwrap().ends_with('Z'));

    let all = bench.output(&["status", "-o", "json"]);
    assert_eq!(json(&all.stdout).as_array().unwrap().len(), 1);
    let words = text(&bench.output(&["status", "nightly"]).stdout);
    assert!(words.starts_with("nightly: worker-7 leads under token 1 since "), "{words}");
}

#[test]
fn status_is_shown_again_and_again_until_nobody_reads_it() {
    let bench = Bench::new();
    let mut command = bench.tenure(&["status", "nightly", "--watch"]);
    command.stdout(std::process::Stdio::piped());
    let mut watching = Running::start(command);
    let mut lines = std::io::BufReader::new(watching.0.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert_eq!(lines.next().as_deref(), Some("nightly: nobody leads"));
    let _leader = leading(&bench);
    assert!(lines.any(|line| line.starts_with("nightly: worker-7 leads under token 1")));
    drop(lines);
    assert_eq!(watching.code(), 0, "as of the last look");
}

/// K21.
#[test]
fn who_cannot_tell_says_so_and_never_yes() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("leases.db")).unwrap();
    for arguments in [&["status", "nightly"][..], &["check", "nightly", "1"]] {
        let output = bench.output(arguments);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{arguments:?}: {:?}", output.status);
        assert!(text(&output.stderr).contains("is a directory"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "");
    }
    assert_eq!(bench.output(&["status", "--no-such-flag"]).status.code(), Some(2));
}

#[test]
fn check_tells_a_current_token_from_a_stale_one() {
    let bench = Bench::new();
    let leader = leading(&bench);
    let code = |token| bench.output(&["check", "nightly", token]).status.code();
    assert_eq!((code("1"), code("0"), code("2")), (Some(0), Some(1), Some(1)));
    let answer = bench.output(&["check", "nightly", "7", "-o", "json"]);
    assert_eq!(
        text(&answer.stdout),
        "{\"v\":1,\"name\":\"nightly\",\"token\":7,\"current\":false,\"current_token\":1}\n"
    );
    drop(leader);
    assert_eq!(bench.output(&["check", "nightly", "one"]).status.code(), Some(2));
}

#[test]
fn watch_shows_each_change_as_a_line_and_ends_when_asked() {
    let bench = Bench::new();
    let log = std::fs::File::create(bench.path("watch")).unwrap();
    let mut command = bench.tenure(&["watch", "nightly", "-o", "json"]);
    command.stdout(log);
    let _watch = Running::start(command);
    bench.until_written("watch", "vacant");
    assert_eq!(bench.run(&["--id", "a"], "sleep 0.3").status().unwrap().code(), Some(0));
    until("both changes were shown", || bench.read("watch").lines().count() >= 3);
    let lines: Vec<Value> = bench.read("watch").lines().map(|line| json(line.as_bytes())).collect();
    let shown: Vec<_> =
        lines.iter().map(|line| (line["v"].as_u64(), line["change"].as_str(), line["token"].as_u64())).collect();
    assert_eq!(
        shown[..3],
        [(Some(1), Some("vacant"), None), (Some(1), Some("elected"), Some(1)), (Some(1), Some("vacant"), None)]
    );

    let output = bench.output(&["watch", "nightly", "--until", "leader", "--timeout", "300ms"]);
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(bench.output(&["watch", "nightly", "--until", "vacant", "--timeout", "10s"]).status.code(), Some(0));
}

#[test]
fn conformance_reports_in_every_format() {
    let bench = Bench::new();
    let junit = bench.path("report.xml").display().to_string();
    let output = bench.output(&["conformance", "--only", "release", "--junit", &junit]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let last = text(&output.stdout).lines().last().unwrap_or_default().to_owned();
    assert!(last.ends_with("skipped") && last.contains(" passed, 0 failed, "), "{last}");
    assert!(bench.read("report.xml").contains("<testcase"));

    let output = bench.output(&["conformance", "--only", "release-frees", "-o", "json"]);
    let report = json(&output.stdout);
    assert_eq!((&report["v"], &report["store"], &report["passed"]), (&1.into(), &"sqlite".into(), &1.into()));
    assert_eq!(report["clauses"][0]["id"], "release-frees");
    assert_eq!(report["clauses"][0]["outcome"], "passed");

    assert_eq!(bench.output(&["conformance", "--only", "no-such-clause"]).status.code(), Some(1));
}

#[test]
fn schema_prints_statements_that_make_a_usable_table() {
    let bench = Bench::new();
    let output = bench.output(&["schema", "--store", "sqlite:x.db?table=my_leases"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("CREATE TABLE IF NOT EXISTS \"my_leases\""), "{}", text(&output.stdout));
    assert_eq!(text(&bench.output(&["schema", "--store", "memory:"]).stdout), "");
    assert_eq!(bench.output(&["schema", "--store", "sqlite:x.db?table=a b"]).status.code(), Some(2));
}
