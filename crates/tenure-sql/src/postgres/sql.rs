//! The SQL text of PostgreSQL.
//!
//! Each statement reads `clock_timestamp()`: `now()` stands still for a whole transaction. A bid reads it once, before it
//! waits for the row: a value gone stale makes a lease look younger, and the new one end sooner, than they do. Both are
//! safe.

use sqlx::SqlStr;

use crate::TableName;
use crate::dialect::PAGE;
use crate::text::shared;

/// The channel of all wake-ups; the payload is the lease's name.
pub(super) const CHANNEL: &str = "tenure";

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
    pub(super) create: SqlStr,
    pub(super) probe: SqlStr,
}

impl Statements {
    pub(super) fn new(table: &TableName) -> Self {
        let create = shared(ddl(table));
        let table = table.quoted('"');
        Self {
            bid: shared(bid(&table)),
            renew: shared(renew(&table)),
            renew_many: shared(renew_many(&table)),
            release: shared(release(&table)),
            find: shared(find(&table)),
            page: shared(page(&table)),
            look: shared(look(&table)),
            create,
            probe: shared(probe(&table)),
        }
    }
}

/// The table. Half of each page stays free so that a renewal finds room beside the row it replaces and touches no index.
pub(super) fn ddl(table: &TableName) -> String {
    let table = table.quoted('"');
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (
    name          text COLLATE \"C\" PRIMARY KEY,
    candidate     text COLLATE \"C\",           -- the holder; null once it released
    token         bigint      NOT NULL,       -- the fencing token of the last term
    expires_at    timestamptz NOT NULL,       -- by this server's clock
    ttl           bigint      NOT NULL,       -- microseconds
    acquired_at   timestamptz NOT NULL,       -- for display only
    payload       text        NOT NULL,
    after_release boolean     NOT NULL        -- whether the term before this one was given up in order
) WITH (fillfactor = 50);
"
    )
}

/// `$1` name, `$2` candidate, `$3` ttl, `$4` payload. One row: the lease, with `after_release` when it was won. No row
/// when the lease was free for this statement's snapshot, and somebody else was faster.
///
/// A lease that somebody holds is told from the snapshot, without a lock: a conflict would lock the row before it looks
/// at it, so that bids would wait for renewals, and write. The later of the stored and the new expiry is kept for one's
/// own term: a late copy of a bid never shortens it.
fn bid(table: &str) -> String {
    let own = "lease.candidate = excluded.candidate AND lease.expires_at > excluded.acquired_at";
    let left = "(extract(epoch FROM expires_at - now) * 1000000)::bigint";
    let since = "(extract(epoch FROM acquired_at) * 1000000)::bigint";
    format!(
        "WITH clock AS (SELECT clock_timestamp() AS now), held AS (
    SELECT lease.*, now FROM {table} AS lease, clock WHERE name = $1 AND candidate <> $2 AND expires_at > now
), won AS (
    INSERT INTO {table} AS lease
        (name, candidate, token, expires_at, ttl, acquired_at, payload, after_release)
    SELECT $1, $2, 1, now + $3::bigint * interval '1 microsecond', $3::bigint, now, $4, true
    FROM clock WHERE NOT EXISTS (SELECT FROM held)
    ON CONFLICT (name) DO UPDATE SET
        token = CASE WHEN {own} THEN lease.token ELSE lease.token + 1 END,
        expires_at = CASE WHEN {own} THEN greatest(lease.expires_at, excluded.expires_at) ELSE excluded.expires_at END,
        acquired_at = CASE WHEN {own} THEN lease.acquired_at ELSE excluded.acquired_at END,
        after_release = CASE WHEN {own} THEN lease.after_release ELSE lease.candidate IS NULL END,
        candidate = excluded.candidate,
        ttl = excluded.ttl,
        payload = excluded.payload
    WHERE lease.candidate IS NULL OR lease.candidate = excluded.candidate
        OR lease.expires_at <= excluded.acquired_at
    RETURNING *
)
SELECT name, candidate, token, 0::bigint, ttl, {since}, payload, after_release, pg_notify('{CHANNEL}', name) FROM won
UNION ALL
SELECT name, candidate, token, {left}, ttl, {since}, payload, NULL, NULL FROM held"
    )
}

/// `$1` name, `$2` candidate, `$3` token: the term, unexpired.
const THIS_TERM: &str = "name = $1 AND candidate = $2 AND token = $3 AND expires_at > clock_timestamp()";

/// `$4` ttl.
fn renew(table: &str) -> String {
    format!(
        "UPDATE {table} SET
    expires_at = greatest(expires_at, clock_timestamp() + $4::bigint * interval '1 microsecond'), ttl = $4::bigint
WHERE {THIS_TERM} RETURNING token"
    )
}

/// `$1` names, `$2` candidates, `$3` tokens, `$4` ttls. A row that somebody locks is passed over.
fn renew_many(table: &str) -> String {
    format!(
        "WITH due AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS due (name, candidate, token, ttl)
), ready AS (
    SELECT lease.name, due.ttl FROM {table} AS lease JOIN due ON lease.name = due.name
    WHERE lease.candidate = due.candidate AND lease.token = due.token AND lease.expires_at > clock_timestamp()
    FOR UPDATE OF lease SKIP LOCKED
)
UPDATE {table} AS lease SET
    expires_at = greatest(lease.expires_at, clock_timestamp() + ready.ttl * interval '1 microsecond'), ttl = ready.ttl
FROM ready WHERE lease.name = ready.name RETURNING lease.name"
    )
}

/// The wake-up goes out when the statement commits, and only then.
fn release(table: &str) -> String {
    format!(
        "WITH freed AS (UPDATE {table} SET candidate = NULL, payload = '' WHERE {THIS_TERM} RETURNING name)
SELECT pg_notify('{CHANNEL}', name) FROM freed"
    )
}

fn row(table: &str) -> String {
    format!(
        "SELECT name, candidate, token,
    (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint, ttl,
    (extract(epoch FROM acquired_at) * 1000000)::bigint, payload
FROM {table}"
    )
}

/// `$1` name.
fn find(table: &str) -> String {
    format!("{} WHERE name = $1", row(table))
}

/// `$1` the name to begin after.
fn page(table: &str) -> String {
    format!("{} WHERE name > $1 ORDER BY name LIMIT {PAGE}", row(table))
}

/// `$1` names.
fn look(table: &str) -> String {
    format!("SELECT name, candidate, token FROM {table} WHERE name = ANY($1)")
}

/// Asks for each column: a foreign table has others.
fn probe(table: &str) -> String {
    format!("SELECT name, candidate, token, expires_at, ttl, acquired_at, payload, after_release FROM {table} LIMIT 0")
}
