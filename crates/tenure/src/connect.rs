//! From a URL to a store.

use std::sync::Arc;

use tenure_core::{LeaseStore, MemoryStore, Operation, StoreError, StoreErrorKind, StoreUrl};

/// The schemes that Tenure knows, and the feature that each needs.
const SCHEMES: [(&str, &str); 10] = [
    ("sqlite", "sqlite"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("etcd", "etcd"),
    ("etcds", "etcd"),
    ("postgres", "postgres"),
    ("postgresql", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("kubernetes", "kubernetes"),
];

/// Opens the store at `url` and sets it up where that takes nothing but opening it (SQLite).
///
/// `memory:` is a new, empty store with each call.
///
/// # Errors
///
/// [`StoreErrorKind::Invalid`] for a URL that is none, [`StoreErrorKind::Unsupported`] for a scheme that is unknown or
/// whose feature is off (the error names it), and what the store itself reports. The URL's password never shows.
///
/// # Cancel safety
///
/// Dropping it opens nothing that stays open.
pub async fn connect(url: &str) -> Result<Arc<dyn LeaseStore>, StoreError> {
    let url = StoreUrl::parse(url).map_err(|error| invalid("store", error))?;
    match url.scheme() {
        "memory" => {
            url.check_query(&[]).map_err(|error| invalid("memory", error))?;
            Ok(Arc::new(MemoryStore::new()))
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => Ok(Arc::new(tenure_sql::SqliteStore::connect(&url).await?)),
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Ok(Arc::new(tenure_redis::RedisStore::connect(&url).await?)),
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => Ok(Arc::new(tenure_etcd::EtcdStore::connect(&url).await?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(tenure_sql::PostgresStore::connect(&url).await?)),
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => Ok(Arc::new(tenure_sql::MySqlStore::connect(&url).await?)),
        #[cfg(feature = "kubernetes")]
        "kubernetes" => Ok(Arc::new(tenure_kubernetes::KubernetesStore::connect(&url).await?)),
        scheme => Err(unsupported(scheme)),
    }
}

pub(crate) fn invalid(store: &'static str, error: tenure_core::Invalid) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, Operation::Connect, store).with_detail(error.to_string())
}

pub(crate) fn unsupported(scheme: &str) -> StoreError {
    let detail = match SCHEMES.iter().find(|(known, _)| *known == scheme) {
        Some((_, feature)) => {
            format!("this build lacks the scheme {scheme:?}: turn on the feature {feature:?} of the crate tenure")
        }
        None => {
            let known: Vec<_> = SCHEMES.iter().map(|(scheme, _)| *scheme).collect();
            format!("the scheme {scheme:?} is not known; known are memory, {}", known.join(", "))
        }
    };
    StoreError::new(StoreErrorKind::Unsupported, Operation::Connect, "store").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unknown_scheme_is_refused_with_the_known_ones_and_without_the_url() {
        let error = connect("mongodb://user:canary@h/db").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported);
        assert!(
            error.to_string().contains("the scheme \"mongodb\" is not known; known are memory, sqlite, redis"),
            "{error}"
        );
        assert!(!format!("{error} {error:?}").contains("canary"));
    }

    #[tokio::test]
    #[cfg(not(feature = "sqlite"))]
    async fn a_scheme_whose_feature_is_off_names_the_feature() {
        let error = connect("sqlite:///tmp/x.db").await.unwrap_err();
        assert!(error.to_string().contains("turn on the feature \"sqlite\""), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_url_is_refused_without_repeating_it() {
        let error = connect("canary").await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
        assert!(
            error.to_string().contains("store url has no scheme") && !error.to_string().contains("canary"),
            "{error}"
        );
    }
}
