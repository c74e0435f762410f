//! Contending: bids, their answers, and the passing of time in every state.

use super::leading::Manner;
use super::*;

impl Machine {
    /// Does what is due by now. Each state's clocks are read here and nowhere else.
    pub(super) fn pass_time(&mut self, step: &mut Step) {
        match &mut self.state {
            State::Following(Following { bid_at, race, .. }) if step.now >= *bid_at => {
                let race = *race;
                self.bid(step, race);
            }
            State::Bidding { flight, .. } if step.now >= flight.until => {
                let sent = flight.attempt.sent;
                self.doubt = true;
                self.retry_bid(step, sent);
            }
            State::Settling { .. } => self.settle(step),
            State::Leading { .. } => self.lead(step),
            State::Stopping { .. } => self.wind_up(step),
            State::Releasing(_) => self.pass_time_releasing(step),
            State::Following(_) | State::Bidding { .. } | State::Ended(_) => {}
        }
    }

    /// Sorts an answer to the state that waits for it; what comes late is known by its attempt.
    pub(super) fn answered(&mut self, step: &mut Step, attempt: Attempt, answer: Answer) {
        match (&mut self.state, attempt.call) {
            (State::Bidding { flight, race }, Call::Bid) if flight.attempt == attempt => {
                let race = *race;
                self.bid_answered(step, attempt, answer, race);
            }
            (State::Bidding { .. }, Call::Bid) => {
                if let Answer::Acquired(Acquired::Granted(_)) = answer {
                    (self.doubt, self.late_grant) = (true, true);
                }
            }
            (State::Following(following), Call::Bid) => {
                // A bid that was given up holds the lease after all: the next one gets the same grant.
                if let Answer::Acquired(Acquired::Granted(_)) = answer {
                    self.doubt = true;
                    following.bid_at = step.now;
                }
            }
            (State::Settling { .. } | State::Leading { .. } | State::Stopping { .. }, Call::Bid) => {
                self.late_bid_answered(step, answer);
            }
            (State::Settling { .. } | State::Leading { .. } | State::Stopping { .. }, Call::Renew) => {
                self.renewal_answered(step, attempt, answer);
            }
            (State::Releasing(_), _) => self.releasing_answered(step, attempt, answer),
            _ => {}
        }
    }

    /// A hint from the store.
    pub(super) fn woken(&mut self, step: &mut Step, wake_up: WakeUp) {
        let spread = self.herd.spread(&self.timing, step.jitter);
        match &mut self.state {
            State::Following(following) => match wake_up {
                WakeUp::Taken if following.race => {
                    following.bid_at = step.now + poll_delay(&self.timing, step.jitter);
                    following.race = false;
                }
                WakeUp::Taken => {}
                WakeUp::Vacated | WakeUp::Changed | WakeUp::Resync => {
                    let soon = following.earliest.max(step.now + spread);
                    if soon < following.bid_at {
                        (following.bid_at, following.race) = (soon, true);
                    }
                }
            },
            State::Settling { term, .. } | State::Leading { term } | State::Stopping { term, .. } => {
                term.hurry(step.now, &self.timing);
            }
            _ => {}
        }
    }

    /// Stops contending, from any state.
    pub(super) fn stop(&mut self, step: &mut Step) {
        let stopped = || Then::End(Cause::Stopped);
        match &mut self.state {
            State::Following(_) if self.doubt => {
                let give_up_at = self.stop_limit(step.now);
                self.read_back(step, give_up_at, stopped());
            }
            State::Following(_) => self.finish(Cause::Stopped, Release::NotNeeded),
            State::Bidding { flight, .. } => {
                let phase = Phase::AwaitBid(*flight);
                let give_up_at = self.stop_limit(step.now);
                self.state = State::Releasing(Releasing::new(phase, give_up_at, stopped(), false));
            }
            State::Settling { term, .. } => {
                let grant = term.grant.clone();
                let give_up_at = self.stop_limit(step.now);
                self.free(step, grant, give_up_at, stopped(), false);
            }
            State::Leading { .. } => self.begin_stop(step, Cause::Stopped, Manner::Planned),
            State::Releasing(releasing) if releasing.then == Then::Follow => releasing.then = stopped(),
            State::Stopping { .. } | State::Releasing(_) | State::Ended(_) => {}
        }
    }

