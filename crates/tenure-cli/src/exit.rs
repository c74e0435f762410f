//! The exit codes that scripts rely on.

/// What was asked for is so, or was done.
pub(crate) const YES: u8 = 0;
/// What was asked for is not so: nobody leads, the token is stale.
pub(crate) const NO: u8 = 1;
/// The command line makes no sense, for every subcommand but `run`.
pub(crate) const USAGE: u8 = 2;
/// The store did not tell: neither yes nor no.
pub(crate) const UNSURE: u8 = 3;
/// `run`: leadership was lost, and the program was stopped.
pub(crate) const LOST: u8 = 120;
/// `run`: never led. `watch`: the time was over.
pub(crate) const TIMED_OUT: u8 = 124;
/// `run`: tenure itself failed before the program started, usage errors included.
pub(crate) const FAILED: u8 = 125;
/// `run`: the program cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// `run`: the program was not found.
pub(crate) const NOT_FOUND: u8 = 127;

/// The code that stands for death by `signal`, as in a shell.
pub(crate) fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
