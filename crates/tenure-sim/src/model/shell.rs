//! The shell around the machine, as `tenure_core`'s driver is: steps it, performs what it asks for, decides nothing.

use tenure_core::machine::{Action, Answer, Attempt, Call, Cause, Input, Jitter, OnFinish};
use tenure_core::{Acquired, LossReason, Released, Renewed, StoreErrorKind};

use super::Election;
use super::rules::Rule;
use super::sights::Sight;
use super::state::{Campaign, Host, Leg, Link, Listening, Message, Work};
use super::transitions;
use super::turn::Turn;
use super::words::{action_words, candidate_name, host_name};
use crate::clock::Nanos;
use crate::lease;
use crate::planted::Bug;
use crate::store::{Loss, Outcome, Request, Who};
use crate::times::nanos;

impl Turn<'_> {
    /// Steps the machine of `h`.
    pub(super) fn feed(&mut self, h: usize, input: Input) {
        self.feed_and(h, input, |_| {});
    }

    /// Steps the machine of `h`, and notes the input by `note` once what was due before it is done.
    pub(super) fn feed_and(&mut self, h: usize, input: Input, note: impl FnOnce(&mut Self)) {
        let (election, local) = (self.election, self.local(h));
        let Some(campaign) = self.state.hosts[h].campaign.as_deref_mut() else { return };
        let before = Glance::of(election, campaign, &input);
        let jitter = Jitter::new(election.bounds.jitter);
        let overdue = campaign.subject.wake_at().is_some_and(|at| at <= local) && input != Input::Tick;
        let due = if overdue { campaign.subject.clone().step(local, jitter, Input::Tick) } else { Vec::new() };
        let actions = campaign.subject.step(local, jitter, input.clone());
        let to = campaign.subject.machine().state_name();
        before.compare(election, campaign, &actions);
        let taken = !before.stopping && is_taken_away(campaign.subject.stopping_for());
        self.judge.require(Rule::Pairs, !before.over || actions.is_empty());
        self.note(|| format!("{}: {}: {} -> {to}", host_name(h), before.word, before.from));
        // Time has the first word in the machine: what it asks for first knows nothing of the input.
        let first = due.iter().zip(&actions).take_while(|(due, action)| due == action).count();
        for action in &actions[..first] {
            self.perform(h, local, action);
        }
        let account = self.state.hosts[h].campaign.as_ref().map(|campaign| campaign.account.clone());
        note(self);
        if let (Some(campaign), Some(account)) = (self.state.hosts[h].campaign.as_deref(), &account) {
            let early = account.is_early(&election.times, local);
            self.judge.reaction(campaign, account, early, &input, &actions[first..], to);
            self.judge.require(Rule::Trouble, !taken || campaign.account.definite);
        }
        for action in &actions[first..] {
            self.perform(h, local, action);
        }
        let cut = actions.contains(&Action::CutOff) && !election.bounds.lingers;
        if cut && self.work(h).acts() {
            self.work_is_over(h);
        } else if !before.over {
            self.end_if_over(h);
        }
    }

    fn perform(&mut self, h: usize, local: Nanos, action: &Action) {
        let election = self.election;
        self.note(|| format!("{}:   {}", host_name(h), action_words(action)));
        let Some(campaign) = self.state.hosts[h].campaign.as_deref_mut() else { return };
        self.judge.action(&election.times, local, campaign, action);
        match action {
            Action::StartWork(grant) => self.start(h, grant.token.value()),
            Action::SignalStop => {
                let due = campaign.account.stop_at(&election.times).unwrap_or(local);
                campaign.account.signalled = Some((local, local.saturating_sub(due)));
                campaign.work = Work::Stopping;
            }
            Action::CutOff => {
                campaign.account.cut = true;
                campaign.work = Work::Lingering;
                let (at, _) = campaign.account.signalled.unwrap_or((local, 0));
                if !campaign.account.definite {
                    let all = local >= at + election.times.stop_budget && campaign.account.stop_asked;
                    election.sights.see(if all { Sight::CutAtBudget } else { Sight::CutAtDeadline });
                }
            }
            Action::ReportOverrun => election.sights.see(Sight::Overran),
            Action::Bid(attempt) | Action::Read(attempt) => self.call(h, *attempt, 0),
            Action::Renew(attempt, grant) | Action::Release(attempt, grant) => {
                self.call(h, *attempt, grant.token.value());
            }
        }
    }

    fn start(&mut self, h: usize, granted: u64) {
        let kept = self.election.bug == Some(Bug::TokenKept);
        let (lease, sights) = (&self.state.lease, &self.election.sights);
        let host = &mut self.state.hosts[h];
        let again = host.first_token.is_some();
        let first = *host.first_token.get_or_insert(granted);
        let token = if kept { first } else { granted };
        let Some(campaign) = &mut host.campaign else { return };
        campaign.work = Work::Running;
        campaign.account.started = true;
        sights.see([Sight::FirstLeads, Sight::SecondLeads, Sight::ThirdLeads][h.min(2)]);
        if again {
            sights.see(Sight::SecondCampaign);
        }
        let won_by = campaign.account.won_by;
        if lease.record.is_some_and(|record| record.who == campaign.who && record.won_by != won_by) {
            sights.see(Sight::Recognised);
        }
        let before = self.state.highest;
        self.judge.require(Rule::TokensRise, token > before || self.state.broken.store);
        self.state.highest = before.max(token);
        if before > 0 && !again {
            sights.see(self.succession(h));
        }
    }

    /// How the term before that of `h` had ended: in order, or with its holder.
    fn succession(&self, h: usize) -> Sight {
        let released = |other: &Host| {
            other.campaign.as_ref().is_none_or(|campaign| campaign.subject.end().is_some()) && other.stopped
        };
        let others = self.state.hosts.iter().enumerate().filter(|(other, _)| *other != h);
        if others.into_iter().any(|(_, other)| released(other)) { Sight::HandOver } else { Sight::TakeOver }
    }

    /// Sends a request. Of the same kind only the last one is still listened to besides.
    fn call(&mut self, h: usize, attempt: Attempt, token: u64) {
        let (local, ttl) = (self.local(h), self.election.times.ttl);
        let Some(campaign) = self.state.hosts[h].campaign.as_deref_mut() else { return };
        let who = campaign.who;
        let request = match attempt.call {
            Call::Bid => Request::Bid { who, ttl },
            Call::Renew => Request::Renew { who, token, ttl },
            Call::Release => Request::Release { who, token },
            Call::Read => Request::Read,
        };
        if matches!(attempt.call, Call::Bid | Call::Renew) {
            campaign.account.last_sent = local;
        }
        if attempt.call == Call::Bid {
            (campaign.account.last_bid, campaign.account.bid_open) = (attempt.number, true);
            // A new bid is the end of a term that nobody heard of.
            for call in campaign.calls.iter_mut().filter(|call| call.call == Call::Renew) {
                call.until = 0;
            }
        }
        let same_kind = |other: &Listening| other.call == attempt.call;
        if campaign.calls.iter().filter(|call| same_kind(call)).count() > 1
            && let Some(oldest) = campaign.calls.iter().position(same_kind)
        {
            campaign.calls.remove(oldest);
        }
        let until = campaign.subject.wake_at().unwrap_or(local);
        campaign.calls.push(Listening { number: attempt.number, call: attempt.call, token, until });
        let (number, call, sent) = (attempt.number, attempt.call, nanos(attempt.sent.since_origin()));
        if self.state.hosts[h].link != Link::Cut {
            self.state.wire.push(Message {
                who,
                number,
                call,
                sent,
                repeated: false,
                late: false,
                leg: Leg::Request(request),
            });
        }
    }

    /// Nothing of the work acts any more, and the machine is told so.
    pub(super) fn work_is_over(&mut self, h: usize) {
        self.feed_and(h, Input::WorkEnded, |turn| {
            let local = turn.local(h);
            let attempt_timeout = turn.election.times.attempt_timeout;
            let Some(campaign) = turn.state.hosts[h].campaign.as_deref_mut() else { return };
            let account = &mut campaign.account;
            if campaign.work == Work::Lingering {
                // Giving back takes its time from the end of work that outlived its cut.
                account.over_by = account.over_by.map(|before| before.max(local + attempt_timeout));
            }
            campaign.work = Work::Over;
            account.gone |= account.deadline.is_none_or(|deadline| local >= deadline);
        });
    }

    fn end_if_over(&mut self, h: usize) {
        let (election, store_now) = (self.election, self.store_now());
        let Some(campaign) = self.state.hosts[h].campaign.as_deref() else { return };
        let Some(end) = campaign.subject.end() else { return };
        let holds = election.bounds.on_finish == OnFinish::Hold;
        self.judge.end(&self.state, store_now, campaign, end, holds);
        let freed = end.release == tenure_core::machine::Release::Done(Released::Freed);
        let seen = match end.cause {
            Cause::Finished if freed => Some(Sight::Finished),
            Cause::Failed(_) => Some(Sight::Refused),
            Cause::Stopped if freed && !campaign.account.started => Some(Sight::BidTakenBack),
            _ => None,
        };
        if let Some(sight) = seen {
            election.sights.see(sight);
        }
        let (who, end) = (campaign.who, end.clone());
        self.note(|| format!("{}: campaign {} is over: {end:?}", host_name(h), candidate_name(who)));
        if !election.bounds.odd {
            self.state.hosts[h].campaign = None;
            self.campaign(h);
        }
    }

    /// Notes an answer before the machine gets it.
    pub(super) fn hear(&mut self, h: usize, message: &Message, answer: &Answer) {
        let (election, local) = (self.election, self.local(h));
        let Some(campaign) = self.state.hosts[h].campaign.as_deref_mut() else { return };
        if let Answer::Renewed(Renewed::Extended(_)) = answer {
            let late = campaign.account.deadline.is_some_and(|deadline| local >= deadline);
            if late {
                election.sights.see(Sight::LateExtension);
            } else if campaign.work == Work::Stopping {
                election.sights.see(Sight::RenewedWhileStopping);
            }
        }
        let work_over = campaign.work == Work::Over;
        let (attempt, token) = (message.attempt(), message.token());
        campaign.account.hear(&election.times, local, attempt, token, answer, work_over);
    }

    fn work(&self, h: usize) -> Work {
        self.state.hosts[h].campaign.as_ref().map_or(Work::None, |campaign| campaign.work)
    }
}

