//! The guarded work: writes to the resource, ends by itself, obeys the stop signal sooner or later, is dropped when it
//! is cut off.

use tenure_core::FencingToken;

use super::{Command, Due, Step, World, turn};
use crate::clock::{MS, Nanos};
use crate::event::{Event, Fault};
use crate::planted::Bug;
use crate::scenario::Break;
use crate::store::Who;

/// The work of one term.
#[derive(Debug)]
pub(super) struct Work {
    token: u64,
    ends: How,
    checks: bool,
    /// The owner of the run has asked for a stop.
    pub(super) asked: bool,
    began: bool,
    pub(super) frozen: bool,
    /// Nothing of it acts any more.
    pub(super) over: bool,
    pub(super) outcome: Option<How>,
}

/// How work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Returns,
    Panics,
    Resigns,
    WasCut,
}

impl Work {
    pub(super) fn new(token: u64, ends: How, checks: bool) -> Self {
        Self { token, ends, checks, asked: false, began: false, frozen: false, over: false, outcome: None }
    }
}

impl World {
    /// Plans what the driver's word makes the work, or the caller's task, do.
    pub(super) fn plan_work(&mut self, c: usize, step: Step) {
        let times = *self.times(c);
        let Some(campaign) = &self.hosts[c].campaign else { return };
        let (who, Some(_)) = (campaign.who, &campaign.work) else { return };
        let delay = match step {
            Step::Obey => match self.scenario.parts[c].obeys_after {
                0 => turn(&mut self.rng),
                parts => self.around(times.stop_budget / 16 * parts),
            },
            // Blocks its thread, or swallows the cancellation.
            Step::Drop if self.scenario.broken == Some(Break::Work) && self.one_in(2) => {
                self.see_fault(c, Fault::WorkLate);
                self.rng.u64(0..2 * times.ttl)
            }
            _ => turn(&mut self.rng),
        };
        self.queue.push(self.now + delay, Due::Work(c, who, step));
    }

    pub(super) fn work_due(&mut self, c: usize, who: Who, step: Step) {
        if !self.is_of(c, who) {
            return;
        }
        let host = &mut self.hosts[c];
        // A stopped process does nothing; a starved driver does not keep its work from running.
        if host.pause.is_some_and(|pause| pause.kind != Fault::Stall) {
            return host.inbox.push(Due::Work(c, who, step));
        }
        let Some(work) = host.campaign.as_mut().and_then(|campaign| campaign.work.as_mut()) else { return };
        if work.over {
            return;
        }
        match step {
            Step::Begin => self.work_begins(c, who),
            Step::Write => self.work_writes(c, who),
            Step::Finish if work.ends == How::Resigns => self.command(c, Command::Resign),
            Step::Finish => {
                let how = work.ends;
                self.work_is_over(c, how);
            }
            Step::Obey => self.work_is_over(c, How::Returns),
            Step::Drop => self.work_is_over(c, How::WasCut),
        }
    }

    fn work_begins(&mut self, c: usize, who: Who) {
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        let cut_off = campaign.published.cut_off;
        let Some(work) = &mut campaign.work else { return };
        if cut_off {
            // Never polled once.
            return self.work_is_over(c, How::WasCut);
        }
        work.began = true;
        let (token, stopping) = (work.token, campaign.published.stopping);
        self.see(c, Event::WorkBegan { token });
        if let Some(takes) = self.scenario.parts[c].work_takes {
            let at = self.now + self.around(takes);
            self.queue.push(at, Due::Work(c, who, Step::Finish));
        }
        if stopping {
            self.plan_work(c, Step::Obey);
        }
        self.work_writes(c, who);
    }

    /// A new leader writes before it reads, and then now and again.
    fn work_writes(&mut self, c: usize, who: Who) {
        let host = &self.hosts[c];
        let Some(campaign) = &host.campaign else { return };
        let (published, Some(work)) = (campaign.published, &campaign.work) else { return };
        let (token, checks) = (work.token, work.checks);
        let ok = !published.lost && host.clock.local(self.now) < published.deadline;
        if checks {
            self.see(c, Event::Checked { ok });
        }
        if !checks || ok {
            let late = if self.one_in(16) { self.rng.u64(0..2 * self.scenario.ttl) } else { 0 };
            let lands = self.now + self.around(self.scenario.pace.latency) + late;
            self.queue.push(lands, Due::WriteLands(c, who, token));
        }
        let next = self.now + self.around(self.scenario.ttl / 2);
        self.queue.push(next, Due::Work(c, who, Step::Write));
    }

    /// Nothing of the work acts any more, and the driver will hear of it.
    fn work_is_over(&mut self, c: usize, how: How) {
        let Some(campaign) = &mut self.hosts[c].campaign else { return };
        let ended = campaign.subject.end().map(|_| ());
        let ending = campaign.published.stopping || campaign.published.lost;
        let Some(work) = &mut campaign.work else { return };
        work.over = true;
        // What returns after its term was lost is dropped.
        let late = how == How::Returns && !work.asked && ending;
        work.outcome = Some(if late { How::WasCut } else { how });
        let acted = work.began;
        if acted {
            self.see(c, Event::WorkOver);
        }
        if how == How::Panics {
            self.see_fault(c, Fault::WorkPanicked);
            if self.has(Bug::PanicHoldsOn) {
                return;
            }
        }
        match ended {
            None => self.command(c, Command::WorkEnded),
            Some(()) => self.campaign_is_over(c, crate::event::Why::Lost),
        }
    }

    pub(super) fn write_lands(&mut self, c: usize, who: Who, token: u64) {
        let accepted = self.resource.enter(FencingToken(token)).is_ok();
        self.see_of(c, who, Event::Wrote { token, accepted });
    }

    /// The process of `c` stops: its work acts no more for now.
    pub(super) fn freeze_work(&mut self, c: usize) {
        let Some(work) = self.work_of(c).filter(|work| work.began && !work.over && !work.frozen) else { return };
        work.frozen = true;
        self.see(c, Event::WorkFrozen);
    }

    /// It runs again.
    pub(super) fn thaw_work(&mut self, c: usize) {
        let Some(work) = self.work_of(c).filter(|work| work.frozen && !work.over) else { return };
        work.frozen = false;
        self.see(c, Event::WorkThawed);
    }

    /// The work was cut off while its process stood still: it is dropped before it acts again.
    pub(super) fn drop_cut_work(&mut self, c: usize) {
        let cut = self.hosts[c].campaign.as_ref().is_some_and(|campaign| campaign.published.cut_off);
        if cut && self.work_of(c).is_some_and(|work| work.frozen && !work.over) {
            self.work_is_over(c, How::WasCut);
        }
    }

    /// The process dies, and its work with it.
    pub(super) fn kill_work(&mut self, c: usize) {
        if let Some(work) = self.work_of(c).filter(|work| work.began && !work.over) {
            work.over = true;
            self.see(c, Event::WorkOver);
        }
    }

    /// True while the work of `c` acts.
    pub(super) fn acts(&self, c: usize) -> bool {
        let work = self.hosts[c].campaign.as_ref().and_then(|campaign| campaign.work.as_ref());
        work.is_some_and(|work| work.began && !work.over && !work.frozen)
    }

    fn work_of(&mut self, c: usize) -> Option<&mut Work> {
        self.hosts[c].campaign.as_mut()?.work.as_mut()
    }
}

/// The longest that a driver may be starved while its work runs: well within the margin of 5 ms.
pub(super) const SHORT_STALL: Nanos = MS;
