//! Looking without touching.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use tenure_core::{FencingToken, LeaseName, LeaseRecord, Payload, StoreErrorKind};

use crate::Foreign;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail, skip};

pub(super) const CLAUSES: &[Clause] = &[
    // K17
    clause!(
        "read-holder",
        holder,
        "A read shows lease, holder, token, payload, ttl and the time left.",
        "An observer that learns who leads, and neither the token to check nor when to look again."
    ),
    clause!(
        "read-nobody",
        nobody,
        "A read shows nobody where nobody holds the lease: before the first grant and after a release.",
        "Showing the last holder for ever."
    ),
    clause!(
        "read-time-left",
        time_left,
        "The time left falls as time passes, and rises again by a renewal.",
        "A time left that is the ttl, whatever the time: waiters sleep too long."
    ),
    clause!(
        "read-loser",
        loser,
        "A read never shows a candidate whose bid lost.",
        "Bidders that queue in the store, and an observer that takes the last one for the leader."
    ),
    clause!(
        "read-monotonic",
        monotonic,
        "The token that one observer sees never goes back.",
        "Reading from a replica that lags: an old leader is shown again after the new one."
    ),
    clause!(
        "read-plain",
        plain,
        "Reading changes nothing and keeps nothing alive.",
        "A read that touches the record and prolongs the lease of a dead holder."
    ),
    clause!(
        "read-foreign",
        foreign,
        "A read of something foreign is reported as malformed, with the lease's name.",
        "Showing a foreign value as nobody, or as a holder with rubbish for a name."
    ),
    clause!(
        "read-list",
        list,
        "The list of leases shows those that are held as reads do, and none that is free; or the store says that it \
         cannot list.",
        "A list that forgets leases, shows released ones, or ends in silence at the first odd record."
    ),
];

fn agrees(record: &LeaseRecord, name: &LeaseName, payload: &Payload) -> Verdict {
    ensure!(record.name == *name, "asked for was {name:?}, shown is {:?}", record.name);
    ensure!(record.payload == *payload, "the payload is {payload:?}, shown is {:?}", record.payload);
    Ok(())
}

async fn holder(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?).with_payload(Payload::new("{\"at\": \"10.0.0.7:8080\"}")?);
    let grant = client.granted(&bid).await?;
    let record = other.shows(&grant).await?;
    agrees(&record, &bid.name, &bid.payload)?;
    ensure!(record.ttl == grant.ttl, "the ttl is {:?}, shown is {:?}", grant.ttl, record.ttl);
    ensure!(
        record.remaining <= grant.ttl && record.remaining + bench.slack() * 2 > grant.ttl,
        "{:?} left of a ttl of {:?}, just granted",
        record.remaining,
        grant.ttl
    );
    let Some(found) = record.grant_of(&grant.candidate) else { fail!("the record is not the holder's own") };
    client.extended(&found).await?;
    client.freed(&found).await
}

async fn nobody(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    other.nobody(&name).await?;
    let grant = client.granted(&bench.bid(&name)).await?;
    other.shows(&grant).await?;
    client.freed(&grant).await?;
    other.nobody(&name).await
}

async fn time_left(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let first = other.shows(&grant).await?.remaining;
    // A little more than the unit in which coarse stores count.
    let pause = (bench.descriptor().ttl_unit + std::time::Duration::from_millis(100)).min(bench.ttl());
    tokio::time::sleep(pause).await;
    let second = other.shows(&grant).await?.remaining;
    ensure!(second < first, "{first:?} were left, and {second:?} after {pause:?}");
    client.extended(&grant).await?;
    let third = other.shows(&grant).await?.remaining;
    ensure!(third > second, "{second:?} were left before a renewal, and {third:?} after it");
    ensure!(third <= grant.ttl, "{third:?} left of a ttl of {:?}", grant.ttl);
    Ok(())
}

async fn loser(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    for _ in 0..5 {
        other.held(&bench.bid(&grant.name).with_payload(Payload::new("lost")?)).await?;
        for reader in [&client, &other] {
            let record = reader.shows(&grant).await?;
            ensure!(record.payload.is_empty(), "a read shows the payload of a bid that lost: {record:?}");
        }
    }
    Ok(())
}

async fn monotonic(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let over = Arc::new(AtomicBool::new(false));
    let observer = tokio::spawn({
        let (over, name) = (Arc::clone(&over), name.clone());
        async move {
            let mut last: Option<LeaseRecord> = None;
            while !over.load(Ordering::SeqCst) {
                if let Some(record) = other.read(&name).await? {
                    if let Some(before) = last.filter(|before| before.token > record.token) {
                        fail!("an observer saw {record:?} after {before:?}");
                    }
                    last = Some(record);
                }
                tokio::task::yield_now().await;
            }
            Ok::<(), Stop>(())
        }
    });
    let mut last = FencingToken(0);
    for _ in 0..50 {
        let grant = client.granted(&bench.bid(&name)).await?;
        let record = client.shows(&grant).await?;
        ensure!(record.token >= last, "the holder of token {last} reads token {}", record.token);
        last = record.token;
        client.freed(&grant).await?;
    }
    over.store(true, Ordering::SeqCst);
    observer.await?
}

async fn plain(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let holder = client.granted_at(&bench.short_bid(&name)).await?;
    // Reads all the while: the lease must run out under them.
    bench.until_nobody(&holder, &other).await?;
    let before = bench.snapshot(&client, &name).await?;
    other.nobody(&name).await?;
    bench.unchanged(&client, &before, "a read").await
}

async fn foreign(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let name = bench.name()?;
    admin.put_foreign(&name, Foreign::Value).await?;
    match client.bare().read(&name).await {
        Err(error) if error.kind() == StoreErrorKind::Malformed => {
            let names_it = error.to_string().contains(name.as_str());
            ensure!(names_it, "the error does not name the lease {name:?}: {error}");
            Ok(())
        }
        answer => fail!("a read of a foreign value was answered with {answer:?}, not with malformed"),
    }
}

async fn list(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let (held, freed, untouched) = (bench.name()?, bench.name()?, bench.name()?);
    let bid = bench.bid(&held).with_payload(Payload::new("listed")?);
    let grant = client.granted(&bid).await?;
    let gone = client.granted(&bench.bid(&freed)).await?;
    client.freed(&gone).await?;
    let mut listed = HashMap::new();
    let mut answers = client.bare().list();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(record) => {
                ensure!(listed.insert(record.name.clone(), record).is_none(), "a lease is listed twice");
            }
            Err(error) if error.kind() == StoreErrorKind::Unsupported && listed.is_empty() => {
                let more = answers.next().await;
                ensure!(more.is_none(), "the store says that it cannot list, and goes on with {more:?}");
                return Ok(());
            }
            Err(error) if error.kind() == StoreErrorKind::Denied && listed.is_empty() => {
                skip!("this client has no right to list");
            }
            // Other clauses put foreign values under names of their own meanwhile.
            Err(error) if error.kind() == StoreErrorKind::Malformed => {}
            Err(error) => return Err(error.into()),
        }
    }
    let Some(record) = listed.get(&held) else { fail!("a lease that is held is not listed") };
    agrees(record, &held, &bid.payload)?;
    ensure!(
        record.holder == grant.candidate && record.token == grant.token,
        "{grant:?} holds the lease, listed is {record:?}"
    );
    for name in [&freed, &untouched] {
        ensure!(!listed.contains_key(name), "a lease that nobody holds is listed: {:?}", listed.get(name));
    }
    Ok(())
}
