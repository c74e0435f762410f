//! One term: the program runs from the grant until it has ended, or has to.

use std::future::pending;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use tenure::clock::{Clock, Moment, SystemClock};
use tenure::{Grant, Leadership, OnFinish};

use super::gate::GatedStore;
use super::outcome::Outcome;
use super::plan::Plan;
use super::session::{Program, Session};
use crate::exit;
use crate::guard::{Environment, Start};
use crate::serve::Shown;

/// Longest time that a cut-off blocks for the kernel to carry out a KILL. What is left then is still waited for before
/// the lease is given back.
const LONGEST_KILL: Duration = Duration::from_millis(100);

/// Runs the program while `lead` lasts. When this returns, nothing of it is left. When it is dropped, it has been killed.
pub(crate) async fn lead(session: &Session, gate: &GatedStore, lead: Leadership) {
    // Asked to stop between the grant and now.
    if session.stop().is_some() {
        return;
    }
    let granted_at = SystemClock.now();
    if let Err(outcome) = start(session, gate, &lead) {
        session.not_started(outcome);
        // Frees the lease whatever is to become of it after a program that ran, and does not return.
        let _ = lead.resign().await;
        return;
    }
    let _cut_off = CutOff(session);
    let shown = session.candidacy().map(|candidacy| candidacy.leads_in(lead.term()));
    supervise(session, &lead, shown).await;
    hold(session, &lead, granted_at).await;
}

/// Kills the program when the term is cut off, before anybody can take its place.
struct CutOff<'a>(&'a Session);

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        if self.0.is_program_alive() {
            self.0.kill_and_wait(LONGEST_KILL);
        }
    }
}

/// Waits until nothing of the program is left: it ends by itself, or is told to stop and then made to.
async fn supervise(session: &Session, lead: &Leadership, mut shown: Option<Shown<'_>>) {
    let Plan { stop_signal, kill_grace, kill_room, timing, .. } = session.plan;
    // Often enough that the guard's deadline is never older than a renewal and a little.
    let every = (timing.renew_every() / 4).min(Duration::from_secs(1));
    let mut kill_at: Option<Moment> = None;
    // Whether the program is to end by the will of others, and whether its term said so.
    let (mut stopping, mut told) = (false, false);
    while let Some(program) = session.program().filter(|program| program.alive) {
        if let Some(end) = program.end.filter(|_| kill_at.is_none() && by_itself(&program, lead, stopping)) {
            // What it leaves behind ran under this term too, and has to go before the next one.
            session.set_ended_leading(end);
            session.ask_to_stop(stop_signal);
            kill_at = Some(SystemClock.now() + kill_grace);
        }
        // Others go elsewhere, from the moment at which it is known that this term ends.
        if session.stop().is_some() {
            shown = None;
        }
        tokio::select! {
            () = session.changed() => {}
            () = asked_to_resign(shown.as_ref()), if !stopping => {
                tracing::info!("asked to resign");
                (shown, stopping) = (None, true);
                session.resign();
                session.ask_to_stop(stop_signal);
                kill_at = Some(SystemClock.now() + kill_grace);
            }
            () = lead.stopping(), if !told => {
                (stopping, told) = (true, true);
                session.ask_to_stop(stop_signal);
                let latest = lead.deadline().saturating_sub(kill_room);
                kill_at = Some(kill_at.map_or(latest, |at| at.min(latest)));
            }
            () = sleep_until(kill_at), if !program.killing => session.kill(),
            () = tokio::time::sleep(every) => session.prolong(latest(lead, kill_room)),
        }
    }
    if let Some(program) = session.program().filter(|program| by_itself(program, lead, stopping))
        && let Some(end) = program.end
        && session.ended_leading().is_none()
    {
        session.set_ended_leading(end);
    }
}

async fn asked_to_resign(shown: Option<&Shown<'_>>) {
    match shown {
        Some(shown) => shown.asked_to_resign().await,
        None => pending().await,
    }
}

/// When the guard kills: with room for the kernel to carry that out before the deadline.
fn latest(lead: &Leadership, kill_room: Duration) -> Duration {
    lead.deadline().saturating_sub(kill_room).since_origin()
}

/// Whether the program has ended with nobody making it: under a term that was not over, however late word of that comes.
fn by_itself(program: &Program, lead: &Leadership, stopping: bool) -> bool {
    !stopping && !program.killing && lead.check().is_ok()
}

/// Keeps the lease for as long as was asked for at least. If that cannot be, it is left to run out.
async fn hold(session: &Session, lead: &Leadership, granted_at: Moment) {
    let until = granted_at + session.plan.min_hold;
    if session.ended_leading().is_none() || SystemClock.now() >= until {
        return;
    }
    tokio::select! {
        () = SystemClock.sleep_until(until) => {}
        () = lead.stopping() => {
            session.leave();
            pending().await
        }
    }
}

async fn sleep_until(at: Option<Moment>) {
    match at {
        Some(at) => SystemClock.sleep_until(at).await,
        None => pending().await,
    }
}

fn start(session: &Session, gate: &GatedStore, lead: &Leadership) -> Result<(), Outcome> {
    let interrupted = || Outcome::failed(anyhow::anyhow!("the grant of this term is not known"));
    let grant = gate.granted().filter(|grant| grant.token == lead.token()).ok_or_else(interrupted)?;
    let plan = &session.plan;
    let environment = environment(&grant, gate.kind());
    let start = Start {
        store: plan.store.clone(),
        deadline: latest(lead, plan.kill_room),
        free: plan.on_finish == OnFinish::Release && plan.min_hold.is_zero(),
        environment,
        grant,
    };
    session.start(&start, lead.term()).map_err(|error| {
        let code = code_of(&error, plan);
        let error = anyhow::Error::new(error).context(format!("cannot run {}", plan.command[0].display()));
        Outcome::Failed { code, error }
    })
}

/// What the program may want to know about its term.
fn environment(grant: &Grant, store_kind: String) -> Environment {
    [
        ("TENURE_NAME", grant.name.to_string()),
        ("TENURE_CANDIDATE", grant.candidate.to_string()),
        ("TENURE_TOKEN", grant.token.to_string()),
        ("TENURE_TTL_MS", grant.ttl.as_millis().to_string()),
        ("TENURE_STORE_KIND", store_kind),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// As a shell has it: 127 when there is no such program, 126 when it is there but cannot be run. Where the system has no
/// room for any process, the program has nothing to do with it.
fn code_of(error: &io::Error, plan: &Plan) -> u8 {
    let path_exists =
        || std::path::Path::new(&plan.command[0]).exists() && plan.command[0].as_encoded_bytes().contains(&b'/');
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A script whose interpreter is missing is there itself.
        Some(Errno::NOENT) if !path_exists() => exit::NOT_FOUND,
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => exit::FAILED,
        _ => exit::NOT_EXECUTABLE,
    }
}
