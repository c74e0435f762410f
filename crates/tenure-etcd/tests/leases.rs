//! Grants, renewals, releases and reads on a real server, and the traps of etcd's leases.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::time::Duration;

use bench::*;
use etcd_client::{PutOptions, Txn, TxnOp};
use futures::StreamExt;
use tenure_core::{
    Bid, FencingToken, Grant, LeaseName, LeaseStore, LossReason, Payload, Receipt, Released, Renewed, StoreErrorKind,
};
use tenure_etcd::{EtcdStore, etcd_client};

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_free_lease_is_granted_with_the_revision_that_made_its_key_as_token() {
    let (store, name) = (store().await, fresh("free"));
    let grant = granted(&store, &bid(&name)).await;
    let record = raw_record(&store, &name).await.unwrap();
    assert_eq!(record.create_revision().unsigned_abs(), grant.token.value());
    assert_eq!((grant.ttl, grant.after_release), (TTL, false));
    assert!(seconds_left(record.lease()).await >= 0, "the key is bound to a lease that lives");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_held_lease_shows_holder_payload_and_time_left() {
    let (store, name) = (store().await, fresh("held"));
    let first = bid(&name).with_payload(Payload::new("10.0.0.7:8080").unwrap());
    let grant = granted(&store, &first).await;
    for record in [held(&store, &bid(&name)).await, store.read(&name).await.unwrap().unwrap()] {
        assert_eq!((&record.holder, record.token), (&first.candidate, grant.token));
        assert_eq!((record.payload.as_str(), record.ttl), ("10.0.0.7:8080", TTL));
        assert!(record.remaining > Duration::ZERO && record.remaining <= TTL, "{:?}", record.remaining);
        assert!(record.acquired_at.is_some());
        assert_eq!(record.grant_of(&first.candidate), Some(grant.clone()), "the holder finds its grant in the record");
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn of_64_bids_at_once_one_is_granted() {
    let (store, name) = (store().await, fresh("race"));
    let mut last = FencingToken(0);
    for _ in 0..20 {
        let bids = (0..64).map(|_| async { store.try_acquire(&bid(&name)).await.unwrap() });
        let outcomes = futures::future::join_all(bids).await;
        let grants: Vec<Grant> = outcomes
            .into_iter()
            .filter_map(|outcome| match outcome {
                tenure_core::Acquired::Granted(grant) => Some(grant),
                tenure_core::Acquired::Held(_) => None,
            })
            .collect();
        assert_eq!(grants.len(), 1);
        assert!(grants[0].token > last);
        last = grants[0].token;
        assert_eq!(store.release(&grants[0]).await.unwrap(), Released::Freed);
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_bid_that_was_answered_to_nobody_is_recognised_by_the_next_one() {
    // Two stores stand for one candidate before and after a lost answer: the second knows nothing of the first.
    let (before, after, name) = (store().await, store().await, fresh("lost-answer"));
    let bid = bid(&name);
    let first = granted(&before, &bid).await;
    let old_lease = raw_record(&before, &name).await.unwrap().lease();
    let second = granted(&after, &bid).await;
    assert_eq!(second.token, first.token);
    let record = raw_record(&after, &name).await.unwrap();
    assert_ne!(record.lease(), old_lease, "the ttl began anew under a new etcd lease");
    assert_eq!(seconds_left(old_lease).await, -1, "no late copy of the first bid can come to life");
    // Both answers name one term.
    assert!(matches!(after.renew(&first).await.unwrap(), Renewed::Extended(_)));
    assert!(matches!(after.renew(&second).await.unwrap(), Renewed::Extended(_)));
    assert_eq!(before.release(&first).await.unwrap(), Released::Freed);
    assert_eq!(after.read(&name).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_late_copy_of_a_bid_with_a_shorter_ttl_never_moves_the_expiry_back() {
    let (store, name) = (store().await, fresh("longer"));
    let long = Bid::new(name.clone(), candidate("worker"), Duration::from_secs(30));
    let first = granted(&store, &long).await;
    let short = Bid::new(name.clone(), long.candidate.clone(), TTL);
    let second = granted(&store, &short).await;
    assert_eq!((second.token, second.ttl), (first.token, Duration::from_secs(30)));
    assert!(store.read(&name).await.unwrap().unwrap().remaining > Duration::from_secs(28));
    assert!(matches!(store.renew(&second).await.unwrap(), Renewed::Extended(_)));
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_new_campaign_gets_a_larger_token_over_release_expiry_and_removal() {
    let (store, name) = (store().await, fresh("rise"));
    let first = granted(&store, &bid(&name)).await;
    assert_eq!(store.release(&first).await.unwrap(), Released::Freed);
    let second = granted(&store, &bid(&name)).await;
    until("the lease runs out", || async { store.read(&name).await.unwrap().is_none() }).await;
    let third = granted(&store, &bid(&name)).await;
    admin().await.delete(store.key_of(&name), None).await.unwrap();
    let fourth = granted(&store, &bid(&name)).await;
    assert!(first.token < second.token && second.token < third.token && third.token < fourth.token);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_renewal_extends_by_the_whole_ttl_and_changes_no_byte() {
    let (store, name) = (store().await, fresh("renew"));
    let grant = granted(&store, &bid(&name)).await;
    let before = raw_record(&store, &name).await.unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < 2 * TTL {
        assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
        tokio::time::sleep(TTL / 5).await;
    }
    let after = raw_record(&store, &name).await.unwrap();
    assert_eq!((after.mod_revision(), after.value()), (before.mod_revision(), before.value()));
}

/// The client's sender says `Ok` for a keep-alive of a lease that is gone, and a reply with ttl 0 is no renewal.
/// K18.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_term_whose_etcd_lease_was_revoked_is_lost_at_the_next_renewal() {
    let (store, name) = (store().await, fresh("revoked"));
    let grant = granted(&store, &bid(&name)).await;
    let lease = raw_record(&store, &name).await.unwrap().lease();
    admin().await.lease_client().revoke(lease).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::EXPIRED));
    assert_eq!(raw_record(&store, &name).await.map(|record| record.lease()), None, "a renewal creates nothing");
}

/// A keep-alive alone would be confirmed in each of these cases: the etcd lease lives.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_term_whose_key_somebody_touched_is_lost_although_its_etcd_lease_lives() {
    let store = store().await;
    let mut admin = admin().await;

    let removed = fresh("removed");
    let grant = granted(&store, &bid(&removed)).await;
    admin.delete(store.key_of(&removed), None).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Removed));

    let overwritten = fresh("overwritten");
    let grant = granted(&store, &bid(&overwritten)).await;
    let lease = raw_record(&store, &overwritten).await.unwrap().lease();
    let bound = |lease| Some(PutOptions::new().with_lease(lease));
    admin.put(store.key_of(&overwritten), "something", bound(lease)).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Malformed));

    let moved = fresh("moved");
    let grant = granted(&store, &bid(&moved)).await;
    let value = raw_record(&store, &moved).await.unwrap().value().to_vec();
    let other = admin.lease_client().grant(60, None).await.unwrap().id();
    admin.put(store.key_of(&moved), value, bound(other)).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Superseded { by: None }));

    let superseded = fresh("superseded");
    let grant = granted(&store, &bid(&superseded)).await;
    admin.delete(store.key_of(&superseded), None).await.unwrap();
    let next = granted(&store, &bid(&superseded)).await;
    let by = Some(next.candidate);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
}

