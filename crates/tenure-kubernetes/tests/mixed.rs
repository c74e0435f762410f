//! Three candidates of client-go's own example and three of Tenure in one election, with kills, stops and graceful exits
//! in random order: 40 terms, or `TENURE_MIXED_TERMS`. A seed that failed is played again by `TENURE_MIXED_SEED=N`.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bench::wire::{Mode, Wire};
use bench::*;
use futures::StreamExt;
use tenure_core::{CancellationToken, Election, LeaderChange, Leadership, LeaseName, Timing, observe};
use tenure_kubernetes::KubernetesStore;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// What the Go candidates count for themselves.
const DURATION: Duration = Duration::from_secs(6);

/// Nobody leads for so long after a kill: the duration, and a look of the slowest.
const TAKEOVER: Duration = Duration::from_secs(30);

/// What all observers saw, in one order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Instant, Event)>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// This candidate began to lead.
    Leads(String),
    /// It stopped, or was made to.
    Stopped(String),
    /// A Go candidate, or Tenure's observer, saw this holder.
    Seen { by: String, holder: String },
}

impl Log {
    fn add(&self, event: Event) {
        self.0.lock().unwrap().push((Instant::now(), event));
    }

    fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }

    /// Who leads now: more than one is what must never be.
    fn leaders(&self) -> Vec<String> {
        let mut leaders = Vec::new();
        for event in self.events() {
            match event {
                Event::Leads(who) => leaders.push(who),
                Event::Stopped(who) => leaders.retain(|leader| *leader != who),
                Event::Seen { .. } => {}
            }
        }
        leaders
    }

    fn overlaps(&self) -> usize {
        let (mut leading, mut overlaps) = (HashSet::new(), 0);
        for event in self.events() {
            match event {
                Event::Leads(who) => {
                    overlaps += usize::from(!leading.is_empty());
                    leading.insert(who);
                }
                Event::Stopped(who) => drop(leading.remove(&who)),
                Event::Seen { .. } => {}
            }
        }
        overlaps
    }

    fn was_seen(&self, holder: &str, by: impl Fn(&str) -> bool) -> bool {
        // Tenure's identities end in a random part.
        let ours = format!("{holder}_");
        self.events().iter().any(|event| match event {
            Event::Seen { by: who, holder: seen } => by(who) && (seen == holder || seen.starts_with(&ours)),
            _ => false,
        })
    }
}

/// client-go's example.
struct Go {
    id: String,
    process: Child,
    reader: JoinHandle<()>,
}

impl Go {
    fn start(name: &LeaseName, n: usize, log: &Log) -> Self {
        let id = format!("go-{n}");
        let mut process = Command::new(variable("TENURE_TEST_LEADER_ELECTION_EXAMPLE"))
            .arg(format!("-kubeconfig={}", variable("TENURE_TEST_KUBERNETES_USER_CONFIG")))
            .arg(format!("-lease-lock-name={name}"))
            .arg(format!("-lease-lock-namespace={NAMESPACE}"))
            .arg(format!("-id={id}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let (log, who) = (log.clone(), id.clone());
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("successfully acquired lease") {
                    log.add(Event::Leads(who.clone()));
                } else if line.contains("leader lost") {
                    log.add(Event::Stopped(who.clone()));
                } else if let Some((_, holder)) = line.split_once("new leader elected: ") {
                    log.add(Event::Seen { by: who.clone(), holder: holder.to_owned() });
                }
            }
        });
        Self { id, process, reader }
    }

    /// The example gives the lease back before it says that it stopped: its leadership ends with the signal.
    async fn end(mut self, signal: rustix::process::Signal, log: &Log) {
        log.add(Event::Stopped(self.id.clone()));
        let pid = i32::try_from(self.process.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
        self.process.wait().await.unwrap();
        self.reader.await.unwrap();
    }
}

/// A candidate of Tenure with a client of its own.
struct Ours {
    id: String,
    wire: Wire,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Ours {
    async fn start(name: &LeaseName, n: usize, log: &Log) -> Self {
        let (id, wire, shutdown) = (format!("tenure-{n}"), Wire::default(), CancellationToken::new());
        let user = client(Path::new(&variable("TENURE_TEST_KUBERNETES_USER_CONFIG"))).await;
        let store = KubernetesStore::new(wire.around(&user), NAMESPACE);
        let timing = Timing::with_ttl(DURATION).unwrap();
        let builder = Election::builder(name.as_str(), store).candidate(id.as_str()).timing(timing);
        let election = builder.build().unwrap();
        let (log, who, stop) = (log.clone(), id.clone(), shutdown.clone());
        let task = tokio::spawn(async move {
            let work = |lead: Leadership| {
                let (log, who) = (log.clone(), who.clone());
                async move {
                    log.add(Event::Leads(who.clone()));
                    let _stopped = Stopped(log, who);
                    lead.stopping().await;
                }
            };
            while !stop.is_cancelled() {
                let _ = election.run_as_leader(stop.clone(), work).await;
            }
        });
        Self { id, wire, shutdown, task }
    }
}

/// Says that work stopped, however it did.
struct Stopped(Log, String);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.add(Event::Stopped(self.1.clone()));
    }
}

