//! Holding a term: renewing it, and ending it in time.

use super::*;

impl Machine {
    pub(super) fn start_work(&mut self, step: &mut Step, term: Term) {
        step.actions.push(Action::StartWork(term.grant.clone()));
        self.state = State::Leading { term };
    }

    /// What is due while settling: nobody has heard of this term yet, so losing it is going back to the start.
    pub(super) fn settle(&mut self, step: &mut Step) {
        let State::Settling { term, start_at } = &mut self.state else { return };
        let stop_at = term.stop_at(&self.timing);
        if step.now >= term.deadline {
            // The record outlives the deadline by what drift was allowed for.
            self.doubt = true;
            return self.retry_bid(step, step.now);
        }
        if step.now >= stop_at {
            let grant = term.grant.clone();
            let give_up_at = term.deadline.min(step.now + self.timing.attempt_timeout());
            return self.free(step, grant, give_up_at, Then::Follow, false);
        }
        if step.now >= *start_at {
            let term = term.clone();
            return self.start_work(step, term);
        }
        self.renew_if_due(step, stop_at);
    }

    /// What is due while leading.
    pub(super) fn lead(&mut self, step: &mut Step) {
        let State::Leading { term } = &self.state else { return };
        let stop_at = term.stop_at(&self.timing);
        if step.now >= stop_at {
            let reason = term.expiry_reason(step.now, stop_at);
            return self.begin_stop(step, Cause::Lost(reason), Manner::Planned);
        }
        self.renew_if_due(step, stop_at);
    }

    /// What is due while the work is being ended.
    pub(super) fn wind_up(&mut self, step: &mut Step) {
        let timing = self.timing;
        let State::Stopping { term, stop } = &mut self.state else { return };
        if stop.cut_at.is_none() && step.now >= stop.cut_off_at(term, &timing) {
            stop.cut_at = Some(step.now);
            step.actions.push(Action::CutOff);
        }
        if stop.overrun_at().is_some_and(|at| step.now >= at) {
            stop.overrun_reported = true;
            step.actions.push(Action::ReportOverrun);
        }
        // Past the deadline nothing of the term can come back: an answer would be too late, a release not ours to make.
        stop.gone |= step.now >= term.deadline;
        if !stop.gone {
            let deadline = term.deadline;
            self.renew_if_due(step, deadline);
        }
    }

    /// Tells the work to stop, as the manner says.
    pub(super) fn begin_stop(&mut self, step: &mut Step, cause: Cause, manner: Manner) {
        let State::Leading { term } = &mut self.state else { return };
        step.actions.push(Action::SignalStop);
        let cut_at = (manner != Manner::Planned).then_some(step.now);
        if cut_at.is_some() {
            step.actions.push(Action::CutOff);
        }
        let gone = manner == Manner::Gone;
        let stop = Stop { cause, signalled_at: step.now, cut_at, overrun_reported: false, gone };
        self.state = State::Stopping { term: term.clone(), stop };
        self.wind_up(step);
    }

    /// The leader gives the lease up.
    pub(super) fn resign(&mut self, step: &mut Step) {
        match &mut self.state {
            State::Leading { .. } => self.begin_stop(step, Cause::Lost(LossReason::Resigned), Manner::AtOnce),
            State::Stopping { stop, .. } if stop.cut_at.is_none() => {
                stop.cut_at = Some(step.now);
                step.actions.push(Action::CutOff);
            }
            _ => {}
        }
    }

    /// The work has ended: the lease can be given back, if it may still be ours.
    pub(super) fn work_ended(&mut self, step: &mut Step) {
        let (term, cause, ours) = match &self.state {
            State::Leading { term } => (term, Cause::Finished, true),
            State::Stopping { term, stop } => (term, stop.cause.clone(), !stop.gone),
            _ => return,
        };
        if !ours || (cause == Cause::Finished && self.on_finish == OnFinish::Hold) {
            return self.finish(cause, Release::NotNeeded);
        }
        let grant = term.grant.clone();
        step.withdraw_renewal();
        self.free(step, grant, step.now + self.timing.attempt_timeout(), Then::End(cause), true);
    }

