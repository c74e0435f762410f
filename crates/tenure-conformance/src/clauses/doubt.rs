//! Requests and replies that get lost, late or doubled on the way.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Acquired, Bid, Fault, Grant, LeaseStore, Renewed, StoreError, StoreErrorKind};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::FaultInjector;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail, skip};
use crate::client::Client;

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "doubt-bid-request-lost",
        bid_request_lost,
        "A bid that never arrived leaves the lease free.",
        "A candidate that believes in a lease which nobody wrote, or a store that keeps half a bid."
    ),
    clause!(
        "doubt-bid-reply-lost",
        bid_reply_lost,
        "A candidate whose grant was lost on the way finds its own record and gets the same token.",
        "Kept out by one's own record for a ttl, or a second token for one term."
    ),
    // K11
    clause!(
        "doubt-bid-orphan",
        bid_orphan,
        "A lease granted to a candidate that never learned of it is free after a ttl.",
        "A record without an expiry until the first renewal sets one."
    ),
    // K02
    clause!(
        "doubt-bid-delayed",
        bid_delayed,
        "A bid that arrives long after its candidate gave it up, and won by another one, leaves that term as it is.",
        "The late bid restarts the term: the leader's renewals are refused, or its expiry moves back."
    ),
    clause!(
        "doubt-bid-overtaken",
        bid_overtaken,
        "A bid that arrives after somebody else took the lease changes nothing.",
        "A bid that was decided by what its sender read before it was sent."
    ),
    // K11
    clause!(
        "doubt-bid-repeated",
        bid_repeated,
        "A second copy of a bid, arriving after the release, holds the lease for at most a ttl.",
        "A copy that brings the old term back, with the old token."
    ),
    clause!(
        "doubt-renewal-request-lost",
        renewal_request_lost,
        "A renewal that never arrived extends nothing, and the next one succeeds.",
        "A client that remembers what it sent instead of what was confirmed."
    ),
    clause!(
        "doubt-renewal-reply-lost",
        renewal_reply_lost,
        "A renewal whose reply was lost leaves the term renewable, under the same token.",
        "A version that the lost reply carried: without it every further renewal is refused."
    ),
    // K02
    clause!(
        "doubt-renewal-delayed",
        renewal_delayed,
        "A renewal that arrives after the next term began changes nothing of it.",
        "A late renewal that prolongs, or takes over, the successor's lease."
    ),
    clause!(
        "doubt-renewal-repeated",
        renewal_repeated,
        "A second copy of a renewal, arriving after the release, does not bring the lease back.",
        "A renewal that writes the whole record without looking."
    ),
    clause!(
        "doubt-release-request-lost",
        release_request_lost,
        "A release that never arrived leaves the lease held, and the next one frees it.",
        "A client that forgets a term when it sends the release."
    ),
    // K06
    clause!(
        "doubt-release-reply-lost",
        release_reply_lost,
        "A release whose reply was lost has freed the lease, and is repeated without an error.",
        "An error for what was done already."
    ),
    clause!(
        "doubt-release-delayed",
        release_delayed,
        "A release that arrives after the next term began does not touch it.",
        "A late release frees the successor's lease: two leaders within a ttl."
    ),
    clause!(
        "doubt-release-repeated",
        release_repeated,
        "A second copy of a release, arriving after the next grant, does not touch it.",
        "The same, by a client or proxy that sends requests again."
    ),
    clause!(
        "doubt-words",
        words,
        "A write whose reply is lost is answered with unknown, within the bound of a call.",
        "Unknown answered as refused: the candidate forgets a lease that it holds. Or no answer, ever."
    ),
];

/// How long a candidate of these clauses waits for an answer.
const GIVE_UP: Duration = Duration::from_millis(100);

/// How late the late ones are.
const LATE: Duration = Duration::from_millis(250);

/// By when a late one has surely arrived, counted from its sending.
const ARRIVED: Duration = Duration::from_millis(500);

/// A client through an injector of faults, with its connection made.
struct Doubtful {
    injector: Arc<dyn FaultInjector>,
    store: Arc<dyn LeaseStore>,
    client: Client,
}

impl Doubtful {
    async fn on(bench: &Bench<'_>) -> Result<Self, Stop> {
        let injector = bench.harness().faulty().await?;
        let client = Client::new(injector.store());
        client.nobody(&bench.name()?).await?;
        Ok(Self { store: injector.store(), injector, client })
    }

