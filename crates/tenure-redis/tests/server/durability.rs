//! What the descriptor says of the server.

use tenure_core::{LeaseClock, LeaseStore, TokenDurability};
use tenure_redis::{RedisStore, redis};

use crate::bench::{connect, environment, store};
use crate::private::PrivateServer;

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_server_that_syncs_every_write_and_evicts_nothing_keeps_tokens() {
    let store = store().await;
    let described = store.describe();
    assert_eq!((described.name.as_ref(), described.clock), ("redis", LeaseClock::ServerWall));
    assert_eq!(described.token, TokenDurability::SingleNode);
    assert!(described.version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())));
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn any_other_server_is_best_effort() {
    let lazy = PrivateServer::start(&["--appendfsync", "everysec"]).await;
    assert_eq!(connect(&lazy.url()).await.describe().token, TokenDurability::BestEffort);
    let secretive = PrivateServer::start(&[
        "--appendfsync",
        "always",
        "--rename-command",
        "CONFIG",
        "",
        "--rename-command",
        "INFO",
        "",
    ])
    .await;
    assert_eq!(connect(&secretive.url()).await.describe().token, TokenDurability::BestEffort);
    let sentinel = format!(
        "redis://{}?sentinel={}",
        environment("TENURE_TEST_REDIS_SENTINEL"),
        environment("TENURE_TEST_REDIS_SENTINEL_MASTER")
    );
    assert_eq!(connect(&sentinel).await.describe().token, TokenDurability::BestEffort);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_store_of_an_own_client_looks_when_it_is_prepared() {
    let server = PrivateServer::start(&["--appendfsync", "always"]).await;
    let store = RedisStore::from_client(&redis::Client::open(server.url()).unwrap()).unwrap();
    assert_eq!(store.describe().token, TokenDurability::BestEffort);
    store.prepare().await.unwrap();
    assert_eq!(store.describe().token, TokenDurability::SingleNode);
}
