//! Leader election on Redis: a [`LeaseStore`](tenure_core::LeaseStore) on one server, behind Sentinel, or on a cluster.
//!
#![doc = include_str!("../docs.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod error;
mod fence;
mod keys;
mod link;
mod list;
mod open;
mod record;
mod renew;
mod script;
mod seen;
mod source;
mod store;
mod survey;
mod tls;
mod watch;

pub use config::Bounds;
pub use fence::{FENCE_GUARD, fenced_script};
pub use redis;
pub use store::RedisStore;
