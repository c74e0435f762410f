//! Store calls: the way there, the decision, the way back, and the hints that a change sends out.

use tenure_core::{StoreErrorKind, WakeUp};

use super::{Due, Message, World, is_observed};
use crate::clock::Nanos;
use crate::event::{Event, Fault};
use crate::planted::Bug;
use crate::store::{Change, Decide, Outcome, Request, StoreKind, Who};

impl World {
    /// Sends a call on its way.
    pub(super) fn send(&mut self, c: usize, who: Who, id: u32, request: Request) {
        let request = if is_observed(self.scenario.store) { Request::Get } else { request };
        self.transmit(Message { c, who, id, request, copy: false });
    }

    fn transmit(&mut self, message: Message) {
        let c = message.c;
        let link = self.hosts[c].link;
        if link.refused_until > self.now {
            self.see_fault(c, Fault::ConnectionRefused);
            let at = self.now + self.around(self.scenario.pace.latency);
            return self.queue.push(at, Due::Reply(message, Outcome::Failed(StoreErrorKind::Unavailable), 0));
        }
        if link.requests_cut_until > self.now || self.is_lost(c) {
            self.see_fault(c, Fault::RequestLost);
            return self.goes_wrong(message);
        }
        let at = self.now + self.way(c);
        self.queue.push(at, Due::Request(message));
        if self.happens(self.scenario.pace.repeated) {
            self.see_fault(c, Fault::Repeated);
            let at = self.now + self.way(c) + self.rng.u64(0..self.scenario.ttl);
            self.queue.push(at, Due::Request(Message { copy: true, ..message }));
        }
    }

    /// Nobody answers; or the connection breaks at last, and the client says that nothing is known.
    fn goes_wrong(&mut self, message: Message) {
        if self.one_in(2) {
            let bound = self.times(message.c).attempt_timeout;
            let at = self.now + self.rng.u64(0..=2 * bound);
            self.see_fault(message.c, Fault::CallFailed);
            self.queue.push(at, Due::Reply(message, Outcome::Failed(StoreErrorKind::Unknown), 0));
        }
    }

    pub(super) fn request_arrives(&mut self, message: Message) {
        let hangs_until = self.store.weather().hangs_until;
        if hangs_until > self.now {
            let at = hangs_until + self.rng.u64(0..self.scenario.pace.latency);
            return self.queue.push(at, Due::Request(message));
        }
        let luck = self.rng.u64(..);
        let (outcome, change) = self.store.decide(self.now, message.request, luck);
        if let Some(change) = change {
            self.see_of(message.c, message.who, Event::Decided(change));
            self.changed(Some(change));
        }
        if message.copy {
            return;
        }
        let c = message.c;
        if self.hosts[c].link.replies_cut_until > self.now || self.is_lost(c) {
            self.see_fault(c, Fault::ReplyLost);
            return self.goes_wrong(message);
        }
        let at = self.now + self.way(c);
        self.queue.push(at, Due::Reply(message, outcome, self.now));
    }

    /// A reply for the process, which may listen no more.
    pub(super) fn reply_arrives(&mut self, message: Message, outcome: Outcome, decided_at: Nanos) {
        let Message { c, who, id, .. } = message;
        let own_ttl = self.has(Bug::FollowersOwnTtl).then_some(self.times(c).ttl);
        let host = &mut self.hosts[c];
        let local = host.clock.local(self.now);
        let Some(campaign) = host.campaign.as_mut().filter(|campaign| campaign.who == who) else { return };
        let Some(call) = campaign.under_way.iter_mut().find(|call| call.id == id) else { return };
        let next = match outcome {
            Outcome::Got(object) => {
                host.observation.see(&object, local);
                match host.observation.decide(&call.request, &object, own_ttl.unwrap_or(object.ttl), local) {
                    Decide::Answer(outcome) => Err(outcome),
                    Decide::Write(put, then) => {
                        call.then = Some(then);
                        Ok(put)
                    }
                }
            }
            Outcome::Written => Err(call.then.unwrap_or(Outcome::Failed(StoreErrorKind::Unknown))),
            // Somebody was quicker: read again.
            Outcome::Conflict => Ok(Request::Get),
            outcome => Err(outcome),
        };
        let call = *call;
        match next {
            Ok(request) => self.transmit(Message { request, ..message }),
            Err(outcome) => self.answer(c, call, outcome, decided_at),
        }
    }

    /// The store's state has changed: the observer hears of it, and those who wait.
    pub(super) fn changed(&mut self, change: Option<Change>) {
        let hold = self.store.held_until().zip(self.store.free_at());
        let hold = hold.map(|((who, surely), latest)| (who, surely, latest.max(surely)));
        self.see_of(0, 0, Event::Kept { hold });
        let wake_up = match change {
            Some(Change::Extended { .. } | Change::Repeated { .. }) => return self.plan_expiry(),
            Some(Change::Granted { .. }) if self.scenario.typed_hints => WakeUp::Taken,
            Some(Change::Freed) if self.scenario.typed_hints => WakeUp::Vacated,
            _ => WakeUp::Changed,
        };
        self.hint_all(wake_up);
        self.plan_expiry();
    }

    fn hint_all(&mut self, wake_up: WakeUp) {
        if !self.scenario.pushes {
            return;
        }
        for c in 0..self.hosts.len() {
            let Some(who) = self.hosts[c].campaign.as_ref().filter(|it| it.watching).map(|it| it.who) else { continue };
            let cut = self.hosts[c].link.replies_cut_until > self.now;
            if cut || !self.is_calm() && self.one_in(32) {
                self.see_fault(c, Fault::HintLost);
                continue;
            }
            let at = self.now + self.way(c);
            self.queue.push(at, Due::Hint(c, who, wake_up));
        }
    }

    /// etcd tells of expiries too.
    fn plan_expiry(&mut self) {
        if self.scenario.store == StoreKind::Etcd
            && !self.expiry_planned
            && let Some(at) = self.store.free_at()
        {
            self.expiry_planned = true;
            self.queue.push(at.max(self.now), Due::Expiry);
        }
    }

    pub(super) fn look_for_expiry(&mut self) {
        self.expiry_planned = false;
        match self.store.free_at() {
            Some(at) if at <= self.now => self.hint_all(WakeUp::Changed),
            Some(_) => self.plan_expiry(),
            None => {}
        }
    }

    /// How long one way takes.
    fn way(&mut self, c: usize) -> Nanos {
        let mut way = self.around(self.scenario.pace.latency);
        if self.is_calm() {
            return way;
        }
        let link = self.hosts[c].link;
        if link.slow_until > self.now {
            way += self.rng.u64(0..=link.slow_by);
        }
        if self.happens(self.scenario.pace.delayed) {
            self.see_fault(c, Fault::Delayed);
            way += self.rng.u64(0..2 * self.scenario.ttl);
        }
        way
    }

    fn is_lost(&mut self, c: usize) -> bool {
        let lossy = self.hosts[c].link.lossy_until > self.now && self.one_in(3);
        lossy || self.happens(self.scenario.pace.lost)
    }

    /// So many chances in 65,536, as long as things go wrong at all.
    fn happens(&mut self, chances: u64) -> bool {
        chances > 0 && !self.is_calm() && self.rng.u64(..) & 0xFFFF < chances
    }
}
