//! One run on one store: candidates, harm, quiet, and the verdict.

use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::candidate::now;
use crate::faults::Harm;
use crate::history::{Event, History, What};
use crate::proxies::Proxy;
use crate::target::Target;
use crate::{register, timeline};

#[derive(Debug, clap::Args)]
pub(crate) struct Plan {
    /// sqlite, redis, postgres, mariadb, etcd, etcd3 or kubernetes
    store: String,
    /// How long harm is done
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    lasts: Duration,
    /// What chance draws from; printed, so that a run can be repeated as far as real servers allow
    #[arg(long)]
    seed: Option<u64>,
    #[arg(long, default_value_t = 4)]
    candidates: usize,
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// Draw who led when here; a run that failed is drawn in any case
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Keep the history here
    #[arg(long)]
    history: Option<PathBuf>,
}

/// All events of a run.
type Events = Arc<Mutex<Vec<Event>>>;

pub(crate) struct Candidates {
    pub(crate) target: Target,
    all: Vec<Candidate>,
    events: Events,
    register: String,
    name: String,
    ttl: Duration,
}

struct Candidate {
    label: String,
    proxies: Vec<Proxy>,
    process: Option<(Child, JoinHandle<()>)>,
}

impl Candidates {
    pub(crate) async fn start(&mut self, at: usize) {
        let candidate = &mut self.all[at];
        let url = self.target.url(&candidate.label, &candidate.proxies);
        let ttl = humantime::format_duration(self.ttl).to_string();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("candidate")
            .args(["--url", &url, "--name", &self.name, "--label", &candidate.label])
            .args(["--ttl", &ttl, "--register", &self.register])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let events = self.events.clone();
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // A process that was killed may have been in the middle of a line.
                if let Ok(event) = serde_json::from_str(&line) {
                    events.lock().unwrap().push(event);
                }
            }
        });
        candidate.process = Some((process, reader));
    }

    pub(crate) fn signal(&self, at: usize, signal: Signal) {
        if let Some((process, _)) = &self.all[at].process
            && let Some(pid) = process.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends a process, and waits until it is gone and all it said is heard.
    pub(crate) async fn end(&mut self, at: usize, signal: Signal) {
        self.signal(at, signal);
        let Some((mut process, reader)) = self.all[at].process.take() else { return };
        // Far longer than any stop may take.
        if tokio::time::timeout(4 * self.ttl + Duration::from_secs(10), process.wait()).await.is_err() {
            self.note("bench", What::Stuck(self.all[at].label.clone()));
            let _ = process.kill().await;
        }
        let _ = reader.await;
        let label = self.all[at].label.clone();
        self.note(&label, What::Gone);
    }

    pub(crate) fn proxies(&self, at: usize) -> &[Proxy] {
        &self.all[at].proxies
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl
    }

    fn note(&self, who: &str, what: What) {
        self.events.lock().unwrap().push(Event { at: now(), who: who.to_owned(), what });
    }

    /// Who began a term last, since `since`.
    fn led_since(&self, since: u64) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let led = events.iter().filter(|event| event.at >= since && matches!(event.what, What::Elected(_)));
        led.map(|event| event.who.clone()).collect()
    }

    /// With no harm left: each candidate in turn leads, and is killed or asked to stop. Who does not come to it is stuck.
    async fn everybody_leads(&mut self) -> Result<(), String> {
        let bound = 3 * self.ttl + Duration::from_secs(15);
        let mut left: Vec<usize> = (0..self.all.len()).collect();
        // Who leads now began before.
        let mut since = 0;
        while !left.is_empty() {
            let begun = Instant::now();
            let at = loop {
                let led = self.led_since(since);
                if let Some(at) = led.last().and_then(|who| left.iter().position(|at| self.all[*at].label == *who)) {
                    break at;
                }
                if begun.elapsed() > bound {
                    let stuck: Vec<_> = left.iter().map(|at| self.all[*at].label.clone()).collect();
                    return Err(format!("nobody of {} leads within {bound:?} after all harm", stuck.join(", ")));
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            since = now();
            let at = left.remove(at);
            // A crash and a graceful stop in turn.
            let signal = if left.len().is_multiple_of(2) { Signal::TERM } else { Signal::KILL };
            self.end(at, signal).await;
        }
        Ok(())
    }
}

pub(crate) async fn run(plan: &Plan) -> ExitCode {
    let seed = plan.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("== {}: {:?} of harm, seed {seed}", plan.store, plan.lasts);
    let folder = tempfile::tempdir().unwrap();
    let target = match Target::new(&plan.store, folder.path()) {
        Ok(target) => target,
        Err(error) => {
            println!("FAILED: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let events = Events::default();
    let register = register::start(events.clone()).await;
    let name = format!("chaos-{seed}-{}", now());
    let mut candidates = Candidates { target, all: Vec::new(), events: events.clone(), register, name, ttl: plan.ttl };
    for n in 0..plan.candidates {
        let proxies = candidates.target.proxies().await;
        candidates.all.push(Candidate { label: format!("c{n}"), proxies, process: None });
        candidates.start(n).await;
    }

    let mut random = fastrand::Rng::with_seed(seed);
    let begun = Instant::now();
    while begun.elapsed() < plan.lasts {
        tokio::time::sleep(plan.ttl.mul_f64(0.1 + 0.4 * random.f64())).await;
        let harm = Harm::draw(&mut random, &candidates.target, plan.ttl);
        let (victim, lasts) = (random.usize(..plan.candidates), plan.ttl.mul_f64(0.1 + 1.4 * random.f64()));
        // More often than not the leader.
        let leader = candidates.led_since(0).pop();
        let leader = leader.and_then(|who| candidates.all.iter().position(|candidate| candidate.label == who));
        let victim = leader.filter(|_| random.u8(..3) > 0).unwrap_or(victim);
        let from = now();
        if !harm.befall(victim, lasts, &mut candidates, &mut random).await {
            continue;
        }
        let whom = if harm.hits_everybody() { "everybody" } else { &candidates.all[victim].label };
        let of = format!("{} {whom}", harm.name());
        let took = Duration::from_nanos(now() - from);
        events.lock().unwrap().push(Event { at: from, who: "bench".to_owned(), what: What::Harm(of, took) });
    }
    candidates.note("bench", What::Healed);
    let everybody = candidates.everybody_leads().await;

    let all = std::mem::take(&mut *events.lock().unwrap());
    // A ttl until the lease runs out, a poll of the next one, and a second for a server that is late and a busy host.
    let history = History::new(all, plan.ttl.mul_f64(4.0 / 3.0) + Duration::from_secs(1));
    let mut verdict = history.check();
    if let Err(stuck) = everybody {
        verdict.fail(stuck);
    }
    if verdict.faults() == 0 {
        verdict.fail("no harm was done");
    }
    let failed =
        (!verdict.is_ok()).then(|| std::env::temp_dir().join(format!("tenure-chaos-{}-{seed}.svg", plan.store)));
    for file in plan.svg.iter().chain(&failed) {
        std::fs::write(file, timeline::draw(&history)).unwrap();
        println!("drawn: {}", file.display());
    }
    let kept = failed.map(|file| file.with_extension("jsonl"));
    for file in plan.history.iter().chain(&kept) {
        history.write(file).unwrap();
    }
    print!("{verdict}");
    if verdict.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
