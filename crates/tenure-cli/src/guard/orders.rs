//! What tenure and its guard say to each other, a line each.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use serde_json::{Value, json};
use tenure::{CandidateId, FencingToken, Grant, LeaseName, Receipt, StoreUrl};

use crate::run::descriptors;
use crate::run::tree::End;

/// What the guard is told before the program starts. It goes through the pipe: arguments and environment are for all to see.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) store: StoreUrl,
    pub(crate) grant: Grant,
    /// When all must be dead, on the boot-time clock.
    pub(crate) deadline: Duration,
    /// Whether to free the lease when tenure is gone.
    pub(crate) free: bool,
    /// What the program is told of its term, in its environment.
    pub(crate) environment: Environment,
}

/// Variables, and their values.
pub(crate) type Environment = Vec<(String, String)>;

/// What tenure tells the guard later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The term was prolonged: all must be dead by then instead.
    Deadline(Duration),
}

/// What the guard tells tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The program runs, as this process.
    Started(i32),
    /// It could not be started, for this reason of the system.
    NotStarted(i32),
    /// The deadline came, and everything is killed.
    Overdue,
    /// The program itself ended.
    Ended(End),
}

impl Start {
    pub(crate) fn line(&self) -> String {
        let grant = &self.grant;
        let line = json!({
            "store": self.store.expose(), "name": grant.name.as_str(), "candidate": grant.candidate.as_str(),
            "token": grant.token.value(), "ttl_ns": nanos(grant.ttl), "receipt": grant.receipt.as_str(),
            "deadline_ns": nanos(self.deadline), "free": self.free, "environment": self.environment,
        });
        format!("{line}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str();
        let time = |key: &str| value[key].as_u64().map(Duration::from_nanos);
        let name = LeaseName::new(text("name")?).ok()?;
        let candidate = CandidateId::from_wire(text("candidate")?).ok()?;
        let grant = Grant::new(name, candidate, FencingToken(value["token"].as_u64()?), time("ttl_ns")?);
        Some(Self {
            store: StoreUrl::parse(text("store")?).ok()?,
            grant: grant.with_receipt(Receipt::new(text("receipt")?)),
            deadline: time("deadline_ns")?,
            free: value["free"].as_bool()?,
            environment: serde_json::from_value(value["environment"].clone()).ok()?,
        })
    }
}

impl Order {
    pub(crate) fn line(self) -> String {
        match self {
            Self::Deadline(at) => format!("deadline {}\n", nanos(at)),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        line.strip_prefix("deadline ")?.parse().ok().map(|ns| Self::Deadline(Duration::from_nanos(ns)))
    }
}

impl Report {
    fn line(self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::NotStarted(errno) => format!("not-started {errno}\n"),
            Self::Overdue => "overdue 0\n".to_owned(),
            Self::Ended(End::Code(code)) => format!("code {code}\n"),
            Self::Ended(End::Signal(signal)) => format!("signal {signal}\n"),
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (what, number) = line.split_once(' ')?;
        let number: i32 = number.parse().ok()?;
        Some(match what {
            "started" => Self::Started(number),
            "not-started" => Self::NotStarted(number),
            "overdue" => Self::Overdue,
            "code" => Self::Ended(End::Code(u8::try_from(number).ok()?)),
            "signal" => Self::Ended(End::Signal(number)),
            _ => return None,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Lines that come down a pipe.
#[derive(Debug)]
pub(crate) struct Lines {
    pipe: File,
    bytes: Vec<u8>,
}

impl Lines {
    pub(crate) fn of(pipe: OwnedFd) -> Self {
        Self { pipe: File::from(pipe), bytes: Vec::new() }
    }

    /// Reads once, and says whether the other side is still there. Blocks while nothing has come, unless the pipe does not.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        match self.pipe.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.bytes.extend_from_slice(&bytes[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// A whole line that has come.
    pub(crate) fn next(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// The guard's end of the pipe from tenure.
pub(crate) struct Orders(Lines);

impl Orders {
    /// Takes hold of the inherited descriptor `number`.
    pub(super) fn open(number: i32) -> io::Result<Self> {
        Ok(Self(Lines { pipe: File::open(descriptors::path(number))?, bytes: Vec::new() }))
    }

    /// What to begin with; `None` when tenure is gone already.
    pub(super) fn start(&mut self) -> io::Result<Option<Start>> {
        loop {
            if let Some(line) = self.0.next() {
                let start = Start::parse(&line).ok_or_else(|| io::Error::other("its first order makes no sense"))?;
                return Ok(Some(start));
            }
            if !self.0.fill()? {
                return Ok(None);
            }
        }
    }

    /// The last of the orders that came by now, if one did; `None` when tenure is gone. To be called when there is
    /// something to read.
    pub(super) fn next(&mut self) -> io::Result<Option<Option<Order>>> {
        if !self.0.fill()? {
            return Ok(None);
        }
        let mut last = None;
        while let Some(line) = self.0.next() {
            last = Order::parse(&line).or(last);
        }
        Ok(Some(last))
    }
}

impl Orders {
    /// Whether there is more to read by now, or tenure is gone.
    pub(super) fn has_more(&self) -> io::Result<bool> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)], Some(&at_once)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The guard's end of the pipe to tenure.
pub(crate) struct Reports(File);

impl Reports {
    /// Takes hold of the inherited descriptor `number`.
    pub(super) fn to(number: i32) -> io::Result<Self> {
        Ok(Self(File::options().write(true).open(descriptors::path(number))?))
    }

    /// Tells it; a tenure that is gone or frozen does not matter: what fits into a pipe never blocks here.
    pub(super) fn send(&mut self, report: &Report) -> io::Result<()> {
        self.0.write_all(report.line().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_what_is_heard() {
        let grant = Grant::new(
            LeaseName::new("a \"b\"\u{e9}").unwrap(),
            CandidateId::from_wire("w_1").unwrap(),
            FencingToken(u64::MAX),
            Duration::from_nanos(1_500_000_001),
        );
        let start = Start {
            store: "redis://u:p%20w@h:1?x=1".parse().unwrap(),
            grant: grant.with_receipt(Receipt::new("17")),
            deadline: Duration::from_secs(90),
            free: true,
            environment: vec![("TENURE_NAME".to_owned(), "a \"b\"\n".to_owned())],
        };
        let line = start.line();
        assert_eq!(line.find('\n'), Some(line.len() - 1), "one line");
        let heard = Start::parse(line.trim_end()).unwrap();
        assert_eq!((heard.store, heard.grant), (start.store, start.grant));
        assert_eq!((heard.deadline, heard.free, heard.environment), (start.deadline, true, start.environment));
        let order = Order::Deadline(Duration::from_nanos(7));
        assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        for report in
            [Report::Started(7), Report::NotStarted(2), Report::Ended(End::Code(3)), Report::Ended(End::Signal(9))]
        {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
        assert_eq!((Order::parse("x"), Report::parse("code 300")), (None, None));
    }
}
