#![doc = include_str!("../docs.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod config;
mod dialect;
mod error;
mod leases;
mod links;
mod row;
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
pub use sqlx;
pub use store::SqlStore;
pub use table::TableName;

#[cfg(feature = "mysql")]
pub use mysql::{MySql, MySqlStore};
#[cfg(feature = "postgres")]
pub use postgres::{Postgres, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{Sqlite, SqliteStore};
