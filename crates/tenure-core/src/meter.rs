//! What an election counts and times, told to the recorder of the `metrics` facade that the program has installed.
//!
//! The driver calls it where things happen; it decides nothing. Names and meanings: `docs/metrics.md`. Labels are the name of
//! the lease and of the store's technology, and outcomes from closed lists: nothing that grows with use. All of them are
//! registered when the election is built, so that the first of a kind is seen as a change from 0, and nothing is looked up on
//! the way of a renewal.

use std::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::machine::{Answer, Call};
use crate::{Acquired, FencingToken, LeaseName, LossReason, Renewed, StoreErrorKind};

/// What a bid that was answered was answered with; or a kind of error.
const BIDS: [&str; 2] = ["granted", "held"];
const RENEWALS: [&str; 2] = ["extended", "lost"];
const LOSSES: [&str; 5] = ["superseded", "expired", "removed", "suspended", "malformed"];
const FAILURES: [StoreErrorKind; 6] = [
    StoreErrorKind::Unavailable,
    StoreErrorKind::Unknown,
    StoreErrorKind::Denied,
    StoreErrorKind::Malformed,
    StoreErrorKind::Invalid,
    StoreErrorKind::Unsupported,
];

/// The instruments of one election.
pub(crate) struct Meter {
    leader: Gauge,
    remaining: Gauge,
    token: Gauge,
    transitions: Counter,
    overruns: Counter,
    renewal: Histogram,
    handover: Histogram,
    requests: [(Call, Histogram); 4],
    bids: Counters,
    renewals: Counters,
    losses: Counters,
}

/// A counter for each value of the label that tells them apart.
type Counters = Vec<(&'static str, Counter)>;

impl Meter {
    pub(crate) fn new(name: &LeaseName, store: &str) -> Self {
        describe();
        let labels = [("name", name.as_str().to_owned()), ("store", store.to_owned())];
        let with = |label: &'static str, value: &'static str| {
            let [name, store] = labels.clone();
            [name, store, (label, value.to_owned())]
        };
        let counters = |metric: &'static str, label: &'static str, values: Vec<&'static str>| -> Counters {
            values.into_iter().map(|value| (value, counter!(metric, &with(label, value)))).collect()
        };
        let or_failed =
            |values: [&'static str; 2]| values.into_iter().chain(FAILURES.map(StoreErrorKind::as_str)).collect();
        let requests = [Call::Bid, Call::Renew, Call::Release, Call::Read]
            .map(|call| (call, histogram!("tenure_store_request_duration_seconds", &with("op", op(call)))));
        let meter = Self {
            leader: gauge!("tenure_leader", &labels),
            remaining: gauge!("tenure_lease_remaining_seconds", &labels),
            token: gauge!("tenure_fencing_token", &labels),
            transitions: counter!("tenure_transitions_total", &labels),
            overruns: counter!("tenure_work_overruns_total", &labels),
            renewal: histogram!("tenure_renewal_duration_seconds", &labels),
            handover: histogram!("tenure_handover_duration_seconds", &labels),
            requests,
            bids: counters("tenure_acquire_attempts_total", "outcome", or_failed(BIDS)),
            renewals: counters("tenure_renewals_total", "outcome", or_failed(RENEWALS)),
            losses: counters("tenure_losses_total", "reason", LOSSES.to_vec()),
        };
        meter.stands(None);
        meter
    }

    /// Where the candidate stands now: the time left, or `None` while it does not lead.
    pub(crate) fn stands(&self, leads_for: Option<Duration>) {
        self.leader.set(f64::from(u8::from(leads_for.is_some())));
        self.remaining.set(leads_for.unwrap_or_default().as_secs_f64());
    }

    /// A term began, so long after the lease was known to be free, or after the bid that won it was sent.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 terms")]
    pub(crate) fn elected(&self, token: FencingToken, after: Duration) {
        self.transitions.increment(1);
        self.token.set(token.value() as f64);
        self.handover.record(after);
    }

    /// A term ended otherwise than by the candidate's own will.
    pub(crate) fn lost(&self, reason: &LossReason) {
        count(&self.losses, reason.as_str());
    }

    pub(crate) fn overrun(&self) {
        self.overruns.increment(1);
    }

    /// A store call was answered.
    pub(crate) fn answered(&self, call: Call, answer: &Answer, took: Duration) {
        if let Some((_, histogram)) = self.requests.iter().find(|(of, _)| *of == call) {
            histogram.record(took);
        }
        self.outcome(
            call,
            match answer {
                Answer::Acquired(Acquired::Granted(_)) => "granted",
                Answer::Acquired(Acquired::Held(_)) => "held",
                Answer::Renewed(Renewed::Extended(_)) => {
                    self.renewal.record(took);
                    "extended"
                }
                Answer::Renewed(Renewed::Lost(_)) => "lost",
                Answer::Failed(kind) => kind.as_str(),
                Answer::Released(_) | Answer::Read(_) => return,
            },
        );
    }

    /// A store call is not listened to any more; it may have been carried out.
    pub(crate) fn abandoned(&self, call: Call) {
        self.outcome(call, StoreErrorKind::Unknown.as_str());
    }

    fn outcome(&self, call: Call, outcome: &'static str) {
        match call {
            Call::Bid => count(&self.bids, outcome),
            Call::Renew => count(&self.renewals, outcome),
            Call::Release | Call::Read => {}
        }
    }
}

fn count(counters: &Counters, value: &str) {
    if let Some((_, counter)) = counters.iter().find(|(of, _)| *of == value) {
        counter.increment(1);
    }
}

fn op(call: Call) -> &'static str {
    match call {
        Call::Bid => "acquire",
        Call::Renew => "renew",
        Call::Release => "release",
        Call::Read => "read",
    }
}

fn describe() {
    describe_gauge!("tenure_leader", "1 while this candidate leads");
    describe_gauge!("tenure_lease_remaining_seconds", Unit::Seconds, "Time until the leader's deadline; 0 for others");
    describe_gauge!("tenure_fencing_token", "Number of the term that this candidate leads, or led last");
    describe_counter!("tenure_acquire_attempts_total", "Bids by outcome");
    describe_counter!("tenure_renewals_total", "Renewals by outcome");
    describe_counter!("tenure_transitions_total", "Terms that this candidate began");
    describe_counter!("tenure_losses_total", "Terms that ended against this candidate's will, by reason");
    describe_counter!("tenure_work_overruns_total", "Times that work went on after it was cut off");
    let seconds = Unit::Seconds;
    describe_histogram!("tenure_renewal_duration_seconds", seconds, "Time of confirmed renewals");
    describe_histogram!("tenure_handover_duration_seconds", seconds, "From a lease known to be free to work");
    describe_histogram!("tenure_store_request_duration_seconds", seconds, "Time of store calls that were answered");
}
