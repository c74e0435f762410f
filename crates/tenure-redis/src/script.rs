//! The scripts, one for each decision, and their answers.

use std::sync::LazyLock;

use redis::{Cmd, Script, Value, cmd};

use crate::error::Failure;
use crate::link::Link;
use crate::record::number;

pub(crate) static ACQUIRE: Lua = Lua::new(include_str!("lua/acquire.lua"), || hash(&ACQUIRE));
pub(crate) static RENEW: Lua = Lua::new(include_str!("lua/renew.lua"), || hash(&RENEW));
pub(crate) static RELEASE: Lua = Lua::new(include_str!("lua/release.lua"), || hash(&RELEASE));
pub(crate) static READ: Lua = Lua::new(include_str!("lua/read.lua"), || hash(&READ));

/// A script and the hash that the server knows it by.
pub(crate) struct Lua {
    text: &'static str,
    hash: LazyLock<String>,
}

/// What a script answers about one lease.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Granted {
        token: u64,
        after_release: bool,
    },
    Extended,
    Freed,
    Free,
    /// No lease; the last token and the token of the last term that was released, where there are any.
    Gone {
        last: Option<u64>,
        released: Option<u64>,
    },
    /// A record, and the milliseconds it has left where the script looked.
    Held {
        record: Vec<u8>,
        left: u64,
    },
    Foreign {
        key: String,
        what: String,
    },
    /// The error of a command, as the server words it.
    Error(String),
}

impl Lua {
    const fn new(text: &'static str, hash: fn() -> String) -> Self {
        Self { text, hash: LazyLock::new(hash) }
    }

    /// Runs the script on `keys` of hash slot `slot`.
    ///
    /// By its hash; by its text when the server does not have it, which it says before it does anything.
    pub(crate) async fn run(&self, link: &Link, slot: u16, keys: &[&str], args: &[&[u8]]) -> Result<Value, Failure> {
        let deadline = link.deadline();
        match link.run(&command("EVALSHA", &self.hash, keys, args), slot, deadline).await {
            Err(Failure::Answered(error)) if error.code() == Some("NOSCRIPT") => {
                link.run(&command("EVAL", self.text, keys, args), slot, deadline).await
            }
            outcome => outcome,
        }
    }
}

fn hash(script: &Lua) -> String {
    Script::new(script.text).get_hash().to_owned()
}

fn command(name: &str, script: &str, keys: &[&str], args: &[&[u8]]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(args);
    command
}

impl Answer {
    /// Reads an answer; `None` when no script gives it.
    pub(crate) fn parse(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else {
            return (value == Value::Int(1)).then_some(Self::Extended);
        };
        let mut parts = parts.into_iter();
        let tag = text(parts.next())?;
        Some(match tag.as_str() {
            "granted" => {
                Self::Granted { token: number(&text(parts.next())?)?, after_release: parts.next()? == Value::Int(1) }
            }
            "freed" => Self::Freed,
            "free" => Self::Free,
            "gone" => {
                let mut token = || text(parts.next()).as_deref().and_then(number);
                Self::Gone { last: token(), released: token() }
            }
            "held" => {
                let Value::BulkString(record) = parts.next()? else { return None };
                let left = match parts.next() {
                    Some(Value::Int(left)) => u64::try_from(left).ok()?,
                    _ => 0,
                };
                Self::Held { record, left }
            }
            "foreign" => Self::Foreign { key: text(parts.next())?, what: text(parts.next())? },
            "error" => Self::Error(text(parts.next())?),
            _ => return None,
        })
    }

    /// Reads `count` answers; `None` when there are not as many, or one is none.
    pub(crate) fn parse_all(value: Value, count: usize) -> Option<Vec<Self>> {
        let Value::Array(answers) = value else { return None };
        let answers: Vec<_> = answers.into_iter().map(Self::parse).collect::<Option<_>>()?;
        (answers.len() == count).then_some(answers)
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<Value> {
        words.iter().map(|word| Value::BulkString(word.as_bytes().to_vec())).collect()
    }

    #[test]
    fn answers_are_read_and_anything_else_is_none() {
        let mut granted = words(&["granted", "7"]);
        granted.push(Value::Int(1));
        assert_eq!(Answer::parse(Value::Array(granted)), Some(Answer::Granted { token: 7, after_release: true }));
        assert_eq!(
            Answer::parse(Value::Array(words(&["gone", "7", ""]))),
            Some(Answer::Gone { last: Some(7), released: None })
        );
        assert_eq!(Answer::parse(Value::Int(1)), Some(Answer::Extended));
        for other in [Value::Nil, Value::Okay, Value::Int(0), Value::Array(words(&["what"])), Value::Array(vec![])] {
            assert_eq!(Answer::parse(other.clone()), None, "{other:?}");
        }
        assert_eq!(Answer::parse_all(Value::Array(vec![Value::Int(1)]), 2), None);
    }
}
