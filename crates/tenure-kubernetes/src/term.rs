//! What is decided about a term: each decision is one conditional write of the very object that was read.

use std::time::Duration;

use tenure_core::{Acquired, Bid, Grant, LeaseRecord, LossReason, Released, Renewed, StoreErrorKind};

use crate::call::{Call, Written};
use crate::error::Failure;
use crate::record::{self, Found};

/// How often a leader's write is tried anew when somebody else's change of labels or annotations came between.
const TRIES: usize = 5;

/// Takes the lease where it is free or has run out, or finds the bidder's own record.
pub(crate) async fn bid(call: &Call<'_>, bid: &Bid) -> Result<Acquired, Failure> {
    let highest = call.inner.sightings.highest(&bid.name);
    let Some((found, remaining)) = call.get().await? else {
        let lease = record::created(bid, highest).ok_or_else(no_more_tokens)?;
        return won(call, bid, call.create(&lease).await?, false).await;
    };
    let is_running = !remaining.is_zero();
    if is_running && found.holder.as_ref() == Some(&bid.candidate) {
        // The same grant again. A copy that comes late never moves an expiry back.
        let lease = found.extended(bid.ttl.max(remaining));
        return won(call, bid, call.replace(&lease).await?, false).await;
    }
    if is_running && let Some(record) = found.record(&bid.name, remaining) {
        return Ok(Acquired::Held(record));
    }
    let lease = found.granted(bid, highest).ok_or_else(no_more_tokens)?;
    won(call, bid, call.replace(&lease).await?, found.holder.is_none()).await
}

async fn won(call: &Call<'_>, bid: &Bid, written: Written, after_release: bool) -> Result<Acquired, Failure> {
    match written {
        Written::Done(found) => Ok(Acquired::Granted(found.grant(bid).with_after_release(after_release))),
        Written::Conflict | Written::Gone => contended(call, bid).await,
    }
}

/// Somebody wrote in between: shows who. It may be this very bid, repeated by a client that retries.
async fn contended(call: &Call<'_>, bid: &Bid) -> Result<Acquired, Failure> {
    let nobody = |token| LeaseRecord::new(bid.name.clone(), bid.candidate.clone(), token, bid.ttl);
    let Some((found, remaining)) = call.get().await? else {
        return Ok(Acquired::Held(nobody(call.inner.sightings.highest(&bid.name))));
    };
    if !remaining.is_zero() && found.holder.as_ref() == Some(&bid.candidate) {
        return Ok(Acquired::Granted(found.grant(bid)));
    }
    Ok(Acquired::Held(found.record(&bid.name, remaining).unwrap_or_else(|| nobody(found.token))))
}

/// Extends the term of `grant` if it still runs.
pub(crate) async fn renew(call: &Call<'_>, grant: &Grant) -> Result<Renewed, Failure> {
    for _ in 0..TRIES {
        let Some((found, remaining)) = call.get().await? else { return Ok(Renewed::Lost(LossReason::Removed)) };
        if let Some(reason) = loss(&found, remaining, grant) {
            return Ok(Renewed::Lost(reason));
        }
        match call.replace(&found.extended(grant.ttl.max(remaining))).await? {
            Written::Done(_) => return Ok(Renewed::Extended(grant.clone())),
            Written::Gone => return Ok(Renewed::Lost(LossReason::Removed)),
            Written::Conflict => {}
        }
    }
    Err(crowded())
}

fn loss(found: &Found, remaining: Duration, grant: &Grant) -> Option<LossReason> {
    if !found.is_object_of(grant) || found.holder.is_none() {
        return Some(LossReason::Removed);
    }
    if !found.is_term_of(grant) {
        return Some(LossReason::Superseded { by: found.holder.clone() });
    }
    remaining.is_zero().then_some(LossReason::Expired { kind: None, error: None })
}

/// Frees the lease if the term of `grant` still runs.
pub(crate) async fn release(call: &Call<'_>, grant: &Grant) -> Result<Released, Failure> {
    for _ in 0..TRIES {
        let Some((found, remaining)) = call.get().await? else { return Ok(Released::NotHeld) };
        if loss(&found, remaining, grant).is_some() {
            return Ok(Released::NotHeld);
        }
        match call.replace(&found.released()).await? {
            Written::Done(_) => return Ok(Released::Freed),
            Written::Gone => return Ok(Released::NotHeld),
            Written::Conflict => {}
        }
    }
    Err(crowded())
}

fn crowded() -> Failure {
    let detail = format!("the object was changed by others between read and write, {TRIES} times");
    Failure::new(StoreErrorKind::Unavailable, detail)
}

fn no_more_tokens() -> Failure {
    let detail = "leaseTransitions has reached its largest number: delete the object while nobody leads";
    Failure::new(StoreErrorKind::Malformed, detail)
}
