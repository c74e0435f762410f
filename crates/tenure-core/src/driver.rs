//! The shell around the machine: performs what it asks, and owns the one published value.
//!
//! A campaign is one task. It waits for whichever comes first of a time, a command, an answer and a hint, steps the
//! machine, performs its actions, and publishes. It decides nothing. The work runs elsewhere, in the caller's task, so
//! that work that blocks its thread cannot stop renewals or the deadline.

use std::future::{Future, pending};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures::stream::{self, BoxStream, FuturesUnordered};
use tokio::sync::{mpsc, watch};

use crate::campaign::{Command, Published};
use crate::clock::Moment;
use crate::election::Shared;
use crate::machine::{Action, Answer, Attempt, Call, Cause, Input, Jitter, Machine, Standing};
use crate::tasks::Tasks;
use crate::{Acquired, Bid, CandidateId, Grant, LossReason, OverrunPolicy, StoreError, WakeUp};

type StoreCall = BoxFuture<'static, (Attempt, Result<Answer, StoreError>)>;

pub(crate) struct Driver {
    shared: Arc<Shared>,
    machine: Machine,
    calls: FuturesUnordered<Abortable<StoreCall>>,
    /// What was called and may still be answered, oldest first.
    under_way: Vec<(Attempt, AbortHandle)>,
    hints: Option<BoxStream<'static, WakeUp>>,
    commands: mpsc::UnboundedReceiver<Command>,
    publish: watch::Sender<Published>,
    tasks: Tasks,
    /// Whether the caller's task runs the work, and reports its end itself.
    managed: bool,
    caller_ended: bool,
    suspended: Duration,
    last_error: Option<Arc<StoreError>>,
    /// Since when the lease is known to be free, or a bid under way: what a hand-over is counted from.
    free_since: Option<Moment>,
}

/// Two readings of the same clock pair differ by scheduling noise; less than this is no suspend.
const SHORTEST_SUSPEND: Duration = Duration::from_millis(10);

/// A term that lasts longer than this watches its own record: what somebody removes before is noticed by the next renewal.
const SHORT_TERM: Duration = Duration::from_millis(50);

impl Driver {
    pub(crate) async fn run(mut self) {
        self.step(Input::Tick);
        while self.machine.end().is_none() {
            let input = self.next_input().await;
            self.step(input);
        }
        for (attempt, _) in self.under_way.drain(..) {
            self.shared.meter.abandoned(attempt.call);
        }
    }

