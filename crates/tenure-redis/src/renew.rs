//! Renewals: one script for up to 256 leases at once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use redis::Value;
use tenure_core::{Grant, LossReason, Operation, Renewed, StoreError};
use tokio::time::Instant;

use crate::error::{Call, Failure};
use crate::keys::LeaseKeys;
use crate::record;
use crate::script::{self, Answer};
use crate::store::RedisStore;

/// A script keeps the server from everybody else while it runs: 256 renewals take it about a third of a millisecond.
const BATCH: usize = 256;

type Outcome = Result<Renewed, StoreError>;

/// A renewal under way: where its outcome goes, and what is renewed.
struct Renewal<'a> {
    place: usize,
    grant: &'a Grant,
    keys: LeaseKeys,
}

pub(crate) async fn one(store: &RedisStore, grant: &Grant) -> Outcome {
    let call = store.call(Operation::Renew, &grant.name);
    store.check_ttl(call, grant.ttl)?;
    let renewal = Renewal { place: 0, grant, keys: LeaseKeys::of(&grant.name) };
    let outcome = together(store, &[renewal]).await.pop();
    outcome.map_or_else(|| Err(call.not_understood()), |(_, outcome)| outcome)
}

pub(crate) async fn many(store: &RedisStore, grants: &[Grant]) -> Vec<Outcome> {
    let mut outcomes = BTreeMap::new();
    let mut by_slot: BTreeMap<u16, Vec<Renewal<'_>>> = BTreeMap::new();
    for (place, grant) in grants.iter().enumerate() {
        if let Err(refused) = store.check_ttl(store.call(Operation::Renew, &grant.name), grant.ttl) {
            outcomes.insert(place, Err(refused));
            continue;
        }
        let keys = LeaseKeys::of(&grant.name);
        // A cluster takes scripts on the keys of one slot only.
        let slot = if store.inner.link.is_cluster() { keys.slot } else { 0 };
        by_slot.entry(slot).or_default().push(Renewal { place, grant, keys });
    }
    let batches = by_slot.values().flat_map(|renewals| renewals.chunks(BATCH));
    outcomes.extend(join_all(batches.map(|batch| together(store, batch))).await.into_iter().flatten());
    outcomes.into_values().collect()
}

/// Renews all of `batch`, whose keys lie in one slot, and answers for each.
async fn together(store: &RedisStore, batch: &[Renewal<'_>]) -> Vec<(usize, Outcome)> {
    let sent = Instant::now();
    let answers = send(store, batch).await.map(|value| Answer::parse_all(value, batch.len()).unwrap_or_default());
    let outcomes = batch.iter().enumerate().map(|(n, renewal)| {
        let call = store.call(Operation::Renew, &renewal.grant.name);
        let outcome = match &answers {
            Err(failure) => Err(call.failed(failure.clone())),
            Ok(answers) => answers
                .get(n)
                .map_or_else(|| Err(call.not_understood()), |answer| renewed(store, call, renewal.grant, answer, sent)),
        };
        (renewal.place, outcome)
    });
    outcomes.collect()
}

async fn send(store: &RedisStore, batch: &[Renewal<'_>]) -> Result<Value, Failure> {
    let Some(first) = batch.first() else { return Ok(Value::Array(Vec::new())) };
    let keys: Vec<&str> = batch.iter().flat_map(|renewal| renewal.keys.both()).collect();
    let args: Vec<String> = batch
        .iter()
        .map(|Renewal { grant, .. }| grant)
        .flat_map(|grant| [record::first_line(&grant.candidate, grant.token), grant.ttl.as_millis().to_string()])
        .collect();
    let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
    script::RENEW.run(&store.inner.link, first.keys.slot, &keys, &args).await
}

fn renewed(store: &RedisStore, call: Call<'_>, grant: &Grant, answer: &Answer, sent: Instant) -> Outcome {
    let seen = &store.inner.seen;
    let reason = match answer {
        Answer::Extended => {
            seen.confirmed(grant, sent);
            return Ok(Renewed::Extended(grant.clone()));
        }
        Answer::Foreign { .. } => LossReason::Malformed,
        Answer::Held { record, .. } => match record::parse(&grant.name, record, Duration::ZERO) {
            None => LossReason::Malformed,
            Some(record) => LossReason::Superseded { by: Some(record.holder) },
        },
        // Somebody else's term came and went.
        Answer::Gone { last: Some(last), .. } if *last > grant.token.value() => LossReason::Superseded { by: None },
        // A lease does not run out by itself before its time, and takes no counter with it.
        Answer::Gone { last, released } => {
            let released = *released == Some(grant.token.value());
            if last.is_none() || released || seen.is_fresh(grant) { LossReason::Removed } else { LossReason::EXPIRED }
        }
        Answer::Error(text) if text.contains("WRONGTYPE") => LossReason::Malformed,
        Answer::Error(text) => return Err(call.failed(Failure::worded(text))),
        _ => return Err(call.not_understood()),
    };
    Ok(Renewed::Lost(reason))
}
