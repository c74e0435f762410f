//! The observer: knows true time, sees everything, judges by the invariants.

use std::hash::{Hash, Hasher};

use crate::clock::Nanos;
use crate::event::{Event, Seen};
use crate::invariants::authority::Authority;
use crate::invariants::events::Events;
use crate::invariants::fencing::{FencedTerms, FencedTokens};
use crate::invariants::held::Held;
use crate::invariants::ledger::Ledger;
use crate::invariants::liveness::Liveness;
use crate::invariants::overlap::Overlap;
use crate::invariants::release::InOrder;
use crate::invariants::renewing::Renewing;
use crate::invariants::requests::{Budget, Spread};
use crate::invariants::stopping::Stopping;
use crate::invariants::tokens::Tokens;
use crate::invariants::unknown::Unknown;
use crate::invariants::{Holds, Invariant};
use crate::store::Change;

/// What was broken, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The invariant.
    pub invariant: &'static str,
    /// How it was broken.
    pub what: String,
    /// True time.
    pub at: Nanos,
}

/// How much was simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Terms granted by the store.
    pub elections: u64,
    /// Terms whose work was started.
    pub terms: u64,
    /// Things made to go wrong.
    pub faults: u64,
    /// Times at which two terms' work acted at once: only where an assumption was broken on purpose.
    pub overlaps: u64,
    /// Writes that the fence refused.
    pub refused: u64,
}

/// Sees everything and judges it.
#[derive(Debug)]
pub struct Observer {
    ledger: Ledger,
    overlap: Overlap,
    held: Held,
    fenced_tokens: FencedTokens,
    fenced_terms: FencedTerms,
    tokens: Tokens,
    authority: Authority,
    unknown: Unknown,
    in_order: InOrder,
    events: Events,
    renewing: Renewing,
    budget: Budget,
    spread: Spread,
    liveness: Liveness,
    stopping: Stopping,
    assumptions_hold: bool,
    durable: bool,
    tally: Tally,
    hash: TraceHash,
    trace: Option<Vec<String>>,
    breach: Option<Breach>,
}

impl Observer {
    /// Watches a world in which the assumptions hold or not, and the store keeps what it acknowledged or not. Keeps a
    /// readable trace if `traced`.
    pub fn new(ledger: Ledger, assumptions_hold: bool, durable: bool, traced: bool) -> Self {
        Self {
            ledger,
            overlap: Overlap,
            held: Held,
            fenced_tokens: FencedTokens::default(),
            fenced_terms: FencedTerms::default(),
            tokens: Tokens::default(),
            authority: Authority,
            unknown: Unknown,
            in_order: InOrder,
            events: Events::default(),
            renewing: Renewing,
            budget: Budget::default(),
            spread: Spread::default(),
            liveness: Liveness::default(),
            stopping: Stopping::default(),
            assumptions_hold,
            durable,
            tally: Tally::default(),
            hash: TraceHash::default(),
            trace: traced.then(Vec::new),
            breach: None,
        }
    }

    /// Sees something.
    pub fn see(&mut self, seen: Seen) {
        if self.breach.is_some() {
            return;
        }
        seen.hash(&mut self.hash);
        if let Some(trace) = &mut self.trace {
            trace.push(seen.to_string());
        }
        match seen.event {
            Event::Decided(Change::Granted { .. }) => self.tally.elections += 1,
            Event::Elected { .. } => self.tally.terms += 1,
            Event::Fault(_) => self.tally.faults += 1,
            Event::Wrote { accepted: false, .. } => self.tally.refused += 1,
            _ => {}
        }
        self.ledger.enter(&seen);
        self.judge(&seen);
    }

    fn judge(&mut self, seen: &Seen) {
        let mut bench =
            Bench { ledger: &self.ledger, assumptions: self.assumptions_hold, durable: self.durable, breach: None };
        let overlaps = bench.hear(&mut self.overlap, seen);
        self.tally.overlaps += u64::from(overlaps);
        bench.hear(&mut self.held, seen);
        bench.hear(&mut self.fenced_tokens, seen);
        bench.hear(&mut self.fenced_terms, seen);
        bench.hear(&mut self.tokens, seen);
        bench.hear(&mut self.authority, seen);
        bench.hear(&mut self.unknown, seen);
        bench.hear(&mut self.in_order, seen);
        bench.hear(&mut self.events, seen);
        bench.hear(&mut self.renewing, seen);
        bench.hear(&mut self.budget, seen);
        bench.hear(&mut self.spread, seen);
        bench.hear(&mut self.liveness, seen);
        bench.hear(&mut self.stopping, seen);
        self.breach = bench.breach;
    }

    /// What was broken first.
    pub fn breach(&self) -> Option<&Breach> {
        self.breach.as_ref()
    }

    /// How much was seen.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// A number that two runs of one seed share.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// What was seen, line by line, if it was kept.
    pub fn trace(&self) -> &[String] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// The accounts.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// Where one thing seen is judged.
struct Bench<'a> {
    ledger: &'a Ledger,
    assumptions: bool,
    durable: bool,
    breach: Option<Breach>,
}

impl Bench<'_> {
    /// Lets one invariant judge; says whether it was broken although it need not hold here.
    fn hear<I: Invariant>(&mut self, invariant: &mut I, seen: &Seen) -> bool {
        let Err(what) = invariant.see(seen, self.ledger) else { return false };
        let holds = match I::HOLDS {
            Holds::Always => true,
            Holds::UnderAssumptions => self.assumptions,
            Holds::Durable => self.durable,
        };
        if holds && self.breach.is_none() {
            self.breach = Some(Breach { invariant: I::SAYS, what, at: seen.at });
        }
        !holds
    }
}

/// A quick hash, the same on every machine and in every build: what a trace is compared by.
#[derive(Clone, Copy, Debug, Default)]
struct TraceHash(u64);

impl Hasher for TraceHash {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}
