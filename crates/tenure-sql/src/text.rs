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

/// `items` brought to `count` by repeating the last: one text of a statement for any number of values.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) fn filled<T>(items: &[T], count: usize) -> impl Iterator<Item = &T> {
    (0..count).map_while(|place| items.get(place).or(items.last()))
}
