//! What a leader shows to observers.

use std::fmt;
use std::sync::Arc;

use crate::invalid::{Invalid, bounded_text};

/// Free text that a leader shows to observers, such as the address it serves at; empty by default.
///
/// At most 1,024 bytes of UTF-8 without NUL. It is stored in the clear and read by everyone who can read the lease:
/// no secret belongs here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Arc<str>);

impl Payload {
    /// The longest payload, in bytes. 1 KiB holds an address or a small document, and keeps a lease cheap to rewrite.
    pub const MAX_BYTES: usize = 1024;

    /// Makes a payload of `text`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the text is longer than 1,024 bytes or holds a NUL character.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        bounded_text("payload", text.into(), 0..=Self::MAX_BYTES, |c| c == '\0').map(|text| Self(text.into()))
    }

    /// The payload as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Payload {
    fn default() -> Self {
        Self("".into())
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl TryFrom<&str> for Payload {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<String> for Payload {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_bounded_and_free_of_nul() {
        assert!(Payload::new("x".repeat(1024)).is_ok());
        assert!(Payload::new("line\nline\ttab").is_ok());
        assert!(Payload::default().is_empty());
        let refusal = |text: String| Payload::new(text).unwrap_err().to_string();
        assert_eq!(refusal("x".repeat(1025)), "payload has 1025 bytes: at most 1024 bytes are allowed");
        assert_eq!(
            refusal("a\0".into()),
            "payload holds the character U+0000 at byte 1: NUL characters are not allowed"
        );
    }
}
