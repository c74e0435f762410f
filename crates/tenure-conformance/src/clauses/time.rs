//! Ttls that a store cannot keep, and clocks that are none of its business.

use std::time::Duration;

use tenure_core::{Acquired, Bid, Grant, StoreErrorKind};
use tokio::time::Instant;

use crate::Surroundings;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail, skip};
use crate::client::{Client, Sent};

pub(super) const CLAUSES: &[Clause] = &[
    // K13
    clause!(
        "time-fraction",
        fraction,
        "A ttl that is no multiple of the store's unit is refused, or raised and reported; whole-second stores refuse.",
        "Rounding down: the lease runs out before its leader stops."
    ),
    // K13
    clause!(
        "time-minimum",
        minimum,
        "A ttl under the store's minimum is refused, or raised and reported; never shortened.",
        "A ttl that becomes zero, which some servers take for no expiry at all."
    ),
    // K13
    clause!(
        "time-maximum",
        maximum,
        "A ttl over the store's maximum is refused, or what is granted is reported.",
        "An overflow that makes a long ttl a short one, or none."
    ),
    // K09
    clause!(
        "time-wall-clock",
        wall_clock,
        "A process whose wall clock is ten years ahead, or an hour behind, gets the same answers.",
        "Expiry by the client's clock: whoever's clock is ahead takes leases that are held."
    ),
    // K09
    clause!(
        "time-zone",
        time_zone,
        "A process in another time zone gets the same answers.",
        "A local time that is stored without its zone: leases are hours too long or too short."
    ),
];

/// That a bid with this ttl is refused before it is sent, or granted for at least as long; the grant, if there is one.
async fn refused_or_raised(client: &Client, bid: &Bid) -> Result<Option<Sent<Grant>>, Stop> {
    let at = Instant::now();
    match client.bare().try_acquire(bid).await {
        Err(error) if error.kind() == StoreErrorKind::Invalid => {
            client.nobody(&bid.name).await?;
            Ok(None)
        }
        Ok(Acquired::Granted(grant)) => {
            ensure!(grant.ttl >= bid.ttl, "a ttl of {:?} was asked for, and shortened to {:?}", bid.ttl, grant.ttl);
            Ok(Some(Sent { at, value: grant }))
        }
        answer => fail!("a bid with a ttl of {:?} was answered with {answer:?}", bid.ttl),
    }
}

async fn fraction(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let unit = bench.descriptor().ttl_unit;
    for odd in [unit / 2, unit / 1000, unit - unit / 1000] {
        let mut bid = bench.bid(&bench.name()?);
        bid.ttl = bench.long() + odd;
        let Some(Sent { value: grant, .. }) = refused_or_raised(&client, &bid).await? else { continue };
        ensure!(
            unit < Duration::from_secs(1),
            "a ttl of {:?} is none that a store of whole seconds keeps, and was granted: {grant:?}",
            bid.ttl
        );
        let record = client.shows(&grant).await?;
        ensure!(record.ttl >= bid.ttl, "a ttl of {:?} was asked for, and {:?} is shown", bid.ttl, record.ttl);
    }
    Ok(())
}

async fn minimum(bench: &Bench<'_>) -> Verdict {
    let client = bench.client().await?;
    let least = bench.descriptor().min_ttl;
    for short in [least / 2, least.saturating_sub(Duration::from_nanos(1)), Duration::from_nanos(1)] {
        let mut bid = bench.bid(&bench.name()?);
        bid.ttl = short;
        if let Some(holder) = refused_or_raised(&client, &bid).await? {
            bench.outlast(&holder, &client, &bench.bid(&bid.name)).await?;
        }
    }
    // The shortest that is kept as asked is no empty promise.
    let mut bid = bench.bid(&bench.name()?);
    bid.ttl = bench.possible(least.max(Duration::from_millis(50)));
    let holder = client.granted_at(&bid).await?;
    bench.outlast(&holder, &client, &bench.bid(&bid.name)).await?;
    Ok(())
}

async fn maximum(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let most = bench.descriptor().max_ttl;
    for long in [most, most.saturating_add(bench.descriptor().ttl_unit), most.saturating_mul(1000)] {
        let mut bid = bench.bid(&bench.name()?);
        bid.ttl = long;
        match client.bare().try_acquire(&bid).await {
            Err(error) if error.kind() == StoreErrorKind::Invalid && long > most => client.nobody(&bid.name).await?,
            Ok(Acquired::Granted(grant)) => {
                let record = other.shows(&grant).await?;
                ensure!(record.ttl == grant.ttl, "{:?} was granted, and {:?} is shown", grant.ttl, record.ttl);
                ensure!(
                    record.remaining > grant.ttl / 2,
                    "{:?} left of a ttl of {:?}, just granted",
                    record.remaining,
                    grant.ttl
                );
                other.held(&bench.bid(&bid.name)).await?;
                client.freed(&grant).await?;
            }
            answer => fail!("a bid with a ttl of {long:?} was answered with {answer:?}"),
        }
    }
    Ok(())
}

/// Ten years, and an hour back, in seconds.
const SHIFTS: [i64; 2] = [10 * 365 * 24 * 3600, -3600];

async fn wall_clock(bench: &Bench<'_>) -> Verdict {
    for seconds in SHIFTS {
        same_answers(bench, &Surroundings::default().with_wall_clock_ahead(seconds)).await?;
    }
    Ok(())
}

async fn time_zone(bench: &Bench<'_>) -> Verdict {
    // Fourteen hours ahead of UTC, and eleven behind.
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
        if std::env::var("TZ").is_ok_and(|here| here == zone) {
            skip!("this process is in that time zone itself");
        }
        same_answers(bench, &Surroundings::default().with_time_zone(zone)).await?;
    }
    Ok(())
}

/// That a client over there and one here see the same leases for the same time.
async fn same_answers(bench: &Bench<'_>, surroundings: &Surroundings) -> Verdict {
    let process = bench.elsewhere(surroundings).await?;
    let (here, there) = (bench.client().await?, Client::new(process.store()));
    let ours = here.granted(&bench.bid(&bench.name()?)).await?;
    there.held(&bench.bid(&ours.name)).await?;
    let seen = there.shows(&ours).await?;
    let off = seen.remaining.abs_diff(here.shows(&ours).await?.remaining);
    ensure!(off < bench.slack() * 2, "with {surroundings:?} the time left is off by {off:?}");
    let theirs = there.granted(&bench.bid(&bench.name()?)).await?;
    here.held(&bench.bid(&theirs.name)).await?;
    there.extended(&theirs).await?;
    let off = here.shows(&theirs).await?.remaining.abs_diff(theirs.ttl);
    ensure!(off < bench.slack() * 2, "a lease taken with {surroundings:?} shows a time left that is off by {off:?}");
    let each_way: [(&Client, &Client); 2] = [(&there, &here), (&here, &there)];
    for (holder, contender) in each_way {
        let held: Sent<_> = holder.granted_at(&bench.short_bid(&bench.name()?)).await?;
        bench.outlast(&held, contender, &bench.bid(&held.value.name)).await?;
    }
    there.freed(&theirs).await?;
    process.kill().await?;
    Ok(())
}
