//! One move played: what it does to the world, step by step.

use tenure_core::machine::{Answer, Call, Herd, Input};
use tenure_core::{FencingToken, Released, Renewed, StoreErrorKind};

use super::Election;
use super::account::Account;
use super::bounds::Network;
use super::moves::Move;
use super::rules::Judge;
use super::shell::answer_of;
use super::sights::Sight;
use super::state::{CAMPAIGNS, Campaign, Frozen, Leg, Link, Message, State, Work, host_of};
use super::words::{candidate_name, host_name, outcome_words};
use crate::clock::Nanos;
use crate::lease;
use crate::planted::{Bug, Subject};
use crate::store::{Outcome, Request, Who};
use crate::times::duration;

/// A move under way.
pub(super) struct Turn<'a> {
    pub(super) election: &'a Election,
    pub(super) state: State,
    pub(super) judge: Judge,
    /// What happens, for a person to read, if somebody wants to.
    pub(super) notes: Option<Vec<String>>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(election: &'a Election, state: State, noted: bool) -> Self {
        Self { election, state, judge: Judge::default(), notes: noted.then(Vec::new) }
    }

    /// Plays `next` and judges the world after it.
    pub(super) fn play(mut self, next: Move) -> (State, Vec<String>) {
        match next {
            Move::Pass(keep) => self.pass(keep),
            Move::Deliver(i) => self.deliver(i),
            Move::Repeat(i) => self.repeat(i),
            Move::Fail(i, kind) => self.fail(i, kind),
            Move::Confuse(i) => self.confuse(i),
            Move::Mistake(i) => self.mistake(i),
            Move::Crash(h) => self.crash(h),
            Move::Stop(h) => self.stop(h),
            Move::Resign(h) => self.resign(h),
            Move::Finish(h) => self.finish(h),
            Move::Suspend(h) => self.freeze(h, Frozen::Suspended(self.local(h))),
            Move::Halt(h) => self.freeze(h, Frozen::Halted),
            Move::Thaw(h) => self.thaw(h),
            Move::Cut(h) => {
                self.state.left.spend(|left| &mut left.cuts);
                self.state.hosts[h].link = Link::Cut;
                self.state.wire.retain(|message| host_of(message.who) != h);
            }
            Move::Deafen(h) => {
                self.state.left.spend(|left| &mut left.deafs);
                self.state.hosts[h].link = Link::Deaf;
            }
            Move::Heal(h) => self.state.hosts[h].link = Link::Whole,
            Move::Hint(h, hint) => {
                self.state.left.spend(|left| &mut left.hints);
                self.feed(h, Input::Woken(hint));
            }
            Move::Remove => {
                self.state.left.spend(|left| &mut left.removals);
                self.state.lease.record = None;
                self.state.lease.released = false;
                self.state.broken.store = true;
            }
            Move::Tick(h) => self.oddly(h, Input::Tick),
            Move::EndNothing(h) => self.oddly(h, Input::WorkEnded),
            Move::ResignNothing(h) => self.oddly(h, Input::Resign),
        }
        self.close()
    }

    /// The first instant: everybody bids.
    pub(super) fn begin(mut self) -> State {
        for h in 0..self.state.hosts.len() {
            self.campaign(h);
        }
        self.close().0
    }

    fn close(mut self) -> (State, Vec<String>) {
        let election = self.election;
        for (h, host) in self.state.hosts.iter().enumerate().filter(|(_, host)| host.frozen.is_none()) {
            let Some(campaign) = host.campaign.as_deref() else { continue };
            self.judge.audit(&election.times, self.local(h), campaign);
        }
        self.state.broken.work |= (0..self.state.hosts.len()).any(|h| self.outlives(h));
        let locals: Vec<Nanos> = (0..self.state.hosts.len()).map(|h| self.local(h)).collect();
        self.judge.world(&self.state, &locals, self.store_now());
        if (self.state.broken.store || self.state.broken.work) && Judge::acting(&self.state) > 1 {
            election.sights.see(Sight::Overlap);
        }
        self.state.breaches |= self.judge.breaches & election.bounds.judged;
        election.normalise(&mut self.state);
        (self.state, self.notes.unwrap_or_default())
    }

    /// The work of `h` goes on after its deadline, as it may in some bounds.
    fn outlives(&self, h: usize) -> bool {
        let Some(campaign) = &self.state.hosts[h].campaign else { return false };
        let past = campaign.account.deadline.is_none_or(|deadline| self.local(h) >= deadline);
        self.election.bounds.lingers && campaign.work == Work::Lingering && past
    }

    fn pass(&mut self, keep: u32) {
        let Some(until) = self.election.next_instant(&self.state) else { return };
        let outliving = self.election.outliving(&self.state, until);
        let wire = std::mem::take(&mut self.state.wire);
        for (i, mut message) in wire.into_iter().enumerate() {
            let bit = 1 << i;
            if outliving & bit != 0 {
                if keep & bit == 0 {
                    if self.election.bounds.network == Network::Prompt {
                        self.state.left.spend(|left| &mut left.losses);
                    }
                    self.note(|| format!("lost: {message}"));
                    continue;
                }
                self.state.left.spend(|left| &mut left.delays);
                message.late = true;
            }
            self.state.wire.push(message);
        }
        self.state.now = until;
        for h in 0..self.state.hosts.len() {
            if self.state.hosts[h].frozen.is_none()
                && self.election.served_at(&self.state, h).is_some_and(|at| at <= until)
            {
                self.feed(h, Input::Tick);
            }
        }
    }

    fn deliver(&mut self, i: usize) {
        let message = self.state.wire.remove(i);
        match message.leg {
            Leg::Request(request) => {
                let outcome = self.decide(&message, request);
                if self.state.hosts[host_of(message.who)].link == Link::Deaf {
                    self.note(|| "the reply is lost".into());
                } else if self.state.is_listened_to(&message) {
                    let leg = Leg::Reply { outcome, token: message.token() };
                    self.state.wire.push(Message { leg, ..message });
                } else if matches!((request, outcome), (Request::Bid { .. }, Outcome::Granted { .. })) {
                    self.election.sights.see(Sight::Orphaned);
                }
            }
            Leg::Reply { outcome, token } => {
                let shown = match outcome {
                    Outcome::Granted { token, .. } => Some((message.who, token)),
                    Outcome::Found(seen) => seen.map(|seen| (seen.who, seen.token)),
                    _ => None,
                };
                if let Some(record) = &mut self.state.lease.record
                    && shown == Some((message.who, record.token))
                {
                    record.known |= record.who == message.who;
                }
                self.answer(message, answer_of(message.who, token, outcome));
            }
        }
    }

    fn repeat(&mut self, i: usize) {
        self.state.left.spend(|left| &mut left.repeats);
        self.state.wire[i].repeated = true;
        let message = self.state.wire[i];
        if let Leg::Request(request) = message.leg
            && matches!(self.decide(&message, request), Outcome::Granted { .. } | Outcome::Extended { .. })
        {
            self.election.sights.see(Sight::Repeated);
        }
    }

    /// The store decides.
    fn decide(&mut self, message: &Message, request: Request) -> Outcome {
        let (now, longest, bug) = (self.store_now(), self.election.bounds.longest_ttl, self.election.bug);
        let mut outcome = self.state.lease.decide(now, message.number, request, longest, bug);
        if let Outcome::Granted { after_release, .. } = &mut outcome {
            *after_release &= self.election.bounds.tells;
        }
        self.note(|| format!("the store decides: {}", outcome_words(&outcome)));
        outcome
    }

    /// The shell hears the answer to a call.
    fn answer(&mut self, message: Message, answer: Answer) {
        let h = host_of(message.who);
        let halted = self.state.hosts[h].frozen.take().is_some();
        let Some(campaign) = &mut self.state.hosts[h].campaign else { return };
        campaign.account.was_frozen |= halted;
        campaign.calls.retain(|call| call.number != message.number);
        let heard = answer.clone();
        self.feed_and(h, Input::Answer(message.attempt(), answer), |turn| turn.hear(h, &message, &heard));
    }

    fn fail(&mut self, i: usize, kind: StoreErrorKind) {
        self.state.left.spend(|left| &mut left.failures);
        let message = self.state.wire[i];
        if kind != StoreErrorKind::Unknown || matches!(message.leg, Leg::Reply { .. }) {
            self.state.wire.remove(i);
        }
        self.answer(message, Answer::Failed(kind));
    }

    fn confuse(&mut self, i: usize) {
        self.state.left.spend(|left| &mut left.oddities);
        let message = self.state.wire.remove(i);
        let answer = match message.call {
            Call::Renew => Answer::Released(Released::Freed),
            Call::Bid | Call::Release | Call::Read => {
                let grant = lease::grant_to(message.who, message.token(), self.election.times.ttl, false);
                Answer::Renewed(Renewed::Extended(grant))
            }
        };
        self.answer(message, answer);
    }

    fn mistake(&mut self, i: usize) {
        self.state.left.spend(|left| &mut left.oddities);
        self.state.broken.store = true;
        let message = self.state.wire.remove(i);
        let mut grant = lease::grant_to(message.who, message.token(), self.election.times.ttl, false);
        grant.token = FencingToken(grant.token.value() + 1);
        self.answer(message, Answer::Renewed(Renewed::Extended(grant)));
    }

    fn crash(&mut self, h: usize) {
        self.state.left.spend(|left| &mut left.crashes);
        self.state.hosts[h].campaign = None;
        self.campaign(h);
    }

    fn stop(&mut self, h: usize) {
        self.state.left.spend(|left| &mut left.stops);
        self.state.hosts[h].stopped = true;
        let over_by = self.local(h) + self.election.times.stop_budget + self.election.times.attempt_timeout;
        let record = self.state.lease.present(self.store_now());
        let campaign = self.state.hosts[h].campaign.as_ref();
        // Already, so that what is applied from now on may come too late.
        let looks = campaign.is_some_and(|campaign| campaign.subject.machine().state_name() == "releasing");
        self.feed_and(h, Input::Stop, |turn| {
            if let Some(campaign) = &mut turn.state.hosts[h].campaign {
                let own = record.filter(|record| campaign.account.bid_open && record.who == campaign.who);
                if !looks {
                    campaign.account.to_be_found = own.map(|record| record.token);
                }
                campaign.account.stop_asked = true;
                campaign.account.over_by = campaign.account.over_by.or(Some(over_by));
            }
        });
    }

    fn resign(&mut self, h: usize) {
        self.state.left.spend(|left| &mut left.resigns);
        self.feed_and(h, Input::Resign, |turn| {
            if let Some(campaign) = &mut turn.state.hosts[h].campaign {
                campaign.account.definite |= campaign.work.acts();
            }
        });
    }

    fn finish(&mut self, h: usize) {
        if let Some(campaign) = &self.state.hosts[h].campaign {
            match campaign.work {
                Work::Running => self.state.left.spend(|left| &mut left.finishes),
                Work::Stopping => self.election.sights.see(Sight::Obeyed),
                _ => {}
            }
        }
        self.work_is_over(h);
    }

    fn freeze(&mut self, h: usize, how: Frozen) {
        match how {
            Frozen::Suspended(_) => self.state.left.spend(|left| &mut left.suspends),
            Frozen::Halted => self.state.left.spend(|left| &mut left.halts),
        }
        self.state.hosts[h].frozen = Some(how);
        if let Some(campaign) = &mut self.state.hosts[h].campaign {
            campaign.account.was_frozen = true;
        }
    }

    fn thaw(&mut self, h: usize) {
        match self.state.hosts[h].frozen.take() {
            Some(Frozen::Suspended(since)) => {
                let slept = self.local(h) - since;
                self.feed(h, Input::Suspended(duration(slept)));
            }
            Some(Frozen::Halted) | None => self.feed(h, Input::Tick),
        }
    }

    fn oddly(&mut self, h: usize, input: Input) {
        self.state.left.spend(|left| &mut left.oddities);
        self.feed(h, input);
    }

    /// A new campaign of a host, if it may begin one.
    pub(super) fn campaign(&mut self, h: usize) {
        let (election, now) = (self.election, self.local(h));
        let host = &mut self.state.hosts[h];
        if host.stopped || host.begun >= election.bounds.campaigns {
            return;
        }
        let (host_number, begun) = (h as Who, Who::from(host.begun));
        let who = host_number * CAMPAIGNS + if election.bug == Some(Bug::CandidateReused) { 0 } else { begun };
        host.begun += 1;
        let bounds = &election.bounds;
        let candidate = lease::candidate(who);
        let subject = Subject::new(candidate, bounds.timing, bounds.on_finish, now, Herd::default(), election.bug);
        let calls = Vec::new();
        host.campaign = Some(Box::new(Campaign { who, subject, calls, work: Work::None, account: Account::default() }));
        self.note(|| format!("{}: campaign {} begins", host_name(h), candidate_name(who)));
        self.feed(h, Input::Tick);
    }

    pub(super) fn local(&self, h: usize) -> Nanos {
        self.election.host_clock(&self.state, h).local(self.state.now)
    }

    pub(super) fn store_now(&self) -> Nanos {
        self.election.store_clock(&self.state).local(self.state.now)
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(text());
        }
    }
}
