//! A service that has a Redis connection already leads over it, and fences what it writes with it.
//!
//! ```text
//! cargo run -p tenure-redis --example redis_own_client -- redis://127.0.0.1:6379
//! ```

use std::error::Error;
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, IntoConnectionInfo};
use tenure_core::{CancellationToken, Election, Leadership};
use tenure_redis::{RedisStore, fenced_script, redis};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let info = url.as_str().into_connection_info()?;
    let settings = TcpSettings::default().set_nodelay(true);
    // The manager keeps a connection that has gone silent until the kernel ends it.
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(Duration::from_secs(5));
    let client = Client::open(info.set_tcp_settings(settings))?;
    // The driver repeats calls by itself; six attempts of the manager would take nine seconds.
    let config = ConnectionManagerConfig::new().set_number_of_retries(0);
    let manager = ConnectionManager::new_with_config(client.clone(), config).await?;

    // Calls go over the service's connection, wake-ups come over one beside it.
    let store = RedisStore::new(manager.clone()).listening_on(&client)?;
    let election = Election::builder("tenure-example-own", store).build()?;
    let ended = election.run_as_leader(CancellationToken::new(), |lead| work(lead, manager.clone())).await?;
    println!("{ended:?}");
    Ok(())
}

/// Writes a total that no earlier leader can overwrite any more.
async fn work(lead: Leadership, mut manager: ConnectionManager) -> redis::RedisResult<i64> {
    let fence = "tenure-example:{total}:fence";
    // From here on an earlier leader's writes are refused: only now what is read stays true.
    fenced_script("").key(fence).arg(lead.token().value()).invoke_async::<()>(&mut manager).await?;
    fenced_script("return redis.call('INCR', KEYS[2])")
        .key(fence)
        .key("tenure-example:{total}")
        .arg(lead.token().value())
        .invoke_async(&mut manager)
        .await
}
