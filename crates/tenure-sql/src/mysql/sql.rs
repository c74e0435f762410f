//! The SQL text of MySQL and MariaDB.
//!
//! `UTC_TIMESTAMP(6)` stands still for a statement and is read before it waits for the row: a value gone stale makes a
//! lease look younger, and the new one end sooner, than they do. Both are safe. Names and identities are binary: every
//! character set collation folds or pads something.
//!
//! Whether a row was changed is not told by the count of rows alone, which depends on a setting of the connection and may
//! be nothing for a change to the same values: each change hands a number over by `LAST_INSERT_ID(expr)`, which comes back
//! with the statement's answer and is 0 when no row matched.

use sqlx::SqlStr;

use crate::TableName;
use crate::dialect::{BATCH, PAGE};
use crate::text::{LOOK, places, shared};

/// The statements on one table.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) bid: SqlStr,
    pub(super) insert: SqlStr,
    pub(super) renew: SqlStr,
    pub(super) lock_many: SqlStr,
    pub(super) extend_many: SqlStr,
    pub(super) release: SqlStr,
    pub(super) find: SqlStr,
    pub(super) page: SqlStr,
    pub(super) look: SqlStr,
    pub(super) create: SqlStr,
    pub(super) probe: SqlStr,
}

impl Statements {
    pub(super) fn new(table: &TableName) -> Self {
        let create = shared(ddl(table));
        let table = table.quoted('`');
        Self {
            bid: shared(bid(&table)),
            insert: shared(insert(&table)),
            renew: shared(renew(&table)),
            lock_many: shared(lock_many(&table)),
            extend_many: shared(extend_many(&table)),
            release: shared(release(&table)),
            find: shared(find(&table)),
            page: shared(page(&table)),
            look: shared(look(&table)),
            create,
            probe: shared(probe(&table)),
        }
    }
}

/// The table.
pub(super) fn ddl(table: &TableName) -> String {
    let table = table.quoted('`');
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (
    name          VARBINARY(200)  NOT NULL PRIMARY KEY,
    candidate     VARBINARY(1024) NULL,      -- the holder; null once it released
    token         BIGINT          NOT NULL,  -- the fencing token of the last term
    expires_at    DATETIME(6)     NOT NULL,  -- by this server's clock, UTC
    ttl           BIGINT          NOT NULL,  -- microseconds
    acquired_at   DATETIME(6)     NOT NULL,  -- UTC; for display only
    payload       VARBINARY(1024) NOT NULL,
    after_release BOOLEAN         NOT NULL   -- whether the term before this one was given up in order
) ENGINE = InnoDB;
"
    )
}

/// What sets a session up. A server's or a user's defaults may be REPEATABLE READ, or no autocommit, or to wait for
/// locks for a minute. MariaDB 10.11 has no variable for the isolation level. The last statement tells the version, and
/// whether commits reach the disk.
pub(super) fn session(lock_timeout_seconds: u64) -> String {
    format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
         SET SESSION autocommit = 1, innodb_lock_wait_timeout = {lock_timeout_seconds}, \
         lock_wait_timeout = {lock_timeout_seconds}; \
         SELECT VERSION(), CAST(@@innodb_flush_log_at_trx_commit AS SIGNED)"
    )
}

/// Ttl, candidate, and so on: `?` in the order in which they stand.
///
/// 1 candidate, 2 candidate, 3 candidate, 4 candidate, 5 ttl, 6 ttl, 7 candidate, 8 ttl, 9 payload, 10 name,
/// 11 candidate. MySQL assigns from left to right and reads what it has assigned: so the token comes first, and
/// `candidate` after all that ask for its old value. The number handed over is twice the token, plus one after a release.
fn bid(table: &str) -> String {
    let own = "candidate <=> ? AND expires_at > UTC_TIMESTAMP(6)";
    format!(
        "UPDATE {table} SET
    token = LAST_INSERT_ID(IF({own}, token * 2 + after_release, (token + 1) * 2 + (candidate IS NULL))) DIV 2,
    after_release = IF({own}, after_release, candidate IS NULL),
    acquired_at = IF({own}, acquired_at, UTC_TIMESTAMP(6)),
    expires_at = IF({own},
        GREATEST(expires_at, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))),
        TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))),
    candidate = ?, ttl = ?, payload = ?
WHERE name = ? AND (candidate IS NULL OR candidate = ? OR expires_at <= UTC_TIMESTAMP(6))"
    )
}

/// 1 name, 2 candidate, 3 ttl, 4 ttl, 5 payload.
fn insert(table: &str) -> String {
    format!(
        "INSERT INTO {table} (name, candidate, token, expires_at, ttl, acquired_at, payload, after_release)
VALUES (?, ?, 1, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), ?, UTC_TIMESTAMP(6), ?, TRUE)"
    )
}

/// Name, candidate, token: the term, unexpired.
const THIS_TERM: &str = "name = ? AND candidate = ? AND token = ? AND expires_at > UTC_TIMESTAMP(6)";

/// 1 ttl, 2 ttl, then the term.
fn renew(table: &str) -> String {
    format!(
        "UPDATE {table} SET token = LAST_INSERT_ID(token),
    expires_at = GREATEST(expires_at, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))), ttl = ?
WHERE {THIS_TERM}"
    )
}

/// Names. In a transaction: what is not returned has run out, or is locked by somebody, and is not waited for.
fn lock_many(table: &str) -> String {
    let places = places(BATCH);
    format!(
        "SELECT name, candidate, token FROM {table}
WHERE name IN ({places}) AND expires_at > UTC_TIMESTAMP(6) FOR UPDATE SKIP LOCKED"
    )
}

/// 1 ttl, 2 ttl, then names, whose rows the transaction has locked.
fn extend_many(table: &str) -> String {
    let places = places(BATCH);
    format!(
        "UPDATE {table} SET
    expires_at = GREATEST(expires_at, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))), ttl = ?
WHERE name IN ({places})"
    )
}

fn release(table: &str) -> String {
    format!("UPDATE {table} SET token = LAST_INSERT_ID(token), candidate = NULL, payload = '' WHERE {THIS_TERM}")
}

fn row(table: &str) -> String {
    format!(
        "SELECT name, candidate, token, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), ttl,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', acquired_at), payload
FROM {table}"
    )
}

fn find(table: &str) -> String {
    format!("{} WHERE name = ?", row(table))
}

/// The name to begin after.
fn page(table: &str) -> String {
    format!("{} WHERE name > ? ORDER BY name LIMIT {PAGE}", row(table))
}

fn look(table: &str) -> String {
    format!("SELECT name, candidate, token FROM {table} WHERE name IN ({})", places(LOOK))
}

/// Asks for each column: a foreign table has others.
fn probe(table: &str) -> String {
    format!("SELECT name, candidate, token, expires_at, ttl, acquired_at, payload, after_release FROM {table} LIMIT 0")
}
