//! Who contends: the label a person chose, and the identity drawn from it for one campaign.

use std::fmt;
use std::sync::Arc;

use crate::invalid::{Invalid, bounded_text};

/// The name a person gives a candidate, such as `worker-7` or a host name.
///
/// A label is 1 to 200 bytes of UTF-8 without control characters. It need not be unique: identity lies in
/// [`CandidateId`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// The longest label, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Makes a label of `text`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the text is empty or blank, longer than 200 bytes, or holds a control character.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = bounded_text("candidate label", text.into(), 1..=Self::MAX_BYTES, char::is_control)?;
        if text.trim().is_empty() {
            return Err(Invalid::new("candidate label is blank: at least one visible character is needed"));
        }
        Ok(Self(text.into()))
    }

    /// The label as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl TryFrom<&str> for Label {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

impl TryFrom<String> for Label {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::new(text)
    }
}

/// Identifies one contender in one campaign: a label and 128 random bits, written `label_0123..ef`.
///
/// Two candidates are never equal, even in one process with one label; and a new campaign never mistakes what an
/// earlier one left in the store for its own.
///
/// The text is what stores keep and compare, byte for byte. A record that another program wrote (client-go, say) may
/// carry an identity of another shape: [`CandidateId::from_wire`] takes any.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CandidateId(Arc<str>);

impl CandidateId {
    /// Digits of the random part: 128 bits in lower-case hexadecimal.
    const NONCE_DIGITS: usize = 32;

    /// Draws a new identity for `label` from the operating system's random source.
    ///
    /// # Panics
    ///
    /// When the operating system has no random source: without one no identity would be unique, and unique
    /// identities are what every conditional write rests on.
    #[allow(clippy::expect_used)]
    pub fn draw(label: &Label) -> Self {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).expect("the operating system has a random source");
        Self::with_nonce(label, u128::from_be_bytes(nonce))
    }

    /// The identity of `label` with a nonce of the caller's, for simulators that must be repeatable.
    pub fn with_nonce(label: &Label, nonce: u128) -> Self {
        Self(format!("{label}_{nonce:032x}").into())
    }

    /// Takes an identity as a store holds it.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when the text is empty, longer than 1,024 bytes, or holds a control character.
    pub fn from_wire(text: impl Into<String>) -> Result<Self, Invalid> {
        bounded_text("candidate", text.into(), 1..=1024, char::is_control).map(|text| Self(text.into()))
    }

    /// The whole identity, as stores keep it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part a person chose; the whole text when it does not end in a random part of ours.
    pub fn label(&self) -> &str {
        match self.0.rsplit_once('_') {
            Some((label, nonce)) if !label.is_empty() && is_nonce(nonce) => label,
            _ => &self.0,
        }
    }
}

fn is_nonce(text: &str) -> bool {
    text.len() == CandidateId::NONCE_DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl fmt::Display for CandidateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CandidateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K15.
    #[test]
    fn two_candidates_of_one_label_are_never_equal() {
        let label = Label::new("worker_7").unwrap();
        let (a, b) = (CandidateId::draw(&label), CandidateId::draw(&label));
        assert_ne!(a, b);
        assert_eq!(a.label(), "worker_7");
        assert_eq!(CandidateId::from_wire(a.as_str()).unwrap(), a);
    }

    #[test]
    fn a_foreign_identity_is_its_own_label() {
        assert_eq!(CandidateId::from_wire("host_a-uuid").unwrap().label(), "host_a-uuid");
        assert_eq!(CandidateId::from_wire(format!("_{}", "0".repeat(32))).unwrap().label().len(), 33);
    }

    /// K15.
    #[test]
    fn empty_blank_broken_and_huge_labels_are_refused() {
        for text in ["", " ", "a\nb", "a\0"] {
            assert!(Label::new(text).is_err(), "{text:?}");
        }
        assert_eq!(
            Label::new("x".repeat(1 << 20)).unwrap_err().to_string(),
            "candidate label has 1048576 bytes: 1 to 200 bytes are allowed"
        );
    }
}
