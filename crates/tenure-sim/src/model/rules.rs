//! What must hold: the promises of the protocol and the rules of the machine, each judged from outside.

use tenure_core::machine::{Action, Answer, Attempt, Call, Cause, End, Input, Release};
use tenure_core::{Released, StoreErrorKind};

use super::account::Account;
use super::lease::Record;
use super::state::{Campaign, Listening, State, Work};
use crate::clock::{MS, Nanos};
use crate::times::{Times, nanos};

macro_rules! rules {
    ($($rule:ident $name:literal,)*) => {
        /// Something that holds in every state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rule {
            $(#[doc = $name] $rule,)*
        }

        impl Rule {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$rule,)*];

            /// What it says.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    NoOverlap "no two terms' work overlap (under A1 to A5)",
    OneLeader "at most one candidate believes that it leads (under A1 to A4)",
    Held "work acts only while the store keeps the lease for its term (under A1 to A5)",
    TokensRise "each term's token is higher than every one before (under A1)",
    Confirmed "no authority beyond what was confirmed",
    Starts "rule 1: work starts only after a confirmed grant whose deadline lies ahead, once per term",
    Ends "rule 2: the stop signal comes at C, the cut at D, or earlier; between them lies the stop budget",
    Renews "rule 3: renewing goes on until the work has ended; a release goes out only after that, and never after D",
    OneCall "rule 4: one call of a kind in flight; a call that hangs is abandoned at its bound",
    LostIsFinal "rule 5: lost is final",
    Trouble "rule 6: transient trouble never ends a campaign; a permanent error does, unless leading",
    Stops "rule 7: stopping ends in time, and leaves no record that could have been released",
    Pairs "rule 8: a term's events are started, signalled, cut, ended, in this order, and none after the end",
}

impl Rule {
    /// Its bit in [`State::breaches`].
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// Timers are served so late, which is less than the margin of 5 ms that deadlines leave for it.
pub const LATE: Nanos = 4 * MS;

/// By then a timer is served, on a clock that drifts. It is the margin of the protocol.
const SERVED: Nanos = 5 * MS;

/// A few timers in a row are late, on a clock that drifts.
const SLACK: Nanos = 20 * MS;

/// Collects what was broken.
#[derive(Debug, Default)]
pub struct Judge {
    /// The bits of the rules.
    pub breaches: u16,
}

impl Judge {
    pub(super) fn require(&mut self, rule: Rule, holds: bool) {
        if !holds {
            self.breaches |= rule.bit();
        }
    }

    /// What the machine asks for, before it is done.
    pub(super) fn action(&mut self, times: &Times, local: Nanos, campaign: &Campaign, action: &Action) {
        let Campaign { account, work, calls, .. } = campaign;
        let ahead = account.deadline.is_some_and(|deadline| local < deadline);
        match action {
            Action::StartWork(grant) => {
                let confirmed = grant.token.value() == account.token && ahead;
                self.require(Rule::Starts, confirmed && !account.started && *work == Work::None);
                self.require(Rule::Stops, !account.stop_asked);
                self.require(Rule::LostIsFinal, !account.definite);
            }
            Action::SignalStop => self.require(Rule::Pairs, work.acts() && account.signalled.is_none()),
            Action::CutOff => {
                self.require(Rule::Pairs, work.acts() && account.signalled.is_some() && !account.cut);
                if let (Some((at, late_by)), false) = (account.signalled, account.definite) {
                    let budget = times.stop_budget.saturating_sub(late_by);
                    self.require(Rule::Ends, local >= at + budget);
                }
            }
            Action::ReportOverrun => self.require(Rule::Pairs, *work == Work::Lingering),
            Action::Renew(attempt, grant) => {
                let ours = grant.token.value() == account.token && ahead && *work != Work::Over;
                self.require(Rule::Renews, ours);
                self.require(Rule::LostIsFinal, !account.gone);
                self.one_call(local, calls, attempt, grant.token.value());
            }
            Action::Release(attempt, grant) => {
                let overran = account.started && account.gone && !account.definite;
                self.require(Rule::Renews, !work.acts() && !overran);
                self.require(Rule::LostIsFinal, !(account.definite && account.gone));
                self.one_call(local, calls, attempt, grant.token.value());
            }
            Action::Bid(attempt) | Action::Read(attempt) => {
                self.require(Rule::Pairs, !account.started);
                self.one_call(local, calls, attempt, 0);
            }
        }
    }

    /// A call follows another of its kind and term that is not answered only once that one's time was up.
    fn one_call(&mut self, local: Nanos, calls: &[Listening], attempt: &Attempt, token: u64) {
        let kind = calls.iter().filter(|other| other.call == attempt.call && other.token == token);
        self.require(Rule::OneCall, kind.map(|other| other.until).max().is_none_or(|until| local >= until));
        self.require(Rule::OneCall, nanos(attempt.sent.since_origin()) == local);
    }