/// K05.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn nobody_but_the_term_itself_extends_or_frees_it() {
    let (store, name) = (store().await, fresh("scoped"));
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(60))).await;
    let before = raw_record(&store, &name).await.unwrap();
    until("some time passes", || async { seconds_left(before.lease()).await < 58 }).await;
    let left = seconds_left(before.lease()).await;
    // With the holder's own receipt, too: it leads to the holder's etcd lease.
    for receipt in [grant.receipt.clone(), Receipt::default()] {
        let forged = |candidate, token| {
            Grant::new(name.clone(), candidate, FencingToken(token), grant.ttl).with_receipt(receipt.clone())
        };
        let stranger = forged(candidate("worker"), grant.token.value());
        let earlier = forged(grant.candidate.clone(), grant.token.value() - 1);
        for wrong in [stranger, earlier] {
            assert!(matches!(store.renew(&wrong).await.unwrap(), Renewed::Lost(_)));
            assert_eq!(store.release(&wrong).await.unwrap(), Released::NotHeld);
        }
    }
    let after = raw_record(&store, &name).await.unwrap();
    assert_eq!((after.value(), after.mod_revision()), (before.value(), before.mod_revision()));
    assert!(seconds_left(after.lease()).await <= left, "the etcd lease was not kept alive");
    // The term itself needs no receipt.
    let bare = grant.clone().with_receipt(Receipt::default());
    assert_eq!(store.renew(&bare).await.unwrap(), Renewed::Extended(grant));
    assert!(seconds_left(after.lease()).await >= 59);
    assert_eq!(store.release(&bare).await.unwrap(), Released::Freed);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_release_of_an_older_term_leaves_its_successor_as_it_is() {
    let (store, name) = (store().await, fresh("successor"));
    let first = granted(&store, &bid(&name)).await;
    until("the first term runs out", || async { store.read(&name).await.unwrap().is_none() }).await;
    let second = granted(&store, &bid(&name)).await;
    let before = raw_record(&store, &name).await.unwrap();
    assert_eq!(store.release(&first).await.unwrap(), Released::NotHeld);
    assert!(matches!(store.renew(&first).await.unwrap(), Renewed::Lost(LossReason::Superseded { .. })));
    let after = raw_record(&store, &name).await.unwrap();
    assert_eq!((after.value(), after.mod_revision()), (before.value(), before.mod_revision()));
    assert_eq!(held(&store, &bid(&name)).await.holder, second.candidate);
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_release_ends_key_and_etcd_lease_and_may_be_repeated() {
    let (store, name) = (store().await, fresh("release"));
    let grant = granted(&store, &bid(&name)).await;
    let lease = raw_record(&store, &name).await.unwrap().lease();
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert!(raw_record(&store, &name).await.is_none());
    assert_eq!(seconds_left(lease).await, -1, "a late copy of the bid finds no etcd lease to come to life under");
    assert_eq!(store.release(&grant).await.unwrap(), Released::NotHeld);
}

/// The server would keep a key without a lease for ever, and a foreign value belongs to somebody.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn what_is_no_lease_is_reported_with_its_key_and_never_touched() {
    let store = store().await;
    let mut admin = admin().await;
    let for_ever = fresh("for-ever");
    granted(&store, &bid(&for_ever)).await;
    let value = raw_record(&store, &for_ever).await.unwrap().value().to_vec();
    let foreign = fresh("foreign");
    let newer = fresh("newer");
    let lease = admin.lease_client().grant(60, None).await.unwrap().id();
    let bound = || Some(PutOptions::new().with_lease(lease));
    admin.put(store.key_of(&for_ever), value, None).await.unwrap();
    admin.put(store.key_of(&foreign), "leader-7", bound()).await.unwrap();
    let version_2 = r#"{"v":2,"candidate":"a","payload":"","ttl":2,"acquired_at":null,"lease":"1"}"#;
    admin.put(store.key_of(&newer), version_2, bound()).await.unwrap();
    for name in [&for_ever, &foreign, &newer] {
        let before = raw_record(&store, name).await.unwrap();
        let bid = bid(name);
        let grant = Grant::of(&bid, FencingToken(before.create_revision().unsigned_abs()));
        let errors = [
            store.try_acquire(&bid).await.unwrap_err(),
            store.read(name).await.unwrap_err(),
            store.release(&grant).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), StoreErrorKind::Malformed, "{error}");
            assert!(error.to_string().contains(&store.key_of(name)), "{error}");
        }
        assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Malformed));
        let listed = store.list().filter(|listed| std::future::ready(is_error_about(listed, name))).count().await;
        assert_eq!(listed, 1);
        let after = raw_record(&store, name).await.unwrap();
        assert_eq!((after.value(), after.mod_revision()), (before.value(), before.mod_revision()));
        admin.delete(store.key_of(name), None).await.unwrap();
    }
}

