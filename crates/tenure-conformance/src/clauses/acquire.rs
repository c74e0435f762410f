//! Who gets the lease.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Acquired, Bid, Payload, StoreErrorKind};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Foreign;
use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure, fail};
use crate::client::Client;
use crate::figures::Figure;

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "acquire-free",
        free,
        "A lease that nobody holds is granted, and the grant names what was asked for.",
        "A grant that names another candidate, another lease or a shorter ttl than was asked for."
    ),
    clause!(
        "acquire-held",
        held,
        "A lease that somebody holds is shown to other bidders with its holder, token, payload and time left.",
        "Answering contention with an error, or with a record that does not name the holder."
    ),
    clause!(
        "acquire-held-unchanged",
        held_unchanged,
        "A bid that loses changes nothing of the holder's lease.",
        "A losing bid that restarts the holder's ttl, burns its token or replaces its payload."
    ),
    clause!(
        "acquire-contended",
        contended,
        "Of 64 bids at once exactly one is granted, 200 rounds over.",
        "Checking and setting in two steps: two candidates see a free lease and both write."
    )
    .alone(),
    clause!(
        "acquire-own",
        own,
        "A candidate that holds the lease already gets the same grant and token again.",
        "A candidate whose answer was lost is kept out by its own record, or gets a new token in the same term."
    ),
    clause!(
        "acquire-own-restarts-ttl",
        own_restarts_ttl,
        "A repeated bid of the holder keeps the lease for its full ttl from then.",
        "The repeated bid answers with the old grant and leaves the old expiry: the leader counts on time it has not."
    ),
    clause!(
        "acquire-late-copy",
        late_copy,
        "A late copy of the holder's own bid leaves its term as it is.",
        "A copy of a bid that restarts the term: the renewals of the real one are refused."
    ),
    clause!(
        "acquire-never-shortens",
        never_shortens,
        "A copy of a bid with a shorter ttl never moves the lease's expiry back.",
        "An abandoned bid that is applied late, and takes away time that a later answer promised."
    ),
    // K04
    clause!(
        "acquire-expired-own",
        expired_own,
        "A candidate whose lease ran out gets a new term, not its old one.",
        "Taking one's own expired record up again with the old token: work that waited for the old term goes on."
    ),
    clause!(
        "acquire-after-release",
        after_release,
        "A grant says that the term before was given up in order only when it was.",
        "Claiming an orderly release after an expiry, so that no settle delay is kept while the old leader may still act."
    ),
    clause!(
        "acquire-foreign",
        foreign,
        "Something foreign under the lease's key is reported as malformed, and never taken over.",
        "Overwriting another program's value, or campaigning against it for ever without a word."
    ),
];

async fn free(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?).with_payload(Payload::new("10.0.0.7:8080")?);
    let grant = client.granted(&bid).await?;
    ensure!(
        grant.name == bid.name && grant.candidate == bid.candidate,
        "the grant is for {:?} of {:?}, asked for was {:?} of {:?}",
        grant.name,
        grant.candidate,
        bid.name,
        bid.candidate
    );
    ensure!(grant.ttl >= bid.ttl, "a ttl of {:?} was asked for, and {:?} granted", bid.ttl, grant.ttl);
    other.shows(&grant).await?;
    client.extended(&grant).await?;
    Ok(())
}

async fn held(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let bid = bench.bid(&name).with_payload(Payload::new("here I am")?);
    let grant = client.granted(&bid).await?;
    let record = other.held(&bench.bid(&name)).await?;
    ensure!(record.name == name, "the record is of {:?}, asked for was {name:?}", record.name);
    ensure!(record.holder == grant.candidate, "{:?} holds the lease, shown was {record:?}", grant.candidate);
    ensure!(record.token == grant.token, "the holder's token is {}, shown was {}", grant.token, record.token);
    ensure!(record.payload == bid.payload, "the holder's payload is {:?}, shown was {:?}", bid.payload, record.payload);
    ensure!(record.ttl == grant.ttl, "the holder's ttl is {:?}, shown was {:?}", grant.ttl, record.ttl);
    ensure!(
        !record.remaining.is_zero() && record.remaining <= grant.ttl,
        "{:?} left of a ttl of {:?}, just granted",
        record.remaining,
        grant.ttl
    );
    Ok(())
}

async fn held_unchanged(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let grant = client.granted(&bench.bid(&name).with_payload(Payload::new("mine")?)).await?;
    let before = bench.snapshot(&client, &name).await?;
    for _ in 0..3 {
        other.held(&bench.bid(&name).with_payload(Payload::new("not mine")?)).await?;
    }
    bench.unchanged(&client, &before, "a losing bid").await?;
    client.extended(&grant).await?;
    Ok(())
}

/// Candidates and clients of a contest, rounds, and the time after which no new round begins.
const CANDIDATES: usize = 64;
const CLIENTS: usize = 8;
const ROUNDS: i64 = 200;
const ROUNDS_WITHIN: Duration = Duration::from_secs(12);

