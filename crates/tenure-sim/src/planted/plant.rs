//! What a bug between the machine and its shell does: falsify inputs, hold time back, distort actions.

use tenure_core::machine::{Action, Answer, Attempt, Call, Cause, End, Input, Jitter, Machine, Release};
use tenure_core::{Acquired, FencingToken, Grant, Renewed, Standing, StoreErrorKind, Timing};

use super::Bug;
use super::subject::moment;
use crate::clock::{MS, Nanos};
use crate::lease;
use crate::times::{duration, nanos};

/// A bug and what it keeps. All times are the machine's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Plant {
    bug: Bug,
    timing: Timing,
    /// So far the machine's clock lags behind the host's.
    lag: Nanos,
    /// The time of the last step.
    last: Nanos,
    /// The last call that is not answered yet, and until when it is waited for at the most.
    in_flight: Option<(Attempt, Nanos)>,
    last_bid: Option<Attempt>,
    grant: Option<Grant>,
    highest_token: u64,
    /// The machine as it was before its term began to end.
    alive: Option<Box<Machine>>,
    /// The end of the work was reported, and not passed on.
    withheld: bool,
    tripped: bool,
    forced_end: Option<End>,
}

impl Plant {
    pub(super) fn new(bug: Bug, timing: Timing) -> Self {
        Self {
            bug,
            timing,
            lag: 0,
            last: 0,
            in_flight: None,
            last_bid: None,
            grant: None,
            highest_token: 0,
            alive: None,
            withheld: false,
            tripped: false,
            forced_end: None,
        }
    }

    pub(super) fn lag(&self) -> Nanos {
        self.lag
    }

    pub(super) fn forced_end(&self) -> Option<&End> {
        self.forced_end.as_ref()
    }

    pub(super) fn step(&mut self, machine: &mut Machine, now: Nanos, jitter: Jitter, input: Input) -> Vec<Action> {
        if self.forced_end.is_some() {
            return Vec::new();
        }
        let mut now = now.saturating_sub(self.lag).max(self.last);
        let resurrected = self.resurrect(machine, &mut now, &input);
        let Some(input) = self.falsify(&mut now, input) else { return Vec::new() };
        if self.waits_until().is_some_and(|until| now < until) {
            if input == Input::Tick {
                return Vec::new();
            }
            now = self.last;
        }
        self.last = now;
        let before = machine.clone();
        let mut actions = machine.step(moment(now), jitter, input.clone());
        if resurrected && let Some(grant) = self.grant.clone() {
            actions.push(Action::StartWork(grant));
        }
        self.watch(&actions, &before);
        self.distort(machine, &before, jitter, &input, &mut actions);
        actions
    }

    pub(super) fn wake_at(&self, at: Option<Nanos>) -> Option<Nanos> {
        if self.forced_end.is_some() {
            return None;
        }
        let until = self.waits_until();
        if self.withheld {
            return until.map(|until| until + self.lag);
        }
        Some(at?.max(until.unwrap_or(0)) + self.lag)
    }

    /// Until when the machine does not get to look at the clock, since a call is in flight.
    fn waits_until(&self) -> Option<Nanos> {
        let (attempt, until) = self.in_flight?;
        match (self.bug, attempt.call) {
            (Bug::DeadlineBetweenCalls, Call::Renew) => Some(until),
            (Bug::BudgetForEachCall, Call::Renew) => {
                Some(nanos(attempt.sent.since_origin()) + nanos(self.timing.attempt_timeout()))
            }
            (Bug::StopWaitsForAnswer, Call::Bid | Call::Read | Call::Release) if self.tripped => Some(until),
            (Bug::LateAnswerResurrects, Call::Renew) if self.withheld => Some(until),
            _ => None,
        }
    }

