//! What every test here stands on: the server of the environment, fresh names, bids and bounded waiting.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use tenure_core::{Acquired, Bid, CandidateId, Grant, Label, LeaseName, LeaseRecord, LeaseStore, StoreUrl};
use tenure_redis::{RedisStore, redis};
use tokio::time::{Instant, sleep};

pub(crate) const TTL: Duration = Duration::from_secs(20);

/// The value of `variable`, which `integration/test.sh` sets. A test that lacks its server fails.
pub(crate) fn environment(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run integration/test.sh"))
}

pub(crate) fn server_url() -> String {
    environment("TENURE_TEST_REDIS")
}

pub(crate) async fn connect(url: &str) -> RedisStore {
    let url: StoreUrl = url.parse().unwrap();
    RedisStore::connect(&url)
        .await
        .unwrap_or_else(|error| panic!("{url}: {error}: {:?}", std::error::Error::source(&error)))
}

pub(crate) async fn store() -> RedisStore {
    connect(&server_url()).await
}

/// The server behind the store's back, as an operator reaches it.
pub(crate) async fn operator(url: &str) -> MultiplexedConnection {
    redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

pub(crate) fn fresh_name(what: &str) -> LeaseName {
    LeaseName::new(format!("{what}-{:016x}", fastrand::u64(..))).unwrap()
}

pub(crate) fn lease_key(name: &LeaseName) -> String {
    format!("tenure:{{{name}}}:lease")
}

pub(crate) fn fence_key(name: &LeaseName) -> String {
    format!("tenure:{{{name}}}:fence")
}

pub(crate) fn candidate() -> CandidateId {
    CandidateId::draw(&Label::new("worker").unwrap())
}

pub(crate) fn bid(name: &LeaseName) -> Bid {
    Bid::new(name.clone(), candidate(), TTL)
}

pub(crate) async fn granted(store: &RedisStore, bid: &Bid) -> Grant {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => grant,
        Acquired::Held(record) => panic!("held by {record:?}"),
    }
}

pub(crate) async fn held(store: &RedisStore, bid: &Bid) -> LeaseRecord {
    match store.try_acquire(bid).await.unwrap() {
        Acquired::Granted(grant) => panic!("granted: {grant:?}"),
        Acquired::Held(record) => record,
    }
}

/// Waits until `condition` holds, and fails after `bound`.
pub(crate) async fn eventually(what: &str, bound: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + bound;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {bound:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
