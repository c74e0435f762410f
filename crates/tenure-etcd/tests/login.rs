//! TLS, passwords and roles: what works, what is refused, and that no secret shows.

#![cfg(feature = "tls-rustls")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bench;

use std::error::Error;
use std::time::Duration;

use bench::*;
use etcd_client::{Permission, RoleRevokePermissionOptions};
use futures::StreamExt;
use tenure_core::{LeaseStore, Released, Renewed, StoreError, StoreErrorKind, StoreUrl, WakeUp};
use tenure_etcd::{EtcdStore, etcd_client};
use tokio::sync::Mutex;

/// A user or role that changes while a request is under way has the server refuse it: one test at a time.
static USERS: Mutex<()> = Mutex::const_new(());

/// A URL of the server with TLS and logins; `user` is `NAME:PASSWORD@`, or nothing.
fn url(user: &str, prefix: &str) -> StoreUrl {
    let files = format!(
        "ca={}&cert={}&key={}",
        variable("TENURE_TEST_CA"),
        variable("TENURE_TEST_CLIENT_CERT"),
        variable("TENURE_TEST_CLIENT_KEY")
    );
    format!("etcds://{user}{}{prefix}?{files}", variable("TENURE_TEST_ETCD_TLS")).parse().unwrap()
}

/// A new user with a role of its own: one right under `prefix`, nothing else.
struct Tenant {
    name: String,
    prefix: String,
}

impl Tenant {
    async fn new() -> Self {
        let name = format!("tenant-{}", fresh("x"));
        let prefix = format!("/{name}/");
        Self::with(name, &prefix, Permission::read_write(&*prefix)).await
    }

    async fn reading(prefix: &str) -> Self {
        Self::with(format!("reader-{}", fresh("x")), prefix, Permission::read(prefix)).await
    }

    async fn with(name: String, prefix: &str, permission: Permission) -> Self {
        let mut root = root().await;
        root.user_add(&*name, "first", None).await.unwrap();
        root.role_add(&*name).await.unwrap();
        root.role_grant_permission(&*name, permission.with_prefix()).await.unwrap();
        root.user_grant_role(&*name, &*name).await.unwrap();
        Self { name, prefix: prefix.to_owned() }
    }

    fn url(&self, password: &str) -> StoreUrl {
        url(&format!("{}:{password}@", self.name), &self.prefix)
    }

    async fn set_password(&self, password: &str) {
        root().await.user_change_password(&*self.name, password).await.unwrap();
    }

    async fn remove(self) {
        let mut root = root().await;
        root.user_delete(&*self.name).await.unwrap();
        root.role_delete(&*self.name).await.unwrap();
    }
}

