//! What a leader shows to observers.

use tenure_core::Payload;

use crate::bench::Bench;
use crate::clause::{Clause, Verdict, clause, ensure};

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "payload-round-trip",
        round_trip,
        "A payload of up to 1,024 bytes comes back byte for byte.",
        "Trimming, re-encoding, quoting twice, or a column that is too narrow."
    ),
    clause!(
        "payload-kept",
        kept,
        "The payload stays over renewals.",
        "A renewal that rewrites the record and forgets the payload."
    ),
    clause!(
        "payload-next",
        next,
        "The next holder's payload replaces the one before, after a release and after an expiry, an empty one too.",
        "The first writer's payload stays: observers are sent to the address of a leader that is gone."
    ),
];

async fn round_trip(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let full = "x".repeat(Payload::MAX_BYTES);
    let wide = "é".repeat(Payload::MAX_BYTES / 2);
    let payloads = [
        "",
        " ",
        "10.0.0.7:8080",
        " blanks at both ends ",
        "line\nline\r\n\ttab\u{1}",
        "{\"json\": [1, null, \"\\u0041 \\\\\"]}",
        "'; drop table tenure_leases; --",
        "null",
        "0",
        "%s %d {} $1 ?",
        "日本 👩‍🚀 e\u{301} \u{fffd} \u{10ffff}",
        &full,
        &wide,
    ];
    for text in payloads {
        let bid = bench.bid(&name).with_payload(Payload::new(text)?);
        let grant = client.granted(&bid).await?;
        let seen = [other.shows(&grant).await?, other.held(&bench.bid(&name)).await?];
        for record in seen {
            ensure!(record.payload == bid.payload, "the payload {:?} came back as {:?}", bid.payload, record.payload);
        }
        client.freed(&grant).await?;
    }
    Ok(())
}

async fn kept(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let bid = bench.bid(&bench.name()?).with_payload(Payload::new("10.0.0.7:8080")?);
    let mut grant = client.granted(&bid).await?;
    for _ in 0..3 {
        grant = client.extended(&grant).await?;
        let record = other.shows(&grant).await?;
        ensure!(record.payload == bid.payload, "a renewal turned the payload into {:?}", record.payload);
    }
    Ok(())
}

async fn next(bench: &Bench<'_>) -> Verdict {
    let (client, other) = bench.pair().await?;
    let name = bench.name()?;
    let first = client.granted(&bench.bid(&name).with_payload(Payload::new("first")?)).await?;
    client.freed(&first).await?;
    let second = client.granted_at(&bench.short_bid(&name).with_payload(Payload::new("second")?)).await?;
    let seen = bench.in_time(&second, other.shown(&name).await)?.payload;
    ensure!(seen.as_str() == "second", "after a release the next holder's payload is {seen:?}");
    let third = bench.outlast(&second, &other, &bench.bid(&name)).await?;
    let seen = client.shows(&third).await?.payload;
    ensure!(seen.is_empty(), "after an expiry the next holder, who shows nothing, is shown with {seen:?}");
    Ok(())
}
