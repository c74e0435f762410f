//! The log on stderr.
//!
//! Lines are handed to a thread that writes them, since a reader of stderr who does not read must not delay a deadline.
//! The thread starts with the first line: a run that has nothing to say pays for none.

use std::env;
use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Format, Global};
use crate::secrets::Secrets;

static WRITER: OnceLock<NonBlocking> = OnceLock::new();
static FLUSH: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Starts logging as asked.
pub(crate) fn start(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, 0) => LevelFilter::ERROR,
        (_, 0) => LevelFilter::WARN,
        (_, 1) => LevelFilter::INFO,
        (_, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Clients of stores may log what they send; only what Tenure says itself is known to hold no secret.
    let ours = Targets::new().with_target("tenure", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(ours);
    // A second start, which tests of the library might cause, changes nothing.
    let _ = match global.log_format {
        Format::Text => registry.with(lines.with_target(level > Level::INFO).with_ansi(in_colour())).try_init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
}

/// Writes out what was logged, unless nobody reads it: then it is given up after a second.
pub(crate) fn finish() {
    drop(FLUSH.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Says why the command failed: as a line like any program's, or as a line of the log for programs.
pub(crate) fn failure(global: &Global, error: &anyhow::Error) {
    let text = Secrets::of_this_process().hide_in(&format!("{error:#}"));
    match global.log_format {
        Format::Json => tracing::error!(target: "tenure", "{text}"),
        // A closed stderr is nobody's concern here.
        Format::Text => drop(writeln!(stderr(), "tenure: {text}")),
    }
}

fn writer() -> NonBlocking {
    let writer = WRITER.get_or_init(|| {
        let (writer, guard) = tracing_appender::non_blocking(stderr());
        *FLUSH.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
        writer
    });
    writer.clone()
}

/// On a terminal, unless the user wants none (<https://no-color.org>) or the terminal has none.
fn in_colour() -> bool {
    let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wanted && env::var_os("TERM").is_none_or(|term| term != "dumb") && stderr().is_terminal()
}
