//! Answers on stdout.

use std::io::{self, Write, stdout};
use std::time::SystemTime;

use serde::Serialize;

/// Writes one line, at once: whoever reads it may wait for it.
///
/// # Errors
///
/// When stdout takes no more; [`is_closed`] tells whether its reader is simply gone.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Writes `value` as one line of JSON.
///
/// # Errors
///
/// As [`line`].
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    line(&serde_json::to_string(value)?)
}

/// Whether the reader of stdout has gone away, as `head` does: the end of the output, and no failure.
pub(crate) fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// `time` as RFC 3339 in UTC, to the millisecond. For display: nothing is decided by a wall clock.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
