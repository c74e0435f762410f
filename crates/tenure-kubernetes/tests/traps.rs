//! Traps of the API server and of its client, each seen in the field.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::path::Path;
use std::time::{Duration, Instant};

use bench::gate::Gate;
use bench::proxy::{Mode as Bytes, Proxy};
use bench::wire::{Mode, Wire};
use bench::*;
use futures::StreamExt;
use kube::api::{Patch, PatchParams};
use tenure_core::{
    Acquired, CandidateId, Election, LeaseStore, LossReason, Released, Renewed, StoreErrorKind, Timing, WakeUp,
};
use tenure_kubernetes::{KubernetesStore, kube};
use tokio::sync::RwLock;

/// Faults of the whole server alone, all else beside each other.
static SERVER: RwLock<()> = RwLock::const_new(());

/// A store of the user with the minimal Role, behind `wire`.
async fn behind(wire: &Wire) -> KubernetesStore {
    admin().await;
    let user = client(Path::new(&variable("TENURE_TEST_KUBERNETES_USER_CONFIG"))).await;
    KubernetesStore::new(wire.around(&user), NAMESPACE)
}

/// K11.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_write_that_was_applied_and_answered_with_504_is_unknown_and_then_recognised() {
    let _shared = SERVER.read().await;
    let (wire, name) = (Wire::default(), fresh("applied"));
    let store = behind(&wire).await;
    let bid = bid(&name);
    for code in [500, 503, 504] {
        wire.set(Mode::AnswerAfterwards(code));
        assert_eq!(store.try_acquire(&bid).await.unwrap_err().kind(), StoreErrorKind::Unknown, "{code}");
    }
    wire.set(Mode::Pass);
    let grant = granted(&store, &bid).await;
    assert_eq!(object(&name).await.spec.unwrap().lease_transitions, Some(1), "it was one grant");
    wire.set(Mode::AnswerAfterwards(504));
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    wire.set(Mode::Pass);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    wire.set(Mode::AnswerAfterwards(504));
    assert_eq!(store.release(&grant).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    wire.set(Mode::Pass);
    assert_eq!(store.release(&grant).await.unwrap(), Released::NotHeld);
    assert_eq!(store.read(&name).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_client_that_repeats_writes_gets_a_conflict_with_itself_and_still_leads() {
    let _shared = SERVER.read().await;
    let (wire, name) = (Wire::default(), fresh("repeated"));
    let store = behind(&wire).await;
    // What a repeated write that was applied the first time is answered with.
    wire.set(Mode::AnswerAfterwards(409));
    let bid = bid(&name);
    let grant = granted(&store, &bid).await;
    assert_eq!(object(&name).await.spec.unwrap().holder_identity.as_deref(), Some(bid.candidate.as_str()));
    // The renewal sees itself as the holder and tries on; it never calls itself lost.
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    wire.set(Mode::Pass);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant));
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_cut_in_the_middle_of_a_write_is_unknown() {
    let _shared = SERVER.read().await;
    admin().await;
    let proxy = Proxy::to(&server()).await;
    let (store, name) = (store_at(&proxy.address).await, fresh("cut"));
    let grant = granted(&store, &bid(&name)).await;
    let renewing = {
        let (store, grant) = (store.clone(), grant.clone());
        tokio::spawn(async move {
            let mut kinds = Vec::new();
            for _ in 0..200 {
                match store.renew(&grant).await {
                    Ok(Renewed::Extended(_)) => {}
                    Ok(lost) => panic!("{lost:?}"),
                    Err(error) => kinds.push(error.kind()),
                }
            }
            kinds
        })
    };
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(25)).await;
        proxy.set(Bytes::Cut);
        proxy.set(Bytes::Pass);
    }
    let kinds = renewing.await.unwrap();
    assert!(kinds.iter().all(|kind| kind.is_transient()), "{kinds:?}");
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant));
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_silent_network_costs_one_call_and_no_client() {
    let _shared = SERVER.read().await;
    admin().await;
    let proxy = Proxy::to(&server()).await;
    let (store, name) = (store_at(&proxy.address).await, fresh("silent"));
    let grant = granted(&store, &bid(&name)).await;
    proxy.kill_standing();
    let begun = Instant::now();
    let error = store.renew(&grant).await.unwrap_err();
    assert!(error.kind().is_transient() && begun.elapsed() < Duration::from_secs(4), "{error} {:?}", begun.elapsed());
    until("the next connection works", || async { store.renew(&grant).await.is_ok() }).await;
}

