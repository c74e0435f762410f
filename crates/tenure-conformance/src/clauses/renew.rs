//! Keeping the lease.

use tenure_core::{FencingToken, Grant, LossReason, Renewed, StoreErrorKind};

use crate::Foreign;
use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure, fail};
use crate::client::Client;

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "renew-extends",
        extends,
        "A renewal keeps the lease for its full ttl from then.",
        "A renewal that is confirmed and extends nothing, or only to what the first grant gave."
    ),
    clause!(
        "renew-grant",
        grant,
        "A confirmed renewal answers with the same lease, candidate and token, and an honest ttl.",
        "A renewal that hands out another term, or whose grant cannot be renewed again."
    ),
    // K05
    clause!(
        "renew-candidate",
        candidate,
        "A renewal by another candidate is refused and changes nothing.",
        "Renewing by name only: whoever asks keeps the lease alive, or takes it."
    ),
    // K05
    clause!(
        "renew-token",
        token,
        "A renewal with another token is refused and changes nothing, for the holder's own name too.",
        "Comparing the candidate only: an earlier term of the same candidate renews the later one."
    ),
    // K03
    clause!(
        "renew-expired",
        expired,
        "A lease that ran out is not renewed, even when nobody else took it.",
        "Extending an expired record: its leader has stopped already, and nobody may lead for another ttl."
    ),
    clause!(
        "renew-released",
        released,
        "A lease that was released is not renewed, and not created anew.",
        "A renewal on its way while the release goes out brings the lease back."
    ),
    clause!(
        "renew-never-held",
        never_held,
        "A lease that never was is not renewed, and not created.",
        "A renewal that inserts what it does not find."
    ),
    // K03
    clause!(
        "renew-removed",
        removed,
        "A lease whose record was removed by hand is lost, and not created anew.",
        "A renewal that puts back what an operator removed in order to force a new election."
    ),
    // K03
    clause!(
        "renew-superseded",
        superseded,
        "A renewal by an earlier term is refused, and does not prolong the later one.",
        "A late renewal of the term before extends the lease of whoever has it now."
    ),
    clause!(
        "renew-never-shortens",
        never_shortens,
        "A late copy of a renewal with a shorter ttl never moves the lease's expiry back.",
        "The last write wins: a delayed renewal takes away time that a later one promised."
    ),
    clause!(
        "renew-foreign",
        foreign,
        "A lease whose record was replaced by something foreign is lost as malformed, and left alone.",
        "Overwriting another program's value with a renewal, or calling it a passing fault."
    ),
];

async fn extends(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.short_bid(&bench.name()?);
    let contender = bench.short_bid(&bid.name);
    let mut last = client.granted_at(&bid).await?;
    let part = last.value.ttl * 6 / 10;
    for _ in 0..2 {
        other.bid(&contender).await?;
        bench.pass(last.at, part).await;
        last = bench.in_time(&last, client.extended_at(&last.value).await)?;
    }
    bench.outlast(&last, &other, &contender).await?;
    Ok(())
}

async fn grant(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let bid = bench.bid(&bench.name()?);
    let first = client.granted(&bid).await?;
    let mut last = first.clone();
    for _ in 0..3 {
        last = client.extended(&last).await?;
        ensure!(
            (&last.name, &last.candidate, last.token) == (&first.name, &first.candidate, first.token),
            "the renewal of {first:?} answered with {last:?}"
        );
        ensure!(last.ttl >= bid.ttl, "a ttl of {:?} was asked for, and the renewal gives {:?}", bid.ttl, last.ttl);
    }
    let record = client.shows(&first).await?;
    ensure!(record.ttl == last.ttl, "the renewal says a ttl of {:?}, a read {:?}", last.ttl, record.ttl);
    Ok(())
}

