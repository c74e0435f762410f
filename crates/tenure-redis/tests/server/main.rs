//! The store on real servers: what the conformance suite cannot know of Redis, and each trap of its client.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod cluster;
mod durability;
mod leases;
mod own_client;
mod permissions;
mod private;
#[allow(dead_code, reason = "the conformance suite uses the other part")]
mod proxy;
mod sentinel;
#[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
mod tls;
mod traps;
mod watch;
