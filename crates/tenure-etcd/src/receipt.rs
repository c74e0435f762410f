//! The store's note on a grant: the etcd lease that carries the term.

use tenure_core::{CandidateId, FencingToken, Grant, LeaseName, Receipt};

/// The note that `lease` carries `candidate`'s term `token` of the lease `name`.
///
/// It names the term too, so that a grant whose name, candidate or token was exchanged does not reach the lease of the
/// term that the note was written for: a keep-alive can be sent without waiting for the comparison, and an etcd lease
/// ended without its key, only because of that.
pub(crate) fn of(lease: i64, name: &LeaseName, candidate: &CandidateId, token: FencingToken) -> Receipt {
    Receipt::new(format!("{lease:x}\n{}", term(name, candidate, token)))
}

/// The etcd lease of `grant`; `None` when its receipt was written for another term, or by nobody.
pub(crate) fn lease_of(grant: &Grant) -> Option<i64> {
    let (lease, noted) = grant.receipt.as_str().split_once('\n')?;
    let of_this_term = noted == term(&grant.name, &grant.candidate, grant.token);
    of_this_term.then(|| i64::from_str_radix(lease, 16).ok()).flatten()
}

/// Neither names nor candidates hold control characters, so no two terms read alike.
fn term(name: &LeaseName, candidate: &CandidateId, token: FencingToken) -> String {
    format!("{token}\n{candidate}\n{name}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::Label;

    use super::*;

    #[test]
    fn a_receipt_leads_to_the_lease_of_its_own_term_only() {
        let candidate = |nonce| CandidateId::with_nonce(&Label::new("worker 7").unwrap(), nonce);
        let name = |text: &str| LeaseName::new(text).unwrap();
        let grant =
            |text, nonce, token| Grant::new(name(text), candidate(nonce), FencingToken(token), Duration::from_secs(2));
        let receipt = of(0x694d_81b6, &name("a b"), &candidate(1), FencingToken(12));
        let noted = |grant: Grant| lease_of(&grant.with_receipt(receipt.clone()));
        assert_eq!(noted(grant("a b", 1, 12)), Some(0x694d_81b6));
        assert_eq!(noted(grant("b", 1, 12)), None, "another lease");
        assert_eq!(noted(grant("a b", 2, 12)), None, "another candidate");
        assert_eq!(noted(grant("a b", 1, 11)), None, "another token");
        assert_eq!(lease_of(&grant("a b", 1, 12)), None, "no receipt");
        for text in ["", "x", "zz\n12", "694d\n12"] {
            assert_eq!(lease_of(&grant("a b", 1, 12).with_receipt(Receipt::new(text))), None, "{text:?}");
        }
    }
}