/// K17.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_watch_goes_on_after_a_cut_and_after_410() {
    let _shared = SERVER.read().await;
    let proxy = Proxy::to(&server()).await;
    let (store, elsewhere, name) = (store_at(&proxy.address).await, store().await, fresh("gone"));
    let mut watch = store.watch(&name);
    assert_eq!(watch.next().await, Some(WakeUp::Resync));
    let grant = granted(&elsewhere, &bid(&name)).await;
    assert_eq!(watch.next().await, Some(WakeUp::Taken));
    proxy.set(Bytes::Cut);
    assert_eq!(elsewhere.release(&grant).await.unwrap(), Released::Freed);
    proxy.set(Bytes::Pass);
    let told = tokio::time::timeout(LONG, watch.next()).await.unwrap();
    assert!(matches!(told, Some(WakeUp::Resync | WakeUp::Vacated)), "{told:?}");
    // A version that the server has forgotten, as after a long sleep of this host.
    let wire = Wire::default();
    let behind = behind(&wire).await;
    wire.set(Mode::AnswerInstead(410));
    let mut watch = behind.watch(&name);
    let pending = tokio::time::timeout(Duration::from_millis(300), watch.next()).await;
    assert!(pending.is_err(), "{pending:?}");
    wire.set(Mode::Pass);
    assert_eq!(tokio::time::timeout(LONG, watch.next()).await.unwrap(), Some(WakeUp::Resync));
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_right_lost_in_mid_term_stops_the_work_by_the_deadline_and_never_later() {
    let _shared = SERVER.read().await;
    let (wire, name) = (Wire::default(), fresh("forbidden"));
    let store = behind(&wire).await;
    let timing = Timing::with_ttl(Duration::from_secs(3)).unwrap();
    let election = Election::builder(name.as_str(), store).timing(timing).build().unwrap();
    let lead = election.campaign().await.unwrap();
    wire.set(Mode::AnswerInstead(403));
    let begun = Instant::now();
    let reason = tokio::time::timeout(LONG, lead.lost()).await.expect("the deadline comes");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    match reason {
        LossReason::Expired { kind, .. } => assert_eq!(kind, Some(StoreErrorKind::Denied)),
        other => panic!("{other:?}"),
    }
    // A campaign ends with it.
    let refused = tokio::time::timeout(LONG, election.campaign()).await.expect("an answer").unwrap_err();
    assert!(refused.to_string().contains("denied"), "{refused}");
}

/// K01.
#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_server_frozen_for_longer_than_the_ttl_and_restarted_costs_the_term_and_no_more() {
    let _alone = SERVER.write().await;
    let (store, name) = (store().await, fresh("frozen"));
    let timing = Timing::with_ttl(Duration::from_secs(3)).unwrap();
    let election = Election::builder(name.as_str(), store.clone()).timing(timing).build().unwrap();
    let lead = election.campaign().await.unwrap();
    let token = lead.token();
    fault("pause", "kubernetes").await;
    let begun = Instant::now();
    let reason = tokio::time::timeout(LONG, lead.lost()).await.expect("the deadline needs no server");
    assert!(matches!(reason, LossReason::Expired { .. }), "{reason:?}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    fault("resume", "kubernetes").await;
    for verb in ["kill", "start", "wait"] {
        fault(verb, "kubernetes").await;
    }
    let again = tokio::time::timeout(LONG, election.campaign()).await.expect("the server is back").unwrap();
    assert!(again.token() > token);
    again.resign().await.unwrap();
}

