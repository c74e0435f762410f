//! The shell around the machine, as `tenure_core`'s driver is: performs what is asked, publishes, decides nothing.

use tenure_core::machine::{Action, Answer, Attempt, Call, Cause, Input, Jitter, OnFinish};
use tenure_core::{Acquired, LossReason, Released, Renewed, WakeUp};

use super::{Campaign, Command, Due, Published, Step, UnderWay, World, attempt_of, is_bid, turn};
use crate::clock::{MS, Nanos};
use crate::event::{Event, Why};
use crate::lease;
use crate::planted::{Bug, Subject};
use crate::store::{Loss, Outcome, Request, Who};
use crate::times::duration;

/// Less than this is no suspend.
const SHORTEST_SUSPEND: Nanos = 10 * MS;

impl World {
    /// Starts a campaign that bids first after `pause`.
    pub(super) fn start_campaign(&mut self, c: usize, pause: Nanos, who: Option<Who>) {
        let who = who.unwrap_or_else(|| {
            self.next_who += 1;
            self.next_who - 1
        });
        let (part, bug) = (&self.scenario.parts[c], self.scenario.bug);
        let on_finish = if part.holds_on_finish { OnFinish::Hold } else { OnFinish::Release };
        let timing = part.timing;
        let host = &mut self.hosts[c];
        let start_at = host.clock.local(self.now) + pause;
        host.campaign = Some(Campaign {
            who,
            subject: Subject::new(lease::candidate(who), timing, on_finish, start_at, host.herd, bug),
            under_way: Vec::new(),
            watching: false,
            caller_ended: false,
            suspended_seen: host.suspended,
            published: Published::default(),
            withdrawn: false,
            work: None,
        });
        self.see(c, Event::Campaign);
        self.step(c, Input::Tick);
    }

    /// The driver's timer.
    pub(super) fn tick(&mut self, c: usize) {
        self.step(c, Input::Tick);
    }

    pub(super) fn hint_arrives(&mut self, c: usize, who: Who, wake_up: WakeUp) {
        if self.is_of(c, who) {
            self.see(c, Event::Hinted);
            self.step(c, Input::Woken(wake_up));
        }
    }

    pub(super) fn command_arrives(&mut self, c: usize, who: Who, command: Command) {
        if !self.is_of(c, who) {
            return;
        }
        match command {
            Command::Stop => self.stop_asked(c),
            Command::Resign => {
                self.see(c, Event::Resigned);
                self.step(c, Input::Resign);
            }
            Command::WorkEnded => {
                self.step(c, Input::Tick);
                self.work_ended(c, who);
            }
            Command::Withdraw => {
                self.stop_asked(c);
                self.work_ended(c, who);
            }
        }
    }

    fn stop_asked(&mut self, c: usize) {
        self.see(c, Event::StopAsked);
        self.step(c, Input::Stop);
    }

    /// The caller's part has ended, and all tasks of the term too.
    fn work_ended(&mut self, c: usize, who: Who) {
        if !self.is_of(c, who) {
            return;
        }
        if let Some(campaign) = &mut self.hosts[c].campaign {
            campaign.caller_ended = true;
        }
        self.see(c, Event::Reported);
        self.step(c, Input::WorkEnded);
    }

    /// An answer for the driver, if it still listens.
    pub(super) fn answer(&mut self, c: usize, call: UnderWay, outcome: Outcome, decided_at: Nanos) {
        let UnderWay { id, attempt, token, sent, .. } = call;
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        let who = campaign.who;
        campaign.under_way.retain(|other| other.id != id);
        self.see(c, Event::Heard { id, call: attempt.call, token, sent, outcome, decided_at });
        let answer = answer_of(who, token, outcome);
        self.step(c, Input::Answer(attempt, answer));
        let trouble = attempt.call == Call::Bid && matches!(outcome, Outcome::Failed(_));
        if trouble && self.has(Bug::HotLoop) && self.is_of(c, who) {
            self.see(c, Event::Ended { cause: Why::Failed, release: tenure_core::machine::Release::NotNeeded });
            self.start_campaign(c, 0, Some(who));
        }
    }

