//! Parsing the command line, and refusing it without giving a secret away.

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use crate::args::Args;
use crate::exit;
use crate::secrets::Secrets;

/// Parses the command line.
///
/// # Errors
///
/// The exit code, once the message has been printed: help and version to stdout, a refusal to stderr.
pub(crate) fn parse() -> Result<Args, u8> {
    let line: Vec<OsString> = std::env::args_os().collect();
    Args::try_parse_from(&line).map_err(|error| {
        let plain = error.render().to_string();
        let shown = Secrets::of_this_process().hide_in(&plain);
        if shown == plain {
            // In colour on a terminal; nothing can be done about a stream that is closed.
            let _ = error.print();
        } else {
            let _ = std::io::stderr().write_all(shown.as_bytes());
        }
        if error.use_stderr() { usage_code(&line) } else { exit::YES }
    })
}

/// The exit code of a usage error: `run` leaves the small codes to the program that it runs.
fn usage_code(line: &[OsString]) -> u8 {
    const WITH_VALUE: [&str; 6] = ["--store", "--store-file", "--name", "--output", "-o", "--log-format"];
    let mut words = line.iter().skip(1);
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        if WITH_VALUE.contains(&word.as_ref()) {
            words.next();
        } else if !word.starts_with('-') {
            return if word == "run" { exit::FAILED } else { exit::USAGE };
        }
    }
    exit::USAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> u8 {
        usage_code(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_run_leaves_the_small_codes_alone() {
        assert_eq!(code("tenure run -E 300 x"), exit::FAILED);
        assert_eq!(code("tenure --name n -v run"), exit::FAILED);
        assert_eq!(code("tenure --name run status"), exit::USAGE);
        assert_eq!(code("tenure --name=n status run"), exit::USAGE);
        assert_eq!(code("tenure"), exit::USAGE);
    }
}
