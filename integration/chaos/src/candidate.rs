//! One candidate, as a process of its own: it leads when it may, writes to the register, and says what it does.

use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure::{CancellationToken, Election, Leadership, Timing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::history::{Event, What};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    url: String,
    #[arg(long)]
    name: String,
    #[arg(long)]
    label: String,
    #[arg(long, value_parser = humantime::parse_duration)]
    ttl: Duration,
    /// Where the fenced register listens.
    #[arg(long)]
    register: String,
}

/// Time between two looks of the work at whether it leads.
const STEP: Duration = Duration::from_millis(10);

/// Nanoseconds of the clock that all processes of this host share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("a time after boot")
}

fn say(at: u64, who: &str, what: What) {
    let event = Event { at, who: who.to_owned(), what };
    println!("{}", serde_json::to_string(&event).expect("an event"));
}

pub(crate) async fn run(args: &Args) {
    // A frozen one too goes with its bench.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).expect("a signal of death");
    say(now(), &args.label, What::Started);
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).expect("signals");
        term.recv().await;
        stop.cancel();
    });
    let register = Arc::new(Mutex::new(None));
    while !shutdown.is_cancelled() {
        // A service that cannot reach its store tries again.
        let opened = tokio::time::timeout(Duration::from_secs(5), open(args)).await;
        let Ok(Ok(election)) = opened else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let work = |lead: Leadership| {
            let register = register.clone();
            async move {
                let token = lead.token().value();
                let _term = Term::begin(args.label.clone(), token);
                lead_on(args, &lead, &register).await;
            }
        };
        if let Err(error) = election.run_as_leader(shutdown.clone(), work).await {
            eprintln!("{}: {error}", args.label);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Says when a term's work begins, and when it has stopped: by itself, or dropped since the term was lost.
struct Term {
    label: String,
    token: u64,
}

impl Term {
    fn begin(label: String, token: u64) -> Self {
        say(now(), &label, What::Elected(token));
        Self { label, token }
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        say(now(), &self.label, What::Stopped(self.token));
    }
}

async fn open(args: &Args) -> Result<Election, Box<dyn std::error::Error>> {
    let store = tenure::connect(&args.url).await?;
    store.prepare().await?;
    let timing = Timing::with_ttl(args.ttl)?;
    Ok(Election::builder(args.name.as_str(), store).candidate(args.label.as_str()).timing(timing).build()?)
}

/// Works until it is told to stop, or is not the leader any more.
async fn lead_on(args: &Args, lead: &Leadership, register: &Mutex<Option<TcpStream>>) {
    let mut stopping = std::pin::pin!(lead.stopping());
    loop {
        // The instant before the question: what it answers is true of no later one.
        let at = now();
        let Ok(token) = lead.check() else { return };
        say(at, &args.label, What::Leads(token.value()));
        tokio::select! {
            // A write that is refused belongs to somebody who leads no more.
            written = write(&args.register, register, token.value()) => if written == Some(false) { return },
            () = &mut stopping => return,
        }
        tokio::select! {
            () = tokio::time::sleep(STEP) => {}
            () = &mut stopping => return,
        }
    }
}

/// Writes to the register, and says whether it took that; `None` when it did not answer.
async fn write(address: &str, register: &Mutex<Option<TcpStream>>, token: u64) -> Option<bool> {
    let mut register = register.lock().await;
    // Taken out, so that work that is cut off in the middle leaves no half of a conversation behind.
    let mut stream = match register.take() {
        Some(stream) => stream,
        None => TcpStream::connect(address).await.ok()?,
    };
    let mut answer = [0];
    let asked = async {
        stream.write_all(&token.to_be_bytes()).await?;
        stream.read_exact(&mut answer).await
    };
    asked.await.ok()?;
    *register = Some(stream);
    Some(answer[0] == 1)
}
