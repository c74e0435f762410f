//! How far the model goes: who takes part, for how long, and what may go wrong how often.

use tenure_core::machine::OnFinish;
use tenure_core::{StoreErrorKind, Timing, WakeUp};

use super::sights::Sight;
use crate::clock::Nanos;

/// One bounded world. Within its bounds every order of events is explored.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// How many candidates contend, and so how many hosts there are.
    pub hosts: usize,
    /// How many campaigns each may begin.
    pub campaigns: u8,
    /// True time ends here.
    pub horizon: Nanos,
    /// Besides the instants at which something is due, true time stops at each multiple of this.
    pub grid: Nanos,
    /// The rates that the clocks may run by, each of the hosts' and the store's at the end, in parts per million off.
    pub drifts: Vec<Vec<i32>>,
    /// The candidates' times.
    pub timing: Timing,
    /// The draw that every step gets.
    pub jitter: u16,
    /// What becomes of the lease of work that ended by itself.
    pub on_finish: OnFinish,
    /// The store can tell whether the term before was given up in order.
    pub tells: bool,
    /// The store grants no more than this.
    pub longest_ttl: Option<Nanos>,
    /// Work that was cut off may go on.
    pub lingers: bool,
    /// How store calls may fail.
    pub failures: Vec<StoreErrorKind>,
    /// What the store may hint at, at any time: a hint is no proof of anything.
    pub hints: Vec<WakeUp>,
    /// The shell answers with the wrong kind of answer, and steps a machine that has ended.
    pub odd: bool,
    /// How soon messages arrive.
    pub network: Network,
    /// What may go wrong, or be asked for, how often.
    pub left: Left,
    /// The rules that are judged, a bit for each.
    pub judged: u16,
    /// What must be seen to happen.
    pub shows: Vec<Sight>,
}

/// What may still go wrong, or be asked for, how often in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Left {
    /// All of the following together.
    pub all: u8,
    /// Messages that are lost.
    pub losses: u8,
    /// Messages that are delayed, for as long as you like.
    pub delays: u8,
    /// Hosts whose link is cut for a while, or for good.
    pub cuts: u8,
    /// Hosts that hear no replies for a while, or for good.
    pub deafs: u8,
    /// Requests that reach the store twice.
    pub repeats: u8,
    /// Calls that fail, by one of the bounds' kinds.
    pub failures: u8,
    /// Processes that die.
    pub crashes: u8,
    /// Candidates that are asked to stop.
    pub stops: u8,
    /// Leaders that give up the lease.
    pub resigns: u8,
    /// Work that ends by itself, without being told to.
    pub finishes: u8,
    /// Hosts that are suspended.
    pub suspends: u8,
    /// Processes that are stopped for a while.
    pub halts: u8,
    /// Records that somebody removes.
    pub removals: u8,
    /// Hints.
    pub hints: u8,
    /// Answers of the wrong kind, or about another term, and steps for no reason.
    pub oddities: u8,
}

/// How soon a message arrives that is neither lost nor delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// Before time passes. Each loss and each delay counts.
    #[default]
    Prompt,
    /// At any instant until the bound of its call. Losses do not count, and delays do only beyond that bound.
    Slow,
}

impl Left {
    /// All of these together at the most `all`.
    pub(super) fn may(&self, kind: u8) -> bool {
        kind > 0 && self.all > 0
    }

    pub(super) fn spend(&mut self, kind: impl Fn(&mut Self) -> &mut u8) {
        *kind(self) -= 1;
        self.all -= 1;
    }
}
