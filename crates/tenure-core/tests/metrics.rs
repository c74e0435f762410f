//! What an election tells the recorder of the `metrics` facade.

#![allow(clippy::cast_precision_loss, reason = "small counts")]

mod bench;

use std::collections::HashMap;
use std::future::pending;

use bench::{Bench, S, TTL};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tenure_core::{CancellationToken, Ended, Fault, Operation, StoreErrorKind};

/// What was recorded on this thread so far, by `metric` or `metric{label}`.
struct Seen {
    snapshotter: Snapshotter,
    all: HashMap<String, f64>,
}

impl Seen {
    /// The recorder to install, and what it will have seen.
    fn new() -> (DebuggingRecorder, Self) {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        (recorder, Self { snapshotter, all: HashMap::new() })
    }

    /// Takes what was recorded since the last look. That leaves gauges at 0 until they are set again.
    fn look(&mut self) {
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let mut labels: Vec<_> = key.key().labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!(labels.drain(..2).collect::<Vec<_>>(), [("name", bench::NAME), ("store", "memory")]);
            let more: String = labels.iter().map(|(_, value)| format!("{{{value}}}")).collect();
            let total = self.all.entry(key.key().name().to_owned() + &more).or_default();
            match value {
                DebugValue::Counter(count) => *total += count as f64,
                DebugValue::Gauge(value) => *total = value.into_inner(),
                DebugValue::Histogram(values) => *total += values.len() as f64,
            }
        }
    }

    fn value(&self, of: &str) -> f64 {
        *self.all.get(of).unwrap_or_else(|| panic!("{of} is not there, but {:?}", self.all.keys()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_term_is_seen_from_its_bid_to_its_end() {
    let (recorder, mut seen) = Seen::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let bench = Bench::new();
    let election = bench.election("a");
    seen.look();
    assert_eq!(seen.value("tenure_leader"), 0.0, "known before anything happens");
    let (stop, runs) = (CancellationToken::new(), election.clone());
    let shutdown = stop.clone();
    let run = tokio::spawn(async move { runs.run_as_leader(shutdown, |_| pending::<()>()).await });
    bench.pass(TTL).await;
    seen.look();
    assert_eq!(seen.value("tenure_leader"), 1.0);
    assert_eq!(seen.value("tenure_fencing_token"), 1.0);
    assert_eq!(seen.value("tenure_transitions_total"), 1.0);
    assert_eq!(seen.value("tenure_handover_duration_seconds"), 1.0);
    let before = seen.value("tenure_lease_remaining_seconds");
    bench.clock.advance(S);
    election.record_standing();
    seen.look();
    let left = seen.value("tenure_lease_remaining_seconds");
    assert!(left > 0.0 && left <= before - 0.9, "{left} of {before} s are left a second later");
    stop.cancel();
    assert_eq!(run.await.unwrap().unwrap(), Ended::Shutdown);
    seen.look();
    assert_eq!(seen.value("tenure_leader"), 0.0);
    assert_eq!(seen.value("tenure_lease_remaining_seconds"), 0.0);
    assert_eq!(seen.value("tenure_losses_total{expired}"), 0.0, "a planned stop is no loss");
    assert_eq!(seen.value("tenure_store_request_duration_seconds{release}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_counted_by_what_they_were() {
    let (recorder, mut seen) = Seen::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let bench = Bench::new();
    let first = bench.election("a").campaign().await.unwrap();
    let waiting = bench.election("b");
    let waits = tokio::spawn(async move { waiting.campaign().await });
    bench.pass(TTL).await;
    seen.look();
    assert_eq!(seen.value("tenure_acquire_attempts_total{granted}"), 1.0);
    assert!(seen.value("tenure_acquire_attempts_total{held}") >= 1.0);
    let extended = seen.value("tenure_renewals_total{extended}");
    assert!(extended >= 2.0, "{extended}");
    assert_eq!(seen.value("tenure_renewal_duration_seconds"), extended);
    assert_eq!(seen.value("tenure_renewals_total{unavailable}"), 0.0, "there from the beginning");
    bench.faults(|call| match call.operation {
        Operation::Renew => Fault::Fail(StoreErrorKind::Unavailable),
        _ => Fault::None,
    });
    assert_eq!(first.lost().await.as_str(), "expired");
    let _second = waits.await.unwrap().unwrap();
    seen.look();
    assert_eq!(seen.value("tenure_losses_total{expired}"), 1.0);
    assert!(seen.value("tenure_renewals_total{unavailable}") >= 1.0);
    assert_eq!(seen.value("tenure_transitions_total"), 2.0);
    assert_eq!(seen.value("tenure_fencing_token"), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_counted_as_unknown() {
    let (recorder, mut seen) = Seen::new();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let bench = Bench::new();
    let lead = bench.election("a").campaign().await.unwrap();
    bench.faults(|call| match call.operation {
        Operation::Renew => Fault::LoseReply,
        _ => Fault::None,
    });
    lead.lost().await;
    drop(lead);
    bench.until_free().await;
    seen.look();
    assert!(seen.value("tenure_renewals_total{unknown}") >= 1.0);
    assert_eq!(seen.value("tenure_losses_total{expired}"), 1.0);
}
