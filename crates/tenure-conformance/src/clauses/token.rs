//! Fencing tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::{Acquired, Bid, FencingToken, TokenDurability};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, skip};
use crate::client::Client;

pub(super) const CLAUSES: &[Clause] = &[
    // K19
    clause!(
        "token-release",
        release,
        "The token rises over a release, for the same candidate too.",
        "A release that deletes the counter with the lease, so that numbers begin anew."
    ),
    // K19
    clause!(
        "token-expiry",
        expiry,
        "The token rises over an expiry.",
        "A counter that runs out together with the lease."
    ),
    clause!(
        "token-candidates",
        candidates,
        "The token rises from candidate to candidate, and back to the first one.",
        "A counter per candidate instead of one per lease."
    ),
    // K19
    clause!(
        "token-campaign",
        campaign,
        "A new campaign under the same label waits for the old term and then gets a larger token.",
        "Recognising a candidate by its label: a restarted process takes its old term over, with the old token."
    ),
    clause!(
        "token-client",
        client,
        "The token rises over a restart of the client.",
        "A counter in the client's memory."
    ),
    clause!(
        "token-server",
        server,
        "The token rises over a restart of the server.",
        "A counter, or the last of it, in the server's memory only."
    )
    .alone(),
    // K19
    clause!(
        "token-removed",
        removed,
        "The token rises after the record was removed by hand, unless the store declares that it then begins anew.",
        "A token kept in the very record that an operator deletes, and nothing said about it."
    ),
    // K19
    clause!(
        "token-constant",
        constant,
        "The token stays the same over renewals and repeated bids of one term.",
        "A token that counts writes: a renewal makes the leader's own earlier writes look stale."
    ),
    clause!(
        "token-unique",
        unique,
        "64 candidates that take turns for 200 terms get 200 tokens, each larger than the one before.",
        "A token that is read and raised in two steps, so that two terms share one."
    )
    .alone(),
];

fn rose(over: &str, from: FencingToken, to: FencingToken) -> Verdict {
    ensure!(to > from, "the token went from {from} to {to} over {over}");
    Ok(())
}

async fn release(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let name = bench.name()?;
    let bid = bench.bid(&name);
    let mut last = client.granted(&bid).await?;
    for next in [&bid, &bench.bid(&name), &bid] {
        client.freed(&last).await?;
        let grant = client.granted(next).await?;
        rose("a release", last.token, grant.token)?;
        last = grant;
    }
    Ok(())
}

async fn expiry(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let name = bench.name()?;
    let first = client.granted_at(&bench.short_bid(&name)).await?;
    let second = bench.outlast(&first, &client, &bench.bid(&name)).await?;
    rose("an expiry", first.value.token, second.token)
}

async fn candidates(bench: &Bench<'_>) -> Verdict {
    let (a, b) = bench.pair().await?;
    let name = bench.name()?;
    let bids = [bench.bid(&name), bench.bid(&name)];
    let mut last = FencingToken(0);
    for (turn, (client, bid)) in [(&a, &bids[0]), (&b, &bids[1])].into_iter().cycle().take(6).enumerate() {
        let grant = client.granted(bid).await?;
        if turn > 0 {
            rose("a change of candidates", last, grant.token)?;
        }
        last = grant.token;
        client.freed(&grant).await?;
    }
    Ok(())
}

async fn campaign(bench: &Bench<'_>) -> Verdict {
    let (before, after) = bench.pair().await?;
    let name = bench.name()?;
    // Every candidate of the bench has one label; that they differ lies in the part drawn for the campaign.
    let old = before.granted_at(&bench.short_bid(&name)).await?;
    let new = bench.bid(&name);
    ensure!(old.value.candidate.label() == new.candidate.label(), "the bench drew two labels");
    let grant = bench.outlast(&old, &after, &new).await?;
    rose("a new campaign of the same label", old.value.token, grant.token)
}

