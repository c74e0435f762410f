//! Everything at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{Acquired, Bid, FencingToken, Renewed};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::Surroundings;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure};
use crate::client::{Client, Sent};

pub(super) const CLAUSES: &[Clause] = &[
    // K07
    clause!(
        "torture-counter",
        counter,
        "A counter that 8 candidates raise 25 times each, under the lease and without any other lock, ends at 200.",
        "Any overlap of two terms: an increment is lost."
    )
    .alone(),
    // K19
    clause!(
        "torture-fence",
        fence,
        "A resource that checks tokens takes each new leader's first write, and none of a leader that was paused.",
        "A token that does not rise with the grant: the new leader is refused, or the old one let in."
    ),
    clause!(
        "torture-killed",
        killed,
        "While another process holds the lease nobody else gets it; once it is killed somebody does, after its ttl.",
        "A lease that lives on in a server-side session, or that ends with the socket before the leader has stopped."
    ),
];

const CANDIDATES: u64 = 8;
const INCREMENTS: u64 = 25;

async fn counter(bench: &Bench<'_>) -> Verdict {
    let name = bench.name()?;
    let count = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    for client in bench.clients(8).await? {
        let bids: Vec<Bid> = (0..INCREMENTS).map(|_| bench.bid(&name)).collect();
        running.spawn(raise(client, bids, Arc::clone(&count)));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let (count, expected) = (count.load(Ordering::SeqCst), CANDIDATES * INCREMENTS);
    ensure!(count == expected, "{expected} increments under the lease made {count}: two terms overlapped");
    Ok(())
}

/// Raises the counter once per bid, in two steps that only the lease holds together.
async fn raise(client: Client, bids: Vec<Bid>, count: Arc<AtomicU64>) -> Result<(), Stop> {
    for bid in bids {
        let grant = loop {
            match client.bid(&bid).await?.value {
                Acquired::Granted(grant) => break grant,
                Acquired::Held(_) => sleep(Duration::from_millis(fastrand::u64(1..6))).await,
            }
        };
        let seen = count.load(Ordering::SeqCst);
        for _ in 0..fastrand::u8(1..8) {
            yield_now().await;
        }
        count.store(seen + 1, Ordering::SeqCst);
        client.freed(&grant).await?;
    }
    Ok(())
}

/// A resource that remembers the largest token it saw and refuses smaller ones.
#[derive(Default)]
struct Register(AtomicU64);

impl Register {
    fn write(&self, token: FencingToken) -> bool {
        self.0.fetch_max(token.value(), Ordering::SeqCst) <= token.value()
    }
}

async fn fence(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let register = Register::default();
    let mut paused = client.granted_at(&bench.short_bid(&name)).await?;
    ensure!(register.write(paused.value.token), "the first write was refused");
    for turn in 0..4 {
        let contender = if turn % 2 == 0 { &other } else { &client };
        let next = bench.outlast(&paused, contender, &bench.short_bid(&name)).await?;
        ensure!(register.write(next.token), "the first write of a new leader was refused: its token is {}", next.token);
        ensure!(
            !register.write(paused.value.token),
            "the write of a leader that was paused was taken: its token is {}, its successor's {}",
            paused.value.token,
            next.token
        );
        // The bid that succeeded was sent after this, at the earliest; a later instant is the stricter one.
        let renewed = contender.renew(&next).await?;
        paused = match renewed.value {
            Renewed::Extended(grant) => Sent { at: renewed.at, value: grant },
            // A busy machine took longer than the ttl for a renewal.
            Renewed::Lost(_) => contender.granted_at(&bench.short_bid(&name)).await?,
        };
        ensure!(
            register.write(paused.value.token),
            "a leader's later write was refused: its token is {}",
            paused.value.token
        );
    }
    Ok(())
}

async fn killed(bench: &Bench<'_>) -> Verdict {
    let process = bench.elsewhere(&Surroundings::default()).await?;
    let (here, there) = (bench.client().await?, Client::new(process.store()));
    let bid = bench.short_bid(&bench.name()?);
    let contender = bench.bid(&bid.name);
    let mut last = there.granted_at(&bid).await?;
    for _ in 0..4 {
        bench.in_time(&last, here.held(&contender).await)?;
        bench.pass(last.at, last.value.ttl / 4).await;
        last = bench.in_time(&last, there.extended_at(&last.value).await)?;
    }
    process.kill().await?;
    bench.outlast(&last, &here, &contender).await?;
    Ok(())
}
