//! Another wall clock for a child process, by libfaketime.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::process::Command;

use crate::Unable;

/// Where Debian and its relatives put the library, per architecture.
const ROOTS: [&str; 2] = ["/usr/lib", "/usr/local/lib"];
const LIBRARY: &str = "faketime/libfaketime.so.1";

/// How far a child's clock may be from where it shall be, in seconds: a start takes time, and nothing here is exact.
const NEAR: i64 = 300;

/// Makes the wall clock of `command` run so many seconds ahead, its monotonic clocks unchanged.
pub(super) fn shift(command: &mut Command, seconds: i64) -> Result<(), Unable> {
    let library = library().ok_or_else(|| {
        Unable::lacks(
            "no libfaketime found to shift a process's wall clock: install it, or set TENURE_FAKETIME to its path",
        )
    })?;
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", format!("{seconds:+}s"))
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    Ok(())
}

/// Sees that the child's wall clock is where it shall be: a shift that does nothing would prove nothing.
pub(super) fn verify(hello: &Value, seconds: i64) -> Result<(), Unable> {
    let there = hello["unix_time"].as_i64().ok_or_else(|| Unable::failed("the child process told no time"))?;
    let off = there - (unix_time() + seconds);
    if off.abs() > NEAR {
        return Err(Unable::failed(format!("the child's wall clock is {off} s from where it shall be")));
    }
    Ok(())
}

pub(super) fn unix_time() -> i64 {
    let since = |t: SystemTime| t.duration_since(UNIX_EPOCH).map(|d| d.as_secs()).ok();
    since(SystemTime::now()).and_then(|s| i64::try_from(s).ok()).unwrap_or(0)
}

fn library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("TENURE_FAKETIME") {
        return Some(path.into());
    }
    let directly = ROOTS.iter().map(|root| Path::new(root).join(LIBRARY));
    let per_architecture = ROOTS.iter().flat_map(|root| {
        std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path().join(LIBRARY))
    });
    directly.chain(per_architecture).find(|path| path.exists())
}
