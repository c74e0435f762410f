//! The name of a lease.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::invalid::{Invalid, bounded_text};

/// Names one lease in a store, and so one election.
///
/// Any UTF-8 string of 1 to 200 bytes without control characters is a name, and every name is isolated from every
/// other: `a`, `a/b`, `{a}`, `A`, `a ` and `%61` are six leases. A backend whose key space is narrower encodes names
/// injectively; it never trims, folds or truncates them.
///
/// ```
/// use tenure_core::LeaseName;
///
/// let name: LeaseName = "nightly-compaction".parse()?;
/// assert_eq!(name.as_str(), "nightly-compaction");
/// assert!("".parse::<LeaseName>().is_err());
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(Arc<str>);

impl LeaseName {
    /// The longest name, in bytes. 200 fits a MySQL primary key and leaves room for an encoding everywhere else.
    pub const MAX_BYTES: usize = 200;

    /// Makes a name of `text`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the text is empty, longer than 200 bytes, or holds a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        bounded_text("lease name", text.into(), 1..=Self::MAX_BYTES, char::is_control).map(|text| Self(text.into()))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for LeaseName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for LeaseName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<&str> for LeaseName {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<String> for LeaseName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<&LeaseName> for LeaseName {
    type Error = Invalid;

    fn try_from(name: &LeaseName) -> Result<Self, Invalid> {
        Ok(name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_names() {
        for text in ["a", "a/b", "{a}", "A", "a ", " ", "%61", "'; drop table", "naïve-日本", "*", ".."] {
            assert_eq!(LeaseName::new(text).unwrap().as_str(), text);
        }
        assert!(LeaseName::new("x".repeat(200)).is_ok());
    }

    #[test]
    fn each_refusal_says_what_is_allowed() {
        let refusal = |text: &str| LeaseName::new(text).unwrap_err().to_string();
        assert_eq!(refusal(""), "lease name is empty: 1 to 200 bytes are allowed");
        assert_eq!(refusal(&"é".repeat(101)), "lease name has 202 bytes: 1 to 200 bytes are allowed");
        assert_eq!(
            refusal("a\nb"),
            "lease name holds the character U+000A at byte 1: control characters are not allowed"
        );
        assert_eq!(
            refusal("a\0"),
            "lease name holds the character U+0000 at byte 1: control characters are not allowed"
        );
    }
}