    /// Makes `call` under `fault`, waits a little, and gives it up. What it answers in that time must be doubt.
    async fn abandon<T: std::fmt::Debug>(
        &self,
        fault: Fault,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Instant, Stop> {
        self.injector.cause(fault).await?;
        let sent = Instant::now();
        let answer = timeout(GIVE_UP, call).await;
        self.injector.cause(Fault::None).await?;
        match answer {
            Err(_) => Ok(sent),
            Ok(Err(error)) if error.kind().is_transient() => Ok(sent),
            Ok(answer) => fail!("under the fault {fault:?} a call was answered with {answer:?}"),
        }
    }
}

async fn arrived(sent: Instant) {
    sleep_until(sent + ARRIVED).await;
}

async fn bid_request_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let bid = bench.bid(&bench.name()?);
    doubtful.abandon(Fault::LoseRequest, doubtful.store.try_acquire(&bid)).await?;
    other.nobody(&bid.name).await?;
    let grant = other.granted(&bench.bid(&bid.name)).await?;
    doubtful.client.held(&bid).await?;
    other.extended(&grant).await?;
    Ok(())
}

async fn bid_reply_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let bid = bench.bid(&bench.name()?);
    doubtful.abandon(Fault::LoseReply, doubtful.store.try_acquire(&bid)).await?;
    let orphan = other.read(&bid.name).await?;
    let again = doubtful.client.granted(&bid).await?;
    if let Some(orphan) = orphan {
        ensure!(orphan.holder == bid.candidate, "{:?} bid for the lease, and a read shows {orphan:?}", bid.candidate);
        ensure!(
            again.token == orphan.token,
            "the term has token {}, the repeated bid got {}",
            orphan.token,
            again.token
        );
    }
    other.held(&bench.bid(&bid.name)).await?;
    let extended = doubtful.client.extended(&again).await?;
    doubtful.client.freed(&extended).await
}

async fn bid_orphan(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let bid = bench.short_bid(&bench.name()?);
    let sent = doubtful.abandon(Fault::LoseReply, doubtful.store.try_acquire(&bid)).await?;
    free_within(bench, &other, &bid, sent + GIVE_UP).await
}

