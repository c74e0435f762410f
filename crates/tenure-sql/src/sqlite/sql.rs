//! The SQL text of SQLite.
//!
//! `expires_at` is the host's boot-time clock, which means nothing without the boot and the time namespace it was read
//! in. A term of an earlier boot is over. A term of another time namespace of this boot cannot be judged: it is never
//! taken over, and no time is shown for it.

use sqlx::SqlStr;

use crate::TableName;
use crate::dialect::PAGE;
use crate::text::{LOOK, places, shared};

/// The statements on one table.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) bid: SqlStr,
    pub(super) renew: SqlStr,
    pub(super) renew_many: SqlStr,
    pub(super) release: SqlStr,
    pub(super) find: SqlStr,
    pub(super) page: SqlStr,
    pub(super) look: SqlStr,
    pub(super) prepare: SqlStr,
}

impl Statements {
    pub(super) fn new(table: &TableName) -> Self {
        let table = table.quoted('"');
        Self {
            bid: shared(bid(&table)),
            renew: shared(renew(&table)),
            renew_many: shared(renew_many(&table)),
            release: shared(release(&table)),
            find: shared(find(&table)),
            page: shared(page(&table)),
            look: shared(look(&table)),
            prepare: shared(prepare(&table)),
        }
    }
}

/// The table. `STRICT` keeps values of a wrong type out.
pub(super) fn ddl(table: &TableName) -> String {
    create(&table.quoted('"'))
}

fn create(table: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (
    name           TEXT    NOT NULL PRIMARY KEY,
    candidate      TEXT,                            -- the holder; null once it released
    token          INTEGER NOT NULL,                -- the fencing token of the last term
    expires_at     INTEGER NOT NULL,                -- boot-time clock, microseconds
    ttl            INTEGER NOT NULL,                -- microseconds
    acquired_at    INTEGER NOT NULL,                -- Unix time, microseconds; for display only
    payload        TEXT    NOT NULL,
    after_release  INTEGER NOT NULL,                -- whether the term before this one was given up in order
    boot_id        TEXT    NOT NULL,
    time_namespace TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
"
    )
}

/// `?1` name, `?2` candidate, `?3` now, `?4` ttl, `?5` calendar time, `?6` payload, `?7` boot id, `?8` time namespace.
/// The later of the stored and the new expiry is kept for one's own term: a late copy of a bid never shortens it.
fn bid(table: &str) -> String {
    let own = "candidate = ?2 AND boot_id = ?7 AND time_namespace = ?8 AND expires_at > ?3";
    format!(
        "INSERT INTO {table}
    (name, candidate, token, expires_at, ttl, acquired_at, payload, after_release, boot_id, time_namespace)
VALUES (?1, ?2, 1, ?3 + ?4, ?4, ?5, ?6, 1, ?7, ?8)
ON CONFLICT (name) DO UPDATE SET
    token = CASE WHEN {own} THEN token ELSE token + 1 END,
    expires_at = CASE WHEN {own} THEN max(expires_at, excluded.expires_at) ELSE excluded.expires_at END,
    acquired_at = CASE WHEN {own} THEN acquired_at ELSE excluded.acquired_at END,
    after_release = CASE WHEN {own} THEN after_release ELSE candidate IS NULL END,
    candidate = excluded.candidate,
    ttl = excluded.ttl,
    payload = excluded.payload,
    boot_id = excluded.boot_id,
    time_namespace = excluded.time_namespace
WHERE candidate IS NULL OR boot_id <> ?7 OR (time_namespace = ?8 AND (candidate = ?2 OR expires_at <= ?3))
RETURNING token, after_release"
    )
}

/// `?1` name, `?2` candidate, `?3` now, `?4` token, `?5` boot id, `?6` time namespace: the term, unexpired.
const THIS_TERM: &str = "name = ?1 AND candidate = ?2 AND token = ?4 AND boot_id = ?5 AND time_namespace = ?6 \
                         AND expires_at > ?3";

/// `?7` ttl.
fn renew(table: &str) -> String {
    format!("UPDATE {table} SET expires_at = max(expires_at, ?3 + ?7), ttl = ?7 WHERE {THIS_TERM} RETURNING token")
}

/// Terms that are renewed in one statement; the places that a batch leaves over are filled with its last term.
pub(super) const TERMS: usize = 64;

/// `?1` now, `?2` boot id, `?3` time namespace, and then name, candidate, token and ttl of each term.
fn renew_many(table: &str) -> String {
    let terms = vec!["(?, ?, ?, ?)"; TERMS].join(", ");
    format!(
        "WITH clock(now, boot, space) AS (VALUES (?1, ?2, ?3)), due(name, candidate, token, ttl) AS (VALUES {terms})
UPDATE {table} AS lease SET expires_at = max(lease.expires_at, now + due.ttl), ttl = due.ttl FROM due, clock
WHERE lease.name = due.name AND lease.candidate = due.candidate AND lease.token = due.token
    AND lease.boot_id = boot AND lease.time_namespace = space AND lease.expires_at > now
RETURNING name"
    )
}

fn release(table: &str) -> String {
    format!("UPDATE {table} SET candidate = NULL, payload = '' WHERE {THIS_TERM} RETURNING token")
}

/// `?1` now, `?2` boot id, `?3` time namespace.
fn row(table: &str) -> String {
    format!(
        "SELECT name, candidate, token,
    CASE WHEN boot_id <> ?2 THEN 0 WHEN time_namespace = ?3 THEN expires_at - ?1 END,
    ttl, acquired_at, payload
FROM {table}"
    )
}

/// `?4` name.
fn find(table: &str) -> String {
    format!("{} WHERE name = ?4", row(table))
}

/// `?4` the name to begin after.
fn page(table: &str) -> String {
    format!("{} WHERE name > ?4 ORDER BY name LIMIT {PAGE}", row(table))
}

fn look(table: &str) -> String {
    format!("SELECT name, candidate, token FROM {table} WHERE name IN ({})", places(LOOK))
}

/// Switches the file to write-ahead logging, creates the table, asks for each column (a foreign table has others), and
/// tells the version.
fn prepare(table: &str) -> String {
    format!(
        "PRAGMA journal_mode = WAL;
{}
SELECT name, candidate, token, expires_at, ttl, acquired_at, payload, after_release, boot_id, time_namespace
FROM {table} LIMIT 0;
SELECT sqlite_version();",
        create(table)
    )
}
