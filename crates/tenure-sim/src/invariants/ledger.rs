//! What is known about each candidate from what went in and out of it alone: the observer's own accounts.

use tenure_core::StoreErrorKind;
use tenure_core::machine::Call;

use crate::clock::Nanos;
use crate::event::{Event, Fault, Seen};
use crate::store::{Change, Outcome, StoreKind, Who};
use crate::times::Times;

/// The accounts of all candidates, and of the store.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// One per candidate.
    pub accounts: Vec<Account>,
    /// Whom the store holds the lease for, surely until when, at the latest until when. True time.
    pub hold: Option<(Who, Nanos, Nanos)>,
    /// The token of the holder's term, and when it was granted.
    pub holder_token: u64,
    /// When the holder's term was granted.
    pub granted_at: Nanos,
    /// When the store's clock stepped last: what had run out may have come back.
    pub stepped_at: Nanos,
    /// Since when nothing goes wrong.
    pub calm_since: Option<Nanos>,
    /// The technology.
    pub store: StoreKind,
}

/// One candidate's account, of its campaign under way or the last one.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its times.
    pub times: Times,
    /// Leaves the lease to run out when its work has finished.
    pub holds_on_finish: bool,
    /// A campaign is under way.
    pub campaigning: bool,
    /// Which.
    pub who: Who,
    /// The end of authority, counted from confirmed answers, by the candidate's clock.
    pub deadline: Option<Nanos>,
    /// The term that was granted.
    pub token: u64,
    /// The machine has started the term.
    pub elected: bool,
    /// When the stop signal came, and when it had to.
    pub signalled: Option<(Nanos, Nanos)>,
    /// When the work was cut off.
    pub cut: Option<Nanos>,
    /// The store has said that the lease is lost, or the leader has given it up.
    pub definite: bool,
    /// The lease is not ours any more: it was lost, or the deadline has passed when the work ended.
    pub gone: bool,
    /// The work acts.
    pub acting: bool,
    /// The work's process is stopped.
    pub frozen: bool,
    /// The work has begun.
    pub began: bool,
    /// The work is over, in truth.
    pub over: bool,
    /// The machine was told so.
    pub reported: Option<Nanos>,
    /// When the last request for this term left.
    pub last_sent: Nanos,
    /// When the store had decided the latest outcome that was heard, in true time.
    pub last_decided: Nanos,
    /// Finding F4.
    pub waived: bool,
    /// When the store decided the latest grant that was heard of, in true time.
    granted: Nanos,
    /// The process does not run.
    pub paused: bool,
    /// When it last did not.
    pub paused_until: Nanos,
}

impl Ledger {
    /// Accounts of candidates with these times; whether each leaves the lease to run out when its work has finished.
    pub fn new(candidates: impl Iterator<Item = (Times, bool)>, store: StoreKind) -> Self {
        let accounts = candidates.map(|(times, holds)| Account::new(times, holds)).collect();
        Self { accounts, hold: None, holder_token: 0, granted_at: 0, stepped_at: 0, calm_since: None, store }
    }

    /// Enters what was seen.
    pub fn enter(&mut self, seen: &Seen) {
        match seen.event {
            Event::Kept { hold } => self.hold = hold,
            Event::Calm => self.calm_since = Some(seen.at),
            Event::Decided(Change::Granted { token, .. }) => {
                (self.holder_token, self.granted_at) = (token, seen.at);
            }
            // What lies there now was put there by the failover.
            Event::Fault(Fault::FailedOver) => self.granted_at = seen.at,
            Event::Fault(Fault::ClockStepped) => self.stepped_at = seen.at,
            Event::Decided(Change::Repeated { token, .. }) => self.holder_token = token,
            _ => self.accounts[seen.c].enter(seen),
        }
    }
}