    /// Waits for whatever comes first. The timer is asked first, and awaits no I/O: no store can delay a deadline.
    async fn next_input(&mut self) -> Input {
        let (clock, wake_at) = (self.shared.clock.clone(), self.machine.wake_at());
        let timer = async {
            match wake_at {
                Some(at) => clock.sleep_until(at).await,
                None => pending().await,
            }
        };
        let hint = async {
            match &mut self.hints {
                Some(hints) => hints.next().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = timer => Input::Tick,
            // Whoever dropped the last sender has dropped the campaign, and so withdrawn.
            Some(command) = self.commands.recv() => self.obey(command),
            () = self.tasks.ended(), if self.caller_ended => {
                self.caller_ended = false;
                Input::WorkEnded
            }
            Some(answer) = self.calls.next() => match answer {
                Ok((attempt, result)) => Input::Answer(attempt, self.heard(attempt, result)),
                Err(Aborted) => Input::Tick,
            },
            wake_up = hint => {
                // A watch that ends breaks its contract; the slow poll goes on without it.
                if wake_up.is_none() {
                    self.hints = Some(stream::pending().boxed());
                }
                wake_up.map_or(Input::Tick, Input::Woken)
            }
        }
    }

    fn obey(&mut self, command: Command) -> Input {
        match command {
            Command::Stop => Input::Stop,
            Command::Resign => Input::Resign,
            Command::WorkEnded => {
                self.caller_has_ended();
                Input::Tick
            }
            Command::Withdraw => {
                self.caller_has_ended();
                Input::Stop
            }
        }
    }

    fn caller_has_ended(&mut self) {
        self.caller_ended = true;
        self.tasks.cut_off();
    }

    fn heard(&mut self, attempt: Attempt, result: Result<Answer, StoreError>) -> Answer {
        self.under_way.retain(|(other, _)| *other != attempt);
        let took = self.shared.clock.now() - attempt.sent;
        let answer = self.told(result);
        self.shared.meter.answered(attempt.call, &answer, took);
        answer
    }

    fn told(&mut self, result: Result<Answer, StoreError>) -> Answer {
        result.unwrap_or_else(|error| {
            let kind = error.kind();
            let leading = self.publish.borrow().grant.is_some();
            if leading && !kind.is_transient() {
                tracing::error!(target: "tenure", lease = %self.shared.name, %error, source = source_text(&error), "the store refuses a leader");
            } else {
                tracing::warn!(target: "tenure", lease = %self.shared.name, %error, source = source_text(&error), "store call failed");
            }
            self.last_error = Some(Arc::new(error));
            Answer::Failed(kind)
        })
    }

    fn step(&mut self, input: Input) {
        let jitter = Jitter::new(fastrand::u16(..));
        let suspended = self.shared.clock.suspended();
        let slept = suspended.saturating_sub(self.suspended);
        let mut actions = Vec::new();
        if slept >= SHORTEST_SUSPEND {
            self.suspended = suspended;
            tracing::info!(target: "tenure", lease = %self.shared.name, ?slept, "the host was suspended");
            actions = self.machine.step(self.shared.clock.now(), jitter, Input::Suspended(slept));
        }
        let answered = matches!(&input, Input::Answer(Attempt { call: Call::Bid, .. }, _));
        self.note_vacancy(&input);
        actions.extend(self.machine.step(self.shared.clock.now(), jitter, input));
        let mut update = Update::default();
        for action in actions {
            self.perform(action, &mut update);
        }
        if answered && self.hints.is_none() && self.machine.end().is_none() {
            self.hints = Some(self.watch());
        }
        self.publish(update);
    }

    /// A follower's hints from now on. A leader whose first bid won needs them for the rare case that somebody takes its record
    /// away, and may have ended before they could be of use: a watch costs connections and threads, and many terms are short.
    fn watch(&self) -> BoxStream<'static, WakeUp> {
        let (store, name) = (self.shared.store.clone(), self.shared.name.clone());
        if matches!(self.machine.standing(), Standing::Following) {
            return store.watch(&name);
        }
        let (clock, at) = (self.shared.clock.clone(), self.shared.clock.now() + SHORT_TERM);
        stream::once(async move {
            clock.sleep_until(at).await;
            store.watch(&name)
        })
        .flatten()
        .boxed()
    }

    /// A lease is free from the first hint on, until somebody is seen to hold it.
    fn note_vacancy(&mut self, input: &Input) {
        match input {
            Input::Woken(WakeUp::Vacated | WakeUp::Changed) if self.free_since.is_none() => {
                self.free_since = Some(self.shared.clock.now());
            }
            Input::Answer(_, Answer::Acquired(Acquired::Held(_))) => self.free_since = None,
            _ => {}
        }
    }

    fn perform(&mut self, action: Action, update: &mut Update) {
        match action {
            Action::Bid(attempt) => {
                self.free_since.get_or_insert(attempt.sent);
                let bid =
                    Bid::new(self.shared.name.clone(), self.machine.candidate().clone(), self.shared.timing.ttl())
                        .with_payload(self.shared.payload.clone());
                let store = self.shared.store.clone();
                self.call(attempt, async move { store.try_acquire(&bid).await.map(Answer::Acquired) });
            }
            Action::Renew(attempt, grant) => {
                let store = self.shared.store.clone();
                self.call(attempt, async move { store.renew(&grant).await.map(Answer::Renewed) });
            }
            Action::Release(attempt, grant) => {
                let store = self.shared.store.clone();
                self.call(attempt, async move { store.release(&grant).await.map(Answer::Released) });
            }
            Action::Read(attempt) => {
                let (store, name) = (self.shared.store.clone(), self.shared.name.clone());
                self.call(attempt, async move { store.read(&name).await.map(Answer::Read) });
            }
            Action::StartWork(grant) => {
                tracing::info!(target: "tenure", lease = %self.shared.name, candidate = %grant.candidate, token = %grant.token, "elected");
                let now = self.shared.clock.now();
                self.shared.meter.elected(grant.token, now - self.free_since.take().unwrap_or(now));
                update.grant = Some(grant);
            }
            Action::SignalStop => {}
            Action::CutOff => {
                update.cut_off = true;
                self.tasks.cut_off();
                // Nobody reports the end of work that runs in the user's own hands; its tasks can be waited for.
                self.caller_ended |= !self.managed;
            }
            Action::ReportOverrun => self.overrun(),
        }
    }

