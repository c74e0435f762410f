//! Makes sure that exactly one instance of a service runs a piece of work: leader election through a lease in a store
//! that the service already runs.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use tenure::{CancellationToken, Election, Ended};
//!
//! let store = tenure::connect("memory:").await?; // "redis://..", "etcd://..", "postgres://..": a feature each
//! let election = Election::builder("nightly-compaction", store).candidate("worker-7").build()?;
//! let shutdown = CancellationToken::new(); // cancel it when the service stops
//! let ended = election
//!     .run_as_leader(shutdown, |lead| async move {
//!         // Only one candidate is here at any time. Hand the token to everything that is written.
//!         lead.token()
//!     })
//!     .await?;
//! assert!(matches!(ended, Ended::Finished(_)));
//! # Ok(())
//! # }
//! ```
//!
//! The crate has no behaviour of its own: it re-exports [`tenure_core`] and the backends that its features turn on.
//!
//! | feature | URL | store |
//! |---|---|---|
//! | (always) | `memory:` | [`MemoryStore`] |
//! | `sqlite` | `sqlite:///path/file.db` | `SqliteStore` |
//! | `postgres` | `postgres://host/database` | `PostgresStore` |
//! | `mysql` | `mysql://host/database` | `MySqlStore` |
//! | `redis` | `redis://host`, `rediss://host` | `RedisStore` |
//! | `etcd` | `etcd://h1:2379,h2:2379/prefix`, `etcds://..` | `EtcdStore` |
//! | `kubernetes`, with an API version of `k8s-openapi` in the program, or `kubernetes-latest` | `kubernetes://namespace` | `KubernetesStore` |
//!
//! With `metrics` an election counts and times what it does for the recorder of the `metrics` facade that the program installs
//! (before it builds the election): names and meanings are in `docs/metrics.md`.
//!
//! `tls-rustls` and `tls-native` turn TLS on in the backends that are on; without one of them a URL that asks for TLS is
//! refused.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod connect;
mod schema;

pub use connect::connect;
pub use schema::schema;
pub use tenure_core::*;
#[cfg(feature = "etcd")]
#[cfg_attr(docsrs, doc(cfg(feature = "etcd")))]
pub use tenure_etcd::EtcdStore;
#[cfg(feature = "kubernetes")]
#[cfg_attr(docsrs, doc(cfg(feature = "kubernetes")))]
pub use tenure_kubernetes::KubernetesStore;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use tenure_redis::RedisStore;
#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use tenure_sql::MySqlStore;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use tenure_sql::PostgresStore;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use tenure_sql::SqliteStore;
