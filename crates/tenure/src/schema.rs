//! What a store needs to be set up with, for those who run it by hand.

use tenure_core::{StoreError, StoreUrl};

use crate::connect::{invalid, unsupported};

/// The statements, or the manifest, that create what the store at `url` needs; `None` when it needs nothing.
///
/// Asks no store: only the URL's scheme and its parameter `table` count.
///
/// # Errors
///
/// [`StoreErrorKind::Invalid`](tenure_core::StoreErrorKind::Invalid) for a URL that is none or names no valid table,
/// [`StoreErrorKind::Unsupported`](tenure_core::StoreErrorKind::Unsupported) for a scheme that is unknown or whose
/// feature is off.
///
/// ```
/// assert_eq!(tenure::schema("memory:")?, None);
/// # Ok::<(), tenure::StoreError>(())
/// ```
pub fn schema(url: &str) -> Result<Option<String>, StoreError> {
    let url = StoreUrl::parse(url).map_err(|error| invalid("store", error))?;
    match url.scheme() {
        "memory" => Ok(None),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(None),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Ok(None),
        #[cfg(feature = "kubernetes")]
        "kubernetes" => Ok(Some(tenure_kubernetes::KubernetesStore::ROLE.to_owned())),
        #[cfg(feature = "sqlite")]
        "sqlite" => table(&url).map(|table| Some(tenure_sql::SqliteStore::ddl(&table))),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => table(&url).map(|table| Some(tenure_sql::PostgresStore::ddl(&table))),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => table(&url).map(|table| Some(tenure_sql::MySqlStore::ddl(&table))),
        scheme => Err(unsupported(scheme)),
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
fn table(url: &StoreUrl) -> Result<tenure_sql::TableName, StoreError> {
    match url.query("table") {
        None => Ok(tenure_sql::TableName::leases()),
        Some(name) => tenure_sql::TableName::new(name).map_err(|error| invalid("store", error)),
    }
}
