use serde_json::{Value, from_value, json, to_value};
use tenure_core::Label;

use super::*;

const MICROS: &str = "2026-11-30T08:15:30.123456Z";

fn name() -> LeaseName {
    LeaseName::new("nightly").unwrap()
}

fn lease(spec: Value) -> Lease {
    from_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "nightly", "uid": "u1", "resourceVersion": "17", "labels": {"team": "x"}},
        "spec": spec,
    }))
    .unwrap()
}

fn found(spec: Value) -> Found {
    Found::parse(&name(), lease(spec)).unwrap()
}

fn by_client_go(holder: &str) -> Value {
    json!({
        "holderIdentity": holder, "leaseDurationSeconds": 6, "leaseTransitions": 4,
        "acquireTime": MICROS, "renewTime": MICROS,
    })
}

fn bid() -> Bid {
    let candidate = CandidateId::draw(&Label::new("worker").unwrap());
    Bid::new(name(), candidate, Duration::from_secs(15)).with_payload(Payload::new("10.0.0.7").unwrap())
}

#[test]
fn a_record_of_client_go_reads_as_any_other() {
    let found = found(by_client_go("pod-1_uuid"));
    let record = found.record(&name(), Duration::from_secs(2)).unwrap();
    assert_eq!((record.holder.as_str(), record.token, record.ttl), ("pod-1_uuid", FencingToken(4), found.ttl));
    assert_eq!((found.ttl, record.remaining), (Duration::from_secs(6), Duration::from_secs(2)));
}

#[test]
fn empty_and_missing_fields_are_a_free_lease() {
    for spec in [json!({}), json!({"holderIdentity": ""}), json!({"holderIdentity": "", "leaseDurationSeconds": 0})] {
        let found = found(spec);
        assert_eq!((found.holder.clone(), found.token), (None, FencingToken(0)));
        let granted = found.granted(&bid(), FencingToken(0)).unwrap();
        assert_eq!(granted.spec.unwrap().lease_transitions, Some(1));
    }
    let mut without_spec = lease(json!({}));
    without_spec.spec = None;
    assert!(Found::parse(&name(), without_spec).unwrap().holder.is_none());
}

#[test]
fn what_never_runs_out_or_is_not_ours_is_refused_with_the_objects_name() {
    let refusal = |lease: Lease| Found::parse(&name(), lease).unwrap_err();
    assert!(refusal(lease(json!({"holderIdentity": "x"}))).contains("the object nightly has a holder and no"));
    let held = |key: &str, value: Value| {
        let mut spec = by_client_go("x");
        spec[key] = value;
        lease(spec)
    };
    assert!(refusal(held("leaseDurationSeconds", json!(0))).contains("never runs out"));
    assert!(refusal(held("leaseTransitions", json!(-1))).contains("negative"));
    assert!(refusal(held("strategy", json!("OldestEmulationVersion"))).contains("the cluster itself"));
    let mut noted = lease(by_client_go("x"));
    noted.metadata.annotations = Some([(TOKEN.to_owned(), "first".to_owned())].into());
    assert!(refusal(noted).contains("no number"));
}

#[test]
fn a_hashed_object_must_say_which_lease_it_keeps() {
    let hashed = LeaseName::new("Nightly").unwrap();
    let bid = Bid::new(hashed.clone(), bid().candidate, Duration::from_secs(15));
    let mut object = created(&bid, FencingToken(0)).unwrap();
    assert!(Found::parse(&hashed, object.clone()).is_ok());
    assert_eq!(name_of(&object), Some(hashed.clone()));
    note(&mut object.metadata, Some(&name()), None, &Payload::default());
    assert!(Found::parse(&hashed, object).unwrap_err().contains("of another lease"));
}

#[test]
fn the_token_is_above_all_that_anybody_wrote() {
    let mut object = lease(by_client_go("x"));
    note(&mut object.metadata, None, Some(9), &Payload::default());
    let found = Found::parse(&name(), object).unwrap();
    assert_eq!(found.token, FencingToken(9));
    let token = |above| found.granted(&bid(), FencingToken(above)).unwrap().spec.unwrap().lease_transitions;
    assert_eq!((token(0), token(20)), (Some(10), Some(21)));
    let spent = self::found(json!({"leaseTransitions": i32::MAX}));
    assert!(spent.granted(&bid(), FencingToken(0)).is_none());
}

/// K05.
#[test]
fn every_write_is_bound_to_the_object_that_was_read_and_keeps_what_others_put_there() {
    let found = found(by_client_go(""));
    for written in [found.granted(&bid(), FencingToken(0)).unwrap(), found.extended(found.ttl), found.released()] {
        assert_eq!(
            (written.metadata.uid.as_deref(), written.metadata.resource_version.as_deref()),
            (Some("u1"), Some("17"))
        );
        assert_eq!(written.metadata.labels.unwrap()["team"], "x");
    }
}

#[test]
fn a_renewal_changes_the_record_and_a_release_looks_like_client_gos() {
    let held = found(by_client_go("x"));
    let renewed = held.extended(Duration::from_millis(6_500)).spec.unwrap();
    assert_ne!(renewed.renew_time, held.spec.renew_time);
    assert_eq!((renewed.acquire_time.as_ref(), renewed.lease_transitions), (held.spec.acquire_time.as_ref(), Some(4)));
    assert_eq!(renewed.lease_duration_seconds, Some(7), "a rest is rounded up");
    let released = to_value(held.released().spec.unwrap()).unwrap();
    assert_eq!(released["holderIdentity"], "");
    assert_eq!((&released["leaseDurationSeconds"], &released["leaseTransitions"]), (&json!(1), &json!(4)));
}

#[test]
fn times_have_six_digits_as_the_server_demands() {
    let granted = to_value(found(json!({})).granted(&bid(), FencingToken(0)).unwrap()).unwrap();
    for field in ["acquireTime", "renewTime"] {
        let text = granted["spec"][field].as_str().unwrap();
        assert_eq!((text.len(), &text[19..20]), (MICROS.len(), "."), "{text}");
    }
}

#[test]
fn the_payload_is_its_holders() {
    let granted = found(json!({})).granted(&bid(), FencingToken(0)).unwrap();
    let found = Found::parse(&name(), granted).unwrap();
    assert_eq!(found.record(&name(), Duration::ZERO).unwrap().payload.as_str(), "10.0.0.7");
    let next = bid().with_payload(Payload::default());
    let taken = Found::parse(&name(), found.granted(&next, FencingToken(0)).unwrap()).unwrap();
    assert!(taken.record(&name(), Duration::ZERO).unwrap().payload.is_empty());
}
