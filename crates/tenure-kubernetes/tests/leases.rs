//! What the rules of client-go, other people's manifests and other people's hands do to a lease.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::time::Duration;

use bench::*;
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use tenure_core::{
    Acquired, Bid, Election, FencingToken, LeaseName, LeaseStore, LossReason, Released, Renewed, StoreErrorKind,
    Timing, WakeUp,
};
use tenure_kubernetes::{k8s_openapi, kube};

async fn annotate(name: &LeaseName, value: &str) {
    let patch = serde_json::json!({"metadata": {"labels": {"x": value}, "annotations": {"helm.sh/release": value}}});
    leases().await.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn an_object_made_by_a_manifest_with_empty_or_missing_fields_is_free() {
    let specs = [
        None,
        Some(LeaseSpec::default()),
        Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            ..LeaseSpec::default()
        }),
    ];
    let store = store().await;
    for spec in specs {
        let name = fresh("manifest");
        put(&name, spec).await;
        assert_eq!(store.read(&name).await.unwrap(), None);
        let grant = granted(&store, &bid(&name)).await;
        assert_eq!((grant.token, grant.after_release), (FencingToken(1), true));
        assert_eq!(object(&name).await.spec.unwrap().lease_transitions, Some(1));
    }
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn labels_and_annotations_that_others_change_disturb_no_term_and_are_kept() {
    let (store, name) = (store().await, fresh("labelled"));
    let grant = granted(&store, &bid(&name)).await;
    annotate(&name, "one").await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    // Between read and write, again and again.
    let busy = {
        let name = name.clone();
        tokio::spawn(async move {
            for n in 0..40 {
                annotate(&name, &n.to_string()).await;
            }
        })
    };
    let mut confirmed = 0;
    while !busy.is_finished() {
        match store.renew(&grant).await {
            Ok(Renewed::Extended(_)) => confirmed += 1,
            Ok(lost) => panic!("{lost:?}"),
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}"),
        }
    }
    busy.await.unwrap();
    assert!(confirmed > 0);
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    let metadata = object(&name).await.metadata;
    assert_eq!(metadata.labels.unwrap()["x"], "39");
    assert_eq!(metadata.annotations.unwrap()["helm.sh/release"], "39");
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_renewal_that_meets_a_deleted_object_never_makes_it_again() {
    let (store, name) = (store().await, fresh("deleted"));
    let grant = granted(&store, &bid(&name)).await;
    leases().await.delete(name.as_str(), &DeleteParams::default()).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(store.release(&grant).await.unwrap(), Released::NotHeld);
    assert!(leases().await.get_opt(name.as_str()).await.unwrap().is_none());
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn an_object_that_was_deleted_and_made_again_is_another_terms() {
    let (store, name) = (store().await, fresh("re-created"));
    let first = granted(&store, &bid(&name)).await;
    let before = object(&name).await;
    leases().await.delete(name.as_str(), &DeleteParams::default()).await.unwrap();
    assert_eq!(store.renew(&first).await.unwrap(), Renewed::Lost(LossReason::Removed));
    // The very same record under another uid, as a backup tool would restore it.
    let mut copy = before.clone();
    (copy.metadata.uid, copy.metadata.resource_version, copy.metadata.managed_fields) = (None, None, None);
    leases().await.create(&PostParams::default(), &copy).await.unwrap();
    assert_eq!(store.renew(&first).await.unwrap(), Renewed::Lost(LossReason::Removed));
    assert_eq!(store.release(&first).await.unwrap(), Released::NotHeld);
    // Who saw the first object counts on.
    leases().await.delete(name.as_str(), &DeleteParams::default()).await.unwrap();
    assert!(granted(&store, &bid(&name)).await.token > first.token);
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn an_object_deleted_while_led_ends_the_term_in_a_round_trip() {
    let (store, name) = (store().await, fresh("watched"));
    let timing = Timing::with_ttl(Duration::from_secs(60)).unwrap();
    let election = Election::builder(name.as_str(), store).timing(timing).build().unwrap();
    let lead = election.campaign().await.unwrap();
    // A leader's watch stands a moment after the grant.
    tokio::time::sleep(Duration::from_millis(500)).await;
    leases().await.delete(name.as_str(), &DeleteParams::default()).await.unwrap();
    // Long before the next renewal, which is due after twenty seconds.
    let reason = tokio::time::timeout(Duration::from_secs(8), lead.lost()).await.expect("noticed by the watch");
    assert_eq!(reason, LossReason::Removed);
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_name_that_is_no_dns_name_is_kept_under_its_hash() {
    let store = store().await;
    let name = LeaseName::new(format!("Nightly Run/{}", fresh("x"))).unwrap();
    let grant = granted(&store, &bid(&name)).await;
    let all = leases().await.list(&kube::api::ListParams::default()).await.unwrap();
    let named = |lease: &Lease| lease.metadata.annotations.as_ref().and_then(|all| all.get("tenure.rs/name").cloned());
    let object = all.items.iter().find(|lease| named(lease).as_deref() == Some(name.as_str())).unwrap();
    assert!(object.metadata.name.as_ref().unwrap().starts_with("tenure-x-"));
    // Somebody points the object at another lease.
    let patch = serde_json::json!({"metadata": {"annotations": {"tenure.rs/name": "other"}}});
    let object = object.metadata.name.clone().unwrap();
    leases().await.patch(&object, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Malformed);
}

/// K13.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_fractional_ttl_is_refused_and_not_rounded() {
    let store = store().await;
    let error = store.try_acquire(&bid_for(&fresh("fraction"), Duration::from_millis(1500))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("multiples of 1s only"), "{error}");
    let timing = Timing::with_ttl(Duration::from_millis(2500)).unwrap();
    let error = Election::builder("fraction", store).timing(timing).build().unwrap_err();
    assert!(error.to_string().contains("multiples of 1s only"), "{error}");
}

/// K04.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_restart_with_the_same_label_never_leads_on_the_old_record() {
    let (store, name) = (store().await, fresh("restarted"));
    let first = granted(&store, &bid(&name)).await;
    // The process is gone, and starts again: the same label, another candidate.
    let again = self::store().await;
    assert_eq!(held(&again, &bid(&name)).await.holder, first.candidate);
    assert_eq!(store.release(&first).await.unwrap(), Released::Freed);
    let second = granted(&again, &bid(&name)).await;
    assert!(second.token > first.token);
    // A candidate that never led releases nothing.
    let never = tenure_core::Grant::new(name.clone(), candidate("worker"), second.token, second.ttl);
    assert_eq!(again.release(&never).await.unwrap(), Released::NotHeld);
    assert_eq!(again.read(&name).await.unwrap().unwrap().holder, second.candidate);
}

/// K09.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn the_holders_wall_clock_means_nothing() {
    let store = store().await;
    for hours in [-1, 1] {
        let name = fresh("skewed");
        let at = k8s_openapi::jiff::Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_hours(hours);
        let at = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at));
        let spec = LeaseSpec {
            holder_identity: Some("skewed".into()),
            lease_duration_seconds: Some(2),
            lease_transitions: Some(3),
            acquire_time: at.clone(),
            renew_time: at,
            ..LeaseSpec::default()
        };
        put(&name, Some(spec)).await;
        let begun = std::time::Instant::now();
        let bid = Bid::new(name.clone(), candidate("worker"), TTL);
        assert_eq!(held(&store, &bid).await.token, FencingToken(3));
        let grant = loop {
            match store.try_acquire(&bid).await.unwrap() {
                Acquired::Granted(grant) => break grant,
                Acquired::Held(record) => tokio::time::sleep(record.remaining.min(Duration::from_millis(100))).await,
            }
        };
        assert!(begun.elapsed() >= Duration::from_secs(2), "taken after {:?}", begun.elapsed());
        assert_eq!((grant.token, grant.after_release), (FencingToken(4), false));
    }
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_watch_tells_grant_release_and_removal_and_of_no_renewal() {
    let (store, name) = (store().await, fresh("watch"));
    let mut watch = store.watch(&name);
    let next = async |watch: &mut futures::stream::BoxStream<'static, WakeUp>| {
        tokio::time::timeout(LONG, watch.next()).await.expect("a wake-up").unwrap()
    };
    assert_eq!(next(&mut watch).await, WakeUp::Resync, "it stands");
    let grant = granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    annotate(&name, "x").await;
    assert!(tokio::time::timeout(Duration::from_millis(300), watch.next()).await.is_err(), "a renewal woke");
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert_eq!(next(&mut watch).await, WakeUp::Vacated);
    granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    leases().await.delete(name.as_str(), &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut watch).await, WakeUp::Vacated);
}

/// K08.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_follower_that_watches_takes_over_a_ttl_after_the_last_renewal_and_not_after_its_own_last_look() {
    let (holder, follower, name) = (store().await, store().await, fresh("dead"));
    let ttl = Duration::from_secs(3);
    let grant = granted(&holder, &bid_for(&name, ttl)).await;
    let mut watch = follower.watch(&name);
    assert_eq!(watch.next().await, Some(WakeUp::Resync));
    let hears = tokio::spawn(async move { while watch.next().await.is_some() {} });
    held(&follower, &bid(&name)).await;
    tokio::time::sleep(ttl / 2).await;
    assert_eq!(holder.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    let renewed = std::time::Instant::now();
    // Nobody looks until the lease has run out; without the watch the record would be new to the follower here.
    tokio::time::sleep(ttl + Duration::from_millis(300)).await;
    let next = granted(&follower, &bid(&name)).await;
    assert!(next.token > grant.token && renewed.elapsed() < ttl + Duration::from_secs(2));
    hears.abort();
}
