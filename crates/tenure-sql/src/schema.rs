//! What a store needs in its database, as text for those who run it by hand.

use tenure_core::{Invalid, StoreUrl};

use crate::{SqlConfig, TableName};

/// The statements that create the table of the store at `url`; nothing is connected to.
///
/// ```
/// # #[cfg(feature = "postgres")]
/// # fn main() -> Result<(), tenure_core::Invalid> {
/// let ddl = tenure_sql::schema(&"postgres://db.example/app?table=ops.leases".parse()?)?;
/// assert!(ddl.starts_with("CREATE TABLE IF NOT EXISTS \"ops\".\"leases\""));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "postgres"))]
/// # fn main() {}
/// ```
///
/// # Errors
///
/// [`Invalid`] for a scheme that this build does not know, and for a bad table setting.
pub fn schema(url: &StoreUrl) -> Result<String, Invalid> {
    let config = SqlConfig::from_url(url)?;
    let table: &TableName = config.table();
    match url.scheme() {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(crate::PostgresStore::ddl(table)),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => Ok(crate::MySqlStore::ddl(table)),
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(crate::SqliteStore::ddl(table)),
        scheme => Err(Invalid::new(format!(
            "store url has the scheme {scheme:?}: this build has no sql database of that name for the table {table}"
        ))),
    }
}
