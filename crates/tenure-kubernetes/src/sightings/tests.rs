use serde_json::{from_value, json};
use tenure_core::clock::TestClock;

use super::*;

const S: Duration = Duration::from_secs(1);

fn name() -> LeaseName {
    LeaseName::new("nightly").unwrap()
}

/// A record of six seconds, renewed at that second, with a label.
fn renewed(second: u8, label: &str, uid: &str) -> Found {
    let lease = from_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "nightly", "uid": uid, "labels": {"x": label}},
        "spec": {
            "holderIdentity": "x", "leaseDurationSeconds": 6, "leaseTransitions": 4,
            "renewTime": format!("1999-01-01T00:00:{second:02}.000000Z"),
        },
    }));
    Found::parse(&name(), lease.unwrap()).unwrap()
}

/// K09.
#[tokio::test(start_paused = true)]
async fn a_record_runs_out_when_it_has_not_changed_for_its_own_duration_since_it_was_first_seen() {
    let clock = TestClock::new();
    let sightings = Sightings::new(Arc::new(clock.clone()));
    // Its wall clock says that it was renewed decades ago, which means nothing.
    assert_eq!(sightings.remaining(&name(), &renewed(0, "a", "u")), 6 * S);
    clock.advance(4 * S);
    assert_eq!(sightings.remaining(&name(), &renewed(0, "a", "u")), 2 * S);
    assert_eq!(sightings.remaining(&name(), &renewed(1, "a", "u")), 6 * S, "it was renewed");
    clock.advance(6 * S);
    assert_eq!(sightings.remaining(&name(), &renewed(1, "a", "u")), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn labels_that_others_change_prolong_nothing_and_another_object_starts_anew() {
    let clock = TestClock::new();
    let sightings = Sightings::new(Arc::new(clock.clone()));
    sightings.remaining(&name(), &renewed(0, "a", "u"));
    clock.advance(5 * S);
    assert_eq!(sightings.remaining(&name(), &renewed(0, "b", "u")), S);
    assert_eq!(sightings.remaining(&name(), &renewed(0, "b", "later")), 6 * S);
}

#[tokio::test(start_paused = true)]
async fn a_suspend_of_this_host_counts_as_time() {
    let clock = TestClock::new();
    let sightings = Sightings::new(Arc::new(clock.clone()));
    sightings.remaining(&name(), &renewed(0, "a", "u"));
    clock.suspend(7 * S);
    assert_eq!(sightings.remaining(&name(), &renewed(0, "a", "u")), Duration::ZERO);
}

/// K19.
#[tokio::test(start_paused = true)]
async fn the_largest_token_outlives_the_object() {
    let sightings = Sightings::new(Arc::new(TestClock::new()));
    assert_eq!(sightings.highest(&name()), FencingToken(0));
    sightings.remaining(&name(), &renewed(0, "a", "u"));
    assert_eq!(sightings.highest(&name()), FencingToken(4));
}
