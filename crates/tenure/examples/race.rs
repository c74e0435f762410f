//! Three candidates race for one lease; the leader is killed; then the next one is cut off from the store.
//!
//! Run it with `cargo run -p tenure --example race`. It prints a timeline: who worked when, and how long nobody did.
//! Work never overlaps: a leader that cannot renew stops before anybody else can start.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tenure::{CancellationToken, Election, Fault, Leadership, MemoryStore, StoreCall, Timing};
use tokio::runtime::Runtime;

const TTL: Duration = Duration::from_millis(1500);

type Line = (Duration, String, &'static str);

fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let timeline = Arc::new(Timeline::new());
    // Each candidate has a runtime of its own, as if it were a process.
    let mut candidates: Vec<_> = ["anna", "bert", "cleo"]
        .into_iter()
        .map(|label| Ok((label, start(label, &store, &timeline)?)))
        .collect::<Result<_, Box<dyn Error>>>()?;

    let first = timeline.wait_for_leader(None);
    std::thread::sleep(TTL);
    timeline.note(&first, "is killed");
    let at = candidates.iter().position(|(label, _)| *label == first).ok_or("the leader is a candidate")?;
    candidates.remove(at).1.shutdown_background();

    let second = timeline.wait_for_leader(Some(&first));
    std::thread::sleep(TTL);
    timeline.note(&second, "is cut off from the store");
    let cut_off = second.clone();
    store.set_fault_hook(move |call: &StoreCall| match &call.candidate {
        Some(candidate) if candidate.label() == cut_off => Fault::LoseRequest,
        _ => Fault::None,
    });
    timeline.wait_for_leader(Some(&second));
    for (_, runtime) in candidates {
        runtime.shutdown_background();
    }
    timeline.print()
}

fn start(label: &'static str, store: &MemoryStore, timeline: &Arc<Timeline>) -> Result<Runtime, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let election = Election::builder("race", store.clone()).candidate(label).timing(Timing::with_ttl(TTL)?).build()?;
    let timeline = timeline.clone();
    runtime.spawn(async move {
        let work = |lead| work(label, lead, timeline.clone());
        if let Err(error) = election.run_as_leader(CancellationToken::new(), work).await {
            eprintln!("{label}: {error}");
        }
    });
    Ok(runtime)
}

/// Works until told to stop. A killed candidate notes nothing: its future is just gone.
async fn work(label: &'static str, lead: Leadership, timeline: Arc<Timeline>) {
    timeline.note(label, "starts work");
    lead.stopping().await;
    timeline.note(label, "stops work");
}

struct Timeline {
    start: Instant,
    lines: Mutex<Vec<Line>>,
}

impl Timeline {
    fn new() -> Self {
        Self { start: Instant::now(), lines: Mutex::default() }
    }

    fn note(&self, who: &str, what: &'static str) {
        if let Ok(mut lines) = self.lines.lock() {
            lines.push((self.start.elapsed(), who.to_owned(), what));
        }
    }

    /// Waits until somebody else than `but` has started last.
    fn wait_for_leader(&self, but: Option<&str>) -> String {
        loop {
            let lines = self.lines.lock().map(|lines| lines.clone()).unwrap_or_default();
            let last = lines.iter().rev().find(|(_, _, what)| *what == "starts work");
            match last {
                Some((_, who, _)) if Some(who.as_str()) != but => return who.clone(),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn print(&self) -> Result<(), Box<dyn Error>> {
        let lines = self.lines.lock().map_err(|_| "a candidate panicked")?.clone();
        let mut working: Option<&str> = None;
        let mut idle_since = Duration::ZERO;
        println!("    time  who   what");
        for (at, who, what) in &lines {
            let mut remark = String::new();
            match *what {
                "starts work" => {
                    if let Some(other) = working.replace(who) {
                        return Err(format!("{who} started while {other} was working").into());
                    }
                    if idle_since > Duration::ZERO {
                        remark = format!(" ({} ms after the work before it)", (*at - idle_since).as_millis());
                    }
                }
                "is cut off from the store" => {}
                _ => (working, idle_since) = (None, *at),
            }
            println!("{:>5} ms  {who}  {what}{remark}", at.as_millis());
        }
        println!("never two at once; ttl {TTL:?}");
        Ok(())
    }
}
