//! `tenure run`: runs a program only while this candidate leads.
//!
//! The election decides who leads; [`term`] runs the program of one term and ends it in time; [`tree`] finds everything
//! that the program started; [`gate`] keeps the lease from being freed while any of that is alive.

#[cfg(target_os = "linux")]
pub(crate) mod descendants;
#[cfg(not(target_os = "linux"))]
#[path = "run/descendants/elsewhere.rs"]
pub(crate) mod descendants;
pub(crate) mod descriptors;
mod gate;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(not(target_os = "linux"))]
#[path = "run/guarded/elsewhere.rs"]
mod guarded;
mod outcome;
mod plan;
mod session;
mod signals;
mod term;
pub(crate) mod tree;

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Election, ElectionError, Ended, LeaseStore, LossReason, Standing, StoreError};
use tokio::time::{Instant, sleep, sleep_until};

use crate::args::{Global, RunArgs};
use crate::{logging, store};
use descriptors::StatusPipe;
use gate::{Answer, Gate, GatedStore};
use outcome::Outcome;
use plan::{Patience, Plan};
use session::Session;
use signals::Signals;

/// Longest time that a candidate takes to withdraw after a signal: whoever waits for it counts in seconds.
const LONGEST_WITHDRAWAL: Duration = Duration::from_millis(800);

/// Longest time to wait at the end for processes that do not die of KILL, as in a dead file system. They run no code of
/// their own any more.
const LONGEST_BURIAL: Duration = Duration::from_secs(10);

pub(crate) fn run(global: &Global, args: RunArgs) -> u8 {
    let pipe = match StatusPipe::open(args.status_fd) {
        Ok(pipe) => pipe,
        Err(error) => {
            logging::failure(global, &error);
            return crate::exit::FAILED;
        }
    };
    descriptors::keep_to_ourselves();
    let (outcome, token) = match Plan::new(global, args) {
        Ok(plan) => perform(plan),
        Err(error) => (Outcome::failed(error), None),
    };
    match &outcome {
        Outcome::Failed { error, .. } => logging::failure(global, error),
        Outcome::Lost(LossReason::Resigned) => tracing::info!("resigned, as was asked"),
        Outcome::Lost(reason) => tracing::error!(%reason, "leadership was lost, and the program was stopped"),
        outcome => tracing::info!(?outcome, "the run is over"),
    }
    pipe.write(&outcome.json(token));
    outcome.code()
}

/// Carries a plan out, and says how that ended and which term was the last.
fn perform(plan: Plan) -> (Outcome, Option<u64>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return (Outcome::failed(error), None),
    };
    runtime.block_on(async {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(error) => return (Outcome::failed(error), None),
        };
        inherit_orphans();
        let site = match plan.site() {
            Ok(site) => site,
            Err(error) => return (Outcome::failed(error), None),
        };
        Run { session: &Session::new(plan, site), signals: &mut signals, started: Instant::now() }.perform().await
    })
}

/// Makes this process the parent of every process below it that loses its own.
fn inherit_orphans() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        tracing::warn!(%error, "processes that leave the program's process group will not be found");
    }
}

/// A run under way.
struct Run<'a> {
    session: &'a Session,
    signals: &'a mut Signals,
    started: Instant,
}

