//! The scripts, seen from both sides.

use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use redis::AsyncCommands;
use tenure_core::{
    Acquired, Bid, FencingToken, Grant, LeaseName, LeaseStore, LossReason, Payload, Released, Renewed, StoreErrorKind,
};
use tenure_redis::redis;
use tokio::time::sleep;

use crate::bench::{TTL, bid, candidate, fence_key, fresh_name, granted, held, lease_key, operator, server_url, store};

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_repeated_bid_is_the_same_grant_and_never_brings_the_expiry_forward() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let bid = bid(&fresh_name("repeated"));
    let first = granted(&store, &bid).await;
    let key = lease_key(&bid.name);
    let _: () = operator.pexpire(&key, 5_000).await.unwrap();
    assert_eq!(granted(&store, &bid).await.token, first.token);
    assert!(operator.pttl::<_, u64>(&key).await.unwrap() > 19_000, "the ttl was not restarted");
    let _: () = operator.pexpire(&key, 60_000).await.unwrap();
    assert_eq!(granted(&store, &bid).await.token, first.token);
    assert!(operator.pttl::<_, u64>(&key).await.unwrap() > 50_000, "the later expiry was not kept");
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn tokens_rise_over_release_expiry_and_removal_and_never_expire() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let name = fresh_name("tokens");
    let a = granted(&store, &bid(&name)).await;
    assert_eq!(store.release(&a).await.unwrap(), Released::Freed);
    assert_eq!(store.release(&a).await.unwrap(), Released::NotHeld);
    let b = granted(&store, &Bid::new(name.clone(), a.candidate.clone(), Duration::from_millis(30))).await;
    sleep(Duration::from_millis(40)).await;
    let c = granted(&store, &bid(&name)).await;
    let _: () = operator.del(lease_key(&name)).await.unwrap();
    let d = granted(&store, &bid(&name)).await;
    assert_eq!([a.token.0, b.token.0, c.token.0, d.token.0], [1, 2, 3, 4]);
    assert_eq!(operator.pttl::<_, i64>(fence_key(&name)).await.unwrap(), -1);
    assert_eq!([a.after_release, b.after_release, c.after_release, d.after_release], [false, true, false, false]);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_counter_that_fell_back_never_makes_this_process_see_a_token_twice() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let name = fresh_name("floor");
    let _: () = operator.hset(fence_key(&name), "token", 41).await.unwrap();
    let grant = granted(&store, &bid(&name)).await;
    assert_eq!(grant.token, FencingToken(42));
    // What a failover to a replica that lagged does.
    let _: () = operator.del(&[lease_key(&name), fence_key(&name)]).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Lost(LossReason::Removed));
    let next = granted(&store, &bid(&name)).await;
    assert_eq!(next.token, FencingToken(43));
    assert!(!next.after_release);
}

