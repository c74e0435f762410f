//! What happened, and whether that was allowed.
//!
//! Every candidate writes down, by the host's boot-time clock, when its term began, each instant at which it asked itself
//! whether it leads and was told yes, and when its work had stopped. The bench adds the faults, and the fenced register the
//! writes that it took.
//!
//! - **No overlap**: no candidate is told yes after a later term has begun.
//! - **Tokens rise** from term to term.
//! - **Events pair**: begun, told yes, stopped, in this order, one term at a time for each candidate.
//! - **No unfenced late write**: a write begins at the instant before the question that allowed it, and none begins after
//!   a later term has. One that began in time and *arrives* late, since its process was frozen in between, is what no
//!   lease can hinder: the register refuses it by its token, and it is counted as refused.
//! - **Takeover in time**, wherever nothing but the leader's own end was wrong.
//! - **The register** takes no token after a larger one. What comes late is refused, and counted.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Nanoseconds of the host's boot-time clock.
    pub(crate) at: u64,
    /// A candidate, `register` or `bench`.
    pub(crate) who: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// A term began.
    Elected(u64),
    /// The candidate asked whether it leads, at this instant, and was told yes.
    Leads(u64),
    /// The work of a term had stopped.
    Stopped(u64),
    /// The process began to run.
    Started,
    /// The process is gone: killed or ended.
    Gone,
    /// The register took a write.
    Took(u64),
    /// The register refused a late write.
    Refused(u64),
    /// A candidate was asked to stop, and did not: it had to be killed.
    Stuck(String),
    /// The bench did harm: what, and for how long.
    Harm(String, Duration),
    /// All harm is over from here on.
    Healed,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
    /// How soon somebody leads again when nothing is wrong but that the leader is gone.
    pub(crate) bound: Duration,
}

/// What a check found.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) violations: Vec<String>,
    /// How often each kind of harm was done.
    faults: BTreeMap<String, usize>,
    terms: usize,
    overlaps: usize,
    unfenced_late: usize,
    taken: usize,
    late: usize,
    takeovers: Vec<Duration>,
    undisturbed: Vec<Duration>,
    bound: Duration,
}

/// One term, as its candidate saw it.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) who: String,
    pub(crate) token: u64,
    pub(crate) begun: u64,
    /// The last instant at which it was told yes.
    pub(crate) last: u64,
    /// When its work had stopped, or its process was gone.
    pub(crate) ended: Option<u64>,
}

impl History {
    pub(crate) fn new(mut events: Vec<Event>, bound: Duration) -> Self {
        events.sort_by_key(|event| event.at);
        Self { events, bound }
    }

    pub(crate) fn read(file: &Path) -> io::Result<Self> {
        let lines = BufReader::new(fs::File::open(file)?).lines();
        let events = lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect::<io::Result<Vec<_>>>()?;
        Ok(Self::new(events, Duration::MAX))
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(fs::File::create(file)?);
        for event in &self.events {
            writeln!(out, "{}", serde_json::to_string(event)?)?;
        }
        out.flush()
    }

    /// The terms, by when they began.
    pub(crate) fn terms(&self, violations: &mut Vec<String>) -> Vec<Term> {
        let mut terms: Vec<Term> = Vec::new();
        let mut open: HashMap<&str, usize> = HashMap::new();
        for event in &self.events {
            let who = event.who.as_str();
            let mut wrong = |what: &str| violations.push(format!("{who} at {} ns: {what}", event.at));
            match event.what {
                What::Elected(token) => {
                    if open.contains_key(who) {
                        wrong("elected while a term of its own goes on");
                    }
                    open.insert(who, terms.len());
                    let (begun, last) = (event.at, event.at);
                    terms.push(Term { who: who.to_owned(), token, begun, last, ended: None });
                }
                What::Leads(token) => match open.get(who).map(|at| &mut terms[*at]) {
                    Some(term) if term.token == token => term.last = event.at,
                    _ => wrong("told that it leads outside of its term"),
                },
                What::Stopped(token) => match open.remove(who).map(|at| &mut terms[at]) {
                    Some(term) if term.token == token => term.ended = Some(event.at),
                    _ => wrong("stopped what had not begun"),
                },
                What::Gone => {
                    if let Some(at) = open.remove(who) {
                        terms[at].ended = Some(event.at);
                    }
                }
                _ => {}
            }
        }
        terms
    }