async fn contended(bench: &Bench<'_>) -> Verdict {
    let clients = bench.clients(CLIENTS).await?;
    let name = bench.name()?;
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS && started.elapsed() < ROUNDS_WITHIN {
        let winners = race(&clients, (0..CANDIDATES).map(|_| bench.bid(&name)).collect()).await?;
        match &winners[..] {
            [winner] => clients[0].freed(winner).await?,
            winners => fail!("{} of {CANDIDATES} bids at once were granted in round {rounds}", winners.len()),
        }
        rounds += 1;
    }
    bench.measure(Figure::ContendedRounds, rounds);
    Ok(())
}

/// Sends all bids at once, and answers with the grants. A bid in doubt is repeated by its candidate, which finds out.
async fn race(clients: &[Client], bids: Vec<Bid>) -> Result<Vec<tenure_core::Grant>, crate::clause::Stop> {
    let start = Arc::new(Barrier::new(bids.len()));
    let mut running = JoinSet::new();
    for (bid, client) in bids.into_iter().zip(clients.iter().cycle()) {
        let (client, start) = (client.clone(), Arc::clone(&start));
        running.spawn(async move {
            start.wait().await;
            client.bid(&bid).await
        });
    }
    let mut grants = Vec::new();
    while let Some(answer) = running.join_next().await {
        if let Acquired::Granted(grant) = answer??.value {
            grants.push(grant);
        }
    }
    Ok(grants)
}

async fn own(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?);
    let first = client.granted(&bid).await?;
    for repeater in [&client, &other] {
        let again = repeater.granted(&bid).await?;
        ensure!(
            (&again.name, &again.candidate, again.token) == (&first.name, &first.candidate, first.token),
            "the repeated bid got {again:?}, the first {first:?}"
        );
        repeater.extended(&again).await?;
    }
    client.held(&bench.bid(&bid.name)).await?;
    Ok(())
}

async fn own_restarts_ttl(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.short_bid(&bench.name()?);
    let contender = bench.short_bid(&bid.name);
    let first = client.granted_at(&bid).await?;
    other.bid(&contender).await?;
    bench.pass(first.at, first.value.ttl * 6 / 10).await;
    let again = client.granted_at(&bid).await?;
    bench.outlast(&again, &other, &contender).await?;
    Ok(())
}

async fn late_copy(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?);
    let grant = client.granted(&bid).await?;
    let grant = client.extended(&grant).await?;
    let copy = other.granted(&bid).await?;
    ensure!(copy.token == grant.token, "the copy got token {}, the term has {}", copy.token, grant.token);
    let extended = client.extended(&grant).await?;
    ensure!(extended.token == grant.token, "a renewal changed the token from {} to {}", grant.token, extended.token);
    client.shows(&grant).await?;
    client.freed(&extended).await?;
    client.nobody(&bid.name).await
}

async fn never_shortens(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let name = bench.name()?;
    let long = bench.bid(&name);
    let mut short = long.clone();
    short.ttl = bench.ttl();
    let grant = client.granted(&long).await?;
    let before = client.shows(&grant).await?.remaining;
    client.granted(&short).await?;
    let after = client.shown(&name).await?.remaining;
    ensure!(
        after + bench.slack() * 2 > before,
        "{before:?} were left; after a copy of the bid with a ttl of {:?} only {after:?}",
        short.ttl
    );
    Ok(())
}

async fn expired_own(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let bid = bench.short_bid(&bench.name()?);
    let first = client.granted_at(&bid).await?;
    bench.until_nobody(&first, &client).await?;
    let second = client.granted(&bid).await?;
    ensure!(
        second.token > first.value.token,
        "the term that ran out had token {}, the next one of the same candidate has {}",
        first.value.token,
        second.token
    );
    Ok(())
}

async fn after_release(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let name = bench.name()?;
    let first = client.granted_at(&bench.short_bid(&name)).await?;
    let second = bench.outlast(&first, &client, &bench.bid(&name)).await?;
    ensure!(!second.after_release, "the term before ran out, and the grant says that it was given up in order");
    // After a release both answers are right: a store that cannot tell says no.
    client.freed(&second).await?;
    client.granted(&bench.bid(&name)).await?;
    Ok(())
}

async fn foreign(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let name = bench.name()?;
    admin.put_foreign(&name, Foreign::Value).await?;
    let before = admin.raw(&name).await.ok();
    match client.bare().try_acquire(&bench.bid(&name)).await {
        Err(error) if error.kind() == StoreErrorKind::Malformed => {
            let names_it = error.to_string().contains(name.as_str());
            ensure!(names_it, "the error does not name the lease {name:?}: {error}");
        }
        answer => fail!("a bid on a foreign value was answered with {answer:?}, not with malformed"),
    }
    ensure!(admin.raw(&name).await.ok() == before, "a bid changed a foreign value");
    Ok(())
}