/// K05.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_mismatch_of_candidate_or_token_changes_not_a_byte() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let name = fresh_name("mismatch");
    let old = granted(&store, &bid(&name)).await;
    let _ = store.release(&old).await.unwrap();
    let current = granted(&store, &bid(&name)).await;
    let probe = async |operator: &mut redis::aio::MultiplexedConnection| {
        let lease: Vec<u8> = redis::cmd("DUMP").arg(lease_key(&name)).query_async(operator).await.unwrap();
        let fence: Vec<u8> = redis::cmd("DUMP").arg(fence_key(&name)).query_async(operator).await.unwrap();
        let left: u64 = redis::cmd("PTTL").arg(lease_key(&name)).query_async(operator).await.unwrap();
        (lease, fence, left)
    };
    let _: () = operator.pexpire(lease_key(&name), 10_000).await.unwrap();
    let before = probe(&mut operator).await;
    let stranger = Grant::new(name.clone(), candidate(), current.token, TTL);
    let older = Grant::new(name.clone(), current.candidate.clone(), old.token, TTL);
    for grant in [&old, &stranger, &older] {
        let by = Some(current.candidate.clone());
        assert_eq!(store.renew(grant).await.unwrap(), Renewed::Lost(LossReason::Superseded { by }));
        assert_eq!(store.release(grant).await.unwrap(), Released::NotHeld);
    }
    assert_eq!(held(&store, &bid(&name)).await.holder, current.candidate);
    let after = probe(&mut operator).await;
    assert_eq!((&after.0, &after.1), (&before.0, &before.1));
    assert!(after.2 <= before.2 && after.2 > 5_000, "{} ms left, {} before", after.2, before.2);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_renewal_extends_to_the_full_ttl_and_never_brings_the_expiry_forward() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let name = fresh_name("renewal");
    let grant = granted(&store, &bid(&name)).await;
    let _: () = operator.pexpire(lease_key(&name), 1_000).await.unwrap();
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert!(operator.pttl::<_, u64>(lease_key(&name)).await.unwrap() > 19_000);
    let late = grant.clone().with_ttl(Duration::from_secs(1));
    assert_eq!(store.renew(&late).await.unwrap(), Renewed::Extended(late));
    assert!(operator.pttl::<_, u64>(lease_key(&name)).await.unwrap() > 18_000);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_lost_lease_names_its_reason() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let lost = async |grant: &Grant| match store.renew(grant).await.unwrap() {
        Renewed::Lost(reason) => reason,
        Renewed::Extended(_) => panic!("extended"),
    };
    let removed = granted(&store, &bid(&fresh_name("removed"))).await;
    let _: () = operator.del(lease_key(&removed.name)).await.unwrap();
    assert_eq!(lost(&removed).await, LossReason::Removed);

    let released = granted(&store, &bid(&fresh_name("released"))).await;
    let _ = store.release(&released).await.unwrap();
    assert_eq!(lost(&released).await, LossReason::Removed);

    let name = fresh_name("expired");
    let expired = granted(&store, &Bid::new(name.clone(), candidate(), Duration::from_millis(20))).await;
    sleep(Duration::from_millis(30)).await;
    assert_eq!(lost(&expired).await, LossReason::EXPIRED);
    let next = granted(&store, &bid(&name)).await;
    assert_eq!(lost(&expired).await, LossReason::Superseded { by: Some(next.candidate.clone()) });
    let _ = store.release(&next).await.unwrap();
    assert_eq!(lost(&expired).await, LossReason::Superseded { by: None });

    let foreign = granted(&store, &bid(&fresh_name("foreign"))).await;
    let _: () = operator.set(lease_key(&foreign.name), "something else").await.unwrap();
    assert_eq!(lost(&foreign).await, LossReason::Malformed);
    let _: () = operator.del(lease_key(&foreign.name)).await.unwrap();
    let _: () = operator.lpush(lease_key(&foreign.name), 1).await.unwrap();
    assert_eq!(lost(&foreign).await, LossReason::Malformed);

    let kept = granted(&store, &bid(&fresh_name("kept"))).await;
    let _: () = operator.persist(lease_key(&kept.name)).await.unwrap();
    assert_eq!(lost(&kept).await, LossReason::Malformed);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn what_is_foreign_is_malformed_with_its_key_and_never_taken_over() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let commands: [(&str, &[&str]); 5] = [
        ("lease", &["SET", "LEASE", "somebody"]),
        ("lease", &["SET", "LEASE", "somebody", "PX", "60000"]),
        ("lease", &["HSET", "LEASE", "holder", "somebody"]),
        ("fence", &["SET", "FENCE", "7"]),
        ("fence", &["HSET", "FENCE", "token", "seven"]),
    ];
    for (what, command) in commands {
        let name = fresh_name("foreign");
        let (lease, fence) = (lease_key(&name), fence_key(&name));
        let mut raw = redis::cmd(command[0]);
        for word in &command[1..] {
            raw.arg(word.replace("LEASE", &lease).replace("FENCE", &fence));
        }
        let _: redis::Value = raw.query_async(&mut operator).await.unwrap();
        let error = store.try_acquire(&bid(&name)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Malformed, "{command:?}");
        if what == "lease" {
            let grant = Grant::new(name.clone(), candidate(), FencingToken(1), TTL);
            assert_eq!(store.read(&name).await.unwrap_err().kind(), StoreErrorKind::Malformed, "{command:?}");
            assert_eq!(store.release(&grant).await.unwrap_err().kind(), StoreErrorKind::Malformed, "{command:?}");
        }
        let named =
            error.to_string().contains(&format!("}}:{what}")) || error.to_string().contains("a key of this lease");
        assert!(named, "{command:?}: {error}");
        assert_eq!(operator.exists::<_, u8>(&[lease, fence]).await.unwrap(), 1, "{command:?} wrote something");
    }
}

