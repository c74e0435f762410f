//! Fenced writes are linearizable: no write of an older term is let in after a newer one's first.
//!
//! Kinds of `docs/cases.md`: K19.

use super::ledger::Ledger;
use super::{Holds, Invariant, Verdict, require};
use crate::event::{Event, Seen};
use crate::store::{Change, Who};

/// No write with an older token is let in after one with a newer token.
#[derive(Debug, Default)]
pub struct FencedTokens {
    highest: u64,
}

impl Invariant for FencedTokens {
    const SAYS: &'static str = "no write with an older token is let in after a newer one's first";
    const HOLDS: Holds = Holds::Always;

    fn see(&mut self, seen: &Seen, _: &Ledger) -> Verdict {
        if let Event::Wrote { token, accepted } = seen.event {
            require!(!accepted || token >= self.highest, "a write with token {token} after {}", self.highest);
            require!(accepted || token < self.highest, "a write with token {token} refused, {} seen", self.highest);
            self.highest = self.highest.max(token);
        }
        Ok(())
    }
}

/// No write of an older term is let in after a newer term's first, by the order in which the store granted them.
#[derive(Debug, Default)]
pub struct FencedTerms {
    /// The terms in the order of their grants: by whom, and with which token.
    terms: Vec<(Who, u64)>,
    newest: usize,
}

impl Invariant for FencedTerms {
    const SAYS: &'static str = "no write of an older term is let in after a newer term's first";
    const HOLDS: Holds = Holds::Durable;

    fn see(&mut self, seen: &Seen, _: &Ledger) -> Verdict {
        match seen.event {
            Event::Decided(Change::Granted { who, token }) => self.terms.push((who, token)),
            Event::Wrote { token, accepted: true } => {
                let term = self.terms.iter().rposition(|term| *term == (seen.who, token));
                let Some(term) = term.or_else(|| self.terms.iter().rposition(|term| term.0 == seen.who)) else {
                    return Err(format!("a write of campaign #{}, which was granted nothing", seen.who));
                };
                require!(
                    term >= self.newest,
                    "a write of campaign #{} after one of #{}, which was granted the lease later",
                    seen.who,
                    self.terms[self.newest].0
                );
                self.newest = term;
            }
            _ => {}
        }
        Ok(())
    }
}
