//! Connecting, setting up, and being turned away.

use std::sync::Arc;

use futures::future::join_all;
use tenure_core::{Acquired, LeaseStore, StoreError, StoreErrorKind};

use crate::Trespass;
use crate::bench::Bench;
use crate::clause::{Clause, Stop, Verdict, clause, ensure, fail};
use crate::client::Client;
use crate::unable::chain;

pub(super) const CLAUSES: &[Clause] = &[
    clause!(
        "setup-describe",
        describe,
        "The store describes itself in a way that can hold, and every client in the same way.",
        "A minimum over the maximum, a unit that does not divide them, a name that metrics cannot carry."
    ),
    clause!(
        "setup-again",
        again,
        "Setting up what is set up already, by many clients at once, is no error and touches no lease.",
        "A set-up that fails on what exists, or empties it."
    ),
    // K20
    clause!(
        "setup-race",
        race,
        "Many clients that set up an empty place at once all succeed.",
        "`create if not exists`, which two sessions at once do not survive."
    ),
    clause!(
        "setup-missing",
        missing,
        "Where nothing was set up, calls say so as malformed, and work once it is.",
        "A missing table that looks like a passing fault: a campaign that goes on for ever without a word."
    ),
    clause!(
        "setup-credentials",
        credentials,
        "Wrong credentials are answered with denied, and no error shows them.",
        "Retrying a wrong password for ever, or writing it into the log."
    ),
    clause!(
        "setup-rights",
        rights,
        "A missing right is answered with denied, and no error shows credentials.",
        "A missing right that looks like a passing fault, or like a lease that somebody else holds."
    ),
];

async fn describe(bench: &Bench<'_>) -> Verdict {
    let described = bench.descriptor();
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    ensure!(
        !described.name.is_empty() && described.name.chars().all(word),
        "the store calls itself {:?}: one lower-case word is needed",
        described.name
    );
    ensure!(!described.ttl_unit.is_zero(), "the unit of ttls is zero");
    ensure!(!described.min_ttl.is_zero(), "the smallest ttl is zero");
    ensure!(
        described.min_ttl <= described.max_ttl,
        "the smallest ttl is {:?}, the largest {:?}",
        described.min_ttl,
        described.max_ttl
    );
    for limit in [described.min_ttl, described.max_ttl, bench.ttl(), bench.long()] {
        described.check_ttl(limit)?;
    }
    let client = bench.client().await?;
    for _ in 0..2 {
        // Twice: a call in between must not change what was said.
        let same = client.bare().describe();
        ensure!(same == *described, "one client describes the store as {described:?}, another as {same:?}");
        client.nobody(&bench.name()?).await?;
    }
    Ok(())
}

/// Clients that set the store up at once.
const CLIENTS: usize = 8;

async fn prepare_all(stores: &[Arc<dyn LeaseStore>]) -> Verdict {
    for answer in join_all(stores.iter().map(|store| store.prepare())).await {
        answer.map_err(|error| Stop::Failed(format!("setting up failed: {}", chain(&error))))?;
    }
    Ok(())
}

async fn again(bench: &Bench<'_>) -> Verdict {
    let clients = bench.clients(CLIENTS).await?;
    let grant = clients[0].granted(&bench.bid(&bench.name()?)).await?;
    let before = bench.snapshot(&clients[1], &grant.name).await?;
    let stores: Vec<_> = clients.iter().map(|client| Arc::clone(client.bare())).collect();
    prepare_all(&stores).await?;
    bench.unchanged(&clients[1], &before, "setting up again").await?;
    clients[0].extended(&grant).await?;
    Ok(())
}

async fn race(bench: &Bench<'_>) -> Verdict {
    let stores = bench.harness().unprepared(CLIENTS).await?;
    prepare_all(&stores).await?;
    let name = bench.name()?;
    let clients: Vec<Client> = stores.into_iter().map(Client::new).collect();
    let grant = clients[0].granted(&bench.bid(&name)).await?;
    for client in &clients[1..] {
        client.held(&bench.bid(&name)).await?;
    }
    clients[0].freed(&grant).await
}

async fn missing(bench: &Bench<'_>) -> Verdict {
    let stores = bench.harness().unprepared(1).await?;
    let Some(store) = stores.into_iter().next() else { fail!("the bench made no client of an empty place") };
    let bid = bench.bid(&bench.name()?);
    let bidding = store.try_acquire(&bid).await.err();
    let reading = store.read(&bid.name).await.err();
    for (call, error) in [("a bid", bidding), ("a read", reading)] {
        let kind = error.as_ref().map(StoreError::kind);
        ensure!(
            kind == Some(StoreErrorKind::Malformed),
            "{call} where nothing was set up was answered with {error:?}, not with malformed"
        );
    }
    store.prepare().await?;
    let client = Client::new(store);
    let grant = client.granted(&bid).await?;
    client.freed(&grant).await
}

/// That the trespasser is turned away as denied, and that nothing it says shows a secret.
async fn turned_away(bench: &Bench<'_>, trespass: Trespass) -> Verdict {
    let bid = bench.bid(&bench.name()?);
    let (error, debug) = match trespass.store {
        Err(error) => (error, String::new()),
        Ok(store) => match store.try_acquire(&bid).await {
            Err(error) => (error, format!("{store:?}")),
            Ok(Acquired::Granted(grant)) => fail!("a bid that must be denied was granted: {grant:?}"),
            Ok(Acquired::Held(record)) => fail!("a bid that must be denied found the lease held: {record:?}"),
        },
    };
    let shown = format!("{}\n{error:?}\n{debug}", chain(&error));
    for secret in &trespass.secrets {
        // The message must not show it either, so the secret is counted, not quoted.
        ensure!(!shown.contains(secret.as_str()), "an error or the client shows a secret of {} bytes", secret.len());
    }
    ensure!(error.kind() == StoreErrorKind::Denied, "answered with {}, not with denied", chain(&error));
    bench.client().await?.nobody(&bid.name).await
}

async fn credentials(bench: &Bench<'_>) -> Verdict {
    let trespass = bench.harness().wrong_credentials().await?;
    turned_away(bench, trespass).await
}

async fn rights(bench: &Bench<'_>) -> Verdict {
    let trespass = bench.harness().restricted().await?;
    turned_away(bench, trespass).await
}
