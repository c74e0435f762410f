//! The only place that knows the client's and the server's errors.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError};
use tenure_core::StoreErrorKind::{Denied, Invalid, Malformed, Unavailable, Unknown, Unsupported};
use tenure_core::{LeaseName, Operation, StoreError, StoreErrorKind};

/// The name of this store in errors and in its descriptor.
pub(crate) const STORE: &str = "redis";

/// A request that brought no answer to be read.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Connecting failed; nothing was sent.
    Connecting(RedisError),
    /// Connecting took longer than this; nothing was sent.
    NotConnected(Duration),
    /// The request was handed to the client and not answered for this long.
    Unanswered(Duration),
    /// The client or the server answered the request with an error.
    Answered(RedisError),
}

impl Failure {
    /// The failure of a command within a script, as the server words it.
    pub(crate) fn worded(text: &str) -> Self {
        let (code, detail) = text.split_once(' ').unwrap_or((text, ""));
        Self::Answered(redis::make_extension_error(code.to_owned(), Some(detail.to_owned())))
    }
}

/// A call, as far as its errors are concerned.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) operation: Operation,
    pub(crate) lease: Option<&'a LeaseName>,
    /// Whether the client repeats commands by itself: an error then tells of the last repetition only.
    pub(crate) repeats: bool,
}

impl Call<'_> {
    pub(crate) fn error(&self, kind: StoreErrorKind, detail: impl Into<std::borrow::Cow<'static, str>>) -> StoreError {
        let error = StoreError::new(kind, self.operation, STORE).with_detail(detail);
        match self.lease {
            Some(lease) => error.with_lease(lease),
            None => error,
        }
    }

    /// The error of something under `key` that is not Tenure's.
    pub(crate) fn foreign(&self, key: &str, what: &str) -> StoreError {
        self.error(Malformed, format!("the key {key} {what}: remove the key or choose another lease name"))
    }

    /// The error of an answer that no script gives.
    pub(crate) fn not_understood(&self) -> StoreError {
        let kind = if self.writes() { Unknown } else { Unsupported };
        self.error(kind, "the server's answer is none of a script's: is there a proxy that changes answers?")
    }

    pub(crate) fn failed(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::NotConnected(bound) => {
                self.error(Unavailable, format!("no connection within {bound:?}: is the server up and reachable?"))
            }
            Failure::Unanswered(bound) => {
                let kind = if self.writes() { Unknown } else { Unavailable };
                self.error(kind, format!("no answer within {bound:?}"))
            }
            Failure::Connecting(error) => {
                let known = by_code(&error).or_else(|| error.detail().and_then(by_words));
                let (kind, detail) = known.unwrap_or_else(|| while_connecting(&error));
                self.error(kind, detail).with_source(Reported::of(error))
            }
            Failure::Answered(error) => {
                let (kind, detail) = by_code(&error).unwrap_or_else(|| self.while_waiting(&error));
                let kind = if kind == Unavailable && self.repeats && self.writes() { Unknown } else { kind };
                self.error(kind, detail).with_source(Reported::of(error))
            }
        }
    }

    fn while_waiting(&self, error: &RedisError) -> (StoreErrorKind, &'static str) {
        if error.is_connection_refusal() {
            (Unavailable, "the connection was refused: is the server up?")
        } else if !self.writes() {
            (Unavailable, "the connection broke before the answer came")
        } else if matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound) {
            (Unknown, "the connection broke before the answer came")
        } else {
            (Unknown, "the request ended in an error that says nothing about its effect")
        }
    }

    fn writes(&self) -> bool {
        matches!(self.operation, Operation::Acquire | Operation::Renew | Operation::Release)
    }
}

fn while_connecting(error: &RedisError) -> (StoreErrorKind, &'static str) {
    match error.kind() {
        ErrorKind::AuthenticationFailed => (Denied, "the server refused user or password"),
        ErrorKind::RESP3NotSupported => (Unsupported, OLD_PROTOCOL),
        ErrorKind::MasterNameNotFoundBySentinel => {
            (Unavailable, "the sentinels know no master of this name that is up: is the name right?")
        }
        ErrorKind::InvalidClientConfig if error.to_string().contains("sentinel") => {
            (Unsupported, "the server is no sentinel: name sentinels, or leave the parameter sentinel out")
        }
        ErrorKind::Io if is_tls_refusal(error) => (Denied, "tls was refused: check ca, cert, key and the host's name"),
        ErrorKind::Client => (Denied, "tls was refused: check ca, cert, key and the host's name"),
        _ if error.is_connection_refusal() => (Unavailable, "the connection was refused: is the server up?"),
        _ => (Unavailable, "no connection: is the server up and reachable?"),
    }
}

