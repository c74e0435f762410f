//! The tests of the model: small bounds, so that they are quick without optimisation. `tenure-model` checks the rest.

use std::collections::BTreeSet;

use super::check::Limit;
use super::transitions::TRANSITIONS;
use super::*;

const NO_LIMIT: Limit = Limit { states: None, lasts: None, deep: false };

/// Two candidates, and one thing that goes wrong.
fn small() -> Bounds {
    let mut bounds = sets::ci().swap_remove(0);
    bounds.left.all = 1;
    bounds.horizon = 26 * S;
    bounds
}

#[test]
fn nothing_is_ever_broken_by_the_machine_that_ships_and_each_of_its_transitions_is_taken() {
    let counts = transitions::Counts::default();
    let mut unique = 0;
    for bounds in sets::quick() {
        let report = check(bounds, None, 2, NO_LIMIT);
        let name = report.bounds.name;
        assert!(report.violations.is_empty(), "within {name:?}: {:#?}", report.violations);
        assert_eq!(report.unseen, [], "within {name:?}");
        assert!(report.complete, "within {name:?}");
        counts.add(&report.counts);
        unique += report.unique;
    }
    assert_eq!(counts.missing(), [] as [&transitions::Transition; 0]);
    assert!(unique > 100_000, "{unique} states");
}

#[test]
fn planted_bugs_are_found_by_the_shortest_run_and_told() {
    for (bug, rule) in [
        (Bug::DeadlineFromAnswer, Rule::Confirmed),
        (Bug::NoCutOff, Rule::Ends),
        (Bug::ReleaseBeforeEnd, Rule::Renews),
        (Bug::StopForgetsBid, Rule::Stops),
        (Bug::CandidateReused, Rule::TokensRise),
    ] {
        let finding = finds(bug).unwrap_or_else(|| panic!("{bug} is not found"));
        assert_eq!(finding.rule, rule.name(), "{bug}: {:#?}", finding.run);
        assert!(finding.moves <= 8, "{bug}: {:#?}", finding.run);
        assert!(finding.run.iter().any(|line| line.contains("BROKEN")), "{bug}: {:#?}", finding.run);
    }
}

#[test]
fn the_overlap_itself_is_found_when_drift_is_ignored_and_no_other_rule_is_judged() {
    let bounds = Bounds { judged: Rule::NoOverlap.bit(), ..small() };
    let report = check(bounds.clone(), Some(Bug::DriftIgnored), 1, NO_LIMIT);
    assert_eq!(report.violations.len(), 1);
    assert_eq!(report.violations[0].rule, Rule::NoOverlap.name());
    assert!(check(bounds, None, 2, NO_LIMIT).violations.is_empty());
}

#[test]
fn a_run_told_twice_is_the_same() {
    let run = || finds(Bug::NoCutOff).map(|finding| finding.run);
    assert_eq!(run(), run());
}

#[test]
fn the_rows_are_those_of_the_machines_own_table() {
    const TABLE: &str = include_str!("../../../tenure-core/src/machine/tests/transitions.rs");
    let mut rows = BTreeSet::new();
    for part in TABLE.split("fn while_").skip(1).chain(TABLE.split("fn after_the_").nth(1)) {
        let (state, body) = part.split_once("()").unwrap();
        let state = if state == "end" { "ended" } else { state };
        let body = body.split("\nfn ").next().unwrap().split("fn after_the_").next().unwrap();
        for row in body.split("row(").skip(1) {
            rows.insert((state, row.split('"').nth(1).unwrap()));
        }
    }
    let ours: BTreeSet<_> = TRANSITIONS.iter().map(|transition| (transition.from, transition.row)).collect();
    assert_eq!(ours, rows);
    assert!(rows.len() > 90, "{} rows", rows.len());
}
