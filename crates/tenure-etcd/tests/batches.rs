//! Many renewals at once.

#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;

use std::time::{Duration, Instant};

use bench::proxy::{Mode, Proxy};
use bench::*;
use tenure_core::{Grant, LeaseName, LeaseStore, LossReason, Receipt, Released, Renewed, StoreErrorKind};
use tenure_etcd::EtcdStore;

async fn many(store: &EtcdStore, count: usize, ttl: Duration) -> Vec<Grant> {
    let names: Vec<LeaseName> = (0..count).map(|n| fresh(&format!("batch-{n}"))).collect();
    let grants = names.iter().map(|name| async { granted(store, &bid_for(name, ttl)).await });
    futures::future::join_all(grants).await
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_batch_extends_every_term_and_answers_in_order() {
    let store = store().await;
    let grants = many(&store, 300, Duration::from_secs(60)).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let renewed = Instant::now();
    let answers = store.renew_many(&grants).await;
    assert_eq!(answers.len(), grants.len());
    for (grant, answer) in grants.iter().zip(answers) {
        assert_eq!(answer.unwrap(), Renewed::Extended(grant.clone()));
        let left = store.read(&grant.name).await.unwrap().unwrap().remaining;
        // From the renewal on, and not from the grant; the server counts in seconds.
        assert!(left + renewed.elapsed() >= Duration::from_secs(59), "{left:?}");
        assert_eq!(store.release(grant).await.unwrap(), Released::Freed);
    }
    assert!(store.renew_many(&[]).await.is_empty());
}

/// One by one and together, the same terms get the same answers.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_batch_answers_as_single_renewals_do() {
    let store = store().await;
    let mut admin = admin().await;
    let mut grants = many(&store, 9, Duration::from_secs(60)).await;
    // 0: lost with its etcd lease, which is the one that opens the stream.
    let lease = raw_record(&store, &grants[0].name).await.unwrap().lease();
    admin.lease_client().revoke(lease).await.unwrap();
    // 1: removed; 2: overwritten; 3: somebody else's; 4: released; 5: without a receipt; 6: forged; 7: bid for again.
    admin.delete(store.key_of(&grants[1].name), None).await.unwrap();
    admin.put(store.key_of(&grants[2].name), "foreign", None).await.unwrap();
    admin.delete(store.key_of(&grants[3].name), None).await.unwrap();
    granted(&store, &bid(&grants[3].name)).await;
    assert_eq!(store.release(&grants[4]).await.unwrap(), Released::Freed);
    grants[5] = grants[5].clone().with_receipt(Receipt::default());
    grants[6].candidate = candidate("forger");
    let again = tenure_core::Bid::new(grants[7].name.clone(), grants[7].candidate.clone(), Duration::from_secs(60));
    granted(&store, &again).await;
    let together = store.renew_many(&grants).await;
    for (n, (grant, together)) in grants.iter().zip(together).enumerate() {
        assert_eq!(together.unwrap(), store.renew(grant).await.unwrap(), "{n}");
    }
    let kept = store.renew_many(&grants).await;
    let lost: Vec<usize> = (0..9).filter(|&n| matches!(kept[n], Ok(Renewed::Lost(_)))).collect();
    assert_eq!(lost, [0, 1, 2, 3, 4, 6]);
    assert_eq!(kept[0].as_ref().unwrap(), &Renewed::Lost(LossReason::EXPIRED));
    admin.delete(store.key_of(&grants[2].name), None).await.unwrap();
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_batch_that_is_not_answered_is_unknown_for_every_term() {
    let proxy = Proxy::to(&server()).await;
    let store = store_at(&proxy.address).await;
    let grants = many(&store, 5, Duration::from_secs(60)).await;
    proxy.set(Mode::Silent);
    for (grant, answer) in grants.iter().zip(store.renew_many(&grants).await) {
        let error = answer.unwrap_err();
        assert_eq!((error.kind(), error.lease()), (StoreErrorKind::Unknown, Some(&grant.name)));
    }
    proxy.set(Mode::Pass);
    for answer in store.renew_many(&grants).await {
        assert!(matches!(answer.unwrap(), Renewed::Extended(_)));
    }
}
