//! Which of the machine's transitions were taken: the rows of `tenure-core`'s transition table, as the model sees them.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::machine::{Action, Answer, Attempt, Call, Input};
use tenure_core::{Acquired, LossReason, Released, Renewed, StoreErrorKind, WakeUp};

use super::state::Campaign;

/// One row: from a state, by an input, the machine does something and goes to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The name of the row in `tenure-core`'s table.
    pub row: &'static str,
    /// The state before.
    pub from: &'static str,
    /// The kind of input.
    pub input: &'static str,
    /// What the machine asks for.
    pub does: &'static [&'static str],
    /// The state after.
    pub to: &'static str,
}

const fn row(
    row: &'static str,
    from: &'static str,
    input: &'static str,
    does: &'static [&'static str],
    to: &'static str,
) -> Transition {
    Transition { row, from, input, does, to }
}

/// Every row, in the order of `crates/tenure-core/src/machine/tests/transitions.rs`.
pub const TRANSITIONS: &[Transition] = &[
    row("time for a bid", "following", "time", &["bid"], "bidding"),
    row("not yet", "following", "time", &[], "following"),
    row("the poll", "following", "time", &["bid"], "bidding"),
    row("vacated", "following", "vacated", &["bid"], "bidding"),
    row("changed", "following", "changed", &["bid"], "bidding"),
    row("a gap", "following", "resync", &["bid"], "bidding"),
    row("taken", "following", "taken", &[], "following"),
    row("a hint too soon", "following", "vacated", &[], "following"),
    row("stop", "following", "stop", &[], "ended"),
    row("stop in doubt", "following", "stop", &["read"], "releasing"),
    row("a late grant", "following", "bid granted", &["bid"], "bidding"),
    row("a late refusal", "following", "bid held", &[], "following"),
    row("no work to end", "following", "work ended", &[], "following"),
    row("nothing to resign", "following", "resign", &[], "following"),
    row("a suspend", "following", "suspended", &[], "following"),
    row("granted", "bidding", "bid granted", &["start"], "leading"),
    row("held", "bidding", "bid held", &[], "following"),
    row("unavailable", "bidding", "bid unavailable", &[], "following"),
    row("unknown", "bidding", "bid unknown", &[], "following"),
    row("denied", "bidding", "bid denied", &[], "ended"),
    row("malformed", "bidding", "bid malformed", &[], "ended"),
    row("unsupported", "bidding", "bid unsupported", &[], "ended"),
    row("invalid", "bidding", "bid invalid", &[], "ended"),
    row("a senseless answer", "bidding", "bid senseless", &[], "following"),
    row("abandoned", "bidding", "time", &["bid"], "bidding"),
    row("granted after C", "bidding", "bid granted", &["bid"], "bidding"),
    row("a hint", "bidding", "vacated", &[], "bidding"),
    row("a late grant", "bidding", "bid granted", &[], "bidding"),
    row("held, after a late grant", "bidding", "bid held", &["bid"], "bidding"),
    row("stop", "bidding", "stop", &[], "releasing"),
    row("settles first", "bidding", "bid granted", &[], "settling"),
    row("need not settle", "bidding", "bid granted after release", &["start"], "leading"),
    row("too short a grant", "bidding", "bid granted short", &["release"], "releasing"),
    row("settled", "settling", "time", &["start"], "leading"),
    row("not yet", "settling", "time", &[], "settling"),
    row("stop", "settling", "stop", &["release"], "releasing"),
    row("C came first", "settling", "time", &["renew"], "settling"),
    row("late past C", "settling", "time", &["release"], "releasing"),
    row("late past D", "settling", "time", &[], "following"),
    row("lost", "settling", "renewal lost", &[], "following"),
    row("extended", "settling", "renewal extended", &[], "settling"),
    row("time to renew", "leading", "time", &["renew"], "leading"),
    row("extended", "leading", "renewal extended", &[], "leading"),
    row("unavailable", "leading", "renewal unavailable", &[], "leading"),
    row("denied", "leading", "renewal denied", &[], "leading"),
    row("invalid", "leading", "renewal invalid", &[], "leading"),
    row("malformed", "leading", "renewal malformed", &["signal", "cut"], "stopping"),
    row("unsupported", "leading", "renewal unsupported", &["signal", "cut"], "stopping"),
    row("lost", "leading", "renewal lost", &["signal", "cut"], "stopping"),
    row("another token", "leading", "renewal of another term", &["signal", "cut"], "stopping"),
    row("a senseless answer", "leading", "renewal senseless", &[], "leading"),
    row("a hung renewal is repeated", "leading", "time", &["renew"], "leading"),
    row("C", "leading", "time", &["signal", "renew"], "stopping"),
    row("D at once", "leading", "time", &["signal", "cut"], "stopping"),
    row("a hint", "leading", "vacated", &["renew"], "leading"),
    row("stop", "leading", "stop", &["signal"], "stopping"),
    row("resign", "leading", "resign", &["signal", "cut"], "stopping"),
    row("work ended", "leading", "work ended", &["release"], "releasing"),
    row("held on finish", "leading", "work ended", &[], "ended"),
    row("a late bid, same token", "leading", "bid granted", &[], "leading"),
    row("a late bid, higher token", "leading", "bid granted higher", &["signal", "cut"], "stopping"),
    row("a suspend past D", "leading", "suspended", &["signal", "cut"], "stopping"),
    row("a suspend within", "leading", "suspended", &[], "leading"),
    row("the work obeyed", "stopping", "work ended", &["release"], "releasing"),
    row("the budget is over", "stopping", "time", &["cut"], "stopping"),
    row("renews meanwhile", "stopping", "time", &["renew"], "stopping"),
    row("D", "stopping", "time", &["cut"], "stopping"),
    row("lost while draining", "stopping", "renewal lost", &["cut"], "stopping"),
    row("resigned while draining", "stopping", "resign", &["cut"], "stopping"),
    row("a second stop", "stopping", "stop", &[], "stopping"),
    row("work overruns", "stopping", "time", &["overrun"], "stopping"),
    row("work ended after D", "stopping", "work ended", &[], "ended"),
    row("work ended after a loss", "stopping", "work ended", &[], "ended"),
    row("work ended between C and D", "stopping", "work ended", &["release"], "releasing"),
    row("freed", "releasing", "release freed", &[], "ended"),
    row("not held", "releasing", "release not held", &[], "ended"),
    row("unavailable", "releasing", "release unavailable", &[], "releasing"),
    row("tried again", "releasing", "time", &["release"], "releasing"),
    row("hung, tried again", "releasing", "time", &["release"], "releasing"),
    row("denied", "releasing", "release denied", &[], "ended"),
    row("budget over", "releasing", "time", &[], "ended"),
    row("a senseless answer", "releasing", "release senseless", &[], "releasing"),
    row("stop", "releasing", "stop", &[], "releasing"),
    row("a hint", "releasing", "vacated", &[], "releasing"),
    row("found nothing", "releasing", "read nothing", &[], "ended"),
    row("found another", "releasing", "read another", &[], "ended"),
    row("found its own", "releasing", "read own", &["release"], "releasing"),
    row("found its own, late", "releasing", "read own", &["release"], "releasing"),
    row("the read failed", "releasing", "read unavailable", &[], "releasing"),
    row("the read was denied", "releasing", "read denied", &[], "ended"),
    row("the read hung", "releasing", "time", &["read"], "releasing"),
    row("the bid was granted", "releasing", "bid granted", &["release"], "releasing"),
    row("the bid was refused", "releasing", "bid held", &[], "ended"),
    row("the bid was not applied", "releasing", "bid unavailable", &[], "ended"),
    row("the bid is in doubt", "releasing", "bid unknown", &["read"], "releasing"),
    row("the bid hung", "releasing", "time", &["read"], "releasing"),
    row("time", "ended", "time", &[], "ended"),
    row("stop", "ended", "stop", &[], "ended"),
    row("a late answer", "ended", "bid granted", &[], "ended"),
    row("a hint", "ended", "vacated", &[], "ended"),
];

