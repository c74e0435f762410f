//! Statement text.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// Names that are looked at in one statement, where the database takes no list as one value.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) const LOOK: usize = 32;

/// Text that clones share, so that running a statement copies none. Everything that is not a constant in it is a table
/// name, which holds nothing that could end a quoted identifier.
pub(crate) fn shared(sql: String) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(sql)).into_sql_str()
}

/// So many places for values, separated by commas.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// `names` brought to the number of places, by repeating the last: one text for any number of names.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn padded(names: &[tenure_core::LeaseName]) -> impl Iterator<Item = &str> {
    (0..LOOK).map_while(|place| names.get(place).or(names.last())).map(tenure_core::LeaseName::as_str)
}
