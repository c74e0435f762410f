//! The simulator's command.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tenure_sim::planted::Bug;
use tenure_sim::planted::table::{self, Row};
use tenure_sim::runner::{self, Plan, Play, Report};
use tenure_sim::scenario::{Break, Settings};

/// Simulates elections, and checks that nothing is ever broken that Tenure promises.
#[derive(Debug, Parser)]
#[command(name = "tenure-sim")]
struct Args {
    /// The seeds to play, the last one left out.
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// Play fresh seeds for so long.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Play one seed, and print all that happens.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "seconds"])]
    trace: Option<u64>,
    /// Plant a known bug.
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
    /// Break an assumption in every seed: drift, step, failover, removal, work. Otherwise one seed in four breaks one.
    #[arg(long = "break", value_name = "ASSUMPTION")]
    broken: Option<Break>,
    /// Break no assumption in any seed.
    #[arg(long, conflicts_with = "broken")]
    sound: bool,
    /// Plant every bug in turn, find each from fresh seeds, and write the table of them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "seconds", "trace", "planted", "broken"])]
    table: Option<PathBuf>,
    /// With --table: find them all, and check the table that is there instead.
    #[arg(long, requires = "table")]
    check: bool,
    /// Threads that play.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    threads: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let settings = Settings { broken: args.broken, bug: args.planted, sound: args.sound };
    if let Some(file) = &args.table {
        return tabulate(file, &args);
    }
    if let Some(seed) = args.trace {
        return trace(seed, settings);
    }
    let report = runner::run(&plan(&args, settings));
    conclude(&report, &args)
}

/// Finds every planted bug anew, and writes or checks the table.
fn tabulate(file: &Path, args: &Args) -> ExitCode {
    let rows = table::search(fresh(), args.threads);
    for Row { bug, simulated, modelled } in &rows {
        let moves = modelled.map_or("-".to_owned(), |moves| moves.to_string());
        match simulated {
            Some((seed, invariant, took)) => {
                println!("{bug}: {invariant} (seed {seed}, {:.2} s; model: {moves})", took.as_secs_f64());
            }
            None => println!("{bug}: NOT FOUND within {:?} (model: {moves})", table::WITHIN),
        }
    }
    let missed = rows.iter().filter(|row| row.simulated.is_none() && row.modelled.is_none()).count();
    let wrong = if args.check {
        match std::fs::read_to_string(file) {
            Ok(text) => table::check(&text),
            Err(error) => vec![format!("{} cannot be read: {error}", file.display())],
        }
    } else {
        let written = std::fs::write(file, table::document(&rows));
        written.err().map(|error| format!("{} cannot be written: {error}", file.display())).into_iter().collect()
    };
    for wrong in &wrong {
        println!("{wrong}");
    }
    println!("planted bugs: {}, missed: {missed}, wrong in the table: {}", rows.len(), wrong.len());
    // A table whose seeds all show their bugs is right, however unlucky the fresh ones were.
    if (missed == 0 || args.check) && wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A seed that nobody has played before.
fn fresh() -> u64 {
    fastrand::u64(1 << 32..1 << 48)
}

fn plan(args: &Args, settings: Settings) -> Plan {
    let lasts = args.seconds.map(Duration::from_secs_f64);
    let seeds = args.seeds.clone().unwrap_or_else(|| match lasts {
        Some(_) => fresh()..u64::MAX,
        None => 0..20_000,
    });
    Plan { first: seeds.start, end: seeds.end, lasts, threads: args.threads, enough: 3, settings }
}

fn trace(seed: u64, settings: Settings) -> ExitCode {
    let play = runner::play(seed, settings, true);
    for line in &play.trace {
        println!("{line}");
    }
    println!("{:#?}", play.scenario);
    println!("hash {:016x}", play.hash);
    match &play.breach {
        Some(breach) => {
            println!("VIOLATION at {} ns: {}: {}", breach.at, breach.invariant, breach.what);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn conclude(report: &Report, args: &Args) -> ExitCode {
    for play in &report.failures {
        show(play, args);
    }
    let tally = &report.tally;
    println!(
        "seeds: {}, compared with a second run: {}, processor seconds: {:.1}",
        report.seeds,
        report.compared,
        report.used.as_secs_f64()
    );
    println!(
        "where an assumption was broken on purpose: overlaps: {}, writes refused by the fence: {}",
        tally.overlaps, tally.refused
    );
    println!(
        "elections: {}, terms: {}, faults: {}, per hour and core: {}, violations: {}",
        tally.elections,
        tally.terms,
        tally.faults,
        report.pace(),
        report.failures.len()
    );
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(play: &Play, args: &Args) {
    let Some(breach) = &play.breach else { return };
    println!("seed {}: VIOLATION at {} ns: {}: {}", play.seed, breach.at, breach.invariant, breach.what);
    let planted = args.planted.map_or(String::new(), |bug| format!(" --planted {bug}"));
    let broken = args.broken.map_or(String::new(), |it| format!(" --break {it}"));
    let sound = if args.sound { " --sound" } else { "" };
    println!("replay: cargo run --release -p tenure-sim -- --trace {}{planted}{broken}{sound}", play.seed);
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let refusal = || format!("{text:?} is no range of seeds: write A..B with A < B, such as 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(refusal)?;
    let range = from.parse().map_err(|_| refusal())?..to.parse().map_err(|_| refusal())?;
    if range.start < range.end { Ok(range) } else { Err(refusal()) }
}
