//! Which object keeps a lease: a name that Kubernetes takes as it is, or a hash of it.

use std::borrow::Cow;

use data_encoding::BASE32_DNSSEC;
use sha2::{Digest, Sha256};
use tenure_core::LeaseName;

/// What the name of every object begins with whose lease has a name that Kubernetes does not take. A lease whose own
/// name begins so is hashed too, so that no two leases meet.
const HASHED: &str = "tenure-x-";

/// The name of the object, and whether it is a hash.
pub(crate) fn of(name: &LeaseName) -> (Cow<'_, str>, bool) {
    let text = name.as_str();
    if is_dns_subdomain(text) && !text.starts_with(HASHED) {
        return (text.into(), false);
    }
    // 52 digits: short enough for every limit, and the same for ever.
    let digest = BASE32_DNSSEC.encode(&Sha256::digest(text.as_bytes()));
    (format!("{HASHED}{digest}").into(), true)
}

/// What Kubernetes asks of most names (RFC 1123): labels of lower-case letters, digits and inner hyphens between dots.
/// A lease's name is shorter than the 253 bytes that are allowed.
fn is_dns_subdomain(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(is_alphanumeric)
            && bytes.last().is_some_and(is_alphanumeric)
            && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> String {
        of(&LeaseName::new(text).unwrap()).0.into_owned()
    }

    #[test]
    fn a_dns_name_stands_as_it_is() {
        for text in ["a", "nightly-compaction", "a.b-c.d9", "0"] {
            assert_eq!(object(text), text);
        }
    }

    #[test]
    fn any_other_name_is_hashed_and_the_hash_never_changes() {
        assert_eq!(object("A"), "tenure-x-amdelk42cjanin9p15oopn85lfa9asn89vilb47eucd8h84frvug");
        let odd = ["A", "a/b", "a ", "%61", "{a}", "-a", "a-", "a..b", ".a", "a_b", "é", "tenure-x-a"];
        let mut objects: Vec<_> = odd.iter().map(|text| object(text)).collect();
        assert!(objects.iter().all(|object| object.starts_with(HASHED) && is_dns_subdomain(object)));
        objects.sort_unstable();
        objects.dedup();
        assert_eq!(objects.len(), odd.len());
    }

    #[test]
    fn the_object_of_a_hashed_lease_cannot_be_named_directly() {
        let hashed = object("A");
        assert_ne!(object(&hashed), hashed);
    }
}
