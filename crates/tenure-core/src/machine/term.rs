//! One term: what was granted, until when it lasts, and when it is renewed next.

use std::time::Duration;

use super::{Attempt, Jitter};
use crate::clock::Moment;
use crate::{Grant, LossReason, StoreErrorKind, Timing};

/// A store call under way, which is abandoned at `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) attempt: Attempt,
    pub(super) until: Moment,
}

/// A confirmed grant and the authority that it gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) grant: Grant,
    /// The bid that won it; renewals of this term have larger numbers.
    pub(super) won_by: u64,
    /// `D`: nothing of this term runs after it. Never moves back.
    pub(super) deadline: Moment,
    pub(super) renewal: Option<Flight>,
    pub(super) next_renewal: Moment,
    /// When the last renewal, or the bid, was sent.
    last_sent: Moment,
    /// Somebody hinted at a change after the renewal in flight was sent: its answer may be older than the change.
    hinted: bool,
    /// The last failure since the deadline moved.
    pub(super) trouble: Option<StoreErrorKind>,
    /// How long the host was suspended since the last confirmed request was sent, and when it woke.
    slept: Duration,
    woke_at: Moment,
}

/// No call is sent with less time than this: it could not be answered.
pub(super) const SHORTEST_ATTEMPT: Duration = Duration::from_millis(1);

impl Term {
    pub(super) fn won(grant: Grant, bid: Attempt, timing: &Timing, jitter: Jitter) -> Self {
        Self {
            deadline: bid.sent + timing.validity(grant.ttl),
            won_by: bid.number,
            renewal: None,
            next_renewal: next_after(bid.sent, timing, jitter),
            last_sent: bid.sent,
            hinted: false,
            trouble: None,
            slept: Duration::ZERO,
            woke_at: Moment::default(),
            grant,
        }
    }

    /// `C`: when the work is told to stop, unless a renewal comes first.
    pub(super) fn stop_at(&self, timing: &Timing) -> Moment {
        self.deadline.saturating_sub(timing.stop_budget())
    }

    /// A renewal was confirmed: authority counts from its own sending. One that was given up long ago says nothing about
    /// what was sent after it.
    pub(super) fn extend(&mut self, grant: Grant, by: Attempt, timing: &Timing, jitter: Jitter) {
        self.deadline = self.deadline.max(by.sent + timing.validity(grant.ttl));
        if by.sent >= self.woke_at {
            self.slept = Duration::ZERO;
        }
        if by.sent < self.last_sent {
            return;
        }
        self.grant = grant;
        self.trouble = None;
        self.next_renewal = if std::mem::take(&mut self.hinted) {
            self.last_sent + timing.retry_every() / 4
        } else {
            next_after(by.sent, timing, jitter)
        };
    }

    /// A renewal gave no outcome: the deadline stays, and another one follows soon.
    pub(super) fn failed(&mut self, kind: StoreErrorKind, sent: Moment, timing: &Timing, jitter: Jitter) {
        self.trouble = Some(kind);
        self.next_renewal = sent + retry_delay(timing, jitter);
    }

    /// Something may have happened to the record: look soon, but never in a hot loop.
    pub(super) fn hurry(&mut self, now: Moment, timing: &Timing) {
        self.hinted = self.renewal.is_some();
        let earliest = self.last_sent + timing.retry_every() / 4;
        self.next_renewal = self.next_renewal.min(earliest.max(now));
    }

    /// The bound of a renewal sent now, if one is due. Half of what is left until `limit` at the most, so that one slow
    /// call never costs the term.
    pub(super) fn renewal_due(&mut self, now: Moment, limit: Moment, timing: &Timing) -> Option<Moment> {
        if self.renewal.is_some() || now < self.next_renewal || now >= limit {
            return None;
        }
        let bound = timing.attempt_timeout().min((limit - now) / 2);
        if bound < SHORTEST_ATTEMPT {
            self.next_renewal = limit;
            return None;
        }
        Some(now + bound)
    }

    pub(super) fn renewal_sent(&mut self, flight: Flight) {
        self.last_sent = flight.attempt.sent;
        self.renewal = Some(flight);
    }

    pub(super) fn suspended(&mut self, slept: Duration, now: Moment) {
        self.slept += slept;
        self.woke_at = now;
    }

    /// When something is to be done about renewing.
    pub(super) fn renewal_wake(&self) -> Moment {
        self.renewal.map_or(self.next_renewal, |flight| flight.until)
    }

    /// Why the authority ran out at `limit`: by a suspend if it would not have without one.
    pub(super) fn expiry_reason(&self, now: Moment, limit: Moment) -> LossReason {
        if !self.slept.is_zero() && now.saturating_sub(self.slept) < limit {
            return LossReason::Suspended { slept: self.slept };
        }
        LossReason::Expired { kind: self.trouble, error: None }
    }
}

/// Renewals are sent a little early at random, never late, so that many leaders do not renew in step.
fn next_after(sent: Moment, timing: &Timing, jitter: Jitter) -> Moment {
    sent + timing.renew_every() * 7 / 8 + jitter.of(timing.renew_every() / 8)
}

/// `retry_every`, half of it to one and a half.
pub(super) fn retry_delay(timing: &Timing, jitter: Jitter) -> Duration {
    timing.retry_every() / 2 + jitter.of(timing.retry_every())
}

/// `poll_every`, three quarters of it to all.
pub(super) fn poll_delay(timing: &Timing, jitter: Jitter) -> Duration {
    timing.poll_every() * 3 / 4 + jitter.of(timing.poll_every() / 4)
}
