//! On systems without guards none is ever started.

use std::io;
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;

use super::tree::End;
use crate::guard::Start;

/// The guard of one program; here there is none.
#[derive(Debug)]
pub(crate) enum Guarded {}

impl Guarded {
    pub(crate) fn prepare(_: &Command, _: bool) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn is_there(&self) -> bool {
        match *self {}
    }

    pub(super) fn start(&mut self, _: &Start) -> io::Result<Pid> {
        match *self {}
    }

    pub(super) fn pid(&self) -> Pid {
        match *self {}
    }

    pub(super) fn warden(&self) -> Option<Pid> {
        match *self {}
    }

    pub(super) fn prolong(&mut self, _: Duration) {
        match *self {}
    }

    pub(super) fn end(&mut self) -> (Option<End>, bool) {
        match *self {}
    }
}
