//! Stores made of clients that the service has already.

use redis::aio::ConnectionManager;
use redis::cluster::ClusterClient;
use redis::sentinel::{SentinelClient, SentinelServerType};
use tenure_core::{LeaseStore, Released, Renewed, WakeUp, WakeUpKind};
use tenure_redis::{RedisStore, redis};

use crate::bench::{bid, environment, fresh_name, granted, server_url};
use crate::watch::next;

async fn serves(store: &RedisStore) {
    let grant = granted(store, &bid(&fresh_name("own"))).await;
    assert_eq!(store.renew(&grant).await.unwrap(), Renewed::Extended(grant.clone()));
    assert_eq!(store.read(&grant.name).await.unwrap().unwrap().token, grant.token);
    assert_eq!(store.release(&grant).await.unwrap(), Released::Freed);
}

async fn wakes(store: &RedisStore) {
    let name = fresh_name("own");
    let mut watch = store.watch(&name);
    assert_eq!(next(&mut watch).await, WakeUp::Resync);
    granted(store, &bid(&name)).await;
    assert_eq!(next(&mut watch).await, WakeUp::Taken);
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_connection_manager_serves_and_hears_with_a_client_beside_it() {
    let client = redis::Client::open(server_url()).unwrap();
    let store = RedisStore::new(ConnectionManager::new(client.clone()).await.unwrap());
    assert_eq!(store.describe().wake_up, WakeUpKind::Poll);
    serves(&store).await;
    let store = store.listening_on(&client).unwrap();
    assert_eq!(store.describe().wake_up, WakeUpKind::Push);
    serves(&store).await;
    wakes(&store).await;
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_client_of_either_protocol_serves_and_hears() {
    for protocol in ["", "?protocol=resp3"] {
        let client = redis::Client::open(format!("{}/{protocol}", server_url())).unwrap();
        let store = RedisStore::from_client(&client).unwrap();
        serves(&store).await;
        wakes(&store).await;
    }
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_sentinel_client_serves_and_hears() {
    let sentinels = environment("TENURE_TEST_REDIS_SENTINEL");
    let urls: Vec<_> = sentinels.split(',').map(|host| format!("redis://{host}")).collect();
    let service = environment("TENURE_TEST_REDIS_SENTINEL_MASTER");
    let client = SentinelClient::build(urls, service, None, SentinelServerType::Master).unwrap();
    let _one_at_a_time = crate::sentinel::turn().await;
    let store = RedisStore::from_sentinel(client);
    serves(&store).await;
    wakes(&store).await;
}

#[tokio::test]
#[ignore = "needs Redis: run integration/test.sh"]
async fn a_cluster_client_and_its_connection_serve_and_hear_with_a_node_beside_them() {
    let nodes: Vec<_> =
        environment("TENURE_TEST_REDIS_CLUSTER").split(',').map(|host| format!("redis://{host}")).collect();
    let client = ClusterClient::new(nodes.clone()).unwrap();
    let _one_at_a_time = crate::cluster::turn().await;
    let connection = client.get_async_connection().await.unwrap();
    for store in [RedisStore::from_cluster(client), RedisStore::from_cluster_connection(connection)] {
        assert_eq!(store.describe().wake_up, WakeUpKind::Poll);
        serves(&store).await;
        let store = store.listening_on(&redis::Client::open(nodes[0].as_str()).unwrap()).unwrap();
        wakes(&store).await;
    }
}