    /// Checks everything, in one pass over sorted events and one over terms.
    pub(crate) fn check(&self) -> Verdict {
        let mut verdict = Verdict { bound: self.bound, ..Verdict::default() };
        let terms = self.terms(&mut verdict.violations);
        verdict.terms = terms.len();
        let harms = Harms::of(&self.events);
        let mut before: Option<&Term> = None;
        // The latest instant at which any earlier term was told yes.
        let mut latest: Option<&Term> = None;
        for term in &terms {
            if let Some(before) = before {
                if term.token <= before.token {
                    verdict
                        .violations
                        .push(format!("token {} of {} follows token {}", term.token, term.who, before.token));
                }
                let free = before.ended.unwrap_or(before.last);
                let took = Duration::from_nanos(term.begun.saturating_sub(free));
                verdict.takeovers.push(took);
                if !harms.disturb(free, term.begun) {
                    verdict.undisturbed.push(took);
                    if took > self.bound {
                        verdict.violations.push(format!(
                            "{} led only {took:.1?} after {}, and nothing was wrong; the bound is {:.1?}",
                            term.who, before.who, self.bound
                        ));
                    }
                }
            }
            if let Some(latest) = latest.filter(|latest| latest.last > term.begun) {
                verdict.overlaps += 1;
                verdict.violations.push(format!(
                    "{} was told that it leads with token {} until {} ns, when {} led since {} ns with token {}",
                    latest.who, latest.token, latest.last, term.who, term.begun, term.token
                ));
            }
            if latest.is_none_or(|latest| term.last > latest.last) {
                latest = Some(term);
            }
            before = Some(term);
        }
        let (mut largest, mut newest) = (0, 0);
        for event in &self.events {
            match event.what {
                What::Elected(token) => newest = newest.max(token),
                What::Leads(token) if token < newest => {
                    verdict.unfenced_late += 1;
                    verdict.violations.push(format!(
                        "{} began an unfenced write with token {token} at {} ns, after token {newest}",
                        event.who, event.at
                    ));
                }
                What::Took(token) => {
                    verdict.taken += 1;
                    if token < largest {
                        verdict.violations.push(format!("the register took token {token} after {largest}"));
                    }
                    largest = largest.max(token);
                }
                What::Refused(_) => verdict.late += 1,
                What::Harm(ref of, _) => {
                    let kind = of.split(' ').next().unwrap_or_default();
                    *verdict.faults.entry(kind.to_owned()).or_default() += 1;
                }
                What::Stuck(ref who) => verdict.violations.push(format!("{who} does not stop")),
                _ => {}
            }
        }
        verdict.takeovers.sort_unstable();
        verdict.undisturbed.sort_unstable();
        verdict
    }

    /// Candidates that take turns, for measuring: `count` events without a fault.
    pub(crate) fn made_up(count: usize) -> Self {
        let mut events = Vec::with_capacity(count);
        let (mut at, mut token) = (0, 0);
        while events.len() < count {
            token += 1;
            let who = format!("c{}", token % 5);
            let mut add = |what| {
                at += 1_000_000;
                events.push(Event { at, who: who.clone(), what });
            };
            add(What::Elected(token));
            (0..97).for_each(|_| add(What::Leads(token)));
            add(What::Stopped(token));
        }
        Self::new(events, Duration::from_secs(1))
    }
}

const HEALING: Duration = Duration::from_millis(500);

/// When something else was wrong than that one candidate was gone, as sorted spans.
struct Harms(Vec<(u64, u64)>);

impl Harms {
    fn of(events: &[Event]) -> Self {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        let mut latest = 0;
        for event in events {
            if let What::Harm(name, lasts) = &event.what
                && !name.starts_with("kill ")
                && !name.starts_with("stop ")
            {
                // The end of a span is that of the longest so far, so that both ends are sorted.
                latest = latest.max(event.at.saturating_add(nanos(*lasts)));
                spans.push((event.at, latest));
            }
        }
        Self(spans)
    }

    /// Whether any of them touches the time from shortly before `from` until `to`: connections need a while to heal.
    fn disturb(&self, from: u64, to: u64) -> bool {
        let from = from.saturating_sub(nanos(HEALING));
        let first_that_ends_later = self.0.partition_point(|(_, end)| *end < from);
        self.0.get(first_that_ends_later).is_some_and(|(begin, _)| *begin <= to)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Verdict {
    pub(crate) fn is_ok(&self) -> bool {
        self.violations.is_empty() && self.terms > 0
    }

    pub(crate) fn faults(&self) -> usize {
        self.faults.values().sum()
    }

    pub(crate) fn fail(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in self.violations.iter().take(20) {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        writeln!(
            f,
            "faults: {}, terms: {}, overlaps: {}, unfenced late writes: {}, writes taken: {}, late writes refused: {}",
            self.faults(),
            self.terms,
            self.overlaps,
            self.unfenced_late,
            self.taken,
            self.late,
        )?;
        let kinds: Vec<_> = self.faults.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        if !kinds.is_empty() {
            writeln!(f, "of these: {}", kinds.join(", "))?;
        }
        write_times(f, "takeovers", &self.takeovers)?;
        writeln!(f)?;
        write_times(f, "takeovers with nothing else wrong", &self.undisturbed)?;
        if self.bound < Duration::MAX {
            write!(f, ", bound: {:.2?}", self.bound)?;
        }
        writeln!(f)?;
        let word = if self.is_ok() { "PASSED" } else { "FAILED" };
        writeln!(f, "{word}: {} violations", self.violations.len())
    }
}

fn write_times(f: &mut fmt::Formatter<'_>, what: &str, sorted: &[Duration]) -> fmt::Result {
    let at = |percent: usize| {
        sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    write!(f, "{what}: {}, p50: {:.2?}, p99: {:.2?}, max: {:.2?}", sorted.len(), at(50), at(99), at(100))
}

#[cfg(test)]
mod tests;