async fn client(bench: &Bench<'_>) -> Verdict {
    let name = bench.name()?;
    let mut last = None;
    for _ in 0..4 {
        let client = bench.client().await?;
        let grant = client.granted(&bench.bid(&name)).await?;
        if let Some(last) = last {
            rose("a restart of the client", last, grant.token)?;
        }
        last = Some(grant.token);
        client.freed(&grant).await?;
    }
    Ok(())
}

async fn server(bench: &Bench<'_>) -> Verdict {
    if bench.descriptor().token == TokenDurability::BestEffort {
        skip!("this store declares that its tokens may fall back when the server restarts");
    }
    let name = bench.name()?;
    let client = bench.client().await?;
    let first = client.granted(&bench.bid(&name)).await?;
    client.freed(&first).await?;
    bench.harness().restart().await?;
    let second = client.granted(&bench.bid(&name)).await?;
    rose("a restart of the server", first.token, second.token)
}

async fn removed(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    if admin.removal_resets_tokens() {
        skip!("this store declares that tokens begin anew when a record is removed by hand");
    }
    let name = bench.name()?;
    let first = client.granted(&bench.bid(&name)).await?;
    client.freed(&first).await?;
    let second = client.granted(&bench.bid(&name)).await?;
    admin.remove(&name).await?;
    // Another process too: what one client remembers is no memory of the store.
    let third = bench.client().await?.granted(&bench.bid(&name)).await?;
    rose("a removal by hand", second.token, third.token)
}

async fn constant(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?);
    let first = client.granted(&bid).await?;
    let mut grant = first.clone();
    for _ in 0..5 {
        grant = client.extended(&grant).await?;
        ensure!(grant.token == first.token, "a renewal changed the token from {} to {}", first.token, grant.token);
        other.shows(&first).await?;
    }
    grant = other.granted(&bid).await?;
    ensure!(grant.token == first.token, "a repeated bid changed the token from {} to {}", first.token, grant.token);
    other.shows(&first).await?;
    Ok(())
}

/// Terms that candidates take turns in, and the time after which no new one begins.
const TERMS: usize = 200;
const CANDIDATES: usize = 64;
const CLIENTS: usize = 8;
const TERMS_WITHIN: Duration = Duration::from_secs(12);

async fn unique(bench: &Bench<'_>) -> Verdict {
    let clients = bench.clients(CLIENTS).await?;
    let name = bench.name()?;
    let race =
        Arc::new(Race { last: AtomicU64::new(0), terms: AtomicUsize::new(0), until: Instant::now() + TERMS_WITHIN });
    let mut running = JoinSet::new();
    for (client, _) in clients.iter().cycle().zip(0..CANDIDATES) {
        let bids: Vec<Bid> = (0..TERMS / 4).map(|_| bench.bid(&name)).collect();
        running.spawn(take_turns(client.clone(), bids, Arc::clone(&race)));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let terms = race.terms.load(Ordering::SeqCst);
    ensure!(terms >= 4, "only {terms} terms within {TERMS_WITHIN:?}");
    Ok(())
}

struct Race {
    last: AtomicU64,
    terms: AtomicUsize,
    until: Instant,
}

async fn take_turns(client: Client, bids: Vec<Bid>, race: Arc<Race>) -> Result<(), Stop> {
    let mut bids = bids.into_iter();
    let mut bid = bids.next();
    while let Some(current) = &bid {
        if race.terms.load(Ordering::SeqCst) >= TERMS || Instant::now() > race.until {
            break;
        }
        let Acquired::Granted(grant) = client.bid(current).await?.value else {
            sleep(Duration::from_millis(fastrand::u64(1..8))).await;
            continue;
        };
        // Whoever holds the lease is alone here, so the largest token so far is the last term's.
        let before = race.last.fetch_max(grant.token.value(), Ordering::SeqCst);
        ensure!(
            before < grant.token.value() || race.terms.load(Ordering::SeqCst) == 0,
            "a term got token {}, after one with token {before}",
            grant.token
        );
        race.terms.fetch_add(1, Ordering::SeqCst);
        client.freed(&grant).await?;
        bid = bids.next();
    }
    Ok(())
}