const STATES: [&str; 7] = ["following", "bidding", "settling", "leading", "stopping", "releasing", "ended"];
const DOES: [&str; 8] = ["bid", "renew", "release", "read", "start", "signal", "cut", "overrun"];
const INPUTS: [&str; 51] = [
    "time",
    "suspended",
    "vacated",
    "taken",
    "changed",
    "resync",
    "stop",
    "resign",
    "work ended",
    "bid granted",
    "bid granted after release",
    "bid granted short",
    "bid granted higher",
    "bid held",
    "bid unavailable",
    "bid unknown",
    "bid denied",
    "bid malformed",
    "bid unsupported",
    "bid invalid",
    "bid senseless",
    "renewal extended",
    "renewal of another term",
    "renewal lost",
    "renewal unavailable",
    "renewal unknown",
    "renewal denied",
    "renewal malformed",
    "renewal unsupported",
    "renewal invalid",
    "renewal senseless",
    "release freed",
    "release not held",
    "release unavailable",
    "release unknown",
    "release denied",
    "release malformed",
    "release unsupported",
    "release invalid",
    "release senseless",
    "read nothing",
    "read another",
    "read own",
    "read unavailable",
    "read unknown",
    "read denied",
    "read malformed",
    "read unsupported",
    "read invalid",
    "read senseless",
    "another hint",
];

/// Counts transitions, by many threads at once.
#[derive(Debug)]
pub struct Counts {
    taken: Vec<AtomicU64>,
}