    /// Steps the machine, performs what it asks, publishes, and sets the timer.
    fn step(&mut self, c: usize, input: Input) {
        let luck = self.rng.u64(..);
        let jitter = Jitter::new(if self.has(Bug::NoJitter) { 0 } else { luck as u16 });
        let host = &mut self.hosts[c];
        let local = host.clock.local(self.now);
        let Some(campaign) = &mut host.campaign else { return };
        let slept = host.suspended - campaign.suspended_seen;
        let mut actions = Vec::new();
        if slept >= SHORTEST_SUSPEND {
            campaign.suspended_seen = host.suspended;
            actions = campaign.subject.step(local, jitter, Input::Suspended(duration(slept)));
        }
        let answered_bid = matches!(&input, Input::Answer(attempt, _) if is_bid(attempt));
        let more = campaign.subject.step(local, jitter, input);
        if actions.is_empty() {
            actions = more
        } else {
            actions.extend(more)
        }
        for action in actions {
            self.perform(c, action);
        }
        self.publish(c, answered_bid);
        self.arm(c, luck >> 16);
    }

    fn perform(&mut self, c: usize, action: Action) {
        if let Some((attempt, token)) = attempt_of(&action) {
            return self.call(c, attempt, token);
        }
        match action {
            Action::StartWork(grant) => self.elected(c, grant.token.value()),
            Action::SignalStop => {
                let cause = self.hosts[c].campaign.as_ref().and_then(|campaign| campaign.subject.stopping_for());
                let expired = matches!(cause, Some(Cause::Lost(LossReason::Expired { .. })));
                self.see(c, Event::Signalled { expired });
            }
            Action::CutOff => {
                self.see(c, Event::Cut);
                if let Some(campaign) = &mut self.hosts[c].campaign {
                    campaign.published.cut_off = true;
                }
                self.plan_work(c, Step::Drop);
            }
            Action::ReportOverrun => self.see(c, Event::Overrun),
            _ => {}
        }
    }

    fn elected(&mut self, c: usize, granted: u64) {
        let kept = self.has(Bug::TokenKept);
        let host = &mut self.hosts[c];
        let first = *host.first_token.get_or_insert(granted);
        let token = if kept { first } else { granted };
        let Some(campaign) = &mut host.campaign else { return };
        campaign.published.token = Some(token);
        campaign.published.cut_off = false;
        self.see(c, Event::Elected { token });
        self.elected_caller(c, token);
    }

    /// Sends a request. Of the same kind only the last one is still listened to besides.
    fn call(&mut self, c: usize, attempt: Attempt, token: u64) {
        let times = *self.times(c);
        let sent = self.hosts[c].clock.local(self.now);
        let id = self.next_call;
        self.next_call += 1;
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        let who = campaign.who;
        let request = match attempt.call {
            Call::Bid => Request::Bid { who, ttl: times.ttl },
            Call::Renew => Request::Renew { who, token, ttl: times.ttl },
            Call::Release => Request::Release { who, token },
            Call::Read => Request::Read,
        };
        let same_kind = |other: &UnderWay| other.attempt.call == attempt.call;
        if campaign.under_way.iter().filter(|other| same_kind(other)).count() > 1
            && let Some(oldest) = campaign.under_way.iter().position(same_kind)
        {
            campaign.under_way.remove(oldest);
        }
        campaign.under_way.push(UnderWay { id, attempt, token, request, sent, then: None });
        self.see(c, Event::Sent { id, call: attempt.call, token });
        self.send(c, who, id, request);
    }

