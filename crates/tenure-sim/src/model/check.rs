//! Runs the checker, and says what came of it.

use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use super::moves::Move;
use super::sights::Sight;
use super::state::State;
use super::{Bounds, Election, Rule, sets};
use crate::clock::MS;
use crate::planted::Bug;

/// What came of one set of bounds.
#[derive(Debug)]
pub struct Report {
    /// The bounds.
    pub bounds: Bounds,
    /// States, each counted once.
    pub unique: usize,
    /// States, counted as often as they were reached.
    pub generated: usize,
    /// Moves in the longest run.
    pub depth: usize,
    /// What was checked: what always holds, and what holds sometimes.
    pub properties: Vec<&'static str>,
    /// What was broken, and how.
    pub violations: Vec<Violation>,
    /// What was seen.
    pub seen: Vec<Sight>,
    /// What should have been seen and was not.
    pub unseen: Vec<Sight>,
    /// The transitions that the machines took.
    pub counts: super::transitions::Counts,
    /// Every state within the bounds was visited.
    pub complete: bool,
}

/// A rule that was broken, and the run that breaks it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// How many moves it takes.
    pub moves: usize,
    /// What happens, line by line.
    pub run: Vec<String>,
}

/// How the model finds a planted bug.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Within which bounds.
    pub bounds: &'static str,
    /// What was broken.
    pub rule: &'static str,
    /// How many moves it takes.
    pub moves: usize,
    /// What happens, line by line.
    pub run: Vec<String>,
}

/// When to stop, besides the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// After so many states.
    pub states: Option<usize>,
    /// After so long.
    pub lasts: Option<Duration>,
    /// Goes to the end of each run before it begins the next, which takes little memory, but finds no shortest runs.
    pub deep: bool,
}

/// Goes through all states within `bounds`.
pub fn check(bounds: Bounds, bug: Option<Bug>, threads: usize, limit: Limit) -> Report {
    let mut builder = Election::new(bounds, bug).checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    if let Some(states) = limit.states {
        builder = builder.target_state_count(states);
    }
    if let Some(lasts) = limit.lasts {
        builder = builder.timeout(lasts);
    }
    let began = Instant::now();
    if limit.deep {
        conclude(&builder.spawn_dfs().join(), limit, began)
    } else {
        conclude(&builder.spawn_bfs().join(), limit, began)
    }
}

fn conclude(checker: &impl Checker<Election>, limit: Limit, began: Instant) -> Report {
    let in_time = limit.lasts.is_none_or(|lasts| began.elapsed() < lasts);
    let election = checker.model();
    let discoveries = checker.discoveries();
    let properties = election.properties();
    let broken = properties.iter().filter(|property| property.expectation == Expectation::Always);
    let violations = broken.filter_map(|property| {
        let moves = discoveries.get(property.name)?.clone().into_vec();
        Some(Violation { rule: property.name, moves: moves.len() - 1, run: tell(election, moves) })
    });
    let mut violations: Vec<Violation> = violations.collect();
    violations.sort_by_key(|violation| violation.moves);
    let unseen = election.bounds.shows.iter().filter(|sight| !election.sights.has(**sight)).copied().collect();
    let counts = super::transitions::Counts::default();
    counts.add(&election.counts);
    Report {
        bounds: election.bounds.clone(),
        unique: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        properties: properties.iter().map(|property| property.name).collect(),
        complete: violations.is_empty() && in_time && limit.states.is_none_or(|states| checker.state_count() < states),
        violations,
        seen: Sight::ALL.iter().filter(|sight| election.sights.has(**sight)).copied().collect(),
        unseen,
        counts,
    }
}

/// Plants `bug`, and looks for the shortest run that breaks a rule, in a few small bounds.
///
/// Some bugs are beyond the model, since what they break lies outside the machine and the store: how work panics, how
/// bids are spread, how often a failed bid is repeated, how followers of a Kubernetes object time it.
pub fn finds(bug: Bug) -> Option<Finding> {
    if matches!(bug, Bug::PanicHoldsOn | Bug::NoJitter | Bug::HotLoop | Bug::FollowersOwnTtl) {
        return None;
    }
    sets::for_bugs().into_iter().find_map(|bounds| {
        let name = bounds.name;
        let limit = Limit { states: Some(ENOUGH), ..Limit::default() };
        let Violation { rule, moves, run } = check(bounds, Some(bug), 1, limit).violations.into_iter().next()?;
        Some(Finding { bounds: name, rule, moves, run })
    })
}

/// A planted bug that so many states do not show is not found.
const ENOUGH: usize = 400_000;

/// A run for a person to read: time, move, and what it does, indented.
fn tell(election: &Election, path: Vec<(State, Option<Move>)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (state, next) in path {
        let Some(next) = next else { continue };
        let at = format!("{:>9.3} ms", state.now as f64 / MS as f64);
        let what = match next {
            Move::Deliver(i) => format!("arrives: {}", state.wire[i]),
            Move::Repeat(i) => format!("arrives, and a copy stays: {}", state.wire[i]),
            Move::Fail(i, kind) => format!("fails ({}): {}", kind.as_str(), state.wire[i]),
            Move::Confuse(i) => format!("answered with nonsense: {}", state.wire[i]),
            Move::Mistake(i) => format!("answered with another term: {}", state.wire[i]),
            other => other.to_string(),
        };
        lines.push(format!("{at}  {what}"));
        let (after, notes) = election.explain(&state, next);
        lines.extend(notes.into_iter().map(|note| format!("{:14}{note}", "")));
        let broken = Rule::ALL.iter().filter(|rule| after.breaches & rule.bit() != 0);
        lines.extend(broken.map(|rule| format!("{:14}BROKEN: {}", "", rule.name())));
    }
    lines
}
