//! Leads on the store of a URL, as long as it can, and counts the seconds: one of these at a time, however many run.
//!
//! ```text
//! cargo run -p tenure --features redis --example by_url -- redis://127.0.0.1:6379
//! ```
//!
//! Start it twice, and end the first with Ctrl-C: the other takes over at once. Kill the first instead: the other takes
//! over when the lease has run out. Without a URL the store is this process's memory, where nobody else contends.

use std::error::Error;
use std::time::Duration;

use tenure::{CancellationToken, Election, Leadership};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let store = tenure::connect(&url).await?;
    // Creates the table of a SQL store; others need nothing.
    store.prepare().await?;
    let election = Election::builder("tenure-example", store).build()?;

    let shutdown = CancellationToken::new();
    let asked = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.cancel();
        }
    });
    println!("waiting for the lease");
    let ended = election.run_as_leader(shutdown, count).await?;
    println!("{ended:?}");
    Ok(())
}

async fn count(lead: Leadership) {
    println!("leading with token {}", lead.token());
    tokio::pin! { let stopping = lead.stopping(); }
    for seconds in 1_u64.. {
        tokio::select! {
            () = sleep(Duration::from_secs(1)) => println!("{seconds}"),
            () = &mut stopping => return println!("stopping"),
        }
    }
}