/// A kubeconfig that leads to `gate`, with a token and an authority in files of their own.
fn config_of(gate: &Gate, token: &TempFile, ca: &TempFile) -> TempFile {
    TempFile::new(&kubeconfig(&gate.address, &format!("tokenFile: \"{}\"", token.path()), &ca.path()))
}

/// Longer than a store by URL waits before it reads its files anew.
const A_WHILE: Duration = Duration::from_millis(1100);

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_token_that_rotates_on_disk_is_used_in_the_very_call_that_is_refused() {
    let _shared = SERVER.read().await;
    admin().await;
    let (gate, authority) = Gate::open("first").await;
    let (token, ca) = (TempFile::new("first"), TempFile::new(&authority));
    let config = config_of(&gate, &token, &ca);
    let (store, name) = (connect(NAMESPACE, &config).await.unwrap(), fresh("token"));
    let grant = granted(&store, &bid(&name)).await;
    gate.rotate_token("second");
    tokio::time::sleep(A_WHILE).await;
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    token.write("second");
    tokio::time::sleep(A_WHILE).await;
    // The client remembers a token for a minute.
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant));
    for secret in ["first", "second"] {
        assert!(!format!("{error} {error:?} {store:?}").contains(&format!("Bearer {secret}")));
    }
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_certificate_authority_that_rotates_makes_the_client_anew() {
    let _shared = SERVER.read().await;
    admin().await;
    let (gate, authority) = Gate::open("token").await;
    let (token, ca) = (TempFile::new("token"), TempFile::new(&authority));
    let config = config_of(&gate, &token, &ca);
    let (store, name) = (connect(NAMESPACE, &config).await.unwrap(), fresh("ca"));
    let grant = granted(&store, &bid(&name)).await;
    let rotated = gate.rotate_authority();
    tokio::time::sleep(A_WHILE).await;
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("certificate is not trusted"), "{error}");
    ca.write(&rotated);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant));
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_client_of_the_services_own_is_never_replaced() {
    let _shared = SERVER.read().await;
    admin().await;
    let (gate, authority) = Gate::open("first").await;
    let (token, ca) = (TempFile::new("first"), TempFile::new(&authority));
    let config = config_of(&gate, &token, &ca);
    let own = client(&config.0).await;
    let (store, name) = (KubernetesStore::new(own, NAMESPACE), fresh("own"));
    let grant = granted(&store, &bid(&name)).await;
    gate.rotate_token("second");
    token.write("second");
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(store.renew(&grant).await.unwrap_err().kind(), StoreErrorKind::Denied);
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn somebody_else_who_writes_between_read_and_write_is_the_holder() {
    let _shared = SERVER.read().await;
    let (wire, name) = (Wire::default(), fresh("between"));
    let (slow, quick) = (behind(&wire).await, store().await);
    // Made free first, so that both replace.
    put(&name, None).await;
    wire.set(Mode::DelayRequests(Duration::from_millis(500)));
    let bids = [bid(&name), bid(&name)];
    let (lost, won) = tokio::join!(slow.try_acquire(&bids[0]), async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        quick.try_acquire(&bids[1]).await
    });
    assert!(matches!(won.unwrap(), Acquired::Granted(_)));
    match lost.unwrap() {
        Acquired::Held(record) => assert_eq!(record.holder, bids[1].candidate),
        Acquired::Granted(grant) => panic!("{grant:?}"),
    }
}

#[tokio::test]
#[ignore = "needs kubernetes: run integration/test.sh"]
async fn a_holder_changed_by_hand_supersedes() {
    let _shared = SERVER.read().await;
    let (store, name) = (store().await, fresh("by-hand"));
    let grant = granted(&store, &bid(&name)).await;
    let patch = serde_json::json!({"spec": {"holderIdentity": "somebody"}});
    leases().await.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let by = Some(CandidateId::from_wire("somebody").unwrap());
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
    let patch = serde_json::json!({"spec": {"leaseDurationSeconds": null}});
    leases().await.patch(name.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let error = store.try_acquire(&bid(&name)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Malformed);
    assert!(error.to_string().contains(name.as_str()), "{error}");
}
