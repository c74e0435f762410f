//! What may happen next.

use tenure_core::machine::Call;
use tenure_core::{StoreErrorKind, WakeUp};

use super::Election;
use super::bounds::{Left, Network};
use super::lease::Lease;
use super::state::{Frozen, Leg, Link, Message, State, Work, host_of};
use crate::clock::Nanos;
use crate::store::Request;

/// One thing that may happen. A message is named by its place in [`State::wire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// Time passes until something is due. Of the messages whose time is up by that, those with their bit set are
    /// delayed, and the others are lost.
    Pass(u32),
    /// A message arrives.
    Deliver(usize),
    /// A request arrives, and a copy of it stays under way.
    Repeat(usize),
    /// A call fails; a request that may have been applied is under way still.
    Fail(usize, StoreErrorKind),
    /// A call is answered by the wrong kind of answer.
    Confuse(usize),
    /// A renewal is answered by another term's grant.
    Mistake(usize),
    /// The process dies, and its work with it.
    Crash(usize),
    /// The candidate is asked to stop.
    Stop(usize),
    /// The leader gives the lease up.
    Resign(usize),
    /// The work ends.
    Finish(usize),
    /// The host is suspended.
    Suspend(usize),
    /// The process is stopped.
    Halt(usize),
    /// The process runs again.
    Thaw(usize),
    /// The host's link is cut: what is under way on it is lost, and so is what is sent.
    Cut(usize),
    /// Requests get through still, replies do not.
    Deafen(usize),
    /// The link is whole again.
    Heal(usize),
    /// The store hints at a change.
    Hint(usize, WakeUp),
    /// Somebody removes the record by hand.
    Remove,
    /// The shell steps the machine for no reason.
    Tick(usize),
    /// The shell reports the end of work that did not run.
    EndNothing(usize),
    /// The shell passes a resignation on in any state.
    ResignNothing(usize),
}

impl Election {
    /// Everything that may happen in `state`.
    pub(super) fn moves(&self, state: &State, moves: &mut Vec<Move>) {
        if state.breaches != 0 {
            return;
        }
        self.passing(state, moves);
        for (i, message) in state.wire.iter().enumerate() {
            self.messages(state, i, message, moves);
        }
        for h in 0..state.hosts.len() {
            self.host_moves(state, h, moves);
        }
        if state.left.may(state.left.removals) && state.lease.record.is_some() {
            moves.push(Move::Remove);
        }
    }

    fn passing(&self, state: &State, moves: &mut Vec<Move>) {
        let Some(until) = self.next_instant(state) else { return };
        let outliving = self.outliving(state, until);
        let Left { all, losses, delays, .. } = state.left;
        let counts = self.bounds.network == Network::Prompt;
        // Each choice of messages to delay, as far as delays are left, and losses for the others.
        let mut keep = 0_u32;
        loop {
            let (delayed, lost) = (keep.count_ones(), (outliving & !keep).count_ones());
            let spent = delayed + if counts { lost } else { 0 };
            let lossy = !counts || lost <= losses.into();
            if lossy && delayed <= delays.into() && spent <= all.into() {
                moves.push(Move::Pass(keep));
            }
            // The next subset of `outliving`.
            keep = keep.wrapping_sub(outliving) & outliving;
            if keep == 0 {
                break;
            }
        }
    }

    /// The messages that are still under way when their time is up, at true time `until`: a bit for each place.
    pub(super) fn outliving(&self, state: &State, until: Nanos) -> u32 {
        let outlives = |message: &Message| match self.bounds.network {
            // What waits at a process that does not run is under way no more.
            Network::Prompt => {
                matches!(message.leg, Leg::Request(_)) || state.hosts[host_of(message.who)].frozen.is_none()
            }
            Network::Slow => {
                let local = self.host_clock(state, host_of(message.who)).local(until);
                local >= message.sent + self.times.attempt_timeout
            }
        };
        let places = state.wire.iter().enumerate().filter(|(_, message)| !message.late && outlives(message));
        places.fold(0, |bits, (i, _)| bits | 1 << i)
    }

