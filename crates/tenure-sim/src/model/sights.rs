//! What can be seen to happen: a model in which it cannot proves nothing.

use std::sync::atomic::{AtomicBool, Ordering};

macro_rules! sights {
    ($($sight:ident $name:literal,)*) => {
        /// Something that happens in some run.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Sight {
            $(#[doc = $name] $sight,)*
        }

        impl Sight {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$sight,)*];

            /// What it says.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$sight => $name,)*
                }
            }
        }
    };
}

sights! {
    FirstLeads "candidate 1 leads",
    SecondLeads "candidate 2 leads",
    ThirdLeads "candidate 3 leads",
    HandOver "the lease is handed over: given back, and taken by another",
    TakeOver "the lease is taken over: its holder failed, it ran out, and another took it",
    Recognised "a bid of unknown fate is recognised by the next one, which gets the same term",
    LossByDeadline "a term is lost by its deadline",
    LossBySuperseded "a term is lost because the store names another holder",
    LossUnawares "a term is lost by its deadline while its process stood still",
    LossByRemoval "a term is lost because its record is gone",
    LossBySuspend "a term is lost because its host was suspended",
    Resigned "a term is resigned",
    Finished "work ends by itself, and its lease is given back",
    Obeyed "work that was told to stop ends within its budget",
    CutAtBudget "work that was told to stop is cut off when its budget is over",
    CutAtDeadline "work is cut off at the deadline",
    Overran "work goes on after it was cut off, and that is reported",
    RenewedWhileStopping "a renewal is confirmed while the work is being stopped",
    LateExtension "an extension comes after the deadline, and revives nothing",
    BidTakenBack "stopping gives back what a bid of unknown fate had taken",
    Orphaned "a bid is applied after its campaign is over",
    Refused "a permanent error ends a campaign",
    Settled "a term settles before its work starts",
    SettleSkipped "a term need not settle, since the one before was given back",
    Repeated "a request that was repeated by the network is applied twice",
    Overlap "work of two terms overlaps, where an assumption was broken on purpose",
    SecondCampaign "a candidate that has lost its term leads again, with a higher token",
}

/// What was seen so far, by many threads at once.
#[derive(Debug)]
pub struct Seen {
    seen: Vec<AtomicBool>,
    shown: Vec<AtomicBool>,
}

impl Default for Seen {
    fn default() -> Self {
        let none = || Sight::ALL.iter().map(|_| AtomicBool::new(false)).collect();
        Self { seen: none(), shown: none() }
    }
}

impl Seen {
    pub(super) fn see(&self, sight: Sight) {
        let seen = &self.seen[sight as usize];
        if !seen.load(Ordering::Relaxed) {
            seen.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was seen.
    pub fn has(&self, sight: Sight) -> bool {
        self.seen[sight as usize].load(Ordering::Relaxed)
    }

    /// True once, when it was seen: the checker notes each discovery anew for each state in which it holds.
    pub(super) fn show(&self, sight: usize) -> bool {
        self.seen[sight].load(Ordering::Relaxed) && !self.shown[sight].swap(true, Ordering::Relaxed)
    }
}
