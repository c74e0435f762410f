//! What can be set: the table, and how long a call may take.

use std::time::Duration;

use tenure_core::{Invalid, StoreUrl};

use crate::TableName;

/// The settings of a SQL store.
///
/// ```
/// use std::time::Duration;
/// use tenure_sql::{SqlConfig, TableName};
///
/// let config = SqlConfig::default().with_table(TableName::new("ops_leases")?).with_timeout(Duration::from_secs(1))?;
/// # Ok::<(), tenure_core::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlConfig {
    table: TableName,
    timeout: Duration,
    transaction_pooling: bool,
}

impl SqlConfig {
    /// A bound under this would cut off healthy calls.
    const MIN_TIMEOUT: Duration = Duration::from_millis(10);
    /// A bound over this would outlast any sensible ttl.
    const MAX_TIMEOUT: Duration = Duration::from_secs(600);

    /// With the leases in `table`; [`TableName::leases`] by default.
    #[must_use]
    pub fn with_table(mut self, table: TableName) -> Self {
        self.table = table;
        self
    }

    /// With a bound of `timeout` on each call, connecting included; 3 s by default, a fifth of the default ttl. Waiting
    /// for a lock in the database ends at half of it, so that the database's own answer comes first.
    ///
    /// # Errors
    ///
    /// [`Invalid`] when it is under 10 ms or over 10 minutes.
    pub fn with_timeout(mut self, timeout: Duration) -> Result<Self, Invalid> {
        if !(Self::MIN_TIMEOUT..=Self::MAX_TIMEOUT).contains(&timeout) {
            return Err(Invalid::new(format!(
                "timeout of {timeout:?} is not allowed: {:?} to {:?}",
                Self::MIN_TIMEOUT,
                Self::MAX_TIMEOUT
            )));
        }
        self.timeout = timeout;
        Ok(self)
    }

    /// For PostgreSQL behind a pooler that gives each transaction another connection, as PgBouncer does in transaction
    /// mode: each statement is put into a transaction of its own, which costs two round trips more, and settings are
    /// made in it. Without a direct connection beside it the store looks for changes once a second.
    #[must_use]
    pub fn with_transaction_pooling(mut self) -> Self {
        self.transaction_pooling = true;
        self
    }

    /// Whether there is a pooler in transaction mode in between.
    pub fn transaction_pooling(&self) -> bool {
        self.transaction_pooling
    }

    /// The table that holds the leases.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// The bound on one call.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long a statement waits for a lock.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.timeout / 2
    }

    /// The settings in the query of `url`: `table` and `timeout`.
    pub(crate) fn from_url(url: &StoreUrl) -> Result<Self, Invalid> {
        let mut config = Self::default();
        if let Some(table) = url.query("table") {
            config = config.with_table(TableName::new(table)?);
        }
        if let Some(text) = url.query("timeout") {
            let timeout = humantime::parse_duration(text).map_err(|_| {
                Invalid::new(format!("store url has the timeout {text:?}: a duration such as 1500ms or 3s is expected"))
            })?;
            config = config.with_timeout(timeout)?;
        }
        Ok(config)
    }
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self { table: TableName::leases(), timeout: Duration::from_secs(3), transaction_pooling: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_a_url_are_parsed_and_bounded() {
        let config = |text: &str| SqlConfig::from_url(&text.parse().unwrap()).map_err(|error| error.to_string());
        let set = config("sqlite:x.db?table=ops.t&timeout=250ms").unwrap();
        assert_eq!((set.table().to_string().as_str(), set.timeout()), ("ops.t", Duration::from_millis(250)));
        assert_eq!(config("sqlite:x.db"), Ok(SqlConfig::default()));
        assert_eq!(config("sqlite:x.db?timeout=1ms").unwrap_err(), "timeout of 1ms is not allowed: 10ms to 600s");
        assert_eq!(
            config("sqlite:x.db?timeout=soon").unwrap_err(),
            "store url has the timeout \"soon\": a duration such as 1500ms or 3s is expected"
        );
    }
}
