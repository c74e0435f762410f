//! Many terms extended at once: one stream of keep-alives, and one transaction of reads per 128 terms.

use std::time::Duration;

use etcd_client::KeyValue;
use futures::future::join_all;
use tenure_core::{Grant, Operation, Renewed, StoreError};

use crate::bound::bounded;
use crate::config::CALL_BOUND;
use crate::error::{Effect, Failure};
use crate::etcd::Etcd;
use crate::receipt;
use crate::term::{self, Decision};

/// Renews each grant as [`term::renew`] does, and answers in order.
pub(crate) async fn renew(etcd: &Etcd, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
    let mut answers: Vec<Option<Result<Renewed, Failure>>> = vec![None; grants.len()];
    let plain: Vec<(usize, i64)> =
        grants.iter().enumerate().filter_map(|(at, grant)| receipt::lease_of(grant).map(|lease| (at, lease))).collect();
    match bounded_batch(etcd, grants, &plain).await {
        Ok(decided) => {
            for (&(at, _), decided) in plain.iter().zip(decided) {
                answers[at] = decided.map(Ok);
            }
        }
        Err(failure) => {
            for &(at, _) in &plain {
                answers[at] = Some(Err(failure.clone()));
            }
        }
    }
    // What needs a second look gets it by itself: a grant without its receipt, a key under a newer etcd lease.
    let each = grants.iter().zip(answers).map(|(grant, answer)| async move {
        let answer = async {
            match answer {
                Some(answer) => answer,
                None => term::renew(etcd, grant).await,
            }
        };
        bounded(Operation::Renew, Some(&grant.name), Effect::Write, answer).await
    });
    join_all(each).await
}

/// Renews the grants at the places that `plain` names; `None` where one needs a second look.
async fn bounded_batch(etcd: &Etcd, grants: &[Grant], plain: &[(usize, i64)]) -> Result<Vec<Option<Renewed>>, Failure> {
    if plain.is_empty() {
        return Ok(Vec::new());
    }
    let leases: Vec<i64> = plain.iter().map(|&(_, lease)| lease).collect();
    let keys: Vec<String> = plain.iter().map(|&(at, _)| etcd.keys.key_of(&grants[at].name)).collect();
    let shortest = plain.iter().map(|&(at, _)| grants[at].ttl).min().unwrap_or(Duration::ZERO);
    let batch = etcd.keep_alive_and_get_many(&leases, &keys, shortest);
    let (alive, found) = match tokio::time::timeout(CALL_BOUND, batch).await {
        Ok(answer) => answer?,
        Err(_) => return Err(Failure::no_answer(Effect::Write, CALL_BOUND)),
    };
    let decide = |(&(at, lease), found): (&(usize, i64), &Option<KeyValue>)| match term::decide(
        &grants[at],
        lease,
        alive.contains(&lease),
        found.as_ref(),
    ) {
        Decision::Final(renewed) => Some(renewed),
        Decision::LookAgain(_) => None,
    };
    Ok(plain.iter().zip(&found).map(decide).collect())
}
