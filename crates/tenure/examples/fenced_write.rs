//! A leader is frozen, replaced, and wakes up: its late write is refused by its fencing token.
//!
//! Run it with `cargo run -p tenure --example fenced_write`. No lease can stop a process that does not run; the resource
//! can. Here the resource lives in this process, under a [`Fence`]; the backends have the same for SQL, etcd and Redis.

use std::error::Error;
use std::time::Duration;

use tenure::{Election, Fence, FencingToken, MemoryStore, StaleToken, Timing};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let ledger = Fence::new(Vec::new());
    let candidate = |label: &str| -> Result<Election, Box<dyn Error>> {
        let timing = Timing::with_ttl(Duration::from_millis(500))?;
        Ok(Election::builder("ledger", store.clone()).candidate(label).timing(timing).build()?)
    };

    let old = candidate("old")?.campaign().await?;
    let token = old.token();
    write(&ledger, token, "opened by the old leader")?;

    println!("the old leader (token {token}) is frozen past its lease");
    std::thread::sleep(Duration::from_millis(700));

    let new = candidate("new")?.campaign().await?;
    // A new leader installs its token by a write before it reads anything.
    write(&ledger, new.token(), "taken over by the new leader")?;

    println!("the old leader wakes up in the middle of its work");
    match write(&ledger, token, "a late write") {
        Ok(()) => return Err("a stale write was let in".into()),
        Err(stale) => println!("refused: {stale}"),
    }
    println!("its own check says: {}", old.check().err().ok_or("it should have lost")?);
    println!("the ledger: {:?}", *ledger.enter(new.token())?);
    new.resign().await?;
    Ok(())
}

fn write(ledger: &Fence<Vec<&'static str>>, token: FencingToken, line: &'static str) -> Result<(), StaleToken> {
    ledger.enter(token)?.push(line);
    println!("token {token}: {line}");
    Ok(())
}