    fn messages(&self, state: &State, i: usize, message: &Message, moves: &mut Vec<Move>) {
        let frozen = state.hosts[host_of(message.who)].frozen;
        let reply = matches!(message.leg, Leg::Reply { .. });
        let reachable = match frozen {
            None => true,
            // A stopped process finds its answers when it runs again, and perhaps before it looks at the clock.
            Some(Frozen::Halted) => reply,
            Some(Frozen::Suspended(_)) => false,
        };
        if !reply || reachable {
            moves.push(Move::Deliver(i));
        }
        if !reply && state.left.may(state.left.repeats) {
            moves.push(Move::Repeat(i));
        }
        if frozen.is_some() || !state.is_listened_to(message) {
            return;
        }
        if state.left.may(state.left.failures) {
            // What may have been applied is an unknown outcome, never another failure.
            let applied = reply || message.repeated;
            let fits = |kind: &&StoreErrorKind| **kind == StoreErrorKind::Unknown || !applied;
            moves.extend(self.bounds.failures.iter().filter(fits).map(|kind| Move::Fail(i, *kind)));
        }
        if state.left.may(state.left.oddities) {
            moves.push(Move::Confuse(i));
            if message.call == Call::Renew && reply {
                moves.push(Move::Mistake(i));
            }
        }
    }

    fn host_moves(&self, state: &State, h: usize, moves: &mut Vec<Move>) {
        let (host, left) = (&state.hosts[h], &state.left);
        if host.frozen.is_some() {
            return moves.push(Move::Thaw(h));
        }
        let Some(campaign) = &host.campaign else { return };
        let over = campaign.subject.end().is_some();
        if host.link != Link::Whole {
            moves.push(Move::Heal(h));
        }
        match campaign.work {
            Work::Running if left.may(left.finishes) => moves.push(Move::Finish(h)),
            Work::Stopping | Work::Lingering => moves.push(Move::Finish(h)),
            _ => {}
        }
        if left.may(left.stops) && (!host.stopped || self.bounds.odd) {
            moves.push(Move::Stop(h));
        }
        if left.may(left.resigns) && campaign.work.acts() {
            moves.push(Move::Resign(h));
        }
        if left.may(left.hints) {
            moves.extend(self.bounds.hints.iter().map(|hint| Move::Hint(h, *hint)));
        }
        if left.may(left.oddities) {
            moves.push(Move::Tick(h));
            if !campaign.work.acts() {
                moves.extend([Move::EndNothing(h), Move::ResignNothing(h)]);
            }
        }
        if over {
            return;
        }
        if left.may(left.crashes) {
            moves.push(Move::Crash(h));
        }
        if left.may(left.cuts) && host.link == Link::Whole {
            moves.push(Move::Cut(h));
        }
        if left.may(left.deafs) && host.link == Link::Whole {
            moves.push(Move::Deafen(h));
        }
        if left.may(left.suspends) {
            moves.push(Move::Suspend(h));
        }
        if left.may(left.halts) {
            moves.push(Move::Halt(h));
        }
    }

    /// Forgets what can have no effect any more, and sorts the rest, so that states which cannot be told apart are one.
    ///
    /// A reply that nobody listens to goes nowhere. A renewal or a release that nobody listens to and that is not about
    /// the term in the store changes nothing, now or ever: tokens rise, and a term that has left the store never comes
    /// back.
    pub(super) fn normalise(&self, state: &mut State) {
        let wire = std::mem::take(&mut state.wire);
        let matters = |message: &Message| match message.leg {
            _ if state.is_listened_to(message) => true,
            Leg::Reply { .. } | Leg::Request(Request::Read | Request::Get | Request::Put { .. }) => false,
            Leg::Request(Request::Bid { .. }) => true,
            Leg::Request(Request::Renew { token, who, .. } | Request::Release { token, who }) => {
                self.bug.is_some() || is_about(&state.lease, who, token)
            }
        };
        let mut wire: Vec<Message> = wire.into_iter().filter(matters).collect();
        wire.sort_unstable();
        state.wire = wire;
    }
}

fn is_about(lease: &Lease, who: u32, token: u64) -> bool {
    lease.record.is_some_and(|record| (record.who, record.token) == (who, token))
}
