//! A password that is refused by a real server, or goes to a server that does not answer, shows up nowhere: not in the
//! error at any level, not in `Debug`, and not in anything that this process logs at trace level, clients included.

#![cfg(all(feature = "etcd", feature = "redis", feature = "postgres", feature = "mysql"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tenure::{Election, StoreErrorKind, StoreUrl};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

const CANARY: &str = "c4n4ry-s3cret";
/// The same, with a letter percent-encoded.
const ENCODED: &str = "c4n4ry%2Ds3cret";

/// All that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// The error, all that caused it, and both the ways to print each.
fn shown(error: &dyn Error) -> String {
    let mut shown = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        shown += &format!("{error}\n{error:?}\n{error:#?}\n");
        next = error.source();
    }
    shown
}

fn clean(what: &str, shown: &str) {
    for secret in [CANARY, ENCODED] {
        let at = shown.find(secret).map(|at| &shown[at.saturating_sub(300)..at]);
        assert_eq!(at, None, "{what} shows the password right after this");
    }
}

/// Where the server listens that `integration/test.sh` started.
fn address(variable: &str) -> String {
    let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run integration/test.sh"));
    url.rsplit(['/', '@']).find(|part| part.contains(':')).unwrap().to_owned()
}

fn files() -> String {
    let file = |name: &str| std::env::var(name).unwrap();
    let (ca, cert, key) = ("TENURE_TEST_CA", "TENURE_TEST_CLIENT_CERT", "TENURE_TEST_CLIENT_KEY");
    format!("ca={}&cert={}&key={}", file(ca), file(cert), file(key))
}

#[tokio::test]
#[ignore = "needs etcd, Redis, PostgreSQL and MariaDB: run integration/test.sh"]
async fn a_password_shows_up_in_no_error_and_no_log_of_any_level() {
    let log = Log::default();
    tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false).with_writer(log.clone()).init();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut refusals = 0;
    for password in [CANARY, ENCODED] {
        let login = format!("tenure:{password}");
        for url in [
            format!("etcds://{login}@{}?{}", address("TENURE_TEST_ETCD_TLS"), files()),
            format!("redis://{login}@{}", address("TENURE_TEST_REDIS")),
            format!("postgres://{login}@{}/tenure", address("TENURE_TEST_POSTGRES")),
            format!("mysql://{login}@{}/tenure", address("TENURE_TEST_MYSQL")),
            format!("etcd://{login}@{closed}"),
            format!("redis://{login}@{closed}"),
            format!("postgres://{login}@{closed}/tenure"),
            format!("mysql://{login}@{closed}/tenure"),
        ] {
            let parsed: StoreUrl = url.parse().unwrap();
            clean("the url", &format!("{parsed} {parsed:?} {parsed:#?}"));
            // Some stores tell at once that they cannot connect, others with the first bid.
            let error: Box<dyn Error> = match tenure::connect(url.as_str()).await {
                Err(error) => {
                    refusals += usize::from(error.kind() == StoreErrorKind::Denied);
                    Box::new(error)
                }
                Ok(store) => {
                    clean("the store", &format!("{store:?} {store:#?} {:?}", store.describe()));
                    let election = Election::builder("nightly", store).build().unwrap();
                    clean("the election", &format!("{election:?}"));
                    let bounded = tokio::time::timeout(std::time::Duration::from_secs(10), election.campaign());
                    match bounded.await {
                        Ok(Ok(lead)) => panic!("{lead:?} with a wrong password at {parsed}"),
                        Ok(Err(error)) => Box::new(error),
                        Err(_) => "still trying".into(),
                    }
                }
            };
            clean("the error", &shown(&*error));
        }
    }
    assert_eq!(refusals, 8, "each server refuses each way to write the password");
    let text = log.text();
    assert!(text.contains("TRACE") && text.contains("h2::codec"), "the clients' own logs were read too");
    clean("the log", &text);
}