    pub(super) fn finish(&mut self, cause: Cause, release: Release) {
        self.state = State::Ended(End { cause, release });
    }

    pub(super) fn attempt(&mut self, call: Call, now: Moment) -> Attempt {
        let number = self.next_attempt;
        self.next_attempt += 1;
        Attempt { number, call, sent: now }
    }

    /// Bids again after trouble, `retry_every` after the sending of the bid that failed.
    pub(super) fn retry_bid(&mut self, step: &Step, sent: Moment) {
        let bid_at = (sent + retry_delay(&self.timing, step.jitter)).max(step.now);
        self.follow(step, bid_at, false);
    }

    fn stop_limit(&self, now: Moment) -> Moment {
        now + self.timing.stop_budget() + self.timing.attempt_timeout()
    }

    fn bid(&mut self, step: &mut Step, race: bool) {
        let attempt = self.attempt(Call::Bid, step.now);
        let flight = Flight { attempt, until: step.now + self.timing.attempt_timeout() };
        self.late_grant = false;
        self.state = State::Bidding { flight, race };
        step.actions.push(Action::Bid(attempt));
    }

    fn bid_answered(&mut self, step: &mut Step, attempt: Attempt, answer: Answer, race: bool) {
        match answer {
            Answer::Acquired(Acquired::Granted(grant)) => {
                if race {
                    self.herd.won_race();
                }
                self.granted(step, attempt, grant);
            }
            // Overtaken by the grant: the next bid finds out.
            Answer::Acquired(Acquired::Held(_)) if self.late_grant => self.follow(step, step.now, false),
            Answer::Acquired(Acquired::Held(record)) => {
                if race {
                    self.herd.lost_race();
                }
                self.held(step, &record);
            }
            Answer::Failed(kind) if kind.is_transient() => {
                self.doubt |= kind == StoreErrorKind::Unknown;
                self.retry_bid(step, attempt.sent);
            }
            Answer::Failed(kind) if self.doubt => {
                let give_up_at = self.stop_limit(step.now);
                self.read_back(step, give_up_at, Then::End(Cause::Failed(kind)));
            }
            Answer::Failed(kind) => self.finish(Cause::Failed(kind), Release::NotNeeded),
            // The shell answered a bid with something else: nothing is known.
            Answer::Renewed(_) | Answer::Released(_) | Answer::Read(_) => {
                self.doubt = true;
                self.retry_bid(step, attempt.sent);
            }
        }
    }

    fn granted(&mut self, step: &mut Step, attempt: Attempt, grant: Grant) {
        self.doubt = false;
        let timing = self.timing;
        let give_up_at = step.now + timing.attempt_timeout();
        let needed = timing.renew_every() + 2 * timing.attempt_timeout() + timing.stop_budget();
        if timing.validity(grant.ttl) < needed {
            let short = Then::End(Cause::ShortGrant(grant.ttl));
            return self.free(step, grant, give_up_at, short, false);
        }
        let given_up = Some(grant.token) == self.given_up;
        let term = Term::won(grant, attempt, &timing, step.jitter);
        if given_up || step.now >= term.stop_at(&timing) {
            // A release of this term may be under way, or it is too late to do any work: the next bid may fare better.
            return self.free(step, term.grant, give_up_at, Then::Follow, false);
        }
        if timing.settle_delay().is_zero() || term.grant.after_release {
            return self.start_work(step, term);
        }
        self.state = State::Settling { term, start_at: step.now + timing.settle_delay() };
    }

    /// Waits for the holder's lease to run out, for a push, or for the next slow look, whichever comes first.
    fn held(&mut self, step: &Step, record: &LeaseRecord) {
        self.doubt = false;
        let poll_at = step.now + poll_delay(&self.timing, step.jitter);
        // No time left: free by now, or a second read found another state than the bid did. Looks again very soon, but
        // never in a hot loop.
        let soonest = self.timing.retry_every() / 16;
        let expires = record.remaining.max(soonest);
        let expires_at = step.now + expires + self.herd.spread(&self.timing, step.jitter);
        let race = expires_at < poll_at;
        self.follow(step, expires_at.min(poll_at), race);
    }

    fn follow(&mut self, step: &Step, bid_at: Moment, race: bool) {
        let earliest = step.now + self.timing.retry_every() / 64;
        self.state = State::Following(Following { bid_at, race, earliest });
    }
}
