//! Random faults on real servers and real processes, and the proof that nobody led beside another.
//!
//! `tenure-chaos run STORE` starts candidates as processes of this very program, each behind a proxy of its own before a
//! real server that `integration/servers/servers.sh` has started, does them and the server harm, and checks what they wrote
//! down: see [`history`] for what must hold. `tenure-chaos check FILE` checks a history again, `tenure-chaos million`
//! measures the checker.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a bench that cannot go on has failed")]

mod candidate;
mod case;
mod faults;
mod history;
mod proxies;
mod register;
mod target;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use history::History;

#[derive(Debug, Parser)]
#[command(name = "tenure-chaos")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Do harm to candidates on a store: sqlite, redis, postgres, mariadb, etcd, etcd3, kubernetes
    Run(case::Plan),
    /// Check a history that an earlier run wrote
    Check {
        /// Its events, one JSON object a line
        file: PathBuf,
        /// Draw it
        #[arg(long)]
        svg: Option<PathBuf>,
    },
    /// Write a made-up history of a million events, read and check it, and say how long that takes
    Million,
    /// One candidate; the bench starts these
    #[command(hide = true)]
    Candidate(candidate::Args),
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Run(plan) => runtime().block_on(case::run(&plan)),
        Command::Candidate(args) => {
            runtime().block_on(candidate::run(&args));
            ExitCode::SUCCESS
        }
        Command::Check { file, svg } => {
            let history = History::read(&file).expect("a history");
            if let Some(svg) = svg {
                std::fs::write(svg, timeline::draw(&history)).expect("the drawing is written");
            }
            let mut verdict = history.check();
            if verdict.faults() == 0 {
                verdict.fail("no harm was done");
            }
            print!("{verdict}");
            if verdict.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Command::Million => million(),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn million() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history.jsonl");
    History::made_up(1_000_000).write(&file).expect("the history is written");
    let begun = std::time::Instant::now();
    let history = History::read(&file).expect("the history is read");
    let verdict = history.check();
    let took = begun.elapsed();
    println!("{} events read and checked in {took:.2?}", history.events.len());
    print!("{verdict}");
    if verdict.is_ok() && took < Duration::from_secs(5) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