/// A campaign before a step.
struct Glance {
    from: &'static str,
    word: &'static str,
    over: bool,
    stopping: bool,
}

impl Glance {
    fn of(election: &Election, campaign: &Campaign, input: &Input) -> Self {
        Self {
            from: campaign.subject.machine().state_name(),
            word: transitions::input_word(input, campaign, election.is_short(input)),
            over: campaign.subject.end().is_some(),
            stopping: campaign.subject.stopping_for().is_some(),
        }
    }

    /// Counts the transition, and notes what is to be seen in it.
    fn compare(&self, election: &Election, campaign: &Campaign, actions: &[Action]) {
        let to = campaign.subject.machine().state_name();
        if election.bug.is_none() {
            election.counts.take(self.from, self.word, actions, to);
        }
        if !self.stopping
            && let Some(Cause::Lost(reason)) = campaign.subject.stopping_for()
        {
            election.sights.see(sight_of(reason));
        }
        if (self.from, to) == ("settling", "leading") {
            election.sights.see(Sight::Settled);
        }
        let settles = !election.bounds.timing.settle_delay().is_zero();
        if settles && to == "leading" && self.word == "bid granted after release" {
            election.sights.see(Sight::SettleSkipped);
        }
    }
}

/// Whether a term is ended because the store said that it is no more.
fn is_taken_away(cause: Option<&Cause>) -> bool {
    use LossReason::{Malformed, Removed, Superseded};
    matches!(cause, Some(Cause::Lost(Superseded { .. } | Removed | Malformed)))
}

