//! A client in a child process, spoken to in lines of JSON.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tenure_core::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, LeaseStore, Operation, Released, Renewed, StoreDescriptor,
    StoreError, StoreErrorKind,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::{Elsewhere, Surroundings, Unable};

mod faketime;
mod serve;
mod wire;

pub use serve::serve_child;

/// Set in the environment of a child process, so that a test knows that it is one.
pub(crate) const CHILD: &str = "TENURE_CONFORMANCE_CHILD";

/// What a line of the conversation begins with; a test program writes lines of its own to its output.
const MARK: &str = "@tenure-conformance ";

/// Bound on the start of a child, which may be a large debug binary on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(30);

/// A client in a child process that runs [`serve_child`].
pub struct ChildProcess {
    line: Arc<Line>,
}

impl ChildProcess {
    /// Starts `command`, whose program must call [`serve_child`], in these surroundings.
    ///
    /// # Errors
    ///
    /// [`Unable::Lacks`] when the surroundings cannot be had: another wall clock needs libfaketime (Debian: package
    /// `libfaketime`; elsewhere: its path in `TENURE_FAKETIME`). [`Unable::Failed`] when the child does not start.
    ///
    /// # Cancel safety
    ///
    /// A dropped call leaves no child behind.
    pub async fn start(mut command: Command, surroundings: &Surroundings) -> Result<Self, Unable> {
        command.env(CHILD, "1").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if let Some(zone) = surroundings.time_zone {
            command.env("TZ", zone);
        }
        if surroundings.wall_clock_ahead != 0 {
            faketime::shift(&mut command, surroundings.wall_clock_ahead)?;
        }
        let mut child = command.spawn().map_err(Unable::failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Unable::failed("the child process has no pipes"));
        };
        let mut talk = Talk { input, output: BufReader::new(output).lines() };
        let hello = match timeout(START_WITHIN, talk.next()).await {
            Ok(answer) => answer.map_err(Unable::failed)?,
            Err(_) => return Err(Unable::failed(format!("the child process did not start within {START_WITHIN:?}"))),
        };
        faketime::verify(&hello, surroundings.wall_clock_ahead)?;
        let descriptor = wire::descriptor_of(&hello).map_err(Unable::failed)?;
        Ok(Self { line: Arc::new(Line { descriptor, talk: Mutex::new(talk), child: Mutex::new(child) }) })
    }

    /// Starts this very test program once more, with the test that serves a child and no other.
    pub(crate) async fn of_this_test(test: &str, surroundings: &Surroundings) -> Result<Self, Unable> {
        let program = std::env::current_exe().map_err(Unable::failed)?;
        let mut command = Command::new(program);
        command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
        Self::start(command, surroundings).await
    }
}

#[async_trait]
impl Elsewhere for ChildProcess {
    fn store(&self) -> Arc<dyn LeaseStore> {
        Arc::clone(&self.line) as Arc<dyn LeaseStore>
    }

    async fn kill(&self) -> Result<(), Unable> {
        self.line.child.lock().await.kill().await.map_err(Unable::failed)
    }
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess").field("store", &self.line.descriptor.name).finish_non_exhaustive()
    }
}

/// The line to a child: a store whose calls are made over there, one at a time.
struct Line {
    descriptor: StoreDescriptor,
    talk: Mutex<Talk>,
    child: Mutex<Child>,
}

struct Talk {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    async fn next(&mut self) -> Result<Value, String> {
        while let Some(line) = self.output.next_line().await.map_err(|error| error.to_string())? {
            // A test harness may have written the beginning of the line.
            if let Some((_, message)) = line.split_once(MARK) {
                return serde_json::from_str(message).map_err(|error| error.to_string());
            }
        }
        Err("the child process ended".to_owned())
    }
}

impl Line {
    async fn call<T>(
        &self,
        operation: Operation,
        request: Value,
        answer: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, StoreError> {
        let broken = |error: String| {
            StoreError::new(StoreErrorKind::Unknown, operation, self.descriptor.name.clone())
                .with_detail(format!("the other process: {error}"))
        };
        let mut talk = self.talk.lock().await;
        let line = format!("{MARK}{request}\n");
        talk.input.write_all(line.as_bytes()).await.map_err(|error| broken(error.to_string()))?;
        talk.input.flush().await.map_err(|error| broken(error.to_string()))?;
        let reply = talk.next().await.map_err(broken)?;
        if let Some(error) = wire::error_of(&reply, operation, &self.descriptor.name) {
            return Err(error);
        }
        answer(&reply).map_err(broken)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("store", &self.descriptor.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl LeaseStore for Line {
    fn describe(&self) -> StoreDescriptor {
        self.descriptor.clone()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        self.call(Operation::Acquire, wire::bid(bid), wire::acquired_of).await
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        self.call(Operation::Renew, wire::renewal(grant), wire::renewed_of).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        self.call(Operation::Release, wire::release(grant), wire::released_of).await
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        self.call(Operation::Read, wire::read(name), wire::record_or_none_of).await
    }
}
