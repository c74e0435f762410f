//! The keys and the channel of a lease.

use std::fmt::Write;

use percent_encoding::percent_decode_str;
use tenure_core::LeaseName;

/// What every lease key matches, and nothing else that Tenure writes.
pub(crate) const LEASE_PATTERN: &str = "tenure:{*}:lease";

/// The keys of one lease.
///
/// The encoded name stands between braces, so that a cluster keeps both keys in one slot. `{`, `}` and `%` are escaped:
/// a name that begins with `}` would make the hash tag empty, and the keys fall into two slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseKeys {
    /// Holds the record; expires with the lease.
    pub(crate) lease: String,
    /// Holds the last token; never expires.
    pub(crate) fence: String,
    /// Where grants and releases are announced.
    pub(crate) channel: String,
    /// The cluster's hash slot of the keys.
    pub(crate) slot: u16,
}

impl LeaseKeys {
    pub(crate) fn of(name: &LeaseName) -> Self {
        let tag = encode(name.as_str());
        Self {
            lease: format!("tenure:{{{tag}}}:lease"),
            fence: format!("tenure:{{{tag}}}:fence"),
            channel: channel(&tag),
            slot: crc16::State::<crc16::XMODEM>::calculate(tag.as_bytes()) % 16384,
        }
    }

    /// The keys, as the scripts take them.
    pub(crate) fn both(&self) -> [&str; 2] {
        [&self.lease, &self.fence]
    }
}

/// The channel of `name`.
pub(crate) fn channel_of(name: &LeaseName) -> String {
    channel(&encode(name.as_str()))
}

/// The name behind a lease key; `None` when no name encodes to it.
pub(crate) fn name_of(lease_key: &str) -> Option<LeaseName> {
    let tag = lease_key.strip_prefix("tenure:{")?.strip_suffix("}:lease")?;
    let text = percent_decode_str(tag).decode_utf8().ok()?;
    (encode(&text) == tag).then(|| LeaseName::new(text).ok()).flatten()
}

fn channel(tag: &str) -> String {
    format!("tenure:{{{tag}}}:wake")
}

fn encode(name: &str) -> String {
    let mut tag = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '%' | '{' | '}') {
            // Writing to a string cannot fail.
            let _ = write!(tag, "%{:02X}", c as u32);
        } else {
            tag.push(c);
        }
    }
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> LeaseKeys {
        LeaseKeys::of(&LeaseName::new(name).unwrap())
    }

    #[test]
    fn braces_and_percent_are_escaped_and_the_rest_stands_as_it_is() {
        assert_eq!(keys("nightly").lease, "tenure:{nightly}:lease");
        assert_eq!(keys("}{a% é").lease, "tenure:{%7D%7Ba%25 é}:lease");
        assert_eq!(keys("a:b/c").fence, "tenure:{a:b/c}:fence");
    }

    #[test]
    fn every_name_has_its_own_keys_and_comes_back_from_them() {
        let names = ["a", "A", "a ", "{a}", "}", "%61", "%7D", "a/b", "a:lease", "*", "日本", "a}:lease"];
        for name in names {
            assert_eq!(name_of(&keys(name).lease).unwrap().as_str(), name);
            for other in names {
                assert_eq!(keys(name).lease == keys(other).lease, name == other, "{name:?} and {other:?}");
            }
        }
    }

    #[test]
    fn a_key_that_no_name_encodes_to_has_no_name() {
        for key in
            ["tenure:{}:lease", "tenure:{%61}:lease", "tenure:{%7d}:lease", "tenure:{a}b}:lease", "tenure:{%ff}:lease"]
        {
            assert_eq!(name_of(key), None, "{key}");
        }
    }

    #[test]
    fn the_slot_is_that_of_the_hash_tag() {
        // The value of the cluster specification's own example.
        assert_eq!(keys("123456789").slot, 12739);
        assert_eq!(keys("foo").slot, 12182);
    }
}
