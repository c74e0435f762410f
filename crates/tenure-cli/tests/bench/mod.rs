//! The command under test, on a store of the test's own, and ways to wait for what it does.

#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub, reason = "each test file uses its part")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use tempfile::TempDir;

/// Longest time that anything here may take; a test that waits so long has failed.
pub const LONG: Duration = Duration::from_secs(20);

pub struct Bench {
    pub directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn url(&self) -> String {
        format!("sqlite://{}", self.path("leases.db").display())
    }

    /// `tenure` with this bench's store, and nothing of the environment that it reads.
    pub fn tenure(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
            command.env_remove(name);
        }
        command.env("TENURE_STORE", self.url()).env("NO_COLOR", "1").current_dir(self.directory.path());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// `tenure run` of a shell script on the lease `nightly`, with a ttl of 1 s unless the options say another.
    pub fn run(&self, options: &[&str], script: &str) -> Command {
        let ttl: &[&str] = if options.contains(&"--ttl") { &[] } else { &["--ttl", "1s"] };
        self.tenure(&[&["run", "--name", "nightly"], ttl, options, &["--", "sh", "-c", script]].concat())
    }

    pub fn output(&self, arguments: &[&str]) -> Output {
        self.tenure(arguments).output().unwrap()
    }

    /// A connection to the database of the leases, as an operator has it.
    pub fn database(&self) -> Database {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let patience = Duration::from_millis(500);
        let options = SqliteConnectOptions::new().filename(self.path("leases.db")).busy_timeout(patience);
        let connection = runtime.block_on(options.connect()).unwrap();
        Database { runtime, connection }
    }

    /// Freezes `leader`, between two writes of its: one that is frozen in the middle of a write keeps the file locked, and
    /// nobody can lead until it goes on.
    pub fn freeze_between_writes(&self, leader: &Running) {
        let mut database = self.database();
        until("the leader is frozen outside of a write", || {
            leader.signal(Signal::STOP);
            let is_free = database.try_execute("BEGIN IMMEDIATE") && database.try_execute("ROLLBACK");
            if !is_free {
                leader.signal(Signal::CONT);
            }
            is_free
        });
    }

    /// The place of a socket of this bench, as `--listen` takes it.
    pub fn listen(&self, socket: &str) -> String {
        format!("unix:{}", self.path(socket).display())
    }

    /// Asks over a socket of this bench, such as `GET /leader`, and returns status and body.
    pub fn ask(&self, socket: &str, request: &str) -> Option<(u16, String)> {
        let mut stream = UnixStream::connect(self.path(socket)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split_whitespace().nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    /// The status of an answer; 0 when there is none.
    pub fn status_of(&self, socket: &str, path: &str) -> u16 {
        self.ask(socket, &format!("GET {path}")).map_or(0, |(status, _)| status)
    }

    /// What a program wrote to a file of this bench.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until a file of this bench holds `text`.
    pub fn until_written(&self, name: &str, text: &str) {
        until(&format!("{name} holds {text:?}"), || self.read(name).contains(text));
    }
}

pub struct Database {
    runtime: tokio::runtime::Runtime,
    connection: SqliteConnection,
}

impl Database {
    pub fn execute(&mut self, statement: &'static str) {
        self.runtime.block_on(sqlx::raw_sql(statement).execute(&mut self.connection)).unwrap();
    }

    /// Whether the statement could be carried out.
    fn try_execute(&mut self, statement: &'static str) -> bool {
        self.runtime.block_on(sqlx::raw_sql(statement).execute(&mut self.connection)).is_ok()
    }
}

/// A child that does not outlive its test.
pub struct Running(pub Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the end, and tells the exit code.
    pub fn code(&mut self) -> i32 {
        let mut status = None;
        until("the process has ended", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "not within {LONG:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The numbers of processes in a file, one a line.
pub fn pids(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
