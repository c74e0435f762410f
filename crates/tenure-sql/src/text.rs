//! Statement text.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// Text that clones share, so that running a statement copies none. Everything that is not a constant in it is a table
/// name, which holds nothing that could end a quoted identifier.
pub(crate) fn shared(sql: String) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(sql)).into_sql_str()
}
