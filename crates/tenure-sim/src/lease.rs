//! Values of the one simulated lease, made once: they hold shared text, and making text is slow.

use std::cell::RefCell;
use std::time::Duration;

use tenure_core::{CandidateId, FencingToken, Grant, Invalid, Label, LeaseName, LeaseRecord};

use crate::clock::Nanos;
use crate::store::{Seen, Who};
use crate::times::duration;

/// The candidate of campaign `who`.
pub fn candidate(who: Who) -> CandidateId {
    thread_local! {
        static KNOWN: RefCell<Vec<CandidateId>> = const { RefCell::new(Vec::new()) };
    }
    KNOWN.with_borrow_mut(|known| {
        while known.len() <= who as usize {
            let nonce = known.len() as u128;
            known.push(LABEL.with(|label| CandidateId::with_nonce(label, nonce)));
        }
        known[who as usize].clone()
    })
}

/// A grant of `token` to nobody in particular: the machine compares tokens only.
pub fn grant(token: FencingToken, ttl: Duration) -> Grant {
    let mut grant = TEMPLATE.with(|template| template.0.clone());
    (grant.token, grant.ttl) = (token, ttl);
    grant
}

/// The grant of `token` to campaign `who`.
pub fn grant_to(who: Who, token: u64, ttl: Nanos, after_release: bool) -> Grant {
    let mut grant = grant(FencingToken(token), duration(ttl));
    (grant.candidate, grant.after_release) = (candidate(who), after_release);
    grant
}

/// The record that a read has shown.
pub fn record(seen: &Seen) -> LeaseRecord {
    let mut record = TEMPLATE.with(|template| template.1.clone());
    (record.holder, record.token) = (candidate(seen.who), FencingToken(seen.token));
    (record.ttl, record.remaining) = (duration(seen.ttl), duration(seen.remaining));
    record
}

thread_local! {
    // For each thread its own: counting the owners of shared text would make the threads wait for each other.
    static LABEL: Label = known(Label::new("c"));
    static TEMPLATE: (Grant, LeaseRecord) = {
        let name = known(LeaseName::new("simulated"));
        let nobody = LABEL.with(|label| CandidateId::with_nonce(label, u128::MAX));
        let grant = Grant::new(name.clone(), nobody.clone(), FencingToken(0), Duration::ZERO);
        (grant, LeaseRecord::new(name, nobody, FencingToken(0), Duration::ZERO))
    };
}

#[allow(clippy::expect_used)]
fn known<T>(made: Result<T, Invalid>) -> T {
    made.expect("the text is a plain word")
}
