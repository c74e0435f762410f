//! Giving back what the candidate holds, or may hold, within a budget that no store can stretch.

use super::*;

impl Machine {
    /// Releases `grant`, and goes on with `then`.
    pub(super) fn free(&mut self, step: &mut Step, grant: Grant, give_up_at: Moment, then: Then, after_term: bool) {
        let phase = Phase::Pausing(step.now, Some(grant));
        self.state = State::Releasing(Releasing::new(phase, give_up_at, then, after_term));
        self.pass_time_releasing(step);
    }

    /// Reads whether a bid of unknown fate took the lease, releases it then, and goes on with `then`.
    pub(super) fn read_back(&mut self, step: &mut Step, give_up_at: Moment, then: Then) {
        let phase = Phase::Pausing(step.now, None);
        self.state = State::Releasing(Releasing::new(phase, give_up_at, then, false));
        self.pass_time_releasing(step);
    }

    pub(super) fn pass_time_releasing(&mut self, step: &mut Step) {
        let State::Releasing(releasing) = &mut self.state else { return };
        if step.now >= releasing.give_up_at {
            let failed = Release::Failed(releasing.trouble);
            return self.given_back(step, failed);
        }
        match &releasing.phase {
            Phase::AwaitBid(flight) if step.now >= flight.until => releasing.phase = Phase::Pausing(step.now, None),
            Phase::Reading(flight) if step.now >= flight.until => {
                releasing.trouble = StoreErrorKind::Unknown;
                releasing.phase = Phase::Pausing(step.now, None);
            }
            Phase::Freeing(flight, grant) if step.now >= flight.until => {
                releasing.trouble = StoreErrorKind::Unknown;
                releasing.phase = Phase::Pausing(step.now, Some(grant.clone()));
            }
            _ => {}
        }
        self.call_when_due(step);
    }

    pub(super) fn releasing_answered(&mut self, step: &mut Step, attempt: Attempt, answer: Answer) {
        let State::Releasing(releasing) = &mut self.state else { return };
        let grant = match (&releasing.phase, attempt.call) {
            (Phase::AwaitBid(flight), Call::Bid) if flight.attempt == attempt => {
                return self.awaited_bid_answered(step, answer);
            }
            (phase, Call::Bid) => {
                // A bid that was given up took the lease after all, under a term newer than what is being given back.
                if let Answer::Acquired(Acquired::Granted(grant)) = answer
                    && phase.freeing().is_none_or(|freeing| freeing.token < grant.token)
                {
                    releasing.phase = Phase::Pausing(step.now, Some(grant));
                }
                return;
            }
            (Phase::Reading(flight), Call::Read) if flight.attempt == attempt => None,
            (phase, Call::Read) => {
                // Overtaken by a later read, or by the answer to a bid.
                if let Answer::Read(Some(record)) = answer
                    && let Some(grant) = record.grant_of(&self.candidate)
                    && phase.freeing().is_none_or(|freeing| freeing.token < grant.token)
                {
                    releasing.phase = Phase::Pausing(step.now, Some(grant));
                }
                return;
            }
            (Phase::Freeing(flight, grant), Call::Release) if flight.attempt == attempt => Some(grant.clone()),
            _ => return,
        };
        match answer {
            Answer::Read(record) => match record.and_then(|record| record.grant_of(&self.candidate)) {
                Some(grant) => releasing.phase = Phase::Pausing(step.now, Some(grant)),
                None => self.given_back(step, Release::NotNeeded),
            },
            Answer::Released(released) => self.given_back(step, Release::Done(released)),
            Answer::Failed(kind) if kind.is_transient() => {
                releasing.trouble = kind;
                // Sooner as the time runs out, but never in a hot loop.
                let soonest = self.timing.retry_every() / 16;
                let pause =
                    ((releasing.give_up_at - step.now) / 4).clamp(soonest, retry_delay(&self.timing, step.jitter));
                releasing.phase = Phase::Pausing(step.now + pause, grant);
            }
            Answer::Failed(kind) => self.given_back(step, Release::Failed(kind)),
            // The shell answered with something else: nothing is known, the time-out decides.
            Answer::Acquired(_) | Answer::Renewed(_) => {}
        }
    }

    /// The answer to the bid that was in flight when the candidate was asked to stop.
    fn awaited_bid_answered(&mut self, step: &mut Step, answer: Answer) {
        let State::Releasing(releasing) = &mut self.state else { return };
        match answer {
            Answer::Acquired(Acquired::Granted(grant)) => releasing.phase = Phase::Pausing(step.now, Some(grant)),
            Answer::Acquired(Acquired::Held(_)) if !self.late_grant => self.given_back(step, Release::NotNeeded),
            Answer::Failed(kind) if kind != StoreErrorKind::Unknown && !self.doubt => {
                self.given_back(step, Release::NotNeeded);
            }
            _ => releasing.phase = Phase::Pausing(step.now, None),
        }
    }

    /// Sends the read or the release that the pause was for. Each call gets half of what is left, so that a hung one
    /// leaves room for another.
    fn call_when_due(&mut self, step: &mut Step) {
        let State::Releasing(releasing) = &self.state else { return };
        let Phase::Pausing(at, grant) = &releasing.phase else { return };
        if step.now < *at {
            return;
        }
        let grant = grant.clone();
        let left = releasing.give_up_at - step.now;
        if left < SHORTEST_ATTEMPT {
            return;
        }
        let bound = (left / 2).max(SHORTEST_ATTEMPT);
        let call = if grant.is_some() { Call::Release } else { Call::Read };
        let attempt = self.attempt(call, step.now);
        let flight = Flight { attempt, until: step.now + bound };
        let State::Releasing(releasing) = &mut self.state else { return };
        match grant {
            Some(grant) => {
                step.actions.push(Action::Release(attempt, grant.clone()));
                self.given_up = Some(grant.token);
                releasing.phase = Phase::Freeing(flight, grant);
            }
            None => {
                step.actions.push(Action::Read(attempt));
                releasing.phase = Phase::Reading(flight);
            }
        }
    }

    fn given_back(&mut self, step: &mut Step, release: Release) {
        let State::Releasing(releasing) = &self.state else { return };
        match releasing.then.clone() {
            Then::End(cause) => self.finish(cause, release),
            Then::Follow => {
                // Not confirmed: the record may still be there under this candidate's name.
                self.doubt |= matches!(release, Release::Failed(_));
                self.retry_bid(step, step.now);
            }
        }
    }
}

impl Releasing {
    pub(super) fn new(phase: Phase, give_up_at: Moment, then: Then, after_term: bool) -> Self {
        Self { phase, give_up_at, then, trouble: StoreErrorKind::Unknown, after_term }
    }

    pub(super) fn wake_at(&self) -> Moment {
        let due = match &self.phase {
            Phase::AwaitBid(flight) | Phase::Reading(flight) | Phase::Freeing(flight, _) => flight.until,
            Phase::Pausing(at, _) if self.give_up_at - *at < SHORTEST_ATTEMPT => self.give_up_at,
            Phase::Pausing(at, _) => *at,
        };
        due.min(self.give_up_at)
    }
}

impl Phase {
    /// What is being given back, as far as it is known.
    fn freeing(&self) -> Option<&Grant> {
        match self {
            Self::Freeing(_, grant) | Self::Pausing(_, Some(grant)) => Some(grant),
            Self::AwaitBid(_) | Self::Reading(_) | Self::Pausing(_, None) => None,
        }
    }
}