fn is_tls_refusal(error: &RedisError) -> bool {
    // The client shares its errors, so the source is the pointer to the error.
    let source = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}

const OLD_PROTOCOL: &str = "the server does not speak resp3: Redis 6.0 does; behind a proxy try protocol=resp2";
const NO_RIGHT: &str = "the user lacks a right: see the permissions in the documentation of tenure-redis";

/// Whether the next call should find another connection: this one is broken, or its server takes no writes any more.
pub(crate) fn is_of_no_use(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || error.code().is_some_and(|code| ["READONLY", "NOAUTH", "MASTERDOWN"].contains(&hidden(code, error)))
}

/// What a server's error says, by its code; `None` when it has none that tells.
fn by_code(error: &RedisError) -> Option<(StoreErrorKind, &'static str)> {
    let code = error.code()?;
    known(hidden(code, error)).or_else(|| generic(error.detail()?)).or_else(|| generic(code))
}

/// The code that tells: Redis 6 hides that of a script's error in the text of another.
fn hidden<'a>(code: &'a str, error: &'a RedisError) -> &'a str {
    let of_script = error.detail().filter(|text| code == "ERR" && text.contains("user_script"));
    of_script.and_then(|text| words(text).find(|word| known(word).is_some())).unwrap_or(code)
}

/// What a text says in which the client quotes the errors of servers that it tried.
fn by_words(text: &str) -> Option<(StoreErrorKind, &'static str)> {
    words(text).find_map(known).or_else(|| generic(text))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ':', '"', '-'])
}

fn known(code: &str) -> Option<(StoreErrorKind, &'static str)> {
    Some(match code {
        "NOAUTH" | "WRONGPASS" => (Denied, "the server refused user or password"),
        "NOPERM" => (Denied, NO_RIGHT),
        "DENIED" => (Denied, "the server is in protected mode: give it a password or an address to bind to"),
        "READONLY" => (Unavailable, "the server is a read-only replica"),
        "LOADING" => (Unavailable, "the server is still loading its data"),
        "MASTERDOWN" => (Unavailable, "the server is a replica without its master"),
        "CLUSTERDOWN" | "TRYAGAIN" => (Unavailable, "the cluster does not serve this slot now"),
        "BUSY" => (Unavailable, "the server is busy with a script"),
        "OOM" => (Unavailable, "the server has no memory left for writes"),
        "MISCONF" => (Unavailable, "the server takes no writes since it cannot save them"),
        "NOREPLICAS" => (Unavailable, "the server takes no writes since too few replicas follow it"),
        "MOVED" | "ASK" => (Unsupported, "the server is a node of a cluster: add ?cluster=true to the url"),
        "NOPROTO" => (Unsupported, OLD_PROTOCOL),
        "WRONGTYPE" => (Malformed, "a key of this lease holds another type: remove it or choose another lease name"),
        "CROSSSLOT" => (Unsupported, "the keys of a lease fell into two slots: is there a proxy that renames keys?"),
        _ => return None,
    })
}

/// What `ERR` means, by its text.
fn generic(text: &str) -> Option<(StoreErrorKind, &'static str)> {
    let has = |part: &str| text.contains(part);
    if has("can't run this command") || has("can't access at least one of the keys") || has("ACL failure in script") {
        Some((Denied, NO_RIGHT))
    } else if has("without any password configured")
        || has("invalid password")
        || has("invalid username-password")
        || has("authentication failed")
    {
        Some((Denied, "the server refused user or password"))
    } else if has("unknown command") || has("Unknown Redis command") || has("command is not allowed from script") {
        Some((Unsupported, "the server does not know a command: is it Redis 6.0 or newer, with no command renamed?"))
    } else if has("max number of clients") {
        Some((Unavailable, "the server has as many clients as it takes"))
    } else if has("DB index is out of range") || has("invalid DB index") {
        Some((Invalid, "the server has no database of this number"))
    } else {
        None
    }
}

/// What the client reported, without the arguments of commands: a server that does not know `AUTH` or `HELLO` repeats
/// the password.
#[derive(Debug)]
struct Reported(String);

impl Reported {
    fn of(error: RedisError) -> Box<dyn Error + Send + Sync> {
        let text = error.to_string();
        match text.find("with args beginning with") {
            None => Box::new(error),
            Some(at) => Box::new(Self(text[..at].trim_end_matches([' ', ',']).to_owned())),
        }
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Reported {}

#[cfg(test)]
mod tests;
