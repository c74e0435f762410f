//! Running out.

use futures::future::try_join_all;
use tenure_core::StoreErrorKind;

use crate::Foreign;
use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure, fail};

pub(super) const CLAUSES: &[Clause] = &[
    // K08
    clause!(
        "expiry-bounds",
        bounds,
        "A lease that nobody renews is free after its ttl: not before it, and at the latest the declared lateness after.",
        "A ttl that is ignored, rounded, doubled, or counted by somebody else's clock."
    ),
    clause!(
        "expiry-renewed",
        renewed,
        "The ttl counts from the last confirmed renewal, however many there were.",
        "An expiry that is fixed at the grant, or a renewal that adds a ttl to what is left."
    ),
    // K08
    clause!(
        "expiry-holder-gone",
        holder_gone,
        "A lease runs out in the same bounds when its holder's client is gone.",
        "A lease tied to a connection or session: it ends with it, or lives as long as a server notices nothing."
    ),
    clause!(
        "expiry-read",
        read,
        "A read shows the holder until the lease runs out, and nobody from then on.",
        "Showing an expired holder as the leader, or none while the lease is still held."
    ),
    clause!(
        "expiry-ttls",
        ttls,
        "Leases of different ttls run out each in its own time.",
        "One ttl for all: the contender's, or that of the first lease."
    ),
    clause!(
        "expiry-outsider",
        outsider,
        "A record that never runs out, written by somebody else, is reported as malformed.",
        "Waiting for ever, without a word, for a lease that cannot expire."
    ),
];

/// Leases that run out side by side, so that there is something to take a median of.
const SAMPLES: usize = 5;

async fn bounds(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let samples = (0..SAMPLES).map(|_| async {
        let bid = bench.short_bid(&bench.name()?);
        let holder = client.granted_at(&bid).await?;
        bench.outlast(&holder, &other, &bench.short_bid(&bid.name)).await
    });
    try_join_all(samples).await?;
    Ok(())
}

async fn renewed(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.short_bid(&bench.name()?);
    let contender = bench.short_bid(&bid.name);
    let mut last = client.granted_at(&bid).await?;
    for _ in 0..10 {
        other.bid(&contender).await?;
        bench.pass(last.at, last.value.ttl / 8).await;
        last = bench.in_time(&last, client.extended_at(&last.value).await)?;
    }
    bench.outlast(&last, &other, &contender).await?;
    Ok(())
}

async fn holder_gone(bench: &Bench<'_>) -> Verdict {
    let other = bench.client().await?;
    let bid = bench.short_bid(&bench.name()?);
    let contender = bench.short_bid(&bid.name);
    let holder = {
        let client = bench.client().await?;
        client.granted_at(&bid).await?
    };
    bench.outlast(&holder, &other, &contender).await?;
    Ok(())
}

async fn read(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let holder = client.granted_at(&bench.short_bid(&bench.name()?)).await?;
    bench.until_nobody(&holder, &other).await?;
    client.nobody(&holder.value.name).await?;
    Ok(())
}

async fn ttls(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let short = bench.short_bid(&bench.name()?);
    let long = bench.bid(&bench.name()?);
    let stays = client.granted(&long).await?;
    let runs_out = client.granted_at(&short).await?;
    // The contenders ask for the other ttl each.
    let mut for_short = bench.bid(&short.name);
    for_short.ttl = long.ttl;
    let mut for_long = bench.short_bid(&long.name);
    for_long.ttl = short.ttl;
    other.held(&for_long).await?;
    let taken = bench.outlast(&runs_out, &other, &for_short).await?;
    ensure!(taken.ttl >= for_short.ttl, "a ttl of {:?} was asked for, and {:?} granted", for_short.ttl, taken.ttl);
    other.held(&for_long).await?;
    client.extended(&stays).await?;
    other.shows(&taken).await?;
    Ok(())
}

async fn outsider(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let name = bench.name()?;
    admin.put_foreign(&name, Foreign::WithoutExpiry).await?;
    let before = admin.raw(&name).await.ok();
    match client.bare().try_acquire(&bench.bid(&name)).await {
        Err(error) if error.kind() == StoreErrorKind::Malformed => {}
        answer => fail!("a bid on a record without an expiry was answered with {answer:?}, not with malformed"),
    }
    ensure!(admin.raw(&name).await.ok() == before, "a bid changed the record");
    Ok(())
}
