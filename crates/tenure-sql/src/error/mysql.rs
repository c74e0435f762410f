//! MySQL's and MariaDB's error numbers (dev.mysql.com/doc/mysql-errors, mariadb.com/kb/en/mariadb-error-code-reference).

use sqlx::mysql::MySqlDatabaseError;
use tenure_core::StoreErrorKind;

use super::{foreign_table, missing_table, of_client};
use crate::TableName;
use crate::dialect::{Effect, Verdict};

/// What `error` means.
pub(crate) fn verdict(error: &sqlx::Error, effect: Effect, table: &TableName, server: &str) -> Verdict {
    use StoreErrorKind::{Denied, Malformed, Unavailable, Unsupported};
    if matches!(error, sqlx::Error::Configuration(source) if source.to_string().starts_with("RSA")) {
        let detail =
            format!("{server} takes this user's password over an encrypted connection only: set sslmode=require");
        return Verdict::new(Denied, detail);
    }
    if let Some(verdict) = of_client(error, effect, server) {
        return verdict;
    }
    let message = error.as_database_error().map_or("", |error| error.message());
    match number(error) {
        // Rolled back, each of them, by the server's own account.
        1205 => Verdict::new(
            Unavailable,
            format!(
                "waiting for the row of this lease took too long ({message}): look for a transaction that locks it"
            ),
        ),
        1213 => Verdict::new(Unavailable, format!("the server resolved a conflict ({message})")),
        1290 | 1792 | 1836 => {
            Verdict::new(Unavailable, format!("{server} takes no writes ({message}): use the primary"))
        }
        1040 | 1203 | 1226 | 1129 => Verdict::new(Unavailable, format!("{server} takes no connection ({message})")),
        1021 | 1037 | 1038 | 1041 | 1114 => {
            Verdict::new(Unavailable, format!("{server} is out of disk or memory ({message})"))
        }
        1044 | 1045 | 1698 | 3118 | 4151 => {
            Verdict::new(Denied, format!("{server} refuses the user or the password ({message})"))
        }
        1142 | 1143 | 1227 | 1370 => Verdict::new(
            Denied,
            format!(
                "a right is missing ({message}): running needs select, insert and update on {table}, and creating it \
                 create"
            ),
        ),
        1049 => Verdict::new(Malformed, format!("{message}: create it, or name another in the url")),
        1046 => Verdict::new(Malformed, format!("{message}: name a database in the url, or in the table setting")),
        1146 => missing_table(table),
        1665 => Verdict::new(
            Unsupported,
            format!("{server} cannot log this write ({message}): set binlog_format to ROW or MIXED"),
        ),
        1064 | 1305 => Verdict::new(
            Unsupported,
            format!("{server} is too old ({message}): mysql 8.0 or mariadb 10.5, or newer, is needed"),
        ),
        1048 | 1054 | 1062 | 1136 | 1264 | 1292 | 1364 | 1366 | 1406 | 1451 | 1452 | 1644 | 3819 | 4025 => {
            foreign_table(table, message)
        }
        _ => Verdict::in_doubt(effect, format!("{server} failed ({message})")),
    }
}

/// Whether the table is missing.
pub(crate) fn table_is_missing(error: &sqlx::Error) -> bool {
    number(error) == 1146
}

/// Whether the row was there already.
pub(crate) fn is_duplicate(error: &sqlx::Error) -> bool {
    number(error) == 1062
}

/// Whether the server answered in order and goes on: a statement that failed outside a transaction leaves nothing.
pub(crate) fn leaves_session(error: &sqlx::Error) -> bool {
    matches!(number(error), 1205 | 1213 | 1142 | 1146 | 1054 | 1290 | 1792 | 1836)
}

/// The server's number; 0 for an error of another origin.
fn number(error: &sqlx::Error) -> u16 {
    let error = error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    error.map_or(0, MySqlDatabaseError::number)
}
