//! Giving the lease up.

use tenure_core::FencingToken;

use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure};

pub(super) const CLAUSES: &[Clause] = &[
    // K06
    clause!(
        "release-frees",
        frees,
        "A release frees the lease at once.",
        "A release that is answered before it is done, or that leaves the lease to run out."
    ),
    // K05
    clause!(
        "release-candidate",
        candidate,
        "A release by another candidate changes nothing.",
        "Deleting the key without comparing: whoever stops frees somebody else's lease."
    ),
    // K05
    clause!(
        "release-token",
        token,
        "A release by an earlier term of the same candidate changes nothing.",
        "Comparing the candidate only: a release that is late frees the next term."
    ),
    // K06
    clause!(
        "release-idempotent",
        idempotent,
        "A second release is answered without an error, and changes nothing.",
        "A release that fails when its answer was lost and it is made again."
    ),
    clause!(
        "release-expired",
        expired,
        "The release of a term that ran out does not touch its successor.",
        "A leader that was slow to stop frees the lease of the one that took over."
    ),
    clause!(
        "release-never-held",
        never_held,
        "The release of a lease that never was is answered with not held, and creates nothing.",
        "An error, or a record of a release, where there was no lease."
    ),
    clause!(
        "release-removed",
        removed,
        "The release of a lease whose record was removed by hand is answered without an error.",
        "A leader that cannot stop in order because somebody tidied up."
    ),
];

async fn frees(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    for _ in 0..5 {
        let grant = client.granted(&bench.bid(&name)).await?;
        client.freed(&grant).await?;
        other.nobody(&name).await?;
        let next = other.granted(&bench.bid(&name)).await?;
        other.freed(&next).await?;
    }
    Ok(())
}

async fn candidate(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    let before = bench.snapshot(&client, &grant.name).await?;
    let mut stranger = grant.clone();
    stranger.candidate = bench.candidate();
    other.not_held(&stranger, "another candidate").await?;
    bench.unchanged(&client, &before, "a release by another candidate").await?;
    client.extended(&grant).await?;
    Ok(())
}

async fn token(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let bid = bench.bid(&bench.name()?);
    let earlier = client.granted(&bid).await?;
    client.freed(&earlier).await?;
    let grant = client.granted(&bid).await?;
    let before = bench.snapshot(&client, &bid.name).await?;
    client.not_held(&earlier, "an earlier term of the same candidate").await?;
    for token in [grant.token.value() - 1, grant.token.value() + 1] {
        let mut wrong = grant.clone();
        wrong.token = FencingToken(token);
        client.not_held(&wrong, "a term with another token").await?;
    }
    bench.unchanged(&client, &before, "a release by another term").await?;
    client.extended(&grant).await?;
    Ok(())
}

async fn idempotent(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    client.freed(&grant).await?;
    client.let_go(&grant).await?;
    other.let_go(&grant).await?;
    client.nobody(&grant.name).await?;
    let next = other.granted(&bench.bid(&grant.name)).await?;
    client.not_held(&grant, "a term that was released").await?;
    other.extended(&next).await?;
    Ok(())
}

async fn expired(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let first = client.granted_at(&bench.short_bid(&name)).await?;
    let successor = bench.outlast(&first, &other, &bench.bid(&name)).await?;
    let before = bench.snapshot(&other, &name).await?;
    client.not_held(&first.value, "a term that ran out").await?;
    bench.unchanged(&other, &before, "the release of the term before").await?;
    other.extended(&successor).await?;
    Ok(())
}

async fn never_held(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let real = client.granted(&bench.bid(&bench.name()?)).await?;
    let mut invented = real.clone();
    invented.name = bench.name()?;
    let before = bench.snapshot(&client, &invented.name).await?;
    client.not_held(&invented, "a term that never was").await?;
    bench.unchanged(&client, &before, "the release of a lease that never was").await?;
    let extended = client.extended(&real).await?;
    ensure!(extended.token == real.token, "releasing one lease changed another");
    Ok(())
}

async fn removed(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    admin.remove(&grant.name).await?;
    client.let_go(&grant).await?;
    client.nobody(&grant.name).await?;
    client.granted(&bench.bid(&grant.name)).await?;
    Ok(())
}
