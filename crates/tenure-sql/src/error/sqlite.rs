//! SQLite's result codes (sqlite.org/rescode.html).

use std::path::Path;

use tenure_core::StoreErrorKind;

use super::{foreign_table, missing_table, of_client};
use crate::TableName;
use crate::dialect::{Effect, Verdict};

const ERROR: u32 = 1;
const PERM: u32 = 3;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const NOMEM: u32 = 7;
const READONLY: u32 = 8;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const CONSTRAINT: u32 = 19;
const MISMATCH: u32 = 20;
const AUTH: u32 = 23;
const NOTADB: u32 = 26;

/// What `error` means. `look_at_path` says what is wrong with the path itself, when something is.
pub(crate) fn verdict(
    error: &sqlx::Error,
    effect: Effect,
    table: &TableName,
    path: &Path,
    look_at_path: impl FnOnce() -> Option<Verdict>,
) -> Verdict {
    use StoreErrorKind::{Denied, Malformed, Unavailable};
    if let Some(verdict) = of_client(error, effect, &path.to_string_lossy()) {
        return verdict;
    }
    let message = error.as_database_error().map_or("", |error| error.message());
    match code(error) {
        ERROR => statement_refused(message, table),
        // The statement changed nothing: an autocommit statement that does not get its lock is rolled back.
        BUSY | LOCKED => Verdict::new(
            Unavailable,
            format!("{path:?} is locked by another connection for too long: end its transaction"),
        ),
        NOMEM => Verdict::new(Unavailable, "sqlite is out of memory"),
        PERM | READONLY | AUTH => look_at_path().unwrap_or_else(|| {
            Verdict::new(
                Denied,
                format!("{path:?} may not be written ({message}): candidates need to read and write it"),
            )
        }),
        CANTOPEN => look_at_path().unwrap_or_else(|| {
            Verdict::new(Unavailable, format!("{path:?} cannot be opened: check open file limits and its directory"))
        }),
        FULL => Verdict::new(
            Unavailable,
            format!("the disk of {path:?}, or the size allowed to it, is full: nothing was changed; free some space"),
        ),
        NOTADB => Verdict::new(
            Malformed,
            format!("{path:?} is not a sqlite database: choose another path, or move that file out of the way"),
        ),
        CORRUPT => Verdict::new(
            Malformed,
            format!(
                "{path:?} is damaged ({message}): restore it, or move it and its -wal and -shm files out of the way"
            ),
        ),
        CONSTRAINT | MISMATCH => foreign_table(table, message),
        IOERR => Verdict::in_doubt(effect, format!("reading or writing {path:?} failed ({message}): check the disk")),
        _ => Verdict::in_doubt(effect, format!("sqlite failed ({message})")),
    }
}

/// Whether a lock was not to be had.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some() && matches!(code(error), BUSY | LOCKED)
}

/// A statement that could not be prepared, and so never ran.
fn statement_refused(message: &str, table: &TableName) -> Verdict {
    if message.starts_with("no such table") {
        return missing_table(table);
    }
    if message.contains("syntax error") || message.starts_with("unknown table option") {
        return Verdict::new(
            StoreErrorKind::Unsupported,
            format!("this sqlite library is too old ({message}): 3.37 or newer is needed"),
        );
    }
    foreign_table(table, message)
}

/// The primary result code: the low byte of the extended one.
fn code(error: &sqlx::Error) -> u32 {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| code.parse::<u32>().ok()).unwrap_or(0) & 0xff
}
