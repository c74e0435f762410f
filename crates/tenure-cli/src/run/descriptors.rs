//! Inherited file descriptors: the one for the outcome, and all others, which the program must not get.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use anyhow::Context;
use rustix::fs::{OFlags, fcntl_getfl};

/// Keeps every descriptor above 2 from the programs that are started from now on. Those that are opened later are kept
/// from them anyway.
pub(crate) fn keep_to_ourselves() {
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}

/// Where the open descriptor `number` of this process can be opened again.
pub(crate) fn path(number: i32) -> String {
    format!("/dev/fd/{number}")
}

/// Where the line about the outcome goes.
#[derive(Debug)]
pub(crate) struct StatusPipe(Option<File>);

impl StatusPipe {
    /// Takes hold of the open descriptor `number`.
    ///
    /// # Errors
    ///
    /// When it is not open for writing.
    pub(crate) fn open(number: Option<u32>) -> anyhow::Result<Self> {
        let Some(number) = number else { return Ok(Self(None)) };
        let file = duplicate(number).with_context(|| format!("--status-fd {number} cannot be written to"))?;
        Ok(Self(Some(file)))
    }

    /// Writes `line`, and ends what was given.
    pub(crate) fn write(self, line: &str) {
        let Some(mut file) = self.0 else { return };
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::error!(%error, "the outcome cannot be written to --status-fd");
        }
    }
}

/// Another descriptor for what `number` stands for. Opening it by its path does not do for a socket, and for a file
/// starts at the front, so that is the second choice.
fn duplicate(number: u32) -> io::Result<File> {
    let path = format!("/dev/fd/{number}");
    std::fs::metadata(&path)?;
    let file = match of_this_process(number) {
        Some(file) => file,
        None => OpenOptions::new().append(true).open(path)?,
    };
    match fcntl_getfl(&file)? & OFlags::ACCMODE {
        OFlags::RDONLY => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is open for reading only")),
        _ => Ok(file),
    }
}

#[cfg(target_os = "linux")]
fn of_this_process(number: u32) -> Option<File> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let this = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let number = i32::try_from(number).ok()?;
    pidfd_getfd(this, number, PidfdGetfdFlags::empty()).ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
fn of_this_process(_number: u32) -> Option<File> {
    None
}
