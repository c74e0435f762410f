//! Plays many seeds on all cores, checks that a seed played twice is the same, and says how fast it went.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::observer::{Breach, Tally};
use crate::scenario::{Scenario, Settings};
use crate::world::World;

/// What came of one seed.
#[derive(Clone, Debug)]
pub struct Play {
    /// The seed.
    pub seed: u64,
    /// What it meant.
    pub scenario: Scenario,
    /// How much was simulated.
    pub tally: Tally,
    /// The same for every run of the seed.
    pub hash: u64,
    /// What was broken.
    pub breach: Option<Breach>,
    /// What happened, line by line, if that was asked for.
    pub trace: Vec<String>,
}

/// Which seeds to play, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The first seed.
    pub first: u64,
    /// The seed after the last, if no time ends the run before.
    pub end: u64,
    /// Ends the run after so long.
    pub lasts: Option<Duration>,
    /// How many threads play.
    pub threads: usize,
    /// Ends the run when so many seeds have failed.
    pub enough: usize,
    /// What to simulate besides the seed.
    pub settings: Settings,
}

/// What came of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many were played, repetitions not counted.
    pub seeds: u64,
    /// How much was simulated.
    pub tally: Tally,
    /// Seeds that were played twice to compare.
    pub compared: u64,
    /// Processor time, of all threads.
    pub used: Duration,
    /// Seeds in which something was broken.
    pub failures: Vec<Play>,
}

/// One seed in so many is played twice.
const SAMPLE: u64 = 256;

/// Plays one seed.
pub fn play(seed: u64, settings: Settings, traced: bool) -> Play {
    let scenario = Scenario::of(seed, settings);
    let mut world = World::new(scenario.clone(), traced);
    let panicked = catch_unwind(AssertUnwindSafe(|| world.run())).is_err();
    let observer = world.observer();
    let breach = observer.breach().cloned().or_else(|| {
        let what = "a panic in the machine or around it".to_string();
        panicked.then_some(Breach { invariant: "nothing panics", what, at: 0 })
    });
    let (tally, hash, trace) = (observer.tally(), observer.hash(), observer.trace().to_vec());
    Play { seed, scenario, tally, hash, breach, trace }
}

/// Plays the seeds of `plan`.
pub fn run(plan: &Plan) -> Report {
    let until = plan.lasts.map(|lasts| Instant::now() + lasts);
    let next = AtomicU64::new(plan.first);
    let enough = AtomicBool::new(false);
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| {
                let part = work(plan, &next, &enough, until);
                let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                report.add(part);
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failures.sort_by_key(|play| play.seed);
    report
}

fn work(plan: &Plan, next: &AtomicU64, enough: &AtomicBool, until: Option<Instant>) -> Report {
    let mut report = Report::default();
    let began = processor_time();
    while !enough.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= plan.end {
            break;
        }
        let mut play = play(seed, plan.settings, false);
        report.seeds += 1;
        report.tally.add(&play.tally);
        if play.breach.is_none() && seed.is_multiple_of(SAMPLE) {
            report.compared += 1;
            play.breach = compare(&play, plan.settings);
        }
        if play.breach.is_some() {
            report.failures.push(play);
            if report.failures.len() >= plan.enough {
                enough.store(true, Ordering::Relaxed);
            }
        }
    }
    report.used = processor_time().saturating_sub(began);
    report
}

fn compare(first: &Play, settings: Settings) -> Option<Breach> {
    let again = play(first.seed, settings, true);
    let what = format!("the first run's trace has the hash {:016x}, the second's {:016x}", first.hash, again.hash);
    let differs = (first.hash, first.tally) != (again.hash, again.tally);
    differs.then_some(Breach { invariant: "two runs of one seed are the same", what, at: 0 })
}

impl Report {
    /// Takes another's counts in.
    pub fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.tally.add(&other.tally);
        self.compared += other.compared;
        self.used += other.used;
        self.failures.extend(other.failures);
    }

    /// Elections per hour and core.
    pub fn pace(&self) -> u64 {
        (self.tally.elections as f64 * 3600.0 / self.used.as_secs_f64().max(1e-9)) as u64
    }
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.elections += other.elections;
        self.terms += other.terms;
        self.faults += other.faults;
        self.overlaps += other.overlaps;
        self.refused += other.refused;
    }
}

/// What this thread has used of a core: other programs on the machine do not count.
#[cfg(unix)]
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

#[cfg(not(unix))]
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
