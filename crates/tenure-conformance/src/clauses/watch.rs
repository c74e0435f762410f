//! Being woken.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tenure_core::{Acquired, LeaseName, WakeUp, WakeUpKind};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail, skip};
use crate::client::{Client, Sent};
use crate::figures::Figure;

pub(super) const CLAUSES: &[Clause] = &[
    // K08
    clause!(
        "watch-release",
        release,
        "Who watches is woken by a release, soon.",
        "A release that tells nobody: the lease stays vacant until somebody happens to look."
    ),
    clause!(
        "watch-grant",
        grant,
        "Who watches is woken by a grant.",
        "An observer that learns of a new leader only by polling."
    ),
    clause!(
        "watch-renewal",
        renewal,
        "Mere renewals wake nobody.",
        "A herd of waiters that is woken, and reads, at every renewal of the leader."
    ),
    clause!(
        "watch-expiry",
        expiry,
        "A waiter that watches, and looks again when the record it read runs out, takes an expired lease in time and \
         with few bids.",
        "A time left that waiters cannot rely on: they sleep past the expiry, or bid in a hot loop."
    ),
    clause!(
        "watch-removal",
        removal,
        "Who watches is woken when a record is removed by hand, unless the store declares that its server cannot tell.",
        "A leader that goes on until its next renewal after an operator removed its record."
    ),
    clause!(
        "watch-start",
        start,
        "A change between the making of a watch and its first poll is not missed.",
        "Subscribing at the first poll, and missing the release that came in between: a waiter that waits for ever."
    ),
    clause!(
        "watch-several",
        several,
        "Everybody who watches is woken, in one process and in several.",
        "A wake-up that is handed to one waiter, which may be the one that is about to leave."
    ),
    // K17
    clause!(
        "watch-cut",
        cut,
        "A watch survives the loss of its connection: later changes wake.",
        "A stream that ends, or goes silent for ever, after a reconnect."
    )
    .alone(),
    // K17
    clause!(
        "watch-gap",
        gap,
        "A change that falls into the interruption of a watch wakes once it is back.",
        "Reconnecting without a word: what happened in between is never told."
    )
    .alone(),
];

type Watch = BoxStream<'static, WakeUp>;

/// Bound on a reconnect, backoff included.
const RECONNECT_WITHIN: Duration = Duration::from_secs(15);

/// A watch that nobody disturbs for so long has told what it had to tell.
const QUIET: Duration = Duration::from_millis(100);

fn needs_push(bench: &Bench<'_>) -> Verdict {
    if bench.descriptor().wake_up != WakeUpKind::Push {
        skip!("this store declares that it pushes nothing: waiters look again by themselves");
    }
    Ok(())
}

/// Waits for a wake-up that makes a waiter look.
async fn wakes(watch: &mut Watch, within: Duration, after: &str) -> Verdict {
    let woken = async {
        loop {
            match watch.next().await {
                Some(WakeUp::Taken) => {}
                other => return other,
            }
        }
    };
    match timeout(within, woken).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => fail!("the watch ended"),
        Err(_) => fail!("no wake-up within {within:?} after {after}"),
    }
}

async fn drain(watch: &mut Watch) -> Result<usize, Stop> {
    let mut drained = 0;
    while let Ok(woken) = timeout(QUIET, watch.next()).await {
        ensure!(woken.is_some(), "the watch ended");
        drained += 1;
    }
    Ok(drained)
}

async fn release(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let mut watch = other.bare().watch(&name);
    for _ in 0..5 {
        let grant = client.granted(&bench.bid(&name)).await?;
        drain(&mut watch).await?;
        let sent = Instant::now();
        client.freed(&grant).await?;
        wakes(&mut watch, bench.slack(), "a release").await?;
        bench.measure(Figure::WakeUp, i64::try_from(sent.elapsed().as_micros()).unwrap_or(i64::MAX));
    }
    Ok(())
}

async fn grant(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let mut watch = other.bare().watch(&name);
    for _ in 0..3 {
        drain(&mut watch).await?;
        let grant = client.granted(&bench.bid(&name)).await?;
        match timeout(bench.slack(), watch.next()).await {
            Ok(Some(WakeUp::Vacated)) => fail!("a grant was told as a vacancy"),
            Ok(Some(_)) => {}
            Ok(None) => fail!("the watch ended"),
            Err(_) => fail!("no wake-up within {:?} after a grant", bench.slack()),
        }
        client.freed(&grant).await?;
    }
    Ok(())
}