    pub(super) fn renewal_answered(&mut self, step: &mut Step, attempt: Attempt, answer: Answer) {
        let timing = self.timing;
        let Some(term) = self.term_mut() else { return };
        if attempt.number < term.won_by {
            return;
        }
        let in_time = term.renewal.is_some_and(|flight| flight.attempt == attempt);
        if in_time {
            term.renewal = None;
        }
        match answer {
            Answer::Renewed(Renewed::Extended(grant)) if grant.token == term.grant.token => {
                if step.now < term.deadline {
                    term.extend(grant, attempt, &timing, step.jitter);
                }
            }
            Answer::Renewed(Renewed::Extended(grant)) => {
                self.lost(step, LossReason::Superseded { by: Some(grant.candidate) })
            }
            Answer::Renewed(Renewed::Lost(reason)) => self.lost(step, reason),
            Answer::Failed(StoreErrorKind::Malformed) => self.lost(step, LossReason::Malformed),
            Answer::Failed(kind @ StoreErrorKind::Unsupported) => {
                self.lost(step, LossReason::Expired { kind: Some(kind), error: None });
            }
            Answer::Failed(kind) if in_time => term.failed(kind, attempt.sent, &timing, step.jitter),
            Answer::Failed(_) => {}
            // The shell answered a renewal with something else: nothing is known.
            Answer::Acquired(_) | Answer::Released(_) | Answer::Read(_) => {
                term.failed(StoreErrorKind::Unknown, attempt.sent, &timing, step.jitter);
            }
        }
    }

    /// A bid that was given up is answered while its candidate leads. The same token changes nothing; a higher one means
    /// that the store took the lease away in between.
    pub(super) fn late_bid_answered(&mut self, step: &mut Step, answer: Answer) {
        let Some(term) = self.term_mut() else { return };
        match answer {
            Answer::Acquired(Acquired::Granted(grant)) if grant.token > term.grant.token => {
                self.lost(step, LossReason::Superseded { by: Some(grant.candidate) });
            }
            _ => {}
        }
    }

    /// The lease is not ours any more: no later answer can change that, and nothing of the term may go on.
    fn lost(&mut self, step: &mut Step, reason: LossReason) {
        step.withdraw_renewal();
        match &mut self.state {
            State::Settling { .. } => {
                // Where it was not the store that said so, the record may still be there.
                self.doubt |= matches!(reason, LossReason::Malformed | LossReason::Expired { kind: Some(_), .. });
                self.retry_bid(step, step.now);
            }
            State::Leading { .. } => self.begin_stop(step, Cause::Lost(reason), Manner::Gone),
            State::Stopping { stop, .. } => {
                stop.gone = true;
                if stop.cut_at.is_none() {
                    stop.cut_at = Some(step.now);
                    step.actions.push(Action::CutOff);
                }
            }
            _ => {}
        }
    }

    fn renew_if_due(&mut self, step: &mut Step, limit: Moment) {
        let timing = self.timing;
        let Some(term) = self.term_mut() else { return };
        if let Some(flight) = term.renewal.take_if(|flight| step.now >= flight.until) {
            term.failed(StoreErrorKind::Unknown, flight.attempt.sent, &timing, step.jitter);
        }
        let Some(until) = term.renewal_due(step.now, limit, &timing) else { return };
        let grant = term.grant.clone();
        let attempt = self.attempt(Call::Renew, step.now);
        if let Some(term) = self.term_mut() {
            term.renewal_sent(Flight { attempt, until });
        }
        step.actions.push(Action::Renew(attempt, grant));
    }
}

/// How the work of a term is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It gets its stop budget.
    Planned,
    /// It is cut off in the same step, and the lease is given back.
    AtOnce,
    /// It is cut off in the same step, and the lease is not ours any more.
    Gone,
}

impl Stop {
    /// When the work is cut off: a stop budget after the signal, and never after the deadline.
    pub(super) fn cut_off_at(&self, term: &Term, timing: &Timing) -> Moment {
        term.deadline.min(self.signalled_at + timing.stop_budget())
    }

    fn overrun_at(&self) -> Option<Moment> {
        self.cut_at.filter(|_| !self.overrun_reported).map(|cut_at| cut_at + Timing::margin())
    }

    pub(super) fn wake_at(&self, term: &Term, timing: &Timing) -> Option<Moment> {
        let cut_off = self.cut_at.is_none().then(|| self.cut_off_at(term, timing));
        let renewal = Some(term.renewal_wake()).filter(|&at| !self.gone && at < term.deadline);
        [cut_off, self.overrun_at(), renewal].into_iter().flatten().min()
    }
}
