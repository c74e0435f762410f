//! Processes that stop for a while, die and come back.

use tenure_core::machine::Herd;

use super::{Due, Pause, World};
use crate::clock::{MS, Nanos};
use crate::event::{Event, Fault};
use crate::scenario::Break;
use crate::store::Observation;

impl World {
    /// The host is suspended, or the process stopped, or (a stall) its driver starved while its work runs.
    pub(super) fn pause(&mut self, c: usize, kind: Fault, lasts: Nanos) {
        let host = &mut self.hosts[c];
        if !host.up || host.pause.is_some() {
            return;
        }
        self.see_fault(c, kind);
        self.begin_pause(c, kind, lasts);
        if kind != Fault::Stall {
            self.freeze_work(c);
        }
        self.see(c, Event::Paused);
    }

    fn begin_pause(&mut self, c: usize, kind: Fault, lasts: Nanos) {
        let number = self.next_call;
        self.next_call += 1;
        let host = &mut self.hosts[c];
        let since_local = host.clock.local(self.now);
        host.pause = Some(Pause { kind, since_local, number });
        self.timers[c] = Nanos::MAX;
        self.queue.push(self.now + lasts, Due::Resume(c, number));
    }

    pub(super) fn resume(&mut self, c: usize, number: u32) {
        let host = &mut self.hosts[c];
        let Some(pause) = host.pause.filter(|pause| pause.number == number) else { return };
        host.pause = None;
        if pause.kind == Fault::Suspend {
            host.suspended += host.clock.local(self.now) - pause.since_local;
        }
        if self.scenario.broken == Some(Break::Work) && pause.kind != Fault::Stall {
            // The work gets its turn before the driver does.
            self.thaw_work(c);
            let lasts = self.rng.u64(0..50 * MS);
            return self.begin_pause(c, Fault::Stall, lasts);
        }
        self.see(c, Event::Resumed);
        self.catch_up(c);
    }

    /// The driver is served first, in the order in which it asks: time, commands, answers, hints; then the work.
    fn catch_up(&mut self, c: usize) {
        let inbox = std::mem::take(&mut self.hosts[c].inbox);
        if self.hosts[c].campaign.is_some() {
            self.tick(c);
        }
        for turn in 0..3 {
            for due in inbox.iter().filter(|due| rank(due) == turn) {
                self.deliver(c, *due);
            }
        }
        self.drop_cut_work(c);
        self.thaw_work(c);
        for due in &inbox {
            if let Due::Work(c, who, step) = *due {
                self.work_due(c, who, step);
            }
        }
        self.rearm(c);
    }

    /// The process dies.
    pub(super) fn crash(&mut self, c: usize, down_for: Nanos) {
        if !self.hosts[c].up {
            return;
        }
        self.see_fault(c, Fault::Crash);
        self.kill_work(c);
        self.see(c, Event::Crashed);
        let host = &mut self.hosts[c];
        (host.up, host.pause, host.campaign) = (false, None, None);
        (host.herd, host.observation, host.first_token) = (Herd::default(), Observation::default(), None);
        host.inbox.clear();
        self.timers[c] = Nanos::MAX;
        self.queue.push(self.now + down_for, Due::Restart(c));
    }

    pub(super) fn restart(&mut self, c: usize) {
        if !self.hosts[c].up {
            self.hosts[c].up = true;
            self.run_election(c);
        }
    }

    /// Ends every pause and brings every process back.
    pub(super) fn heal_hosts(&mut self) {
        for c in 0..self.hosts.len() {
            if let Some(pause) = self.hosts[c].pause {
                self.queue.push(self.now, Due::Resume(c, pause.number));
            }
            if !self.hosts[c].up {
                let at = self.now + self.rng.u64(0..self.scenario.ttl / 4);
                self.queue.push(at, Due::Restart(c));
            }
        }
    }

    /// In calm times whoever leads dies now and then.
    pub(super) fn crash_leader(&mut self) {
        if let Some(c) = (0..self.hosts.len()).find(|c| self.acts(*c)) {
            let down_for = self.around(self.scenario.ttl);
            self.crash(c, down_for);
        }
        let next = self.now + self.around(3 * self.scenario.ttl);
        self.queue.push(next, Due::CrashLeader);
    }
}

fn rank(due: &Due) -> u8 {
    match due {
        Due::Command(..) => 0,
        Due::Reply(..) => 1,
        Due::Hint(..) => 2,
        _ => 3,
    }
}
