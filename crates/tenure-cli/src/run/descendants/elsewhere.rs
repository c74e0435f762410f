//! On systems without a subreaper nothing is known of processes outside the program's own group.

use std::collections::HashSet;
use std::io;

use rustix::process::{Pid, Signal};

/// A process below this one; here none is ever found.
pub(crate) struct Descendant {
    /// Its process group.
    pub(crate) group: Option<Pid>,
}

impl Descendant {
    /// Sends `signal`.
    pub(crate) fn signal(&self, _signal: Signal) -> io::Result<()> {
        Ok(())
    }
}

/// Shows nothing.
pub(crate) fn visit(_except: &HashSet<Pid>, _guard: Option<Pid>, _visit: impl FnMut(&Descendant)) {}

/// Not known.
pub(crate) fn children_of_this_process() -> HashSet<Pid> {
    HashSet::new()
}
