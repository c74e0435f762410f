//! What an onlooker notes about one campaign, from what goes into the machine and comes out of it alone.

use tenure_core::StoreErrorKind;
use tenure_core::machine::{Answer, Attempt, Call};
use tenure_core::{Acquired, Renewed};

use crate::clock::Nanos;
use crate::times::{Times, nanos};

/// One campaign's account. All times are by its host's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Account {
    /// The term that was granted.
    pub token: u64,
    /// The last bid that was sent; its answer is the one that counts.
    pub last_bid: u64,
    /// What became of the last bid, or of one before, is not known.
    pub bid_open: bool,
    /// The term that such a bid had taken when the stop was asked for: looking shows it.
    pub to_be_found: Option<u64>,
    /// The bid that won it.
    pub won_by: u64,
    /// The end of authority, counted from confirmed answers by the protocol's formula.
    pub deadline: Option<Nanos>,
    /// Work was started.
    pub started: bool,
    /// When the stop signal came, and by how much too late.
    pub signalled: Option<(Nanos, Nanos)>,
    /// The work was cut off.
    pub cut: bool,
    /// The lease was lost for sure, or the leader has given it up.
    pub definite: bool,
    /// There is nothing to renew or release: the lease was lost for sure, or its work went on until the deadline.
    pub gone: bool,
    /// When the last bid or renewal left.
    pub last_sent: Nanos,
    /// By when a campaign that was asked to stop must be over.
    pub over_by: Option<Nanos>,
    /// It was asked to stop.
    pub stop_asked: bool,
    /// The process did not run for a while: what was due meanwhile was late.
    pub was_frozen: bool,
    /// A bid was answered by a permanent error.
    pub refused: Option<StoreErrorKind>,
}

impl Account {
    /// Notes what an answer confirms or denies. `work_over` says whether the work has ended.
    pub fn hear(
        &mut self,
        times: &Times,
        local: Nanos,
        attempt: Attempt,
        token: u64,
        answer: &Answer,
        work_over: bool,
    ) {
        let in_flight = attempt.call == Call::Bid && attempt.number == self.last_bid;
        let sent = nanos(attempt.sent.since_origin());
        if let (true, Answer::Acquired(acquired)) = (in_flight, answer) {
            self.bid_open = false;
            if matches!(acquired, Acquired::Held(_)) {
                self.to_be_found = None;
            }
        }
        match answer {
            Answer::Acquired(Acquired::Granted(grant)) => {
                let deadline = sent + times.validity(nanos(grant.ttl));
                self.granted(grant.token.value(), attempt.number, deadline, in_flight, work_over);
            }
            Answer::Renewed(Renewed::Extended(grant)) if grant.token.value() == self.token => {
                if let Some(deadline) = self.deadline.filter(|deadline| local < *deadline) {
                    self.deadline = Some(deadline.max(sent + times.validity(nanos(grant.ttl))));
                }
            }
            Answer::Renewed(_) if token == self.token && attempt.number > self.won_by && !work_over => self.lost(),
            Answer::Failed(StoreErrorKind::Malformed | StoreErrorKind::Unsupported)
                if attempt.call == Call::Renew && attempt.number > self.won_by && !work_over =>
            {
                self.lost();
            }
            Answer::Failed(kind) if in_flight && !kind.is_transient() => {
                self.refused = Some(*kind);
            }
            _ => {}
        }
    }

    fn granted(&mut self, token: u64, number: u64, deadline: Nanos, in_flight: bool, work_over: bool) {
        if self.started {
            if token > self.token && !work_over {
                self.lost();
            }
        } else if in_flight || token >= self.token {
            let same = self.token == token;
            self.deadline = Some(self.deadline.filter(|_| same).map_or(deadline, |old| old.max(deadline)));
            (self.token, self.won_by) = (token, self.won_by.max(number));
        }
    }

    fn lost(&mut self) {
        if self.started {
            (self.definite, self.gone) = (true, true);
        } else {
            self.deadline = None;
        }
    }

    /// When the stop signal is due.
    pub fn stop_at(&self, times: &Times) -> Option<Nanos> {
        self.deadline.map(|deadline| deadline.saturating_sub(times.stop_budget))
    }

    /// Whether no stop signal has come or was due by `local`.
    pub fn is_early(&self, times: &Times, local: Nanos) -> bool {
        self.signalled.is_none() && self.stop_at(times).is_some_and(|stop_at| local < stop_at)
    }
}
