//! The number of a term.

use std::fmt;

/// Numbers a term: larger than the token of every earlier term of the same lease.
///
/// The store issues it in the same atomic step as the grant; it stays the same over renewals and repeated bids of one
/// term, and every new campaign gets a new one. A resource that remembers the largest token it has seen and refuses
/// smaller ones is safe from a leader that was paused and does not know yet that it was replaced; no lease alone can
/// give that (M. Kleppmann, "How to do distributed locking", 2016). Gaps are allowed.
///
/// What it survives (a failover, a restored backup) depends on the store: see [`TokenDurability`](crate::TokenDurability).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "term", alias = "epoch", alias = "sequencer", alias = "revision")]
pub struct FencingToken(pub u64);

impl FencingToken {
    /// The token as a number, for a resource to compare and store.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}