impl Run<'_> {
    async fn perform(mut self) -> (Outcome, Option<u64>) {
        self.session.prepare();
        let candidacy = self.session.candidacy();
        if let Some(candidacy) = candidacy {
            tokio::spawn(candidacy.clone().keep_ticking());
        }
        let store = match self.open().await {
            Ok(store) => candidacy.map_or(store.clone(), |candidacy| candidacy.sees(store)),
            Err(outcome) => return (outcome, None),
        };
        // Never closed: this process is about to end anyway, and SQLite would first copy its log and wait for the disk.
        std::mem::forget(store.clone());
        let gate = Arc::new(GatedStore::new(store, Gate::new(self.session.alive())));
        let outcome = match self.election(&gate) {
            Ok(election) => {
                if let Some(candidacy) = candidacy {
                    candidacy.contends(&election);
                }
                self.campaign(&election, &gate).await
            }
            Err(error) => Outcome::failed(error),
        };
        let led = self.session.program().is_some();
        (outcome, gate.granted().map(|grant| grant.token.value()).filter(|_| led))
    }

    fn election(&self, gate: &Arc<GatedStore>) -> Result<Election, ElectionError> {
        let plan = &self.session.plan;
        let mut builder =
            Election::builder(&plan.name, gate.clone()).timing(plan.timing).on_finish(plan.on_finish).once();
        if let Some(label) = &plan.label {
            builder = builder.candidate(label);
        }
        if let Some(payload) = &plan.payload {
            builder = builder.payload(payload);
        }
        builder.build()
    }

    /// Opens the store. One that cannot be reached now may be reached later: that is no reason to give up waiting.
    async fn open(&mut self) -> Result<Arc<dyn LeaseStore>, Outcome> {
        loop {
            let error = {
                let patience = self.session.plan.patience;
                let mut opening = pin!(store::open(&self.session.plan.store));
                loop {
                    tokio::select! {
                        opened = &mut opening => match opened {
                            Ok(store) => return Ok(store),
                            Err(error) => break error,
                        },
                        received = self.signals.next() => self.session.receive(received),
                        () = after(patience, self.started) => return Err(self.never_led("unavailable")),
                    }
                    self.leave_if_asked()?;
                }
            };
            if !error.kind().is_transient() {
                return Err(Outcome::failed(error));
            }
            if self.session.plan.patience == Patience::OneBid {
                warn_of_store(&error);
                return Err(self.never_led(error.kind().as_str()));
            }
            warn_of_store(&error);
            self.pause(self.session.plan.timing.retry_every()).await?;
        }
    }

    /// Contends, and runs the program of each term, until there is an outcome.
    async fn campaign(&mut self, election: &Election, gate: &Arc<GatedStore>) -> Outcome {
        loop {
            self.session.prepare();
            let over = self.contend(election, gate).await;
            self.bury().await;
            let session = self.session;
            let end = session.program().and_then(|program| program.end);
            if let Some(outcome) = session.take_not_started() {
                return outcome;
            }
            if let Some(end) = session.ended_leading() {
                return Outcome::Exited(end);
            }
            if let Some(signal) = session.stop() {
                return Outcome::Stopped { signal: signal.as_raw(), program: end };
            }
            // Frozen until the deadline, and awake again before it was noticed.
            let overdue = session.is_overdue();
            match over {
                Over::Ended(Ok(Ended::Finished(()))) if overdue && session.plan.rejoin => {
                    tracing::warn!("the guard stopped the program at the deadline; contending again");
                }
                Over::Ended(Ok(Ended::Finished(()))) if session.has_resigned() && session.plan.rejoin => {
                    tracing::info!("resigned; contending again");
                    // The others look as often as this at least.
                    match self.pause(session.plan.timing.poll_every() * 5 / 4).await {
                        Ok(()) => {}
                        Err(Outcome::NeverLed { why, .. }) => return self.never_led_since(why),
                        Err(outcome) => return outcome,
                    }
                }
                Over::Ended(Ok(Ended::Finished(()))) if session.has_resigned() => {
                    return Outcome::Lost(LossReason::Resigned);
                }
                Over::Ended(Ok(Ended::Finished(()))) if overdue => return Outcome::Lost(LossReason::EXPIRED),
                Over::GaveUp(why) => return self.never_led_since(why),
                Over::Ended(Err(error)) => return Outcome::failed(error),
                Over::Ended(Ok(Ended::Lost(reason))) if session.plan.rejoin => {
                    tracing::warn!(%reason, "leadership was lost; contending again");
                }
                Over::Ended(Ok(Ended::Lost(reason))) => return Outcome::Lost(reason),
                Over::Ended(Ok(_)) | Over::Left => {
                    return Outcome::failed(anyhow::anyhow!("the campaign ended without a reason"));
                }
            }
        }
    }

    /// One campaign, and the term that it may win.
    async fn contend(&mut self, election: &Election, gate: &Arc<GatedStore>) -> Over {
        let session = self.session;
        let (patience, started) = (session.plan.patience, self.started);
        let mut run = pin!(election.run_as_leader(session.shutdown.clone(), |lead| term::lead(session, gate, lead)));
        let mut gave_up = None;
        let mut withdrawing: Option<Instant> = None;
        loop {
            let leads = matches!(election.standing(), Standing::Leading { .. }) || session.is_program_alive();
            let patient = withdrawing.is_none() && gave_up.is_none() && !leads;
            tokio::select! {
                biased;
                ended = &mut run => return match gave_up {
                    Some(why) if !matches!(ended, Ok(Ended::Finished(()))) => Over::GaveUp(why),
                    _ => Over::Ended(ended),
                },
                received = self.signals.next() => {
                    session.receive(received);
                    if session.stop().is_some() && !session.is_program_alive() {
                        withdrawing = withdrawing.or(Some(Instant::now() + LONGEST_WITHDRAWAL));
                    }
                }
                () = session.leaving() => return Over::Left,
                () = until(withdrawing), if !session.is_program_alive() => return Over::Left,
                why = out_of_patience(patience, started, election, gate), if patient => {
                    // Checked in the same step: whoever leads by now is not sent away.
                    if !matches!(election.standing(), Standing::Leading { .. }) {
                        gave_up = Some(why);
                        withdrawing = Some(Instant::now() + LONGEST_WITHDRAWAL);
                        session.shutdown.cancel();
                    }
                }
            }
        }
    }

    /// Waits for what is left of the program: killed, but not gone yet.
    async fn bury(&mut self) {
        let session = self.session;
        let deadline = Instant::now() + LONGEST_BURIAL;
        while session.is_program_alive() {
            session.kill();
            tokio::select! {
                received = self.signals.next() => session.receive(received),
                () = sleep(BURIAL_ROUND) => {}
                () = sleep_until(deadline) => {
                    tracing::error!("processes of the program do not die; the lease is left to run out");
                    return;
                }
            }
        }
    }

    /// Waits before the store is asked again.
    async fn pause(&mut self, lasts: Duration) -> Result<(), Outcome> {
        let end = Instant::now() + lasts;
        loop {
            tokio::select! {
                () = sleep_until(end) => return Ok(()),
                received = self.signals.next() => self.session.receive(received),
                () = after(self.session.plan.patience, self.started) => return Err(self.never_led("unavailable")),
            }
            self.leave_if_asked()?;
        }
    }

    fn leave_if_asked(&self) -> Result<(), Outcome> {
        match self.session.stop() {
            Some(signal) => Err(Outcome::Stopped { signal: signal.as_raw(), program: None }),
            None => Ok(()),
        }
    }

    fn never_led(&self, why: &'static str) -> Outcome {
        Outcome::NeverLed { code: self.session.plan.never_led, why }
    }

    /// With `--on-lost rejoin` the time may be over after terms that were led: then leadership was lost after all.
    fn never_led_since(&self, why: &'static str) -> Outcome {
        match self.session.program() {
            Some(_) => Outcome::Lost(LossReason::EXPIRED),
            None => self.never_led(why),
        }
    }
}

