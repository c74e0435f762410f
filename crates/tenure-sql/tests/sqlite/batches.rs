//! Many renewals in one statement.

use tenure_core::{FencingToken, Grant, LeaseStore, LossReason, Released, Renewed, StoreErrorKind};

use crate::bench::{Bench, TTL, bid, granted, name, run};

#[tokio::test]
async fn a_batch_answers_as_renewals_one_by_one_do() {
    let bench = Bench::new();
    let store = bench.open().await;
    let mut grants = Vec::new();
    for n in 0..300 {
        grants.push(granted(&store, &bid(&format!("lease-{n}"))).await);
    }
    assert_eq!(store.release(&grants[7]).await.unwrap(), Released::Freed);
    assert_eq!(store.release(&grants[8]).await.unwrap(), Released::Freed);
    let successor = granted(&store, &bid("lease-8")).await;
    run(&mut bench.raw().await, "DELETE FROM tenure_leases WHERE name = 'lease-9'").await;
    grants[10].token = FencingToken(99);
    run(&mut bench.raw().await, "UPDATE tenure_leases SET expires_at = 0 WHERE name = 'lease-11'").await;
    run(&mut bench.raw().await, "UPDATE tenure_leases SET expires_at = expires_at - 1000000").await;
    let answers = store.renew_many(&grants).await;
    assert_eq!(answers.len(), grants.len());
    for (n, (grant, answer)) in grants.iter().zip(answers).enumerate() {
        let expected = match n {
            7 | 9 => Renewed::Lost(LossReason::Removed),
            8 => Renewed::Lost(LossReason::Superseded { by: Some(successor.candidate.clone()) }),
            10 => Renewed::Lost(LossReason::Superseded { by: Some(grant.candidate.clone()) }),
            11 => Renewed::Lost(LossReason::EXPIRED),
            _ => Renewed::Extended(grant.clone()),
        };
        assert_eq!(answer.unwrap(), expected, "lease-{n}");
    }
    let left = store.read(&name("lease-299")).await.unwrap().unwrap().remaining;
    assert!(left > TTL - std::time::Duration::from_millis(900), "not extended: {left:?}");
}

#[tokio::test]
async fn ttls_of_a_batch_are_each_its_own_and_a_bad_one_spoils_nothing() {
    let bench = Bench::new();
    let store = bench.open().await;
    let long = granted(&store, &bid("long")).await.with_ttl(TTL * 2);
    let twice = granted(&store, &bid("twice")).await;
    let bad = granted(&store, &bid("bad")).await.with_ttl(std::time::Duration::ZERO);
    let grants: Vec<Grant> = vec![long.clone(), twice.clone(), twice.clone(), bad.clone()];
    let answers = store.renew_many(&grants).await;
    assert_eq!(answers[0].as_ref().unwrap(), &Renewed::Extended(long.clone()));
    assert_eq!(answers[1].as_ref().unwrap(), &Renewed::Extended(twice.clone()));
    assert_eq!(answers[2].as_ref().unwrap(), &Renewed::Extended(twice.clone()));
    assert_eq!(answers[3].as_ref().unwrap_err().kind(), StoreErrorKind::Invalid);
    let answers = store.renew_many(&[long.clone(), twice.clone(), bad]).await;
    assert!(answers[0].is_ok() && answers[1].is_ok() && answers[2].is_err());
    let answers = store.renew_many(&[long.clone(), twice]).await;
    assert!(answers.iter().all(Result::is_ok));
    assert!(store.read(&long.name).await.unwrap().unwrap().remaining > TTL * 3 / 2);
    assert!(store.read(&name("twice")).await.unwrap().unwrap().remaining <= TTL);
    assert!(store.renew_many(&[]).await.is_empty());
}

#[tokio::test]
async fn a_batch_that_cannot_be_written_is_told_for_each_lease() {
    let bench = Bench::new();
    let store = bench.open().await;
    let grants = [granted(&store, &bid("a")).await, granted(&store, &bid("b")).await];
    let mut raw = bench.raw().await;
    run(&mut raw, "BEGIN IMMEDIATE").await;
    for (answer, grant) in store.renew_many(&grants).await.into_iter().zip(&grants) {
        let error = answer.unwrap_err();
        assert_eq!((error.kind(), error.lease()), (StoreErrorKind::Unavailable, Some(&grant.name)));
        assert!(error.to_string().contains("is locked by another connection"), "{error}");
    }
    run(&mut raw, "ROLLBACK").await;
    assert!(store.renew_many(&grants).await.into_iter().all(|answer| matches!(answer, Ok(Renewed::Extended(_)))));
}
