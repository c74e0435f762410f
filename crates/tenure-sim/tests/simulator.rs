//! The simulator itself: it repeats itself, finds nothing where nothing is wrong, and finds what is planted.

#![allow(clippy::unwrap_used, reason = "tests")]

use tenure_sim::planted::table;
use tenure_sim::runner::{Plan, play, run};
use tenure_sim::scenario::{Break, Settings};

const USUAL: Settings = Settings { broken: None, bug: None, sound: false };

fn plan(end: u64, settings: Settings) -> Plan {
    Plan { first: 0, end, lasts: None, threads: 2, enough: 1, settings }
}

#[test]
fn a_seed_played_twice_is_the_same_run() {
    for seed in 0..200 {
        let (first, again) = (play(seed, USUAL, false), play(seed, USUAL, true));
        assert_eq!((first.hash, first.tally), (again.hash, again.tally), "seed {seed}");
    }
    assert_ne!(play(1, USUAL, false).hash, play(2, USUAL, false).hash);
}

#[test]
fn nothing_is_broken_where_nothing_is_wrong() {
    let report = run(&plan(1500, Settings { sound: true, ..USUAL }));
    assert!(report.failures.is_empty(), "seed {}: {:?}", report.failures[0].seed, report.failures[0].breach);
    assert!(report.tally.terms > 1000 && report.tally.faults > 1000, "{:?}", report.tally);
}

#[test]
fn a_broken_assumption_lets_terms_overlap_and_the_fence_holds_all_the_same() {
    for broken in [Break::Drift, Break::Step, Break::Failover] {
        let report = run(&Plan { enough: usize::MAX, ..plan(600, Settings { broken: Some(broken), ..USUAL }) });
        let of_the_fence =
            report.failures.iter().find(|play| play.breach.as_ref().unwrap().invariant.contains("is let in after"));
        assert!(of_the_fence.is_none(), "{broken}: {:?}", of_the_fence.unwrap().breach);
        assert!(report.tally.overlaps > 0, "{broken}: nothing overlaps, so nothing would be noticed");
        assert!(report.tally.refused > 0, "{broken}: the fence was never needed");
    }
}

#[test]
fn seeds_that_ever_failed_pass_now() {
    let seeds = include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#'));
    let seeds: Vec<u64> = seeds.map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert!(!seeds.is_empty());
    for seed in seeds {
        let play = play(seed, USUAL, false);
        assert_eq!(play.breach.map(|breach| breach.what), None, "seed {seed}");
    }
}

#[test]
fn the_table_in_the_docs_is_true() {
    assert_eq!(table::check(include_str!("../../../docs/planted-bugs.md")), Vec::<String>::new());
}

#[test]
fn a_right_machine_passes_the_seeds_that_show_the_bugs() {
    let text = include_str!("../../../docs/planted-bugs.md");
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let Ok(seed) = line.split('|').nth(4).unwrap().trim().parse() else { continue };
        let right = play(seed, USUAL, false);
        assert_eq!(right.breach.map(|breach| breach.what), None, "seed {seed}");
    }
}
