//! Calls that are dropped half-way.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use tenure_core::Grant;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure, fail};
use crate::client::Client;

pub(super) const CLAUSES: &[Clause] = &[
    // K11
    clause!(
        "cancel-acquire",
        acquire,
        "A bid dropped at any point leaves the client usable, and its candidate is recognised.",
        "A dropped bid that leaves a transaction open, or a record that its own candidate does not recognise."
    ),
    clause!(
        "cancel-renew",
        renew,
        "A renewal dropped at any point leaves the client usable, and the term renewable.",
        "A connection that is handed out again with the answer to the dropped call still in it."
    ),
    clause!(
        "cancel-release",
        release,
        "A release dropped at any point leaves the client usable, and is repeated without an error.",
        "A release that is made in two steps, dropped between them."
    ),
    clause!(
        "cancel-read",
        read,
        "A read dropped at any point leaves the client usable, and the next one sees the truth.",
        "The next read gets the answer to the dropped one."
    ),
    clause!(
        "cancel-batch",
        batch,
        "A batch of renewals dropped at any point leaves the client usable, and every term renewable.",
        "Half a batch in an open transaction."
    ),
    clause!(
        "cancel-watch",
        watch,
        "A hundred watches, each polled and dropped, leave the client usable.",
        "A connection or a task per watch that outlives it."
    )
    .alone(),
    // K11
    clause!(
        "cancel-storm",
        storm,
        "A thousand dropped calls strand no connection: as many calls as before are answered at once.",
        "A pool permit that a dropped future never gives back: after a few time-outs the store seems dead."
    )
    .alone(),
];

/// Points at which a call may be dropped that are tried, at most: a call that is not ready after so many polls is
/// taken to be polled for other reasons than progress.
const POINTS: usize = 60;

/// Polls `call` as it wakes until it is ready, or has been polled so often; drops it then.
async fn polled<T>(call: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut call = Box::pin(call);
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn acquire(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    for polls in 0..POINTS {
        let bid = bench.bid(&name);
        let ended = polled(client.bare().try_acquire(&bid), polls).await;
        let left_behind = other.read(&name).await?;
        let grant = client.granted(&bid).await?;
        if let Some(record) = left_behind {
            ensure!(
                record.holder == bid.candidate,
                "{:?} bid for the lease, and a read shows {record:?}",
                bid.candidate
            );
        }
        other.held(&bench.bid(&name)).await?;
        client.freed(&grant).await?;
        other.nobody(&name).await?;
        if ended.is_some() {
            break;
        }
    }
    Ok(())
}

async fn renew(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    for polls in 0..POINTS {
        let ended = polled(client.bare().renew(&grant), polls).await;
        other.shows(&grant).await?;
        let extended = client.extended(&grant).await?;
        ensure!(extended.token == grant.token, "the token went from {} to {}", grant.token, extended.token);
        if ended.is_some() {
            break;
        }
    }
    Ok(())
}

async fn release(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    for polls in 0..POINTS {
        let grant = client.granted(&bench.bid(&name)).await?;
        let ended = polled(client.bare().release(&grant), polls).await;
        client.let_go(&grant).await?;
        other.nobody(&name).await?;
        if ended.is_some() {
            break;
        }
    }
    Ok(())
}

async fn read(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    for polls in 0..POINTS {
        let before = other.granted(&bench.bid(&name)).await?;
        let ended = polled(client.bare().read(&name), polls).await;
        other.freed(&before).await?;
        client.nobody(&name).await?;
        let after = other.granted(&bench.bid(&name)).await?;
        client.shows(&after).await?;
        other.freed(&after).await?;
        if ended.is_some() {
            break;
        }
    }
    Ok(())
}

async fn batch(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let mut grants = Vec::new();
    for _ in 0..5 {
        grants.push(client.granted(&bench.bid(&bench.name()?)).await?);
    }
    for polls in 0..POINTS {
        let ended = polled(client.bare().renew_many(&grants), polls).await;
        for grant in &grants {
            client.extended(grant).await?;
        }
        if ended.is_some() {
            break;
        }
    }
    Ok(())
}

async fn watch(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    answers_many(bench, &client, &grant).await?;
    let before = bench.harness().connections().await.ok();
    for at in 0..100 {
        let mut watch = client.bare().watch(&grant.name);
        // A quiet watch is not polled a second time.
        drop(timeout(Duration::from_millis(2), polled(watch.next(), 1 + at % 3)).await);
    }
    answers_many(bench, &client, &grant).await?;
    no_more_connections(bench, before, "a hundred dropped watches").await
}

/// Calls that are dropped, and how many of them are under way at once.
const DROPS: usize = 1000;
const AT_ONCE: usize = 50;

async fn storm(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let grant = client.granted(&bench.bid(&bench.name()?)).await?;
    answers_many(bench, &client, &grant).await?;
    let before = bench.harness().connections().await.ok();
    let contested = bench.name()?;
    for _ in 0..DROPS / AT_ONCE {
        let mut dropped = JoinSet::new();
        for at in 0..AT_ONCE {
            let (client, grant, bid) = (client.clone(), grant.clone(), bench.bid(&contested));
            dropped.spawn(async move {
                let store = client.bare();
                let polls = 1 + at % 7;
                match at % 4 {
                    0 => drop(polled(store.read(&grant.name), polls).await),
                    1 => drop(polled(store.renew(&grant), polls).await),
                    2 => drop(polled(store.try_acquire(&bid), polls).await),
                    _ => drop(polled(store.release(&Grant::of(&bid, grant.token)), polls).await),
                }
            });
        }
        while let Some(ended) = dropped.join_next().await {
            ended?;
        }
    }
    answers_many(bench, &client, &grant).await?;
    client.extended(&grant).await?;
    no_more_connections(bench, before, "a thousand dropped calls").await
}

/// That many calls at once are answered within the bound of one, and a little.
async fn answers_many(bench: &Bench<'_>, client: &Client, grant: &Grant) -> Verdict {
    let bound = bench.harness().call_bound() + bench.slack();
    let calls = (0..64).map(|_| client.shows(grant));
    match timeout(bound, join_all(calls)).await {
        Ok(answers) => answers.into_iter().try_for_each(|answer| answer.map(drop)),
        Err(_) => fail!("64 reads at once were not all answered within {bound:?}"),
    }
}

/// Connections that a pool may have added of itself, since the drops were its first burst.
const ROOM: usize = 4;

/// That hardly more connections are open than before, where the bench can count them.
async fn no_more_connections(bench: &Bench<'_>, before: Option<usize>, after: &str) -> Verdict {
    let Some(before) = before else { return Ok(()) };
    let patience = Instant::now() + bench.slack() * 2;
    loop {
        let now = bench.harness().connections().await?;
        if now <= before + ROOM {
            return Ok(());
        }
        // A server notices a little late that a connection was closed.
        ensure!(Instant::now() < patience, "{before} connections were open before {after}, and {now} are now");
        sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_call_is_dropped_after_so_many_polls() {
        let call = || async {
            yield_now().await;
            yield_now().await;
            7
        };
        let mut ends = Vec::new();
        for polls in 0..5 {
            ends.push(polled(call(), polls).await);
        }
        assert_eq!(ends, [None, None, None, Some(7), Some(7)]);
    }
}