    /// What a failed call made the machine do. `before` is the account before it, `early` says that `C` lay ahead.
    pub(super) fn reaction(
        &mut self,
        campaign: &Campaign,
        before: &Account,
        early: bool,
        input: &Input,
        actions: &[Action],
        state_name: &str,
    ) {
        let Input::Answer(attempt, Answer::Failed(kind)) = input else { return };
        let unharmed = matches!(kind, StoreErrorKind::Denied | StoreErrorKind::Invalid) || kind.is_transient();
        if attempt.call == Call::Renew && unharmed && early && campaign.work == Work::Running {
            let ends = |action: &Action| matches!(action, Action::SignalStop | Action::CutOff);
            self.require(Rule::Trouble, !actions.iter().any(ends));
        }
        if attempt.call == Call::Bid && campaign.account.refused.is_some() && before.refused.is_none() {
            self.require(Rule::Trouble, matches!(state_name, "ended" | "releasing"));
        }
        if attempt.call == Call::Bid && kind.is_transient() && !before.stop_asked {
            self.require(Rule::Trouble, !matches!(state_name, "ended"));
        }
    }

    /// Whenever a process runs, what is due is done.
    pub(super) fn audit(&mut self, times: &Times, local: Nanos, campaign: &Campaign) {
        let Campaign { account, work, subject, .. } = campaign;
        let believed = subject.deadline();
        let within = |believed: Nanos| account.deadline.is_some_and(|confirmed| believed <= confirmed);
        self.require(Rule::Confirmed, believed.is_none_or(within));
        if account.definite {
            self.require(
                Rule::LostIsFinal,
                believed.is_none() && matches!(work, Work::None | Work::Lingering | Work::Over),
            );
        }
        if matches!(work, Work::Running | Work::Stopping) {
            self.is_ended_in_time(times, local, campaign);
        }
        if subject.machine().state_name() == "bidding" && !account.was_frozen {
            self.require(Rule::OneCall, local < account.last_sent + times.attempt_timeout + SERVED);
        }
        let winding_up = matches!(work, Work::Lingering) || subject.end().is_some();
        if let Some(over_by) = account.over_by.filter(|_| !winding_up && !account.was_frozen) {
            self.require(Rule::Stops, local <= over_by + SLACK);
        }
    }

    fn is_ended_in_time(&mut self, times: &Times, local: Nanos, campaign: &Campaign) {
        let Campaign { account, work, .. } = campaign;
        let deadline = account.deadline.unwrap_or(0);
        let stop_at = deadline.saturating_sub(times.stop_budget);
        let due = match (work, account.signalled) {
            (Work::Stopping, Some((at, _))) => deadline.min(at + times.stop_budget),
            _ => stop_at,
        };
        self.require(Rule::Ends, local < due + SERVED);
        let near_the_end = account.signalled.is_some() && local > stop_at;
        if !account.gone && !near_the_end && !account.was_frozen {
            // After a success, after a call that hung, after a failure.
            let longest = times.renew_every.max(times.attempt_timeout).max(times.retry_every * 3 / 2);
            self.require(Rule::Renews, local <= account.last_sent + longest + SLACK);
        }
    }

    /// The end of a campaign, with what the store holds then.
    pub(super) fn end(&mut self, state: &State, store_now: Nanos, campaign: &Campaign, end: &End, holds: bool) {
        let Campaign { account, work, who, .. } = campaign;
        self.require(Rule::Pairs, !work.acts());
        match end.cause {
            Cause::Failed(kind) => {
                self.require(Rule::Trouble, !kind.is_transient() && !account.started);
            }
            Cause::Finished | Cause::Lost(_) => self.require(Rule::Pairs, account.started),
            Cause::Stopped | Cause::ShortGrant(_) => {}
        }
        let found = |record: &Record| record.known || Some(record.token) == account.to_be_found;
        let ours = state.lease.present(store_now).filter(|record| record.who == *who && found(record));
        let given_back = matches!(end.release, Release::NotNeeded | Release::Done(Released::Freed));
        let left_to_run_out = account.gone || holds && end.cause == Cause::Finished;
        self.require(Rule::Stops, ours.is_none() || !given_back || left_to_run_out);
    }

    /// The world at one instant: what no single candidate can see.
    pub(super) fn world(&mut self, state: &State, locals: &[Nanos], store_now: Nanos) {
        if !state.broken.store {
            let believes = |h: usize| {
                let campaign = state.hosts[h].campaign.as_ref();
                campaign.and_then(|campaign| campaign.subject.deadline()).is_some_and(|deadline| locals[h] < deadline)
            };
            self.require(Rule::OneLeader, (0..state.hosts.len()).filter(|h| believes(*h)).count() <= 1);
        }
        if state.broken.store || state.broken.work {
            return;
        }
        self.require(Rule::NoOverlap, Self::acting(state) <= 1);
        for host in state.hosts.iter().filter(|host| host.frozen.is_none()) {
            let Some(campaign) = host.campaign.as_ref().filter(|campaign| campaign.work.acts()) else { continue };
            let ours = (campaign.who, campaign.account.token);
            let held = state.lease.present(store_now).is_some_and(|record| (record.who, record.token) == ours);
            self.require(Rule::Held, held);
        }
    }

    /// How many terms' work acts.
    pub(super) fn acting(state: &State) -> usize {
        let running = state.hosts.iter().filter(|host| host.frozen.is_none());
        running.filter(|host| host.campaign.as_ref().is_some_and(|campaign| campaign.work.acts())).count()
    }
}
