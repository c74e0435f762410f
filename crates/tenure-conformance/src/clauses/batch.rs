//! Renewing many leases at once.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use tenure_core::{FencingToken, Grant, LossReason, Renewed, StoreErrorKind};
use tokio::time::Instant;

use crate::Foreign;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail};
use crate::client::{Client, Sent};

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "batch-extends",
        extends,
        "A batch keeps each of its leases for its full ttl from then.",
        "A batch that is confirmed and extends nothing, or only its first lease."
    ),
    clause!(
        "batch-mixed",
        mixed,
        "A batch answers for each lease as a single renewal does, in order, also when some are lost.",
        "Answers in the order in which the server found rows; one lost lease that fails the batch."
    ),
    clause!(
        "batch-foreign",
        foreign,
        "A foreign value under one name of a batch spoils that answer only.",
        "One spoilt record that ends every leadership of the process."
    ),
    clause!("batch-empty", empty, "A batch of nothing is answered with nothing.", "A statement with an empty list."),
    clause!(
        "batch-large",
        large,
        "A batch of 256 leases is answered for each.",
        "A limit on parameters, or on what one script may touch, that only a busy process meets."
    )
    .alone(),
    clause!(
        "batch-names",
        names,
        "A batch holds names of every kind.",
        "Names spliced into one statement; keys of one batch in different slots."
    ),
];

/// Renews all at once; transient answers are asked for again, each by itself.
async fn renew_many(client: &Client, grants: &[Grant]) -> Result<Vec<Renewed>, Stop> {
    let answers = client.bare().renew_many(grants).await;
    ensure!(answers.len() == grants.len(), "a batch of {} got {} answers", grants.len(), answers.len());
    let mut outcomes = Vec::with_capacity(grants.len());
    for (grant, answer) in grants.iter().zip(answers) {
        outcomes.push(match answer {
            Ok(outcome) => outcome,
            Err(error) if error.kind().is_transient() => client.renew(grant).await?.value,
            Err(error) => return Err(error.into()),
        });
    }
    Ok(outcomes)
}

/// That all of them were extended, each as itself.
async fn all_extended(client: &Client, grants: &[Grant]) -> Verdict {
    for (grant, outcome) in grants.iter().zip(renew_many(client, grants).await?) {
        match outcome {
            Renewed::Extended(to) => ensure!(
                (&to.name, &to.candidate, to.token) == (&grant.name, &grant.candidate, grant.token),
                "the answer for {grant:?} is about {to:?}"
            ),
            Renewed::Lost(reason) => fail!("{:?} is held, and the batch says that it is lost: {reason}", grant.name),
        }
    }
    Ok(())
}

async fn extends(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bids = (0..4).map(|_| Ok(bench.short_bid(&bench.name()?))).collect::<Result<Vec<_>, Stop>>()?;
    let first = client.granted_at(&bids[0]).await?;
    let mut grants = vec![first.value.clone()];
    for bid in &bids[1..] {
        grants.push(client.granted(bid).await?);
    }
    let contenders: Vec<_> = grants.iter().map(|grant| bench.short_bid(&grant.name)).collect();
    for contender in &contenders {
        other.bid(contender).await?;
    }
    bench.pass(first.at, first.value.ttl * 6 / 10).await;
    let at = Instant::now();
    bench.in_time(&first, all_extended(&client, &grants).await)?;
    let outlasting = grants.into_iter().zip(&contenders).map(|(value, contender)| {
        let (bench, other, holder) = (&bench, &other, Sent { at, value });
        async move { bench.outlast(&holder, other, contender).await }
    });
    try_join_all(outlasting).await?;
    Ok(())
}

async fn mixed(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let mut grants = Vec::new();
    for _ in 0..6 {
        grants.push(client.granted(&bench.bid(&bench.name()?)).await?);
    }
    // In turn: held, released, another's by now, an old token, never held, held.
    let mut lost = BTreeSet::from([1, 2, 3, 4]);
    client.freed(&grants[1]).await?;
    client.freed(&grants[2]).await?;
    let successor = other.granted(&bench.bid(&grants[2].name)).await?;
    grants[3].token = FencingToken(grants[3].token.value() + 1);
    client.freed(&grants[4]).await?;
    grants[4].name = bench.name()?;
    // The same term twice in one batch, and the order turned round, change nothing.
    grants.push(grants[0].clone());
    for _ in 0..2 {
        for (at, (grant, outcome)) in grants.iter().zip(renew_many(&client, &grants).await?).enumerate() {
            match outcome {
                Renewed::Extended(to) => {
                    ensure!(!lost.contains(&at), "answer {at} extends a term that does not hold its lease: {to:?}");
                    ensure!(
                        to.name == grant.name && to.token == grant.token,
                        "answer {at} is about {to:?}, not {grant:?}"
                    );
                }
                Renewed::Lost(reason) => {
                    ensure!(
                        lost.contains(&at),
                        "answer {at} is lost ({reason}) for a term that holds its lease: {grant:?}"
                    );
                }
            }
        }
        grants.reverse();
        lost = lost.into_iter().map(|at| grants.len() - 1 - at).collect();
    }
    client.nobody(&grants[4].name).await?;
    other.shows(&successor).await?;
    Ok(())
}

async fn foreign(bench: &Bench<'_>) -> Verdict {
    let (admin, client) = (bench.admin().await?, bench.client().await?);
    let mut grants = Vec::new();
    for _ in 0..3 {
        grants.push(client.granted(&bench.bid(&bench.name()?)).await?);
    }
    admin.put_foreign(&grants[1].name, Foreign::Value).await?;
    let answers = client.bare().renew_many(&grants).await;
    ensure!(answers.len() == grants.len(), "a batch of {} got {} answers", grants.len(), answers.len());
    for (at, answer) in answers.into_iter().enumerate() {
        match (at, answer) {
            (1, Ok(Renewed::Lost(LossReason::Malformed))) => {}
            (1, Err(error)) if error.kind() == StoreErrorKind::Malformed => {}
            (0 | 2, Ok(Renewed::Extended(_))) => {}
            (at, answer) => fail!("with a foreign value under the second name, answer {at} is {answer:?}"),
        }
    }
    Ok(())
}

async fn empty(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let answers = client.bare().renew_many(&[]).await;
    ensure!(answers.is_empty(), "a batch of nothing was answered with {answers:?}");
    client.nobody(&bench.name()?).await
}

async fn large(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let mut grants = Vec::with_capacity(256);
    let bids = (0..256).map(|_| Ok(bench.bid(&bench.name()?))).collect::<Result<Vec<_>, Stop>>()?;
    for some in bids.chunks(16) {
        grants.extend(try_join_all(some.iter().map(|bid| client.granted(bid))).await?);
    }
    all_extended(&client, &grants).await?;
    for some in grants.chunks(16) {
        try_join_all(some.iter().map(|grant| client.freed(grant))).await?;
    }
    Ok(())
}

async fn names(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let mut grants = Vec::new();
    for odd in ["@", "@ ", "@'", "@\"", "@/a", "@{a}", "}@", "{@}", "@%", "@,", "@é", "@e\u{301}", "@\\"] {
        let bid = bench.bid(&bench.name_of(|stem, _| odd.replace('@', stem))?);
        match client.bid(&bid).await {
            Ok(_) => grants.push(client.granted(&bid).await?),
            // A store may refuse odd names; clauses on names see to it that it does so before anything is sent.
            Err(_) => continue,
        }
    }
    ensure!(!grants.is_empty(), "every name was refused");
    all_extended(&client, &grants).await
}
