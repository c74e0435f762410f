//! SQLite as the candidates of one host meet it: files, processes, locks, drops, wake-ups.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod batches;
mod bench;
mod drops;
mod fences;
mod files;
mod locks;
mod processes;
mod watches;
