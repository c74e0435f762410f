//! The refusal of a value, shared by every type that parses instead of validating.

use std::convert::Infallible;
use std::ops::RangeInclusive;

/// Says why a value was refused before anything was sent: what was wrong, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    message: String,
}

impl Invalid {
    /// A refusal that reads `message`: lower case, one line, without secrets.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// So that a value that is valid already can stand where one is parsed.
impl From<Infallible> for Invalid {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Passes `text` through if its length in bytes lies in `bytes` and no character of it is `forbidden`.
pub(crate) fn bounded_text(
    what: &str,
    text: String,
    bytes: RangeInclusive<usize>,
    forbidden: fn(char) -> bool,
) -> Result<String, Invalid> {
    let allowed = match bytes.start() {
        0 => format!("at most {} bytes are allowed", bytes.end()),
        least => format!("{least} to {} bytes are allowed", bytes.end()),
    };
    if !bytes.contains(&text.len()) {
        return Err(Invalid::new(match text.len() {
            0 => format!("{what} is empty: {allowed}"),
            length => format!("{what} has {length} bytes: {allowed}"),
        }));
    }
    match text.char_indices().find(|&(_, c)| forbidden(c)) {
        None => Ok(text),
        Some((at, c)) => {
            let kind = if c == '\0' && !forbidden('\n') { "NUL characters" } else { "control characters" };
            Err(Invalid::new(format!(
                "{what} holds the character U+{:04X} at byte {at}: {kind} are not allowed",
                c as u32
            )))
        }
    }
}
