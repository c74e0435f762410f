//! What the client's errors mean: the only place that knows them.
//!
//! The rule: a write whose answer did not come is in doubt. Only what surely did not happen is `Unavailable`.

use tenure_core::StoreErrorKind;

use crate::TableName;
use crate::dialect::{Effect, Verdict};

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "mysql")]
pub(crate) use mysql::{
    is_duplicate as mysql_is_duplicate, leaves_session as mysql_leaves_session,
    table_is_missing as mysql_table_is_missing, verdict as mysql,
};
#[cfg(feature = "postgres")]
pub(crate) use postgres::{
    leaves_session as postgres_leaves_session, table_is_missing as postgres_table_is_missing,
    table_was_created as postgres_table_was_created, verdict as postgres,
};
#[cfg(feature = "sqlite")]
pub(crate) use sqlite::{is_busy as sqlite_is_busy, verdict as sqlite};

/// The part that is the same for all databases; `None` for an error that the database itself reported. `place` is the
/// server's address, or the file's path.
fn of_client(error: &sqlx::Error, effect: Effect, place: &str) -> Option<Verdict> {
    use StoreErrorKind::{Denied, Invalid, Malformed, Unavailable};
    Some(match error {
        sqlx::Error::Database(_) => return None,
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => {
            Verdict::new(Invalid, "the client refuses its settings (see the source): correct them")
        }
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Verdict::new(Unavailable, "no connection"),
        sqlx::Error::Tls(error) if effect == Effect::Connect => Verdict::new(
            Denied,
            format!(
                "no encrypted connection to {place} ({error}): give it a certificate that verifies, or say in the url that plain text will do"
            ),
        ),
        sqlx::Error::Io(error) if effect == Effect::Connect => {
            Verdict::new(Unavailable, format!("{place} cannot be reached ({})", error.kind()))
        }
        sqlx::Error::Io(error) => {
            Verdict::in_doubt(effect, format!("the connection to {place} broke ({})", error.kind()))
        }
        sqlx::Error::WorkerCrashed => Verdict::in_doubt(effect, "the client's worker thread ended"),
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. } => {
            Verdict::new(Malformed, "the row of this lease was not written by tenure: delete it or choose another name")
        }
        _ => Verdict::in_doubt(effect, format!("the client of {place} failed (see the source)")),
    })
}

fn missing_table(table: &TableName) -> Verdict {
    let detail = format!("there is no table {table}: create it with ensure_schema, or with what tenure schema prints");
    Verdict::new(StoreErrorKind::Malformed, detail)
}

fn foreign_table(table: &TableName, message: &str) -> Verdict {
    let detail = format!(
        "the table {table} is not tenure's ({message}): choose another by the table setting, or move that one out of the way"
    );
    Verdict::new(StoreErrorKind::Malformed, detail)
}