    /// An extension that came too late starts the term again, as if no time had passed.
    fn resurrect(&mut self, machine: &mut Machine, now: &mut Nanos, input: &Input) -> bool {
        let Input::Answer(attempt, Answer::Renewed(Renewed::Extended(_))) = input else { return false };
        if self.bug != Bug::LateAnswerResurrects || attempt.call != Call::Renew || machine.deadline().is_some() {
            return false;
        }
        let Some(alive) = self.alive.take() else { return false };
        let then = nanos(attempt.sent.since_origin());
        self.lag += *now - then;
        *now = then;
        self.last = then;
        self.withheld = false;
        *machine = *alive;
        true
    }

    /// What the machine is told instead of `input`, and when.
    fn falsify(&mut self, now: &mut Nanos, input: Input) -> Option<Input> {
        match input {
            Input::Answer(attempt, answer) => Some(self.falsify_answer(now, attempt, answer)),
            Input::Suspended(slept) if self.bug == Bug::SuspendIgnored => {
                self.lag += nanos(slept);
                *now = now.saturating_sub(nanos(slept)).max(self.last);
                Some(Input::Tick)
            }
            Input::Stop if self.bug == Bug::StopWaitsForAnswer => {
                self.tripped = true;
                Some(Input::Stop)
            }
            Input::WorkEnded if self.bug == Bug::LateAnswerResurrects && self.alive.is_some() => {
                self.withheld = self.in_flight.is_some_and(|(attempt, _)| attempt.call == Call::Renew);
                if self.withheld { None } else { Some(Input::WorkEnded) }
            }
            _ if self.withheld && self.waits_until().is_none_or(|until| *now >= until) => {
                self.withheld = false;
                Some(Input::WorkEnded)
            }
            other => Some(other),
        }
    }

    fn falsify_answer(&mut self, now: &mut Nanos, attempt: Attempt, answer: Answer) -> Input {
        use StoreErrorKind::Unknown;
        let latest = self.in_flight.map(|(latest, _)| latest);
        self.in_flight = self.in_flight.filter(|(other, _)| *other != attempt);
        if let Answer::Acquired(Acquired::Held(record)) = &answer {
            self.highest_token = self.highest_token.max(record.token.value());
        }
        let good = matches!(answer, Answer::Acquired(Acquired::Granted(_)) | Answer::Renewed(Renewed::Extended(_)));
        match (self.bug, attempt.call, answer) {
            (Bug::DeadlineFromAnswer, _, answer) if good => {
                let earlier = nanos(attempt.sent.since_origin()).max(self.last);
                self.lag += *now - earlier;
                *now = earlier;
                Input::Answer(attempt, answer)
            }
            (Bug::DriftIgnored, _, Answer::Acquired(Acquired::Granted(grant))) => {
                Input::Answer(attempt, Answer::Acquired(Acquired::Granted(lengthened(grant))))
            }
            (Bug::DriftIgnored, _, Answer::Renewed(Renewed::Extended(grant))) => {
                Input::Answer(attempt, Answer::Renewed(Renewed::Extended(lengthened(grant))))
            }
            (Bug::UnknownExtends, Call::Renew, Answer::Failed(Unknown)) => match self.grant.clone() {
                Some(grant) => Input::Answer(attempt, Answer::Renewed(Renewed::Extended(grant))),
                None => Input::Answer(attempt, Answer::Failed(Unknown)),
            },
            (Bug::UnknownBidGrants, Call::Bid, Answer::Failed(Unknown)) => {
                let grant = lease::grant(FencingToken(self.highest_token + 1), self.timing.ttl());
                Input::Answer(attempt, Answer::Acquired(Acquired::Granted(grant)))
            }
            (Bug::LossIgnored, Call::Renew, Answer::Renewed(Renewed::Lost(_))) => {
                Input::Answer(attempt, Answer::Failed(Unknown))
            }
            (Bug::AnswerOfAnother, Call::Renew, answer) if good => {
                let latest = latest.filter(|latest| latest.call == Call::Renew).unwrap_or(attempt);
                Input::Answer(latest, answer)
            }
            (Bug::LateBidAdopted, Call::Bid, answer) if good => Input::Answer(self.last_bid.unwrap_or(attempt), answer),
            (Bug::RenewalDies, Call::Renew, answer @ Answer::Failed(_)) => {
                self.tripped = true;
                Input::Answer(attempt, answer)
            }
            (_, _, answer) => Input::Answer(attempt, answer),
        }
    }