    /// Starts a store call. Of the same kind only the last one is still listened to besides: its late answer may say
    /// that the lease is lost. Older ones are dropped.
    fn call(&mut self, attempt: Attempt, call: impl Future<Output = Result<Answer, StoreError>> + Send + 'static) {
        let same_kind = |(other, _): &(Attempt, AbortHandle)| other.call == attempt.call;
        if self.under_way.iter().filter(|pending| same_kind(pending)).count() > 1
            && let Some(oldest) = self.under_way.iter().position(same_kind)
        {
            self.under_way.remove(oldest).1.abort();
            self.shared.meter.abandoned(attempt.call);
        }
        let (handle, registration) = AbortHandle::new_pair();
        let call: StoreCall = Box::pin(async move { (attempt, call.await) });
        self.calls.push(Abortable::new(call, registration));
        self.under_way.push((attempt, handle));
    }

    fn overrun(&self) {
        self.shared.overruns.fetch_add(1, Ordering::Relaxed);
        self.shared.meter.overrun();
        tracing::error!(
            target: "tenure", lease = %self.shared.name, policy = ?self.shared.overrun,
            "work goes on after it was cut off: it blocks its thread or swallowed its cancellation"
        );
        if self.shared.overrun == OverrunPolicy::Abort {
            std::process::abort();
        }
    }

    fn publish(&self, update: Update) {
        let machine = &self.machine;
        self.shared.standing.send_if_modified(|standing| {
            let changed = *standing != machine.standing();
            *standing = machine.standing();
            changed
        });
        let mut lost = None;
        self.publish.send_if_modified(|published| {
            let before = published.stage();
            published.last_error.clone_from(&self.last_error);
            published.grant = published.grant.take().or(update.grant);
            published.cut_off |= update.cut_off;
            let cause = machine.stopping_for().or(machine.end().map(|end| &end.cause));
            if published.grant.is_some() {
                if published.stopping.is_none() && machine.stopping_for().is_some() {
                    published.stopping = cause.map(|cause| explained(loss_reason(cause), &self.last_error));
                }
                match machine.deadline() {
                    Some(deadline) => published.deadline = deadline,
                    None if published.lost.is_none() => {
                        let reason = published.stopping.clone().or_else(|| cause.map(loss_reason));
                        lost = reason.filter(|reason| *reason != LossReason::Resigned);
                        published.lost = Some(lost.clone().unwrap_or(LossReason::Resigned));
                    }
                    None => {}
                }
            }
            published.end = machine.end().cloned();
            before != published.stage()
        });
        self.shared.record_standing();
        if let Some(reason) = lost {
            self.shared.meter.lost(&reason);
        }
        if machine.end().is_some() {
            self.shared.set_herd(machine.herd());
            tracing::debug!(target: "tenure", lease = %self.shared.name, end = ?machine.end(), "campaign ended");
        }
    }

    pub(crate) fn new(
        shared: Arc<Shared>,
        pause: Duration,
        managed: bool,
        commands: mpsc::UnboundedReceiver<Command>,
        publish: watch::Sender<Published>,
        tasks: Tasks,
    ) -> Self {
        let candidate = CandidateId::draw(&shared.label);
        let start_at = shared.clock.now() + pause;
        Self {
            machine: Machine::new(candidate, shared.timing, shared.on_finish, start_at, shared.herd()),
            calls: FuturesUnordered::new(),
            under_way: Vec::new(),
            hints: None,
            commands,
            publish,
            tasks,
            managed,
            caller_ended: false,
            suspended: shared.clock.suspended(),
            last_error: None,
            free_since: None,
            shared,
        }
    }
}

/// What a step's actions change in the published value.
#[derive(Default)]
struct Update {
    grant: Option<Grant>,
    cut_off: bool,
}

/// A term that was ended on purpose, one way or another, was resigned.
fn loss_reason(cause: &Cause) -> LossReason {
    match cause {
        Cause::Lost(reason) => reason.clone(),
        _ => LossReason::Resigned,
    }
}

pub(crate) fn explained(reason: LossReason, last_error: &Option<Arc<StoreError>>) -> LossReason {
    match reason {
        LossReason::Expired { kind: Some(kind), .. } => {
            let error = last_error.clone().filter(|error| error.kind() == kind);
            LossReason::Expired { kind: Some(kind), error }
        }
        reason => reason,
    }
}

fn source_text(error: &StoreError) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}
