//! A service that has an etcd client already leads with it, and fences what it writes to the same cluster.
//!
//! ```text
//! cargo run -p tenure-etcd --example etcd_own_client -- 127.0.0.1:2379
//! ```

use std::error::Error;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Txn, TxnOp};
use tenure_core::{CancellationToken, Election, Leadership, LeaseName};
use tenure_etcd::{EtcdStore, etcd_client};

const NAME: &str = "tenure-example-own";
const CURSOR: &str = "/tenure-example/cursor";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let member = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2379".to_owned());
    // Without these the client waits for ever for a member that is gone.
    let options = ConnectOptions::new()
        .with_connect_timeout(Duration::from_secs(2))
        .with_timeout(Duration::from_secs(5))
        .with_keep_alive(Duration::from_secs(6), Duration::from_secs(3))
        .with_require_leader(true);
    let client = Client::connect([member], Some(options)).await?;

    let store = EtcdStore::new(client.clone());
    let election = Election::builder(NAME, store.clone()).build()?;
    let work = |lead| advance(lead, store.clone(), client.clone());
    let ended = election.run_as_leader(CancellationToken::new(), work).await?;
    println!("{ended:?}");
    Ok(())
}

/// Writes the cursor, if this term still holds the lease when etcd applies the write.
async fn advance(lead: Leadership, store: EtcdStore, mut client: Client) -> Result<(), Box<dyn Error + Send + Sync>> {
    let fence = store.fence(&LeaseName::new(NAME)?, lead.token());
    let txn = Txn::new().when([fence]).and_then([TxnOp::put(CURSOR, "42", None)]);
    match client.txn(txn).await?.succeeded() {
        true => println!("token {}: written", lead.token()),
        false => println!("token {}: the lease passed on, nothing was written", lead.token()),
    }
    Ok(())
}
