//! Leads on MySQL or MariaDB by URL, as long as it can: one of these at a time, however many run.
//!
//! ```text
//! cargo run -p tenure-sql --features mysql,tls-rustls --example mysql_by_url -- mysql://user:password@127.0.0.1/app
//! ```
//!
//! Start it twice, and end the first with Ctrl-C: the other takes over at once. Kill the first instead: the other takes
//! over when the lease has run out.

use std::error::Error;
use std::time::Duration;

use tenure_core::{CancellationToken, Election, Leadership, StoreUrl};
use tenure_sql::MySqlStore;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url: StoreUrl = std::env::args().nth(1).as_deref().unwrap_or("mysql://root@127.0.0.1/app").parse()?;
    let store = MySqlStore::connect(&url).await?;
    // Once per database; needs the right to create a table.
    store.ensure_schema().await?;
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
