//! PostgreSQL's SQLSTATE codes (postgresql.org/docs/current/errcodes-appendix.html).

use tenure_core::StoreErrorKind;

use super::{foreign_table, missing_table, of_client};
use crate::TableName;
use crate::dialect::{Effect, Verdict};

/// What `error` means.
pub(crate) fn verdict(error: &sqlx::Error, effect: Effect, table: &TableName, server: &str) -> Verdict {
    use StoreErrorKind::{Denied, Invalid, Malformed, Unavailable, Unsupported};
    if let Some(verdict) = of_client(error, effect, server) {
        return verdict;
    }
    let message = error.as_database_error().map_or("", |error| error.message());
    match &*code(error) {
        // Rolled back, each of them, by the server's own account.
        "40001" | "40P01" => Verdict::new(Unavailable, format!("the server resolved a conflict ({message})")),
        "55P03" | "57014" => Verdict::new(
            Unavailable,
            format!(
                "waiting for the row of this lease took too long ({message}): look for a transaction that locks it"
            ),
        ),
        "25006" => Verdict::new(
            Unavailable,
            format!(
                "{server} takes no writes ({message}): it is a standby, or its default is read only; use the primary"
            ),
        ),
        "57P03" | "53300" | "53400" => Verdict::new(Unavailable, format!("{server} takes no connection ({message})")),
        "53100" | "53200" => Verdict::new(Unavailable, format!("{server} is out of disk or memory ({message})")),
        // The server may have committed and then gone down.
        "57P01" | "57P02" | "57P05" => Verdict::in_doubt(effect, format!("{server} closed the connection ({message})")),
        "28P01" | "28000" => Verdict::new(Denied, format!("{server} refuses the user or the password ({message})")),
        "42501" => Verdict::new(
            Denied,
            format!(
                "a right is missing ({message}): running needs select, insert and update on {table}, and creating it create on its schema"
            ),
        ),
        "3D000" => Verdict::new(Malformed, format!("{message}: create it, or name another in the url")),
        "3F000" => Verdict::new(Malformed, format!("{message}: create it, or choose another by the table setting")),
        "42P01" => missing_table(table),
        "26000" | "42P05" => Verdict::new(
            Unsupported,
            format!(
                "{server} forgets prepared statements ({message}), as pgbouncer does in transaction mode: set pgbouncer=true"
            ),
        ),
        "42601" => {
            Verdict::new(Unsupported, format!("{server} is too old ({message}): postgresql 12 or newer is needed"))
        }
        "22P05" | "22021" => Verdict::new(
            Invalid,
            format!("the database cannot hold this text ({message}): use a database with the encoding utf8"),
        ),
        "08P01" if message.contains("startup parameter") => Verdict::new(
            Unsupported,
            format!("{server} is a pooler that takes no session settings ({message}): set pgbouncer=true"),
        ),
        // PgBouncer's way to refuse a login.
        "08P01" if message.contains("authentication failed") || message.contains("no such user") => {
            Verdict::new(Denied, format!("{server} refuses the user or the password ({message})"))
        }
        "08P01" if effect == Effect::Connect => {
            Verdict::new(Unavailable, format!("{server} refuses the connection ({message})"))
        }
        code if code.starts_with("22") || code.starts_with("23") || code.starts_with("42") => {
            foreign_table(table, message)
        }
        _ => Verdict::in_doubt(effect, format!("{server} failed ({message})")),
    }
}

/// Whether the server answered in order and goes on: a statement that failed outside a transaction leaves nothing.
pub(crate) fn leaves_session(error: &sqlx::Error) -> bool {
    let code = code(error);
    !code.is_empty() && !["08", "25", "53", "57P", "58", "XX"].iter().any(|class| code.starts_with(class))
}

/// Whether the table, or nothing else, is missing.
pub(crate) fn table_is_missing(error: &sqlx::Error) -> bool {
    code(error) == "42P01"
}

/// Whether somebody else created the table at the same time: `IF NOT EXISTS` is no lock.
pub(crate) fn table_was_created(error: &sqlx::Error) -> bool {
    matches!(&*code(error), "23505" | "42P07" | "42710")
}

fn code(error: &sqlx::Error) -> String {
    error.as_database_error().and_then(|error| error.code()).map(String::from).unwrap_or_default()
}