/// Everything that the error shows, its sources included.
fn shown(error: &StoreError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    text
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_role_with_read_and_write_on_the_prefix_is_all_that_is_needed() {
    let _alone = USERS.lock().await;
    let tenant = Tenant::new().await;
    let store = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    store.prepare().await.unwrap();
    assert_eq!(store.describe().min_ttl, TTL, "the smallest ttl can be asked for");
    let name = fresh("tenant");
    let mut watch = store.watch(&name);
    let first = granted(&store, &bid(&name)).await;
    assert_eq!(watch.next().await, Some(WakeUp::Taken));
    let loser = bid(&name);
    held(&store, &loser).await;
    assert_eq!(store.renew(&first).await.unwrap(), Renewed::Extended(first.clone()));
    for renewed in store.renew_many(std::slice::from_ref(&first)).await {
        assert_eq!(renewed.unwrap(), Renewed::Extended(first.clone()));
    }
    assert_eq!(store.read(&name).await.unwrap().unwrap().holder, first.candidate);
    assert_eq!(store.list().count().await, 1);
    // A bid repeated without memory of the first: the other way to a grant.
    let again = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    let same = granted(&again, &tenure_core::Bid::new(name.clone(), first.candidate.clone(), TTL)).await;
    assert_eq!(same.token, first.token);
    assert_eq!(store.release(&same).await.unwrap(), Released::Freed);
    let second = granted(&store, &loser).await;
    assert_eq!(store.release(&second).await.unwrap(), Released::Freed);
    tenant.remove().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn an_observer_needs_the_right_to_read_and_no_other() {
    let _alone = USERS.lock().await;
    let tenant = Tenant::new().await;
    let holder = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    let reader = Tenant::reading(&tenant.prefix).await;
    let observer = EtcdStore::connect(&reader.url("first")).await.unwrap();
    let name = fresh("observed");
    let mut watch = observer.watch(&name);
    let grant = granted(&holder, &bid(&name)).await;
    assert_eq!(watch.next().await, Some(WakeUp::Taken));
    let seen = observer.read(&name).await.unwrap().unwrap();
    assert_eq!((&seen.holder, seen.token), (&grant.candidate, grant.token));
    assert_eq!(observer.list().count().await, 1);
    for error in [
        observer.try_acquire(&bid(&fresh("forbidden"))).await.unwrap_err(),
        observer.release(&grant).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{}", shown(&error));
    }
    assert_eq!(holder.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    reader.remove().await;
    tenant.remove().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_prefix_that_the_role_does_not_cover_is_denied_at_once() {
    let _alone = USERS.lock().await;
    let tenant = Tenant::new().await;
    let elsewhere = url(&format!("{}:first@", tenant.name), "/somebody-elses");
    for error in [
        EtcdStore::connect(&elsewhere).await.unwrap_err(),
        EtcdStore::connect(&url("guest:tenure@", "/tenure")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("lacks a right"), "{error}");
    }
    tenant.remove().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_wrong_password_is_denied_and_shown_nowhere() {
    let _alone = USERS.lock().await;
    let error = EtcdStore::connect(&url("tenure:canary-s3cret@", "/tenure")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert_eq!(error.to_string(), "etcd connect: denied: wrong user or password");
    assert!(!shown(&error).contains("canary"), "{}", shown(&error));
    let store = EtcdStore::connect(&url("tenure:tenure@", "/tenure")).await.unwrap();
    assert!(!format!("{store:?}").contains("tenure:tenure"), "{store:?}");
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_certificate_that_is_not_trusted_is_denied() {
    let _alone = USERS.lock().await;
    let files = format!("ca={}", variable("TENURE_TEST_OTHER_CA"));
    let url = format!("etcds://tenure:canary@{}?{files}", variable("TENURE_TEST_ETCD_TLS"));
    let error = EtcdStore::connect(&url.parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{}", shown(&error));
    assert!(!shown(&error).contains("canary"), "{}", shown(&error));
}

/// The server just closes the connection then, which the client cannot tell from any other end.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_missing_certificate_or_tls_on_one_side_only_is_hinted_at() {
    let _alone = USERS.lock().await;
    let (with, without) = (variable("TENURE_TEST_ETCD_TLS"), server());
    let ca = variable("TENURE_TEST_CA");
    for url in [format!("etcds://{with}?ca={ca}"), format!("etcd://{with}"), format!("etcds://{without}?ca={ca}")] {
        let error = EtcdStore::connect(&url.parse().unwrap()).await.unwrap_err();
        let words = error.to_string();
        assert!(words.contains("certificate") || words.contains("tls"), "{}", shown(&error));
    }
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_server_without_logins_refuses_a_login_in_words() {
    let _alone = USERS.lock().await;
    let url = format!("etcd://tenure:canary@{}", server()).parse().unwrap();
    let error = EtcdStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("authentication switched off") && !shown(&error).contains("canary"));
}

/// Tokens run out after five minutes without use, and at once when the password changes or the server restarts.
#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_login_token_that_is_no_longer_taken_is_renewed_within_the_call() {
    let _alone = USERS.lock().await;
    let tenant = Tenant::new().await;
    let store = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    let name = fresh("token");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(60))).await;
    for _ in 0..3 {
        // The same password again: every token of the user is void all the same.
        tenant.set_password("first").await;
        assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    }
    // The watch, with no call beside it that could log in: it would be refused for ever.
    tenant.set_password("first").await;
    let mut watch = store.watch(&name);
    let holder = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    assert_eq!(holder.release(&grant).await.unwrap(), Released::Freed);
    let wake = tokio::time::timeout(Duration::from_secs(2), watch.next()).await.expect("the watch logs in by itself");
    assert_eq!(wake, Some(WakeUp::Vacated));
    tenant.remove().await;
}

#[tokio::test]
#[ignore = "needs etcd: run integration/test.sh"]
async fn a_password_or_a_role_that_is_taken_away_denies_the_next_call_and_works_again_when_given_back() {
    let _alone = USERS.lock().await;
    let tenant = Tenant::new().await;
    let store = EtcdStore::connect(&tenant.url("first")).await.unwrap();
    let name = fresh("rotate");
    let grant = granted(&store, &bid_for(&name, Duration::from_secs(60))).await;
    tenant.set_password("second").await;
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{}", shown(&error));
    tenant.set_password("first").await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    let range_end = tenant.prefix.replace(&format!("{}/", tenant.name), &format!("{}0", tenant.name));
    let whole = RoleRevokePermissionOptions::new().with_range_end(range_end);
    root().await.role_revoke_permission(&*tenant.name, &*tenant.prefix, Some(whole)).await.unwrap();
    let error = store.renew(&grant).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{}", shown(&error));
    tenant.remove().await;
}