/// K13.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn every_ttl_of_whole_milliseconds_is_kept_and_every_other_refused() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    for millis in [250, 999, 1_500] {
        let name = fresh_name("ttl");
        granted(&store, &Bid::new(name.clone(), candidate(), Duration::from_millis(millis))).await;
        let left = operator.pttl::<_, u64>(lease_key(&name)).await.unwrap();
        assert!((1..=millis).contains(&left) && left + 200 > millis, "{left} of {millis} ms");
    }
    for ttl in [Duration::ZERO, Duration::from_micros(1_500), Duration::from_secs(11 * 365 * 86_400)] {
        let name = fresh_name("ttl");
        let error = store.try_acquire(&Bid::new(name.clone(), candidate(), ttl)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{ttl:?}");
        assert_eq!(store.read(&name).await.unwrap(), None);
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn odd_names_are_leases_of_their_own() {
    let store = store().await;
    let run = format!("{:08x}", fastrand::u32(..));
    let names = ["a", "A", "a ", "a/b", "{a}", "}", "{", "%61", "a}:lease", "*", "[a]", "日本", "'\"\\"];
    let names: Vec<_> = names.iter().map(|name| LeaseName::new(format!("{name}{run}")).unwrap()).collect();
    for name in &names {
        let with_payload = bid(name).with_payload(Payload::new(name.as_str()).unwrap());
        assert_eq!(granted(&store, &with_payload).await.token, FencingToken(1), "{name}");
    }
    for name in &names {
        let record = store.read(name).await.unwrap().unwrap();
        assert_eq!(record.payload.as_str(), name.as_str());
    }
    let listed: Vec<_> = store.list().try_collect().await.unwrap_or_default();
    if !listed.is_empty() {
        assert!(names.iter().all(|name| listed.iter().any(|record| record.name == *name)));
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_read_shows_the_holder_with_the_server_s_calendar() {
    let store = store().await;
    let name = fresh_name("read");
    assert_eq!(store.read(&name).await.unwrap(), None);
    let bid = bid(&name).with_payload(Payload::new("10.0.0.7:8080\nsecond line").unwrap());
    let grant = granted(&store, &bid).await;
    let record = store.read(&name).await.unwrap().unwrap();
    assert_eq!((&record.holder, record.token, record.ttl), (&grant.candidate, grant.token, TTL));
    assert_eq!(record.payload, bid.payload);
    assert!(record.remaining <= TTL && record.remaining > TTL - Duration::from_secs(2));
    let age = SystemTime::now().duration_since(record.acquired_at.unwrap()).unwrap_or_default();
    assert!(age < Duration::from_secs(5), "{age:?}");
    assert_eq!(store.renew(&record.grant_of(&grant.candidate).unwrap()).await.unwrap(), Renewed::Extended(grant));
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn many_renewals_are_answered_one_by_one_and_in_order() {
    let (store, mut operator) = (store().await, operator(&server_url()).await);
    let run = fastrand::u64(..);
    let mut grants = Vec::new();
    for n in 0..600 {
        grants.push(granted(&store, &bid(&LeaseName::new(format!("many-{run:x}-{n}")).unwrap())).await);
    }
    let _: () = operator.del(lease_key(&grants[3].name)).await.unwrap();
    let _: () = operator.del(lease_key(&grants[300].name)).await.unwrap();
    let _: () = operator.lpush(lease_key(&grants[300].name), 1).await.unwrap();
    grants[599].token = FencingToken(99);
    grants[7].ttl = Duration::from_micros(1);
    let outcomes = store.renew_many(&grants).await;
    assert_eq!(outcomes.len(), 600);
    for (n, outcome) in outcomes.into_iter().enumerate() {
        match n {
            3 => assert_eq!(outcome.unwrap(), Renewed::Lost(LossReason::Removed)),
            7 => assert_eq!(outcome.unwrap_err().kind(), StoreErrorKind::Invalid),
            300 => assert_eq!(outcome.unwrap(), Renewed::Lost(LossReason::Malformed)),
            599 => assert!(matches!(outcome.unwrap(), Renewed::Lost(LossReason::Superseded { .. }))),
            _ => assert_eq!(outcome.unwrap(), Renewed::Extended(grants[n].clone()), "{n}"),
        }
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn one_of_many_candidates_gets_the_lease() {
    let store = store().await;
    for _ in 0..20 {
        let name = fresh_name("crowd");
        let bids: Vec<_> = (0..64).map(|_| bid(&name)).collect();
        let outcomes = futures::future::join_all(bids.iter().map(|bid| store.try_acquire(bid))).await;
        let winners = outcomes.into_iter().filter(|outcome| matches!(outcome, Ok(Acquired::Granted(_)))).count();
        assert_eq!(winners, 1);
    }
}

/// K19.
#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_fenced_script_refuses_every_older_token() {
    let mut operator = operator(&server_url()).await;
    let run = fastrand::u64(..);
    let (fence, data) = (format!("test:{{{run}}}:fence"), format!("test:{{{run}}}:data"));
    let write = tenure_redis::fenced_script("return redis.call('SET', KEYS[2], ARGV[2])");
    let mut put = async |token: &str, value: &str| {
        write.key(&fence).key(&data).arg(token).arg(value).invoke_async::<String>(&mut operator).await
    };
    put("9", "a").await.unwrap();
    put("9", "b").await.unwrap();
    put("10", "c").await.unwrap();
    for stale in ["9", "0", "", "x", "-1", "010"] {
        assert_eq!(put(stale, "stale").await.unwrap_err().code(), Some("FENCED"), "{stale:?}");
    }
    put("18446744073709551614", "d").await.unwrap();
    put("18446744073709551615", "e").await.unwrap();
    assert_eq!(put("18446744073709551614", "stale").await.unwrap_err().code(), Some("FENCED"));
    assert_eq!(operator.get::<_, String>(&data).await.unwrap(), "e");
}