/// A number from `TENURE_MIXED_..`, or the default.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn wait_for(what: &str, log: &Log, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < TAKEOVER,
            "not within {TAKEOVER:?}: {what}\n{:#?}",
            log.events().iter().rev().take(20).collect::<Vec<_>>()
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn go_and_rust_candidates_share_one_election() {
    admin().await;
    let seed = setting("TENURE_MIXED_SEED", u64::from(std::process::id()));
    let terms = setting("TENURE_MIXED_TERMS", 40);
    println!("TENURE_MIXED_SEED={seed} TENURE_MIXED_TERMS={terms}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (name, log) = (fresh("mixed"), Log::default());
    let mut go: Vec<Go> = (0..3).map(|n| Go::start(&name, n, &log)).collect();
    let mut ours = Vec::new();
    for n in 0..3 {
        ours.push(Ours::start(&name, n, &log).await);
    }
    let observer = {
        let (mut changes, log) = (observe(store().await, name.as_str()).unwrap(), log.clone());
        tokio::spawn(async move {
            while let Some(change) = changes.next().await {
                if let Ok(LeaderChange::Elected(record)) = change {
                    let holder = record.holder.as_str().to_owned();
                    log.add(Event::Seen { by: "observer".to_owned(), holder });
                }
            }
        })
    };

    let mut handovers = BTreeMap::<(&str, &str, &str), Vec<Duration>>::new();
    let (mut transitions, mut last, mut ended): (i32, Option<&str>, (Instant, &str)) =
        (0, None, (Instant::now(), "start"));
    for term in 0..terms {
        wait_for("somebody leads", &log, || !log.leaders().is_empty()).await;
        let leader = log.leaders()[0].clone();
        let kind = if leader.starts_with("go") { "client-go" } else { "tenure" };
        if let Some(last) = last {
            let took =
                log.0.lock().unwrap().iter().rev().find(|(_, event)| *event == Event::Leads(leader.clone())).unwrap().0;
            handovers.entry((ended.1, last, kind)).or_default().push(took - ended.0);
        }
        last = Some(kind);
        // Both sides see it.
        wait_for("the observer sees the leader", &log, || log.was_seen(&leader, |by| by == "observer")).await;
        wait_for("a go candidate sees the leader", &log, || {
            log.was_seen(&leader, |by| by.starts_with("go") && by != leader)
        })
        .await;
        let now = object(&name).await.spec.unwrap().lease_transitions.unwrap();
        if kind == "tenure" {
            assert!(now > transitions, "term {term}: leaseTransitions {transitions} -> {now} at a grant of Tenure");
        }
        transitions = transitions.max(now);
        log.0.lock().unwrap().retain(|(_, event)| !matches!(event, Event::Seen { .. }));

        let hard = random.u8(..5) == 0;
        ended = (Instant::now(), if hard { "killed" } else { "graceful" });
        if let Some(at) = go.iter().position(|candidate| candidate.id == leader) {
            let number = leader.rsplit('-').next().unwrap().parse::<usize>().unwrap() + 10;
            let signal = if hard { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
            go.remove(at).end(signal, &log).await;
            go.push(Go::start(&name, number, &log));
        } else {
            let at = ours.iter().position(|candidate| candidate.id == leader).unwrap();
            let number = leader.rsplit('-').next().unwrap().parse::<usize>().unwrap() + 10;
            let candidate = ours.remove(at);
            if hard {
                // Cut off from the server: the deadline ends it, and nothing is given back.
                candidate.wire.set(Mode::AnswerInstead(503));
                wait_for("the deadline stops the work", &log, || !log.leaders().contains(&leader)).await;
            }
            candidate.shutdown.cancel();
            candidate.task.await.unwrap();
            // Ours hear of a release at once, and would win nearly every time.
            if random.u8(..3) == 0 {
                for candidate in ours.drain(..) {
                    candidate.shutdown.cancel();
                    candidate.task.await.unwrap();
                }
                wait_for("a go candidate leads", &log, || log.leaders().iter().any(|who| who.starts_with("go"))).await;
            }
            while ours.len() < 3 {
                ours.push(Ours::start(&name, number + 100 * ours.len(), &log).await);
            }
        }
        assert_eq!(log.overlaps(), 0, "{:#?}", log.events());
    }
    observer.abort();
    for candidate in ours {
        candidate.shutdown.cancel();
        candidate.task.await.unwrap();
    }
    println!("{:<10} {:<10} {:<10} {:>4} {:>9} {:>9}", "end", "from", "to", "n", "median", "max");
    for ((end, from, to), mut times) in handovers.clone() {
        times.sort_unstable();
        println!(
            "{end:<10} {from:<10} {to:<10} {:>4} {:>8.0?} {:>8.0?}",
            times.len(),
            times[times.len() / 2],
            times[times.len() - 1]
        );
    }
    if terms >= 40 {
        for (from, to) in [("client-go", "tenure"), ("tenure", "client-go")] {
            let met = handovers.keys().any(|(end, a, b)| (*end, *a, *b) == ("graceful", from, to));
            assert!(met, "no graceful hand-over from {from} to {to} in {terms} terms");
        }
    }
}