impl Account {
    fn new(times: Times, holds_on_finish: bool) -> Self {
        Self {
            times,
            holds_on_finish,
            campaigning: false,
            who: 0,
            deadline: None,
            token: 0,
            elected: false,
            signalled: None,
            cut: None,
            definite: false,
            gone: false,
            acting: false,
            frozen: false,
            began: false,
            over: false,
            reported: None,
            last_sent: 0,
            last_decided: 0,
            waived: false,
            granted: 0,
            paused: false,
            paused_until: 0,
        }
    }

    /// When the stop signal is due.
    pub fn stop_at(&self) -> Option<Nanos> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.times.stop_budget))
    }

    /// The term runs: started, and its work not reported as ended.
    pub fn leads(&self) -> bool {
        self.campaigning && self.elected && self.reported.is_none()
    }

    fn enter(&mut self, seen: &Seen) {
        let local = seen.local;
        match seen.event {
            Event::Campaign => {
                let (paused, paused_until) = (self.paused, self.paused_until);
                *self = Self::new(self.times, self.holds_on_finish);
                (self.campaigning, self.who) = (true, seen.who);
                (self.paused, self.paused_until) = (paused, paused_until);
            }
            Event::Sent { call: Call::Bid | Call::Renew, .. } => self.last_sent = local,
            Event::Heard { token, sent, outcome, decided_at, call, .. } => {
                if !matches!(outcome, Outcome::Failed(_)) {
                    self.last_decided = decided_at.max(self.last_decided);
                }
                self.hear(local, call, token, sent, outcome, decided_at);
            }
            Event::Elected { .. } => self.elected = true,
            Event::Signalled { .. } if self.signalled.is_none() => {
                self.signalled = Some((local, self.stop_at().unwrap_or(local)));
            }
            Event::Cut => self.cut = self.cut.or(Some(local)),
            Event::Resigned => self.definite |= self.leads(),
            Event::Reported if self.leads() => {
                self.reported = Some(local);
                self.gone |= self.deadline.is_none_or(|deadline| local >= deadline);
            }
            Event::WorkBegan { .. } => (self.began, self.acting, self.over) = (true, true, false),
            Event::WorkFrozen => (self.acting, self.frozen) = (false, true),
            Event::WorkThawed => (self.acting, self.frozen) = (true, false),
            Event::WorkOver => (self.acting, self.over) = (false, true),
            Event::Ended { .. } => self.campaigning = false,
            Event::Crashed => (self.campaigning, self.acting, self.paused) = (false, false, false),
            Event::Paused => self.paused = true,
            Event::Resumed => (self.paused, self.paused_until) = (false, local),
            _ => {}
        }
    }

    fn hear(&mut self, local: Nanos, call: Call, token: u64, sent: Nanos, outcome: Outcome, decided_at: Nanos) {
        self.waived |= matches!(outcome, Outcome::Granted { .. });
        match outcome {
            Outcome::Granted { token, .. } if self.elected && token > self.token && self.reported.is_none() => {
                (self.definite, self.gone) = (true, true);
            }
            Outcome::Granted { .. } if self.elected => {}
            Outcome::Granted { token, ttl, .. } if token == self.token || decided_at >= self.granted => {
                self.granted = decided_at.max(self.granted);
                let deadline = sent + self.times.validity(ttl);
                let same = self.token == token;
                self.deadline = Some(self.deadline.filter(|_| same).map_or(deadline, |old| old.max(deadline)));
                self.token = token;
            }
            Outcome::Extended { ttl } if token == self.token => {
                if let Some(deadline) = self.deadline.filter(|deadline| local < *deadline) {
                    self.deadline = Some(deadline.max(sent + self.times.validity(ttl)));
                }
            }
            // While the lease is being given back, a loss is no news.
            Outcome::Lost(_) if token == self.token && self.reported.is_none() => {
                (self.definite, self.gone) = (self.elected, self.elected);
                if !self.elected {
                    self.deadline = None;
                }
            }
            Outcome::Failed(StoreErrorKind::Malformed | StoreErrorKind::Unsupported)
                if call == Call::Renew && self.leads() =>
            {
                (self.definite, self.gone) = (true, true);
            }
            _ => {}
        }
    }
}
