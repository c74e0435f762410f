//! Where a lease lies in etcd's key space.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tenure_core::{Invalid, LeaseName};

/// What a name keeps as it is; everything else becomes `%XX`, the slash and the percent sign included, so that the
/// encoding is injective.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Ends every key: an encoded name holds no slash, so no lease's key is the beginning of another's.
const TERMINATOR: &str = "/lease";

/// The part of the key space that holds one store's leases: `PREFIX/ENCODED_NAME/lease`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keyspace {
    /// Ends in a slash.
    prefix: String,
}

impl Keyspace {
    /// Longest prefix, in bytes; it is part of every key.
    const MAX_BYTES: usize = 200;

    /// The key space under `/tenure`.
    pub(crate) fn standard() -> Self {
        Self { prefix: "/tenure/".into() }
    }

    /// The key space under `prefix`; `/tenure` when that is empty or `/`.
    pub(crate) fn new(prefix: &str) -> Result<Self, Invalid> {
        let bare = prefix.trim_end_matches('/');
        if bare.len() > Self::MAX_BYTES {
            return Err(Invalid::new(format!(
                "etcd prefix has {} bytes: at most {} bytes are allowed",
                bare.len(),
                Self::MAX_BYTES
            )));
        }
        if bare.chars().any(char::is_control) {
            return Err(Invalid::new("etcd prefix holds a control character: choose another prefix"));
        }
        Ok(if bare.is_empty() { Self::standard() } else { Self { prefix: format!("{bare}/") } })
    }

    /// What every key begins with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of the lease `name`.
    pub(crate) fn key_of(&self, name: &LeaseName) -> String {
        format!("{}{}{TERMINATOR}", self.prefix, utf8_percent_encode(name.as_str(), ENCODED))
    }

    /// What `key` is to this store.
    pub(crate) fn place_of(&self, key: &[u8]) -> Place {
        let segment = std::str::from_utf8(key)
            .ok()
            .and_then(|key| key.strip_prefix(&self.prefix)?.strip_suffix(TERMINATOR))
            .filter(|segment| !segment.contains('/'));
        let Some(segment) = segment else { return Place::Elsewhere };
        let name = percent_decode_str(segment).decode_utf8().ok().and_then(|name| LeaseName::new(name).ok());
        match name {
            Some(name) if self.key_of(&name).as_bytes() == key => Place::Lease(name),
            _ => Place::Foreign,
        }
    }
}

/// What a key is to a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The place of this lease.
    Lease(LeaseName),
    /// It has the shape of a lease's key and names none.
    Foreign,
    /// No place for a lease: another program's, or a longer prefix's.
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> LeaseName {
        LeaseName::new(text).unwrap()
    }

    #[test]
    fn a_key_can_be_read_and_turned_back() {
        let keys = Keyspace::new("/svc/").unwrap();
        assert_eq!(keys.key_of(&name("nightly-1.0")), "/svc/nightly-1.0/lease");
        assert_eq!(keys.key_of(&name("a/b %")), "/svc/a%2Fb%20%25/lease");
        for text in ["a", "a/b", "{a}", "A", "a ", " ", "%61", "naïve-日本", "*", "..", "lease", "a/lease"] {
            let key = keys.key_of(&name(text));
            assert_eq!(keys.place_of(key.as_bytes()), Place::Lease(name(text)), "{key}");
        }
    }

    #[test]
    fn no_key_is_the_beginning_of_another() {
        let keys = Keyspace::new("").unwrap();
        let names = ["a", "a/", "a/b", "a/lease", "a/lease/", "al", "a%", "a%2F", "lease", "ab"];
        let all: Vec<String> = names.iter().map(|text| keys.key_of(&name(text))).collect();
        for (n, one) in all.iter().enumerate() {
            for (m, other) in all.iter().enumerate() {
                assert!(n == m || !other.starts_with(one.as_str()), "{one} begins {other}");
            }
        }
    }

    #[test]
    fn a_longer_prefix_is_another_store() {
        let (outer, inner) = (Keyspace::new("/a").unwrap(), Keyspace::new("/a/b").unwrap());
        for text in ["c", "lease", "b"] {
            assert_eq!(outer.place_of(inner.key_of(&name(text)).as_bytes()), Place::Elsewhere);
            assert_ne!(inner.place_of(outer.key_of(&name(text)).as_bytes()), Place::Lease(name(text)));
        }
    }

    #[test]
    fn a_key_that_names_no_lease_is_foreign() {
        let keys = Keyspace::new("/tenure").unwrap();
        assert_eq!(Keyspace::new("/").unwrap(), keys);
        for key in ["/tenure/a%2fb/lease", "/tenure/%61/lease", "/tenure//lease", "/tenure/%FF/lease"] {
            assert_eq!(keys.place_of(key.as_bytes()), Place::Foreign, "{key}");
        }
        for key in ["/tenure/a", "/tenure/a/lease/b", "/other/a/lease"] {
            assert_eq!(keys.place_of(key.as_bytes()), Place::Elsewhere, "{key}");
        }
    }

    #[test]
    fn a_prefix_that_no_key_should_have_is_refused() {
        let refusal = |prefix: &str| Keyspace::new(prefix).unwrap_err().to_string();
        assert_eq!(
            refusal(&format!("/{}", "x".repeat(200))),
            "etcd prefix has 201 bytes: at most 200 bytes are allowed"
        );
        assert!(refusal("/a\u{7f}").contains("control character"));
    }
}