    /// Remembers what was asked for.
    fn watch(&mut self, actions: &[Action], before: &Machine) {
        for action in actions {
            match action {
                Action::Bid(attempt) => {
                    self.last_bid = Some(*attempt);
                    self.sent(*attempt);
                }
                Action::Renew(attempt, _) | Action::Release(attempt, _) | Action::Read(attempt) => self.sent(*attempt),
                Action::StartWork(grant) => self.grant = Some(grant.clone()),
                Action::SignalStop if self.bug == Bug::LateAnswerResurrects => {
                    self.alive = Some(Box::new(before.clone()));
                }
                _ => {}
            }
        }
    }

    fn sent(&mut self, attempt: Attempt) {
        let until = nanos(attempt.sent.since_origin()) + 2 * nanos(self.timing.ttl());
        self.in_flight = Some((attempt, until));
    }

    /// What the shell is told instead of `actions`.
    fn distort(
        &mut self,
        machine: &mut Machine,
        before: &Machine,
        jitter: Jitter,
        input: &Input,
        actions: &mut Vec<Action>,
    ) {
        let nothing = |cause| Some(End { cause, release: Release::NotNeeded });
        match self.bug {
            Bug::ReleaseBeforeEnd if actions.contains(&Action::SignalStop) => {
                actions.extend(machine.step(moment(self.last), jitter, Input::WorkEnded));
            }
            Bug::NoCutOff => actions.retain(|action| *action != Action::CutOff),
            Bug::SignalAtCut if !actions.contains(&Action::CutOff) => {
                actions.retain(|action| *action != Action::SignalStop);
            }
            Bug::SignalAtCut if !actions.contains(&Action::SignalStop) => actions.insert(0, Action::SignalStop),
            Bug::StartsTwice if matches!(input, Input::Answer(_, Answer::Renewed(Renewed::Extended(_)))) => {
                actions.extend(self.grant.clone().map(Action::StartWork));
            }
            Bug::RenewalDies if self.tripped => actions.retain(|action| !matches!(action, Action::Renew(..))),
            Bug::RenewsAfterEnd if *input == Input::WorkEnded => {
                let attempt = Attempt { number: u64::MAX, call: Call::Renew, sent: moment(self.last) };
                actions.extend(self.grant.clone().map(|grant| Action::Renew(attempt, grant)));
            }
            Bug::StopForgetsBid
                if *input == Input::Stop && before.standing() == Standing::Following && machine.end().is_none() =>
            {
                actions.clear();
                self.forced_end = nothing(Cause::Stopped);
            }
            Bug::ReleaseForgotten if actions.iter().any(|action| matches!(action, Action::Release(..))) => {
                actions.retain(|action| !matches!(action, Action::Release(..)));
                self.forced_end = nothing(if self.tripped { Cause::Stopped } else { Cause::Finished });
            }
            _ => {}
        }
    }
}

/// The machine is told a ttl whose validity is all of the real one.
pub(super) fn without_drift(timing: Timing) -> Timing {
    let builder = Timing::builder(timing.ttl() * 101 / 99 + duration(6 * MS))
        .renew_every(timing.renew_every())
        .attempt_timeout(timing.attempt_timeout())
        .retry_every(timing.retry_every())
        .poll_every(timing.poll_every())
        .stop_budget(timing.stop_budget())
        .settle_delay(timing.settle_delay())
        .clock_step(timing.clock_step());
    builder.build().unwrap_or(timing)
}

fn lengthened(grant: Grant) -> Grant {
    let ttl = grant.ttl * 101 / 99 + duration(6 * MS);
    grant.with_ttl(ttl)
}