fn is_error_about(listed: &Result<tenure_core::LeaseRecord, tenure_core::StoreError>, name: &LeaseName) -> bool {
    listed.as_ref().is_err_and(|error| error.lease() == Some(name) && error.kind() == StoreErrorKind::Malformed)
}

/// K13.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_ttl_is_never_rounded_and_the_smallest_one_is_the_servers() {
    let (store, name) = (store().await, fresh("ttl"));
    assert_eq!(store.describe().min_ttl, TTL, "connecting asked for it");
    assert!(store.describe().version.is_some_and(|version| version.starts_with("3.")));
    let asked = |ttl| bid_for(&name, ttl);
    for ttl in [Duration::from_millis(2500), Duration::from_secs(1), Duration::ZERO] {
        assert_eq!(store.try_acquire(&asked(ttl)).await.unwrap_err().kind(), StoreErrorKind::Invalid, "{ttl:?}");
    }
    // A store on somebody's client has asked nobody: it reports what it gets.
    let own = EtcdStore::new(admin().await);
    assert_eq!(own.describe().min_ttl, Duration::from_secs(1));
    assert_eq!(granted(&own, &asked(Duration::from_secs(1))).await.ttl, TTL);
    assert_eq!(own.describe().min_ttl, TTL);
    let prepared = EtcdStore::new(admin().await);
    prepared.prepare().await.unwrap();
    assert_eq!(prepared.describe().min_ttl, TTL);
    assert!(prepared.describe().version.is_some());
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_list_shows_every_lease_of_the_prefix_and_no_other() {
    let prefix = format!("/tenure-list/{}", fresh("x"));
    let store = EtcdStore::new(admin().await).with_prefix(&prefix).unwrap();
    let nested = EtcdStore::new(admin().await).with_prefix(&format!("{prefix}/deep")).unwrap();
    granted(&nested, &bid(&fresh("nested"))).await;
    let mut names: Vec<LeaseName> = (0..600).map(|n| LeaseName::new(format!("n/{n}")).unwrap()).collect();
    let grants = futures::stream::iter(&names)
        .map(|name| {
            let (store, bid) = (&store, bid_for(name, Duration::from_secs(30)));
            async move { granted(store, &bid).await }
        })
        .buffered(32)
        .collect::<Vec<Grant>>();
    let grants = grants.await;
    let mut listed: Vec<LeaseName> = store.list().map(|record| record.unwrap().name).collect().await;
    names.sort();
    listed.sort();
    assert_eq!(listed, names, "more than one page of keys");
    for grant in &grants {
        assert_eq!(store.release(grant).await.unwrap(), Released::Freed);
    }
    assert_eq!(store.list().count().await, 0);
}