    fn publish(&mut self, c: usize, answered_bid: bool) {
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        let (subject, published) = (&campaign.subject, &mut campaign.published);
        let ended = subject.end().is_some();
        campaign.watching |= answered_bid && !ended;
        let deadline = subject.deadline();
        let mut signalled = false;
        if published.token.is_some() {
            signalled = !published.stopping && subject.stopping_for().is_some();
            published.stopping |= signalled;
            match deadline {
                Some(deadline) => published.deadline = deadline,
                None => published.lost = true,
            }
        }
        let wake_at = subject.wake_at();
        self.see(c, Event::Stepped { deadline, wake_at });
        if signalled && !self.has(Bug::SignalAtCut) {
            self.plan_work(c, Step::Obey);
        }
        if ended {
            self.campaign_ended(c);
        }
    }

    fn arm(&mut self, c: usize, luck: u64) {
        let host = &self.hosts[c];
        let wake_at = host.campaign.as_ref().and_then(|campaign| campaign.subject.wake_at());
        self.timers[c] = match wake_at.filter(|_| host.up && host.pause.is_none()) {
            // A timer is a little late, and now and then quite late, within the margin that deadlines leave.
            Some(at) => {
                let late = if luck.is_multiple_of(16) { luck >> 4 & 0x1F_FFFF } else { luck >> 4 & 0xFFFF };
                host.clock.when(at).max(self.now) + late
            }
            None => Nanos::MAX,
        };
    }

    /// Sets the timer of `c` anew after something about its host has changed.
    pub(super) fn rearm(&mut self, c: usize) {
        let luck = self.rng.u64(..);
        self.arm(c, luck);
    }

    fn campaign_ended(&mut self, c: usize) {
        let Some(campaign) = &self.hosts[c].campaign else { return };
        let (who, Some(end)) = (campaign.who, campaign.subject.end()) else { return };
        let (cause, release) = (why(&end.cause), end.release);
        let herd = campaign.subject.herd();
        self.hosts[c].herd = herd;
        self.see(c, Event::Ended { cause, release });
        self.caller_sees_the_end(c, who, cause);
    }

    pub(super) fn is_of(&self, c: usize, who: Who) -> bool {
        self.hosts[c].campaign.as_ref().is_some_and(|campaign| campaign.who == who)
    }

    /// A command of the caller's task, when it and the driver get their turns.
    pub(super) fn command(&mut self, c: usize, command: Command) {
        let Some(who) = self.hosts[c].campaign.as_ref().map(|campaign| campaign.who) else { return };
        let at = self.now + turn(&mut self.rng);
        self.queue.push(at, Due::Command(c, who, command));
    }
}

fn answer_of(who: Who, token: u64, outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Granted { token, ttl, after_release } => {
            Answer::Acquired(Acquired::Granted(lease::grant_to(who, token, ttl, after_release)))
        }
        Outcome::Held(seen) => Answer::Acquired(Acquired::Held(lease::record(&seen))),
        Outcome::Extended { ttl } => Answer::Renewed(Renewed::Extended(lease::grant_to(who, token, ttl, false))),
        Outcome::Lost(loss) => Answer::Renewed(Renewed::Lost(match loss {
            Loss::Superseded(by) => LossReason::Superseded { by: Some(lease::candidate(by)) },
            Loss::Expired => LossReason::EXPIRED,
            Loss::Removed => LossReason::Removed,
        })),
        Outcome::Freed => Answer::Released(Released::Freed),
        Outcome::NotHeld => Answer::Released(Released::NotHeld),
        Outcome::Found(seen) => Answer::Read(seen.as_ref().map(lease::record)),
        Outcome::Failed(kind) => Answer::Failed(kind),
        Outcome::Got(_) | Outcome::Written | Outcome::Conflict => Answer::Failed(tenure_core::StoreErrorKind::Unknown),
    }
}

fn why(cause: &Cause) -> Why {
    match cause {
        Cause::Finished => Why::Finished,
        Cause::Stopped => Why::Stopped,
        Cause::Lost(_) => Why::Lost,
        Cause::Failed(_) => Why::Failed,
        Cause::ShortGrant(_) => Why::ShortGrant,
    }
}
