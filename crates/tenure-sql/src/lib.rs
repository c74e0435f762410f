#![doc = include_str!("../docs.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without a database nothing of the rest is used.
#![cfg_attr(not(any(feature = "postgres", feature = "mysql", feature = "sqlite")), allow(dead_code))]

mod backoff;
mod config;
mod dialect;
mod error;
mod fence;
mod leases;
mod links;
mod row;
mod schema;
mod store;
mod table;
mod text;
mod watchers;

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod poll;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod tls;

pub use config::SqlConfig;
pub use fence::{Fencing, SqlFence};
pub use schema::schema;
pub use sqlx;
pub use store::SqlStore;
pub use table::TableName;

#[cfg(feature = "mysql")]
pub use mysql::{MySql, MySqlStore};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteStore};

/// Fences writes to PostgreSQL.
#[cfg(feature = "postgres")]
pub type PostgresFence = SqlFence<Postgres>;
/// Fences writes to MySQL and MariaDB.
#[cfg(feature = "mysql")]
pub type MySqlFence = SqlFence<MySql>;
/// Fences writes to SQLite.
#[cfg(feature = "sqlite")]
pub type SqliteFence = SqlFence<Sqlite>;
