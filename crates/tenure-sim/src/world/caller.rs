//! The caller's task, as `Election::run_as_leader` is: campaigns, runs the work while it leads, campaigns again after a
//! loss; and the application around it, which runs its election again some time after it has returned.

use super::work::{How, Work};
use super::{Command, Due, Step, World, is_loss, turn};
use crate::clock::Nanos;
use crate::event::Why;
use crate::planted::Bug;
use crate::store::Who;

impl World {
    /// The application runs its election.
    pub(super) fn run_election(&mut self, c: usize) {
        let host = &mut self.hosts[c];
        if !host.up || host.campaign.is_some() {
            return;
        }
        if host.pause.is_some() {
            let at = self.now + self.scenario.ttl / 8;
            return self.queue.push(at, Due::Run(c));
        }
        host.shutdown = false;
        self.start_campaign(c, 0, None);
        if self.one_in(8)
            && let Some(who) = self.hosts[c].campaign.as_ref().map(|campaign| campaign.who)
        {
            let at = self.now + self.rng.u64(0..4 * self.scenario.ttl);
            self.queue.push(at, Due::Shutdown(c, who));
        }
    }

    /// The owner of the run asks it to stop.
    pub(super) fn shut_down(&mut self, c: usize, who: Who) {
        let host = &mut self.hosts[c];
        if !host.up || host.shutdown || !self.is_of(c, who) {
            return;
        }
        self.hosts[c].shutdown = true;
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        match &mut campaign.work {
            Some(work) if work.outcome.is_some() => {}
            Some(work) => {
                work.asked = true;
                self.command(c, Command::Stop);
            }
            None => {
                campaign.withdrawn = true;
                self.command(c, Command::Withdraw);
            }
        }
    }

    /// The driver says that this candidate leads.
    pub(super) fn elected_caller(&mut self, c: usize, token: u64) {
        let part = &self.scenario.parts[c];
        let how = match self.rng.u8(..32) {
            0 | 1 => How::Panics,
            2 | 3 => How::Resigns,
            _ => How::Returns,
        };
        let work = Work::new(token, how, part.checks);
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        if campaign.withdrawn {
            return;
        }
        let who = campaign.who;
        campaign.work = Some(work);
        match turn(&mut self.rng) {
            0 => self.work_due(c, who, Step::Begin),
            later => self.queue.push(self.now + later, Due::Work(c, who, Step::Begin)),
        }
    }

    /// The driver has ended.
    pub(super) fn caller_sees_the_end(&mut self, c: usize, who: Who, cause: Why) {
        let Some(campaign) = &self.hosts[c].campaign else { return };
        match &campaign.work {
            // A driver that is gone renews no more: nothing may go on.
            Some(work) if !work.over => {
                let at = self.now + turn(&mut self.rng);
                self.queue.push(at, Due::Work(c, who, Step::Drop));
            }
            _ => self.campaign_is_over(c, cause),
        }
    }

    /// Campaigns again after a loss; otherwise the run returns.
    pub(super) fn campaign_is_over(&mut self, c: usize, cause: Why) {
        let reused = self.has(Bug::CandidateReused);
        let retry_every = self.times(c).retry_every;
        let host = &mut self.hosts[c];
        let Some(campaign) = host.campaign.take() else { return };
        self.timers[c] = Nanos::MAX;
        let cut = campaign.work.as_ref().is_some_and(|work| work.outcome == Some(How::WasCut));
        let lost = cause == Why::Lost || campaign.subject.end().is_some_and(|end| is_loss(&end.cause));
        if cut && lost && !host.shutdown {
            return self.start_campaign(c, retry_every, reused.then_some(campaign.who));
        }
        let rest = if self.is_calm() { self.scenario.ttl / 8 } else { self.scenario.ttl };
        let at = self.now + self.rng.u64(0..=rest);
        self.queue.push(at, Due::Run(c));
    }
}
