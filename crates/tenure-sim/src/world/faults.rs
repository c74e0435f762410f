//! What goes wrong, drawn one after the other until the world calms down.

use tenure_core::WakeUp;

use super::work::SHORT_STALL;
use super::{Due, Link, World, any_rate};
use crate::clock::Nanos;
use crate::event::{Event, Fault};
use crate::scenario::Break;
use crate::store::{StoreKind, Weather};

impl World {
    /// Something goes wrong, and the next fault is planned.
    pub(super) fn fault(&mut self) {
        if self.is_calm() {
            return;
        }
        let next = self.now + self.around(self.scenario.pace.fault_every);
        self.queue.push(next, Due::Fault);
        let c = self.rng.usize(..self.hosts.len());
        let lasts = self.around(self.scenario.pace.fault_lasts);
        match self.rng.u8(..32) {
            0..8 => self.link_fault(c, lasts),
            8..14 => self.store_fault(c, lasts),
            14 | 15 => self.crash(c, lasts),
            16 | 17 => self.pause(c, Fault::Suspend, lasts),
            18 | 19 => self.pause(c, Fault::Pause, lasts),
            20 => self.pause(c, Fault::Stall, if self.breaks(Break::Work) { lasts } else { SHORT_STALL }),
            21 | 22 => self.change_rate(c),
            23 => self.false_hints(c),
            24 => self.stop_someone(c),
            _ => self.break_something(c, lasts),
        }
    }

    fn breaks(&self, what: Break) -> bool {
        self.scenario.broken == Some(what)
    }

    fn link_fault(&mut self, c: usize, lasts: Nanos) {
        let until = self.now + lasts;
        let ttl = self.scenario.ttl;
        let kind = self.rng.u8(..6);
        let link = &mut self.hosts[c].link;
        let fault = match kind {
            0 => {
                link.requests_cut_until = until;
                Fault::LinkCut
            }
            1 => {
                link.replies_cut_until = until;
                Fault::LinkCut
            }
            2 => {
                (link.requests_cut_until, link.replies_cut_until) = (until, until);
                Fault::LinkCut
            }
            3 => {
                link.refused_until = until;
                Fault::ConnectionRefused
            }
            4 => {
                link.lossy_until = until;
                Fault::LinkLossy
            }
            _ => {
                (link.slow_until, link.slow_by) = (until, ttl / 2);
                Fault::LinkSlow
            }
        };
        self.see_fault(c, fault);
    }

    fn store_fault(&mut self, c: usize, lasts: Nanos) {
        let now = self.now;
        let until = now + lasts;
        let kind = self.rng.u8(..8);
        let weather = self.store.weather();
        let fault = match (self.scenario.store, kind) {
            (_, 0 | 1) => {
                weather.refuses_until = until;
                Fault::StoreDown
            }
            (_, 2 | 3) => {
                weather.hangs_until = until;
                Fault::StoreHangs
            }
            (_, 4) => {
                weather.denies_until = now + lasts / 4;
                Fault::StoreDenies
            }
            (StoreKind::Etcd, 5..) => {
                self.store.change_leader(now, lasts / 2);
                self.changed(None);
                Fault::LeaderChanged
            }
            (StoreKind::Redis | StoreKind::Sql, 5) => return self.step_clock(c),
            (StoreKind::Sql, _) => {
                weather.fails_until = until;
                Fault::StoreFails
            }
            _ => {
                weather.fails_until = now + lasts / 2;
                Fault::StoreFails
            }
        };
        self.see_fault(c, fault);
    }

    /// The store's wall clock is set: back by any amount, forward by no more than every candidate allows for, and not
    /// twice within one lease.
    fn step_clock(&mut self, c: usize) {
        let allowed = self.scenario.parts.iter().map(|part| part.times.clock_step).min().unwrap_or(0);
        let rested = self.now > self.last_step + 5 * self.scenario.ttl / 2;
        let by = if self.rng.bool() && allowed > 0 && rested {
            self.last_step = self.now;
            self.rng.u64(0..=allowed) as i64
        } else {
            -(self.rng.u64(0..self.scenario.ttl) as i64)
        };
        self.set_store_clock(c, by);
    }

    fn set_store_clock(&mut self, c: usize, by: i64) {
        let now = self.now;
        self.store.clock().step(now, by);
        self.see_fault(c, Fault::ClockStepped);
        self.changed(None);
    }

    fn change_rate(&mut self, c: usize) {
        let rate = any_rate(&mut self.rng, self.scenario.broken);
        let now = self.now;
        if self.one_in(2) {
            self.store.clock().set_rate(now, rate);
            self.changed(None);
        } else {
            self.hosts[c].clock.set_rate(now, rate);
            self.rearm(c);
        }
        self.see_fault(c, Fault::RateChanged);
    }

    /// A hint is never proof: these say what is not so.
    fn false_hints(&mut self, c: usize) {
        let Some(who) = self.hosts[c].campaign.as_ref().map(|campaign| campaign.who) else { return };
        for _ in 0..self.rng.u8(1..12) {
            let hints = [WakeUp::Vacated, WakeUp::Taken, WakeUp::Changed, WakeUp::Resync];
            let at = self.now + self.rng.u64(0..self.scenario.ttl / 8);
            self.queue.push(at, Due::Hint(c, who, hints[self.rng.usize(..4)]));
            self.see_fault(c, Fault::FalseHint);
        }
    }

    fn stop_someone(&mut self, c: usize) {
        if let Some(who) = self.hosts[c].campaign.as_ref().map(|campaign| campaign.who) {
            self.shut_down(c, who);
        }
    }

    /// What the assumptions rule out.
    fn break_something(&mut self, c: usize, lasts: Nanos) {
        let now = self.now;
        match self.scenario.broken {
            Some(Break::Step) => {
                let by = self.rng.u64(self.scenario.ttl / 2..2 * self.scenario.ttl);
                self.set_store_clock(c, by as i64);
            }
            Some(Break::Failover) => {
                let lag = self.rng.u64(0..self.scenario.ttl);
                self.store.fail_over(now, lag);
                self.see_fault(c, Fault::FailedOver);
                self.changed(None);
            }
            Some(Break::Removal) => {
                self.store.remove();
                if self.one_in(4) {
                    // Something else lies there now.
                    self.store.weather().malformed_until = now + lasts / 4;
                    self.see_fault(c, Fault::StoreMalformed);
                }
                self.see_fault(c, Fault::Removed);
                self.changed(None);
            }
            Some(Break::Work) => self.pause(c, Fault::Stall, lasts),
            Some(Break::Drift) => self.change_rate(c),
            None => {}
        }
    }

    /// Everything is well from now on; what was on its way for long is lost.
    pub(super) fn calm(&mut self) {
        let soon = self.now + 4 * self.scenario.pace.latency;
        self.queue.retain(|at, due| !matches!(due, Due::Request(_) | Due::Reply(..) | Due::Hint(..)) || at <= soon);
        for host in &mut self.hosts {
            host.link = Link::default();
        }
        *self.store.weather() = Weather::default();
        self.heal_hosts();
        // Where grants are too short for some timings, nobody is bound to lead.
        if self.scenario.ttl_cap.is_none() {
            self.see_of(0, 0, Event::Calm);
        }
        if self.hosts.len() < 16 {
            let first = self.now + self.around(2 * self.scenario.ttl);
            self.queue.push(first, Due::CrashLeader);
        }
    }
}
