#![doc = include_str!("../docs.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod bid;
mod bound;
mod config;
mod endpoints;
mod error;
mod etcd;
mod key;
mod list;
mod probe;
mod receipt;
mod record;
mod spare;
mod store;
mod term;
mod watch;

pub use etcd_client;
pub use store::EtcdStore;
