//! The proxies of one candidate: one before each member of the store.

#[path = "../../../crates/tenure-etcd/tests/bench/proxy.rs"]
#[allow(dead_code, unreachable_pub, reason = "the bench of a backend uses the rest")]
mod proxy;

pub(crate) use proxy::{Mode, Proxy};

/// Sets what happens to the bytes of all of them.
pub(crate) fn set(proxies: &[Proxy], mode: Mode) {
    proxies.iter().for_each(|proxy| proxy.set(mode));
}
