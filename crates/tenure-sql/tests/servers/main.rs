//! What only real servers show. The tests are run by `integration/test.sh`, which starts the servers and says where they
//! are; asked for without that, they fail.

#![cfg(all(feature = "postgres", feature = "mysql"))]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod batches;
mod bench;
mod fences;
mod my_bench;
mod mysql;
mod openings;
mod pgbouncer;
mod postgres;
mod postgres_watch;
mod proxy;
