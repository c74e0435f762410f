//! The model checker's command.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use tenure_sim::model::check::Limit;
use tenure_sim::model::transitions::{Counts, TRANSITIONS};
use tenure_sim::model::{self, Bounds, Report, sets};
use tenure_sim::planted::Bug;

/// Goes through every state of the machine that ships, within some bounds, and checks that all promises hold.
#[derive(Debug, Parser)]
#[command(name = "tenure-model")]
struct Args {
    /// Goes much farther.
    #[arg(long)]
    big: bool,
    /// Goes less far.
    #[arg(long, conflicts_with = "big")]
    quick: bool,
    /// Only these bounds.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Plants a known bug; it must be found.
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// Stops each bounds after so many states.
    #[arg(long, value_name = "N")]
    states: Option<usize>,
    /// Stops each bounds after so many seconds.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Threads that check.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    threads: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.planted {
        Some(bug) => plant(bug),
        None => run(&args),
    }
}

fn plant(bug: Bug) -> ExitCode {
    match model::finds(bug) {
        Some(finding) => {
            for line in &finding.run {
                println!("{line}");
            }
            println!("{bug}: found in {} moves within bounds {:?}: {}", finding.moves, finding.bounds, finding.rule);
            ExitCode::SUCCESS
        }
        None => {
            println!("{bug}: not found");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> ExitCode {
    let sets = match (args.big, args.quick) {
        (true, _) => sets::big(),
        (_, true) => sets::quick(),
        _ => sets::ci(),
    };
    let wanted = |bounds: &Bounds| args.only.is_empty() || args.only.iter().any(|name| name == bounds.name);
    let limit = Limit { states: args.states, lasts: args.seconds.map(Duration::from_secs), deep: args.big };
    let counts = Counts::default();
    let mut properties = BTreeSet::new();
    let (mut unique, mut depth, mut violations, mut unseen, mut complete) = (0, 0, 0, 0, args.only.is_empty());
    for bounds in sets.into_iter().filter(wanted) {
        let began = Instant::now();
        let report = model::check(bounds, None, args.threads, limit);
        show(&report, began.elapsed());
        counts.add(&report.counts);
        unique += report.unique;
        depth = depth.max(report.depth);
        properties.extend(report.properties);
        violations += report.violations.len();
        // What was not seen before the limit may come after it.
        unseen += if report.complete { report.unseen.len() } else { 0 };
        complete &= report.complete;
    }
    let missing = if complete { counts.missing() } else { Vec::new() };
    for transition in &missing {
        println!(
            "not reached: {:?}: {} --{}--> {} {:?}",
            transition.row, transition.from, transition.input, transition.to, transition.does
        );
    }
    let reached = TRANSITIONS.iter().filter(|transition| counts.of(transition) > 0).count();
    println!(
        "transitions of the machine: {reached} of {} rows reached, {} kinds taken in all; not seen: {unseen}",
        TRANSITIONS.len(),
        counts.kinds()
    );
    println!("unique states: {unique}, depth: {depth}, properties: {}, violations: {violations}", properties.len());
    if violations == 0 && unseen == 0 && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(report: &Report, took: Duration) {
    let bounds = &report.bounds;
    for violation in &report.violations {
        for line in &violation.run {
            println!("{line}");
        }
        println!("VIOLATION within bounds {:?}: {}", bounds.name, violation.rule);
    }
    for sight in &report.unseen {
        println!("not seen within bounds {:?}: {}", bounds.name, sight.name());
    }
    println!(
        "{}: {}: {} unique of {} states, depth {}, {:.1} s{}",
        bounds.name,
        bounds.about,
        report.unique,
        report.generated,
        report.depth,
        took.as_secs_f64(),
        if report.complete { ", all visited" } else { "" }
    );
}
