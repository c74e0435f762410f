//! A candidate that is asked over HTTP.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use bench::{Bench, Running, text, until};
use rustix::process::Signal;

fn serve(bench: &Bench, socket: &str, ttl: &str) -> Running {
    Running::start(bench.tenure(&["serve", "--name", "nightly", "--ttl", ttl, "--listen", &bench.listen(socket)]))
}

#[test]
fn one_of_two_leads_and_the_other_takes_over_when_it_is_asked_to_stop() {
    let bench = Bench::new();
    let mut first = serve(&bench, "a", "3s");
    until("the first one leads", || bench.status_of("a", "/leader") == 200);
    let _second = serve(&bench, "b", "3s");
    until("the second one is ready", || bench.status_of("b", "/readyz") == 200);
    assert_eq!(bench.status_of("b", "/leader"), 503);
    let (_, leader) = bench.ask("a", "GET /").unwrap();
    assert!(leader.starts_with("{\"name\":\"") && leader != "{\"name\":\"\"}\n", "{leader}");
    until("the second one has seen the leader", || bench.ask("b", "GET /").is_some_and(|(_, seen)| seen == leader));
    let (_, status) = bench.ask("a", "GET /v1/status").unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["v"], &status["leads"], &status["token"]), (&1.into(), &true.into(), &1.into()));
    assert!(status["remaining_ms"].as_u64().unwrap() <= 3_000);
    first.signal(Signal::TERM);
    let stopped = Instant::now();
    until("it says no at once", || bench.status_of("a", "/leader") != 200);
    assert_eq!(
        bench.status_of("b", "/leader"),
        503,
        "the lease is kept for a while, so that what runs beside can stop"
    );
    assert_eq!(first.code(), 0);
    assert!(!bench.path("a").exists(), "the socket is gone");
    until("the second one leads", || bench.status_of("b", "/leader") == 200);
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
}

#[test]
fn a_lease_removed_by_hand_is_503_in_a_moment() {
    let bench = Bench::new();
    let _only = serve(&bench, "a", "60s");
    until("it leads", || bench.status_of("a", "/leader") == 200);
    bench.database().execute("UPDATE tenure_leases SET candidate = 'somebody', token = token + 1");
    let removed = Instant::now();
    until("it knows", || bench.status_of("a", "/leader") == 503);
    assert!(removed.elapsed() < Duration::from_secs(5), "{:?}", removed.elapsed());
    let (_, status) = bench.ask("a", "GET /v1/status").unwrap();
    assert!(status.contains("\"leads\":false") && status.contains("\"token\":null"), "{status}");
}

#[test]
fn with_the_store_frozen_it_says_503_from_the_deadline_on_and_not_before() {
    let bench = Bench::new();
    let _only = serve(&bench, "a", "2s");
    until("it leads", || bench.status_of("a", "/leader") == 200);
    let left = || {
        let (_, status) = bench.ask("a", "GET /v1/status").unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["remaining_ms"].as_u64().map(Duration::from_millis)
    };
    let mut locked = bench.database();
    locked.execute("BEGIN EXCLUSIVE");
    // What was under way when the lock came may still have moved the deadline.
    let told = Instant::now() + left().unwrap();
    loop {
        let before = Instant::now();
        let leads = bench.status_of("a", "/leader") == 200;
        let deadline = left().map(|left| Instant::now() + left);
        if !leads {
            // To the millisecond that the status is rounded to, and the way of an answer.
            assert!(Instant::now() + Duration::from_millis(50) >= told, "503 too early");
            break;
        }
        assert!(deadline.is_none_or(|deadline| before <= deadline), "200 after the deadline");
        assert!(before < told + Duration::from_secs(3), "200 long after the deadline");
    }
}

#[test]
fn resigning_is_for_the_socket_only_and_an_unknown_path_says_what_there_is() {
    let bench = Bench::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = bench.listen("a");
    let arguments = ["serve", "--name", "nightly", "--ttl", "2s", "--listen", &listen, "--listen", &port.to_string()];
    let _only = Running::start(bench.tenure(&arguments));
    until("it leads", || bench.status_of("a", "/leader") == 200);
    let over_tcp = |request: &str| {
        let mut stream = std::net::TcpStream::connect(port).unwrap();
        write!(stream, "{request}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(over_tcp("POST /v1/resign HTTP/1.1").starts_with("HTTP/1.1 403"));
    let page = over_tcp("GET / HTTP/1.1\r\nAccept: text/html");
    assert!(page.contains("content-security-policy: default-src 'none'") && page.contains("<title>Tenure</title>"));
    let (status, body) = bench.ask("a", "GET /nothing").unwrap();
    assert!(status == 404 && body.contains("/v1/status"), "{body}");
    assert_eq!(bench.ask("a", "POST /v1/resign").unwrap().0, 202);
    until("a later term begins", || {
        bench.ask("a", "GET /v1/status").is_some_and(|(_, body)| body.contains("\"token\":2"))
    });
}

#[test]
fn a_place_that_is_taken_is_125_before_the_first_bid() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = bench.output(&["serve", "--name", "nightly", "--listen", &address]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains(&format!("cannot listen on {address}")), "{}", text(&output.stderr));
    assert!(!bench.path("leases.db").exists(), "nothing was bid for");
    let wrong = bench.output(&["serve", "--name", "nightly", "--listen", "4040"]);
    assert!(text(&wrong.stderr).contains("write 127.0.0.1:4040"), "{}", text(&wrong.stderr));
}

#[test]
fn changes_are_pushed_as_events() {
    let bench = Bench::new();
    let mut only = serve(&bench, "a", "3s");
    until("it leads", || bench.status_of("a", "/leader") == 200);
    let mut stream = UnixStream::connect(bench.path("a")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut heard = String::new();
    let mut bytes = [0; 1024];
    while !heard.contains("\"leads\":true") {
        let count = stream.read(&mut bytes).unwrap();
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert_eq!(bench.ask("a", "POST /v1/resign").unwrap().0, 202);
    while !heard.contains("\"leads\":false") && !heard.contains("\"token\":2") {
        let count = stream.read(&mut bytes).unwrap();
        heard.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    only.signal(Signal::TERM);
    assert_eq!(only.code(), 0);
}