async fn renewal(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let mut watch = other.bare().watch(&grant.name);
    drain(&mut watch).await?;
    for _ in 0..10 {
        client.extended(&grant).await?;
        sleep(Duration::from_millis(5)).await;
    }
    let woken = drain(&mut watch).await?;
    // A resync after a passing fault of the connection may be among them.
    ensure!(woken <= 2, "ten renewals woke a watcher {woken} times");
    Ok(())
}

async fn expiry(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let holder = client.granted_at(&bench.short_bid(&bench.name()?)).await?;
    let waiting = wait_for(bench, &other, &holder);
    let bound = holder.value.ttl + bench.descriptor().lateness + bench.slack();
    match timeout(bound, waiting).await {
        Ok(ended) => ended,
        Err(_) => fail!("a waiter slept past the expiry: still waiting after {bound:?}"),
    }
}

/// Waits as a follower does: for a push, or the end of the time left. Bids then, and reads again when it is too early.
async fn wait_for(bench: &Bench<'_>, waiter: &Client, holder: &Sent<tenure_core::Grant>) -> Verdict {
    let bid = bench.bid(&holder.value.name);
    let mut watch = waiter.bare().watch(&bid.name);
    let mut bids = 0;
    loop {
        if let Some(record) = waiter.read(&bid.name).await? {
            let left = record.remaining.max(Duration::from_millis(1));
            tokio::select! {
                () = sleep(left) => {}
                ended = wakes(&mut watch, bench.long(), "nothing") => ended?,
            }
        }
        bids += 1;
        ensure!(bids <= 200, "{bids} bids, each after the time that was said to be left");
        if let Acquired::Granted(_) = waiter.bid(&bid).await?.value {
            return bench.not_early(holder.value.ttl, holder.at.elapsed());
        }
    }
}

async fn removal(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    if !admin.removal_wakes() {
        skip!("this store declares that its server cannot tell of a removal by hand");
    }
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let mut watch = client.bare().watch(&grant.name);
    drain(&mut watch).await?;
    admin.remove(&grant.name).await?;
    wakes(&mut watch, bench.slack(), "a removal by hand").await
}

async fn start(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    for _ in 0..3 {
        let grant = client.granted(&bench.bid(&name)).await?;
        let mut watch = other.bare().watch(&name);
        client.freed(&grant).await?;
        wakes(&mut watch, bench.slack(), "a release between the making of the watch and its first poll").await?;
    }
    Ok(())
}

async fn several(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let grant = client.granted(&bench.bid(&name)).await?;
    let mut watches = [&client, &client, &other, &other].map(|client| client.bare().watch(&name));
    for watch in &mut watches {
        drain(watch).await?;
    }
    client.freed(&grant).await?;
    for watch in &mut watches {
        wakes(watch, bench.slack(), "a release, seen by one of several watchers").await?;
    }
    Ok(())
}

/// A watch that is known to work.
async fn working_watch(bench: &Bench<'_>, client: &Client, other: &Client, name: &LeaseName) -> Result<Watch, Stop> {
    let mut watch = other.bare().watch(name);
    drain(&mut watch).await?;
    let grant = client.granted(&bench.bid(name)).await?;
    client.freed(&grant).await?;
    wakes(&mut watch, bench.slack(), "a release").await?;
    Ok(watch)
}

async fn cut(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let mut watch = working_watch(bench, &client, &other, &name).await?;
    bench.harness().cut_watches().await?;
    let started = Instant::now();
    // Whether the watch is back cannot be seen from outside: changes are made until one wakes.
    while started.elapsed() < RECONNECT_WITHIN {
        drain(&mut watch).await?;
        let grant = client.granted(&bench.bid(&name)).await?;
        client.freed(&grant).await?;
        if wakes(&mut watch, bench.slack(), "a release").await.is_ok() {
            return Ok(());
        }
    }
    fail!("no change woke the watcher in the {RECONNECT_WITHIN:?} after its connection was cut")
}

async fn gap(bench: &Bench<'_>) -> Verdict {
    needs_push(bench)?;
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let mut watch = working_watch(bench, &client, &other, &name).await?;
    let grant = client.granted(&bench.bid(&name)).await?;
    drain(&mut watch).await?;
    bench.harness().cut_watches().await?;
    client.freed(&grant).await?;
    wakes(&mut watch, RECONNECT_WITHIN, "a release while the watch was cut off").await
}
