//! Tokens rise with each grant, and stay the same over a term.
//!
//! Kinds of `docs/cases.md`: K19.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};
use crate::store::{Change, Who};

/// Tokens rise with each grant, and stay the same over a term.
#[derive(Debug, Default)]
pub struct Tokens {
    highest: u64,
    holder: Option<Who>,
    /// The terms that work was started for: by whom, with which token.
    started: Vec<(Who, u64)>,
}

impl Invariant for Tokens {
    const SAYS: &'static str = "tokens rise with each grant, and stay the same over a term";
    const HOLDS: Holds = Holds::Durable;

    fn see(&mut self, seen: &Seen, ledger: &Ledger) -> Verdict {
        match seen.event {
            Event::Decided(Change::Granted { who, token }) => {
                require!(token > self.highest, "token {token} granted after {}", self.highest);
                (self.highest, self.holder) = (token, Some(who));
            }
            Event::Decided(Change::Repeated { who, token }) => {
                require!(
                    token == self.highest && self.holder == Some(who),
                    "the repeated bid of #{who} got token {token}, its term has {} ({:?})",
                    self.highest,
                    self.holder
                );
            }
            Event::Elected { token } => {
                let account = &ledger.accounts[seen.c];
                require!(token == account.token, "the work is told token {token}, and {} was granted", account.token);
                let twice = self.started.iter().find(|(_, other)| *other == token);
                require!(twice.is_none(), "token {token} for a second term, the first was {twice:?}");
                self.started.push((seen.who, token));
            }
            _ => {}
        }
        Ok(())
    }
}
