//! The table of planted bugs in the docs: who finds which, and a seed that shows it.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::Bug;
use crate::model;
use crate::runner::{self, Plan};
use crate::scenario::Settings;

/// How long fresh seeds may take to find a bug.
pub const WITHIN: Duration = Duration::from_secs(10);

/// What finds one bug.
#[derive(Clone, Debug)]
pub struct Row {
    /// The bug.
    pub bug: Bug,
    /// The seed that showed it, the invariant that it broke, and how long the search took.
    pub simulated: Option<(u64, &'static str, Duration)>,
    /// How many moves the model's shortest run takes.
    pub modelled: Option<usize>,
}

/// As in any other run, where nothing fails without a bug.
pub const fn settings(bug: Bug) -> Settings {
    Settings { broken: None, bug: Some(bug), sound: false }
}

/// Searches for every bug with seeds from `first` on.
pub fn search(first: u64, threads: usize) -> Vec<Row> {
    let row = |bug: &Bug| {
        let began = Instant::now();
        let (end, lasts) = (u64::MAX, Some(WITHIN));
        let report = runner::run(&Plan { first, end, lasts, threads, enough: 1, settings: settings(*bug) });
        let found = report.failures.into_iter().next();
        let simulated = found.and_then(|play| Some((play.seed, play.breach?.invariant, began.elapsed())));
        Row { bug: *bug, simulated, modelled: model::finds(*bug).map(|finding| finding.moves) }
    };
    Bug::ALL.iter().map(row).collect()
}

/// The document.
pub fn document(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Planted bugs\n\n\
         Known faults of the field, put back one at a time into the simulator's copy of the shell, to see that the simulator and \
         the model checker find them. Each was found within 10 s from fresh seeds. A seed shows its bug by\n\
         `cargo run --release -p tenure-sim -- --trace SEED --planted BUG`.\n\n\
         This page is made by `cargo run --release -p tenure-sim -- --table docs/planted-bugs.md`, and CI checks it.\n\n\
         | bug | what is wrong | found by the invariant | seed | moves of the model |\n|---|---|---|---|---|\n",
    );
    for Row { bug, simulated, modelled } in rows {
        let (seed, invariant) = simulated.map_or(("-".to_owned(), "not found"), |(seed, it, _)| (seed.to_string(), it));
        let moves = modelled.map_or("-".to_owned(), |moves| moves.to_string());
        let _ = writeln!(text, "| `{bug}` | {} | {invariant} | {seed} | {moves} |", bug.what());
    }
    text
}

/// Checks a document: it lists every bug, and each seed in it still breaks its invariant. Says what is wrong.
pub fn check(document: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for bug in Bug::ALL {
        let start = format!("| `{bug}` |");
        let Some(line) = document.lines().find(|line| line.starts_with(&start)) else {
            wrong.push(format!("{bug} is not listed"));
            continue;
        };
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, _, what, invariant, seed, ..] = cells[..] else {
            wrong.push(format!("{bug} has too few columns"));
            continue;
        };
        if what != bug.what() {
            wrong.push(format!("{bug} is described otherwise"));
        }
        let Ok(seed) = seed.parse() else {
            // Found by the model alone.
            if cells[6] == "-" {
                wrong.push(format!("{bug} is found by nobody"));
            }
            continue;
        };
        match runner::play(seed, settings(*bug), false).breach {
            Some(breach) if breach.invariant == invariant => {}
            other => wrong.push(format!("{bug}: seed {seed} breaks {:?} now", other.map(|breach| breach.invariant))),
        }
    }
    wrong
}