/// That `grant` is refused, for one of the reasons that a store may give, and changes nothing of the lease.
async fn refused(
    bench: &Bench<'_>,
    client: &Client,
    grant: &Grant,
    whose: &str,
) -> Result<LossReason, crate::clause::Stop> {
    let before = bench.snapshot(client, &grant.name).await?;
    let reason = client.lost(grant, whose).await?;
    bench.unchanged(client, &before, &format!("a renewal by {whose}")).await?;
    ensure!(
        !matches!(reason, LossReason::Resigned | LossReason::Suspended { .. }),
        "a store cannot know that {whose} was lost because: {reason}"
    );
    Ok(reason)
}

async fn candidate(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let mut stranger = grant.clone();
    stranger.candidate = bench.candidate();
    let reason = refused(bench, &other, &stranger, "another candidate").await?;
    if let LossReason::Superseded { by: Some(by) } = reason {
        ensure!(by == grant.candidate, "{:?} holds the lease, and the refusal names {by:?}", grant.candidate);
    }
    client.extended(&grant).await?;
    Ok(())
}

async fn token(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let bid = bench.bid(&bench.name()?);
    let earlier = client.granted(&bid).await?;
    client.freed(&earlier).await?;
    let grant = client.granted(&bid).await?;
    refused(bench, &client, &earlier, "an earlier term of the same candidate").await?;
    for token in [grant.token.value() - 1, grant.token.value() + 1] {
        let mut wrong = grant.clone();
        wrong.token = FencingToken(token);
        refused(bench, &client, &wrong, "a term with another token").await?;
    }
    client.extended(&grant).await?;
    Ok(())
}

async fn expired(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let first = client.granted_at(&bench.short_bid(&bench.name()?)).await?;
    bench.until_nobody(&first, &other).await?;
    refused(bench, &client, &first.value, "a term that ran out").await?;
    other.nobody(&first.value.name).await?;
    other.granted(&bench.bid(&first.value.name)).await?;
    Ok(())
}

async fn released(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    client.freed(&grant).await?;
    refused(bench, &client, &grant, "a released term").await?;
    client.nobody(&grant.name).await?;
    client.granted(&bench.bid(&grant.name)).await?;
    Ok(())
}

async fn never_held(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    // A grant of a sound shape, receipt included, whose lease never was.
    let real = client.granted(&bench.bid(&bench.name()?)).await?;
    let mut invented = real.clone();
    invented.name = bench.name()?;
    refused(bench, &client, &invented, "a term that never was").await?;
    client.nobody(&invented.name).await?;
    client.granted(&bench.bid(&invented.name)).await?;
    client.shows(&real).await?;
    Ok(())
}

async fn removed(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    admin.remove(&grant.name).await?;
    client.nobody(&grant.name).await?;
    refused(bench, &client, &grant, "a removed term").await?;
    client.granted(&bench.bid(&grant.name)).await?;
    Ok(())
}

async fn superseded(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let earlier = client.granted_at(&bench.short_bid(&name)).await?;
    let later = bench.outlast(&earlier, &other, &bench.bid(&name)).await?;
    let reason = refused(bench, &client, &earlier.value, "a term that was superseded").await?;
    if let LossReason::Superseded { by: Some(by) } = reason {
        ensure!(by == later.candidate, "{:?} holds the lease, and the refusal names {by:?}", later.candidate);
    }
    other.extended(&later).await?;
    Ok(())
}

async fn never_shortens(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let before = client.shows(&grant).await?.remaining;
    let short = grant.clone().with_ttl(bench.ttl());
    client.extended(&short).await?;
    let after = client.shown(&grant.name).await?.remaining;
    ensure!(
        after + bench.slack() * 2 > before,
        "{before:?} were left; after a renewal with a ttl of {:?} only {after:?}",
        short.ttl
    );
    Ok(())
}

async fn foreign(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    admin.put_foreign(&grant.name, Foreign::Value).await?;
    let before = admin.raw(&grant.name).await.ok();
    match client.bare().renew(&grant).await {
        Ok(Renewed::Lost(LossReason::Malformed)) => {}
        Err(error) if error.kind() == StoreErrorKind::Malformed => {}
        answer => fail!("a renewal on a foreign value was answered with {answer:?}, not with malformed"),
    }
    ensure!(admin.raw(&grant.name).await.ok() == before, "a renewal changed a foreign value");
    Ok(())
}