impl Default for Counts {
    fn default() -> Self {
        let all = (STATES.len() * INPUTS.len() * STATES.len()) << DOES.len();
        Self { taken: (0..all).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Counts {
    /// Counts one.
    pub(super) fn take(&self, from: &str, input: &str, actions: &[Action], to: &str) {
        let does = actions.iter().fold(0, |does, action| does | 1 << place(&DOES, word(action)));
        if let Some(count) = self.taken.get(key(from, input, does, to)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often a row was taken.
    pub fn of(&self, transition: &Transition) -> u64 {
        let does = transition.does.iter().fold(0, |does, word| does | 1 << place(&DOES, word));
        let count = self.taken.get(key(transition.from, transition.input, does, transition.to));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// The rows that were not taken.
    pub fn missing(&self) -> Vec<&'static Transition> {
        TRANSITIONS.iter().filter(|transition| self.of(transition) == 0).collect()
    }

    /// How many kinds of transitions were taken, those without a row included.
    pub fn kinds(&self) -> usize {
        self.taken.iter().filter(|count| count.load(Ordering::Relaxed) > 0).count()
    }

    /// Takes another's counts in.
    pub fn add(&self, other: &Self) {
        for (count, more) in self.taken.iter().zip(&other.taken) {
            count.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

fn key(from: &str, input: &str, does: usize, to: &str) -> usize {
    let states = STATES.len();
    ((place(&STATES, from) * INPUTS.len() + place(&INPUTS, input)) * states + place(&STATES, to)) << DOES.len() | does
}

fn place(words: &[&str], word: &str) -> usize {
    // Comparing addresses first: the words are mostly the very same.
    words.iter().position(|other| std::ptr::eq(*other, word) || *other == word).unwrap_or(words.len())
}

fn word(action: &Action) -> &'static str {
    DOES[match action {
        Action::Bid(_) => 0,
        Action::Renew(..) => 1,
        Action::Release(..) => 2,
        Action::Read(_) => 3,
        Action::StartWork(_) => 4,
        Action::SignalStop => 5,
        Action::CutOff => 6,
        Action::ReportOverrun => 7,
    }]
}

/// The word for an input, as the campaign takes it.
pub(super) fn input_word(input: &Input, campaign: &Campaign, short: bool) -> &'static str {
    match input {
        Input::Tick => "time",
        Input::Suspended(_) => "suspended",
        Input::Woken(WakeUp::Vacated) => "vacated",
        Input::Woken(WakeUp::Taken) => "taken",
        Input::Woken(WakeUp::Changed) => "changed",
        Input::Woken(WakeUp::Resync) => "resync",
        Input::Woken(_) => "another hint",
        Input::Stop => "stop",
        Input::Resign => "resign",
        Input::WorkEnded => "work ended",
        Input::Answer(attempt, answer) => answer_word(attempt, answer, campaign, short),
    }
}

fn answer_word(attempt: &Attempt, answer: &Answer, campaign: &Campaign, short: bool) -> &'static str {
    match (attempt.call, answer) {
        (call, Answer::Failed(kind)) => failure_word(call, *kind),
        (Call::Bid, Answer::Acquired(Acquired::Granted(grant))) => {
            if campaign.account.started && grant.token.value() > campaign.account.token {
                "bid granted higher"
            } else if short {
                "bid granted short"
            } else if grant.after_release {
                "bid granted after release"
            } else {
                "bid granted"
            }
        }
        (Call::Bid, Answer::Acquired(Acquired::Held(_))) => "bid held",
        (Call::Renew, Answer::Renewed(Renewed::Extended(grant))) => {
            if grant.token.value() == campaign.account.token {
                "renewal extended"
            } else {
                "renewal of another term"
            }
        }
        (Call::Renew, Answer::Renewed(Renewed::Lost(LossReason::Malformed))) => "renewal malformed",
        (Call::Renew, Answer::Renewed(Renewed::Lost(_))) => "renewal lost",
        (Call::Release, Answer::Released(Released::Freed)) => "release freed",
        (Call::Release, Answer::Released(Released::NotHeld)) => "release not held",
        (Call::Read, Answer::Read(None)) => "read nothing",
        (Call::Read, Answer::Read(Some(record))) => {
            if record.holder == *campaign.subject.machine().candidate() {
                "read own"
            } else {
                "read another"
            }
        }
        (call, _) => senseless(call),
    }
}

fn senseless(call: Call) -> &'static str {
    match call {
        Call::Bid => "bid senseless",
        Call::Renew => "renewal senseless",
        Call::Release => "release senseless",
        Call::Read => "read senseless",
    }
}

fn failure_word(call: Call, kind: StoreErrorKind) -> &'static str {
    let first = match call {
        Call::Bid => "bid unavailable",
        Call::Renew => "renewal unavailable",
        Call::Release => "release unavailable",
        Call::Read => "read unavailable",
    };
    INPUTS[place(&INPUTS, first)
        + match kind {
            StoreErrorKind::Unavailable => 0,
            StoreErrorKind::Unknown => 1,
            StoreErrorKind::Denied => 2,
            StoreErrorKind::Malformed => 3,
            StoreErrorKind::Unsupported => 4,
            _ => 5,
        }]
}