/// How one campaign was over.
enum Over {
    Ended(Result<Ended<()>, ElectionError>),
    /// Gave up waiting, for this reason.
    GaveUp(&'static str),
    /// Left at once, without giving the lease back.
    Left,
}

/// Time between two rounds of killing what does not die.
const BURIAL_ROUND: Duration = Duration::from_millis(20);

/// Waits until waiting is over, and says why.
async fn out_of_patience(patience: Patience, started: Instant, election: &Election, gate: &Gate) -> &'static str {
    match patience {
        Patience::Endless => pending().await,
        Patience::For(_) => after(patience, started).await,
        Patience::OneBid => {
            // A bid that hangs is no answer; it gets the time that every bid gets.
            let bound = Instant::now() + election.timing().attempt_timeout();
            loop {
                tokio::select! {
                    () = gate.first_answer() => {}
                    () = sleep_until(bound) => return "unknown",
                }
                if !matches!(gate.last_answer(), Some(Answer::Granted)) {
                    break;
                }
                // Granted: the election is about to say so.
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    match gate.last_answer() {
        Some(Answer::HeldBy(holder)) => {
            tracing::info!(%holder, "somebody else leads");
            "held"
        }
        Some(Answer::Failed(kind)) => kind.as_str(),
        Some(Answer::Granted) | None => "unknown",
    }
}

/// Returns when the time that was given has passed since `started`.
async fn after(patience: Patience, started: Instant) {
    match patience {
        Patience::For(longest) => match started.checked_add(longest) {
            Some(end) => sleep_until(end).await,
            None => pending().await,
        },
        Patience::Endless | Patience::OneBid => pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

fn warn_of_store(error: &StoreError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(%error, source, "the store cannot be opened");
}