fn sight_of(reason: &LossReason) -> Sight {
    match reason {
        LossReason::Superseded { .. } => Sight::LossBySuperseded,
        LossReason::Removed | LossReason::Malformed => Sight::LossByRemoval,
        LossReason::Suspended { .. } => Sight::LossBySuspend,
        LossReason::Resigned => Sight::Resigned,
        // No renewal had failed, since nobody looked.
        LossReason::Expired { kind: None, .. } => Sight::LossUnawares,
        _ => Sight::LossByDeadline,
    }
}

/// What the machine is told of an outcome.
pub(super) fn answer_of(who: Who, token: u64, outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Granted { token, ttl, after_release } => {
            Answer::Acquired(Acquired::Granted(lease::grant_to(who, token, ttl, after_release)))
        }
        Outcome::Held(seen) => Answer::Acquired(Acquired::Held(lease::record(&seen))),
        Outcome::Extended { ttl } => Answer::Renewed(Renewed::Extended(lease::grant_to(who, token, ttl, false))),
        Outcome::Lost(Loss::Superseded(by)) => {
            Answer::Renewed(Renewed::Lost(LossReason::Superseded { by: Some(lease::candidate(by)) }))
        }
        Outcome::Lost(Loss::Expired) => Answer::Renewed(Renewed::Lost(LossReason::EXPIRED)),
        Outcome::Lost(Loss::Removed) => Answer::Renewed(Renewed::Lost(LossReason::Removed)),
        Outcome::Freed => Answer::Released(Released::Freed),
        Outcome::NotHeld => Answer::Released(Released::NotHeld),
        Outcome::Found(seen) => Answer::Read(seen.as_ref().map(lease::record)),
        Outcome::Failed(kind) => Answer::Failed(kind),
        Outcome::Got(_) | Outcome::Written | Outcome::Conflict => Answer::Failed(StoreErrorKind::Unknown),
    }
}