/// That somebody else gets the lease of `bid` within a ttl of `from`.
async fn free_within(bench: &Bench<'_>, other: &Client, bid: &Bid, from: Instant) -> Verdict {
    let contender = bench.bid(&bid.name);
    // Stores that cannot keep a short ttl raise it, and say so in the record.
    let ttl = other.read(&bid.name).await?.map_or(bid.ttl, |record| record.ttl);
    let latest = from + ttl + bench.descriptor().lateness + bench.slack();
    loop {
        match other.bid(&contender).await?.value {
            Acquired::Granted(_) => return Ok(()),
            Acquired::Held(record) if Instant::now() > latest => {
                fail!("a lease that nobody renews is held for longer than its ttl of {ttl:?}: {record:?}")
            }
            Acquired::Held(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn bid_delayed(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let mut early = bench.bid(&bench.name()?);
    early.ttl = bench.ttl();
    let mut bid = early.clone();
    bid.ttl = bench.long();
    let sent = doubtful.abandon(Fault::DelayRequest(LATE), doubtful.store.try_acquire(&early)).await?;
    // From another connection: what is sent behind a late request on the same one is as late.
    let grant = other.granted(&bid).await?;
    let before = other.shows(&grant).await?;
    arrived(sent).await;
    let after = other.shows(&grant).await?;
    ensure!(
        after.remaining + bench.slack() * 2 > before.remaining,
        "{:?} were left; after a late bid with a ttl of {:?} only {:?}",
        before.remaining,
        early.ttl,
        after.remaining
    );
    other.extended(&grant).await?;
    other.freed(&grant).await?;
    other.nobody(&bid.name).await
}

async fn bid_overtaken(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    // On a busy machine the late bid may come first; that is no harm, and proves nothing.
    for _ in 0..10 {
        let bid = bench.bid(&bench.name()?);
        let sent = doubtful.abandon(Fault::DelayRequest(LATE), doubtful.store.try_acquire(&bid)).await?;
        let Acquired::Granted(grant) = other.bid(&bench.bid(&bid.name)).await?.value else { continue };
        let before = bench.snapshot(&other, &bid.name).await?;
        arrived(sent).await;
        bench.unchanged(&other, &before, "a late bid").await?;
        other.extended(&grant).await?;
        return Ok(());
    }
    fail!("this machine is too slow to overtake a request that is {LATE:?} late")
}

async fn bid_repeated(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let bid = bench.short_bid(&bench.name()?);
    doubtful.injector.cause(Fault::Repeat(LATE)).await?;
    let sent = Instant::now();
    let answer = doubtful.store.try_acquire(&bid).await?;
    doubtful.injector.cause(Fault::None).await?;
    let Acquired::Granted(grant) = answer else { fail!("a bid for a free lease was answered with {answer:?}") };
    other.let_go(&grant).await?;
    arrived(sent).await;
    if let Some(orphan) = other.read(&bid.name).await? {
        ensure!(orphan.holder == bid.candidate, "{:?} bid for the lease, and a read shows {orphan:?}", bid.candidate);
        ensure!(
            orphan.token > grant.token,
            "a copy of the bid brought the released term with token {} back: {orphan:?}",
            grant.token
        );
    }
    free_within(bench, &other, &bid, sent + ARRIVED).await
}

async fn renewal_request_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    let before = bench.snapshot(&other, &grant.name).await?;
    doubtful.abandon(Fault::LoseRequest, doubtful.store.renew(&grant)).await?;
    bench.unchanged(&other, &before, "a renewal that never arrived").await?;
    doubtful.client.extended(&grant).await?;
    Ok(())
}

async fn renewal_reply_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    for _ in 0..3 {
        doubtful.abandon(Fault::LoseReply, doubtful.store.renew(&grant)).await?;
        other.shows(&grant).await?;
    }
    let extended = doubtful.client.extended(&grant).await?;
    ensure!(extended.token == grant.token, "the token went from {} to {}", grant.token, extended.token);
    doubtful.client.freed(&extended).await
}

async fn renewal_delayed(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    let sent = doubtful.abandon(Fault::DelayRequest(LATE), doubtful.store.renew(&grant)).await?;
    other.freed(&grant).await?;
    successor_is_spared(bench, &other, &grant, sent, "a late renewal").await
}

/// That the term after `grant` is as it was once what was sent at `sent` has arrived.
async fn successor_is_spared(bench: &Bench<'_>, other: &Client, grant: &Grant, sent: Instant, by: &str) -> Verdict {
    let successor = other.granted(&bench.bid(&grant.name)).await?;
    let before = bench.snapshot(other, &grant.name).await?;
    arrived(sent).await;
    bench.unchanged(other, &before, by).await?;
    other.extended(&successor).await?;
    Ok(())
}

async fn renewal_repeated(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    doubtful.injector.cause(Fault::Repeat(LATE)).await?;
    let sent = Instant::now();
    let answer = doubtful.store.renew(&grant).await?;
    doubtful.injector.cause(Fault::None).await?;
    ensure!(matches!(answer, Renewed::Extended(_)), "a renewal that is repeated later was answered with {answer:?}");
    other.let_go(&grant).await?;
    arrived(sent).await;
    other.nobody(&grant.name).await
}

async fn release_request_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    doubtful.abandon(Fault::LoseRequest, doubtful.store.release(&grant)).await?;
    other.shows(&grant).await?;
    doubtful.client.freed(&grant).await?;
    other.nobody(&grant.name).await
}

async fn release_reply_lost(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    doubtful.abandon(Fault::LoseReply, doubtful.store.release(&grant)).await?;
    doubtful.client.let_go(&grant).await?;
    other.nobody(&grant.name).await?;
    other.granted(&bench.bid(&grant.name)).await?;
    Ok(())
}

async fn release_delayed(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    let sent = doubtful.abandon(Fault::DelayRequest(LATE), doubtful.store.release(&grant)).await?;
    other.let_go(&grant).await?;
    successor_is_spared(bench, &other, &grant, sent, "a late release").await
}

async fn release_repeated(bench: &Bench<'_>) -> Verdict {
    let (doubtful, other) = (Doubtful::on(bench).await?, bench.client().await?);
    let grant = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    doubtful.injector.cause(Fault::Repeat(LATE)).await?;
    let sent = Instant::now();
    let _ = doubtful.store.release(&grant).await?;
    doubtful.injector.cause(Fault::None).await?;
    successor_is_spared(bench, &other, &grant, sent, "a second copy of a release").await
}

async fn words(bench: &Bench<'_>) -> Verdict {
    let doubtful = Doubtful::on(bench).await?;
    if !doubtful.injector.below_the_client() {
        skip!("faults are caused in front of the client on this bench, so its own words about them cannot be seen");
    }
    let held = doubtful.client.granted(&bench.bid(&bench.name()?)).await?;
    let bid = bench.bid(&bench.name()?);
    doubtful.injector.cause(Fault::LoseReply).await?;
    in_doubt(bench, "a bid", doubtful.store.try_acquire(&bid)).await?;
    in_doubt(bench, "a renewal", doubtful.store.renew(&held)).await?;
    in_doubt(bench, "a release", doubtful.store.release(&held)).await?;
    Ok(doubtful.injector.cause(Fault::None).await?)
}

async fn in_doubt<T: std::fmt::Debug>(
    bench: &Bench<'_>,
    what: &str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Verdict {
    let bound = bench.harness().call_bound();
    match timeout(bound + bench.slack(), call).await {
        Err(_) => fail!("{what} whose reply was lost had no answer after {bound:?}"),
        Ok(Err(error)) if error.kind() == StoreErrorKind::Unknown => Ok(()),
        Ok(answer) => fail!("{what} that was applied, and whose reply was lost, was answered with {answer:?}"),
    }
}
