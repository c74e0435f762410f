//! The documented grant is enough, and nothing in it is superfluous.

use futures::TryStreamExt;
use tenure_core::{LeaseStore, Released, Renewed, StoreErrorKind, TokenDurability, WakeUp};
use tenure_redis::{RedisStore, redis};

use crate::bench::{bid, connect, fresh_name, granted, operator};
use crate::private::PrivateServer;
use crate::watch::next;

/// The commands of `docs.md`, which a test below compares.
const NEEDED: [&str; 12] =
    ["+evalsha", "+eval", "+get", "+set", "+pttl", "+pexpire", "+del", "+hmget", "+hget", "+hset", "+hincrby", "+time"];
const FOR_WAKE_UPS: [&str; 4] = ["+publish", "+subscribe", "+unsubscribe", "+ping"];
const FOR_LISTING: [&str; 1] = ["+scan"];
const FOR_DURABILITY: [&str; 2] = ["+info", "+config|get"];

async fn user(server: &PrivateServer, rights: &[&str]) -> String {
    let mut operator = operator(&server.url()).await;
    let mut acl = redis::cmd("ACL");
    acl.arg("SETUSER")
        .arg("tenure")
        .arg("reset")
        .arg("on")
        .arg(">pass")
        .arg("~tenure:*")
        .arg("resetchannels")
        .arg("&tenure:*")
        .arg(rights);
    let _: () = acl.query_async(&mut operator).await.unwrap();
    server.url().replace("redis://", "redis://tenure:pass@")
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn the_documented_rights_are_enough_for_everything() {
    let server = PrivateServer::start(&["--appendfsync", "always"]).await;
    let rights = [&NEEDED[..], &FOR_WAKE_UPS, &FOR_LISTING, &FOR_DURABILITY].concat();
    let store = connect(&user(&server, &rights).await).await;
    assert_eq!(store.describe().token, TokenDurability::SingleNode);
    let name = fresh_name("rights");
    let mut watch = store.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    let grant = granted(&store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.list().try_collect::<Vec<_>>().await.unwrap().len(), 1);
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert_eq!(next(&mut watch).await, WakeUp::Vacated);
    assert!(granted(&store, &bid(&name)).await.after_release);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_store_works_with_the_needed_rights_alone() {
    let server = PrivateServer::start(&[]).await;
    let store = connect(&user(&server, &NEEDED).await).await;
    assert_eq!(store.describe().token, TokenDurability::BestEffort);
    let grant = granted(&store, &bid(&fresh_name("rights"))).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
    assert!(granted(&store, &bid(&grant.name)).await.after_release);
    assert_eq!(store.list().try_collect::<Vec<_>>().await.unwrap_err().kind(), StoreErrorKind::Denied);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn each_needed_right_that_is_missing_is_denied_or_seen() {
    let server = PrivateServer::start(&[]).await;
    for missing in NEEDED {
        let rights: Vec<_> = NEEDED.into_iter().filter(|right| *right != missing).collect();
        let mut operator = operator(&server.url()).await;
        let _: () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut operator).await.unwrap();
        let store = connect(&user(&server, &rights).await).await;
        let name = fresh_name("missing");
        let everything = async {
            let grant = match store.try_acquire(&bid(&name)).await? {
                tenure_core::Acquired::Granted(grant) => grant,
                tenure_core::Acquired::Held(record) => panic!("{record:?}"),
            };
            // So that there is something to extend.
            let _: () = redis::cmd("PEXPIRE")
                .arg(crate::bench::lease_key(&name))
                .arg(5_000)
                .query_async(&mut operator)
                .await
                .unwrap();
            let _ = store.renew(&grant).await?;
            let _ = store.release(&grant).await?;
            match store.try_acquire(&bid(&name)).await? {
                tenure_core::Acquired::Granted(grant) => Ok(grant.after_release),
                tenure_core::Acquired::Held(record) => panic!("{record:?}"),
            }
        };
        let outcome: Result<bool, tenure_core::StoreError> = everything.await;
        match outcome {
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Denied, "{missing}: {error}"),
            // The note that a term ended in order is for settle delays only, and needs rights of its own.
            Ok(after_release) => assert!(!after_release && ["+hget", "+hset"].contains(&missing), "{missing}"),
        }
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn keys_of_others_are_out_of_reach_and_wrong_credentials_denied() {
    let server = PrivateServer::start(&[]).await;
    let url = user(&server, &NEEDED).await;
    let mut operator = operator(&server.url()).await;
    let _: () = redis::cmd("ACL").arg("SETUSER").arg("default").arg("off").query_async(&mut operator).await.unwrap();
    for refused in [server.url(), url.replace("pass", "wrong"), url.replace("tenure:", "nobody:")] {
        for protocol in ["resp3", "resp2"] {
            let error =
                RedisStore::connect(&format!("{refused}?protocol={protocol}").parse().unwrap()).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Denied, "{refused} {protocol}: {error}");
        }
    }
    let mut own = operator_of(&url).await;
    let error = redis::cmd("GET").arg("other").query_async::<()>(&mut own).await.unwrap_err();
    assert_eq!(error.code(), Some("NOPERM"));
}

async fn operator_of(url: &str) -> redis::aio::MultiplexedConnection {
    operator(url).await
}

#[test]
fn the_documentation_names_the_tested_rights() {
    let documented = include_str!("../../docs.md");
    for rights in [&NEEDED[..], &FOR_WAKE_UPS, &FOR_LISTING, &FOR_DURABILITY] {
        assert!(documented.contains(&rights.join(" ")), "{rights:?}");
    }
}