/// K19.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_fenced_transaction_writes_only_while_the_term_lasts() {
    let (store, name) = (store().await, fresh("fence"));
    let mut admin = admin().await;
    let target = format!("/tenure-fence/{name}");
    let grant = granted(&store, &bid(&name)).await;
    let write = |token, text: &str| {
        let fence = store.fence(&name, token);
        Txn::new().when([fence]).and_then([TxnOp::put(target.clone(), text, None)])
    };
    assert!(admin.txn(write(grant.token, "first")).await.unwrap().succeeded());
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert!(!admin.txn(write(grant.token, "late")).await.unwrap().succeeded());
    let next = granted(&store, &bid(&name)).await;
    assert!(!admin.txn(write(grant.token, "late")).await.unwrap().succeeded());
    assert!(!admin.txn(write(FencingToken(u64::MAX), "late")).await.unwrap().succeeded());
    assert!(admin.txn(write(next.token, "second")).await.unwrap().succeeded());
    assert_eq!(admin.get(target, None).await.unwrap().kvs()[0].value(), b"second");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn names_and_prefixes_are_isolated() {
    let store = store().await;
    let base = fresh("odd");
    let names: Vec<LeaseName> = ["", "/", "/b", "{a}", " ", "%61", "%2F", "A", "日本", "*", "/lease", "lease"]
        .iter()
        .map(|end| LeaseName::new(format!("{base}{end}")).unwrap())
        .collect();
    let mut grants = Vec::new();
    for name in &names {
        grants.push(granted(&store, &bid(name)).await);
    }
    assert_eq!(store.release(&grants[0]).await.unwrap(), Released::Freed);
    for grant in &grants[1..] {
        assert_eq!(store.read(&grant.name).await.unwrap().unwrap().holder, grant.candidate);
    }
}

/// A losing bid's etcd lease serves the next bid, which counts its deadline from its own sending.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_grant_under_the_etcd_lease_of_an_earlier_bid_has_its_whole_ttl() {
    let (store, name) = (store().await, fresh("spare"));
    let holder = granted(&store, &bid(&name)).await;
    let loser = bid(&name);
    held(&store, &loser).await;
    tokio::time::sleep(TTL * 3 / 4).await;
    assert!(matches!(store.release(&holder).await.unwrap(), Released::Freed | Released::NotHeld));
    granted(&store, &loser).await;
    let lease = raw_record(&store, &name).await.unwrap().lease();
    assert!(seconds_left(lease).await >= 1, "a fraction of a second is cut off");
}

/// K04.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_spare_that_ran_out_is_replaced() {
    let (store, name) = (store().await, fresh("stale-spare"));
    let holder = granted(&store, &bid(&name)).await;
    let loser = bid(&name);
    held(&store, &loser).await;
    until("the holder's lease, and the spare, run out", || async { store.read(&name).await.unwrap().is_none() }).await;
    tokio::time::sleep(TTL / 2).await;
    let grant = granted(&store, &loser).await;
    assert!(grant.token > holder.token);
    let lease = raw_record(&store, &name).await.unwrap().lease();
    assert!(seconds_left(lease).await >= 1);
}
