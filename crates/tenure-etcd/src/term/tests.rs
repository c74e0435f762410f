use etcd_client::proto::PbKeyValue;
use tenure_core::{Bid, CandidateId, FencingToken, Label, LeaseName};

use super::*;
use crate::record;

const TTL: Duration = Duration::from_secs(15);

fn bid(nonce: u128) -> Bid {
    let candidate = CandidateId::with_nonce(&Label::new("worker").unwrap(), nonce);
    Bid::new(LeaseName::new("nightly").unwrap(), candidate, TTL)
}

/// Candidate 1's term, made at revision 7.
fn grant() -> Grant {
    Grant::of(&bid(1), FencingToken(7))
}

/// A record of candidate `nonce`, put under the etcd lease `put_under` and bound to `bound_to`.
fn found(nonce: u128, create_revision: i64, put_under: i64, bound_to: i64) -> KeyValue {
    let value = record::written(&bid(nonce), put_under, TTL, None);
    KeyValue(PbKeyValue { value, create_revision, mod_revision: 9, lease: bound_to, ..PbKeyValue::default() })
}

fn final_of(decision: Decision) -> Renewed {
    match decision {
        Decision::Final(renewed) => renewed,
        Decision::LookAgain(lease) => panic!("looks again at {lease:?}"),
    }
}

fn looks_again_at(decision: Decision) -> i64 {
    match decision {
        Decision::Final(renewed) => panic!("decides at once: {renewed:?}"),
        Decision::LookAgain(lease) => lease.id,
    }
}

#[test]
fn a_renewal_is_confirmed_by_keep_alive_and_record_together() {
    let renewed = final_of(decide(&grant(), 5, true, Some(&found(1, 7, 5, 5))));
    let Renewed::Extended(extended) = renewed else { panic!("{renewed:?}") };
    assert_eq!((receipt::lease_of(&extended), extended.token, extended.ttl), (Some(5), grant().token, TTL));
}

/// A member that lags behind may not know an etcd lease yet, or know one no more: no loss, and no renewal either.
#[test]
fn a_record_without_a_confirmed_keep_alive_is_neither_extended_nor_lost() {
    assert_eq!(looks_again_at(decide(&grant(), 5, false, Some(&found(1, 7, 5, 5)))), 5);
}

#[test]
fn a_term_that_its_own_repeated_bid_moved_is_followed_to_its_newer_etcd_lease() {
    for alive in [true, false] {
        assert_eq!(looks_again_at(decide(&grant(), 5, alive, Some(&found(1, 7, 6, 6)))), 6);
    }
}

#[test]
fn whatever_else_lies_there_is_a_loss_however_long_the_etcd_lease_lives() {
    let lost = |alive, found: Option<&KeyValue>| match final_of(decide(&grant(), 5, alive, found)) {
        Renewed::Lost(reason) => reason,
        Renewed::Extended(grant) => panic!("extended: {grant:?}"),
    };
    let superseded = |nonce| LossReason::Superseded { by: Some(bid(nonce).candidate) };
    assert_eq!(lost(true, None), LossReason::Removed);
    assert_eq!(lost(false, None), LossReason::EXPIRED);
    assert_eq!(lost(true, Some(&found(2, 8, 5, 5))), superseded(2), "another candidate's");
    assert_eq!(lost(true, Some(&found(2, 7, 5, 5))), superseded(2), "another candidate's under the same token");
    assert_eq!(lost(true, Some(&found(1, 8, 5, 5))), superseded(1), "another term of the same candidate");
    assert_eq!(lost(true, Some(&found(1, 7, 5, 6))), LossReason::Superseded { by: None }, "moved by somebody");
    assert_eq!(lost(true, Some(&found(1, 7, 5, 0))), LossReason::Malformed, "bound to no etcd lease");
}
