//! What a path must be to hold a database that the processes of one host share.
//!
//! SQLite says "unable to open database file" to all of these: they are looked for before it is asked. The database
//! itself is never opened here: closing it would drop the locks that SQLite holds on it in this process.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tenure_core::{Invalid, StoreErrorKind};

use super::filesystem;
use crate::dialect::Verdict;

/// A path in absolute form, so that a later change of directory means nothing.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Invalid> {
    // The client names a database in memory by a URI.
    let name = path.to_string_lossy();
    if name.is_empty() || name.starts_with(":memory:") || name.starts_with("file:") {
        return Err(Invalid::new(format!(
            "sqlite path {path:?} names no file that candidates can share: write sqlite:///absolute/path.db or \
             sqlite:relative.db; for leases in one process's memory use memory:"
        )));
    }
    let absolute = std::path::absolute(path)
        .map_err(|error| Invalid::new(format!("sqlite path {path:?} cannot be made absolute: {}", error.kind())))?;
    if absolute.to_str().is_none() {
        return Err(Invalid::new(format!("sqlite path {path:?} is not utf-8: sqlite takes no other; rename it")));
    }
    Ok(absolute)
}

/// Creates an empty file, which SQLite takes for an empty database, where there is none.
pub(super) fn create(path: &Path) -> Result<(), Verdict> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(unreachable_file(path).unwrap_or_else(|| {
            Verdict::new(
                StoreErrorKind::Unavailable,
                format!("the database file {path:?} cannot be created: {}", error.kind()),
            )
        })),
    }
}

/// Says why `path` cannot hold the leases; an error when it can tell one.
pub(super) fn check(path: &Path) -> Result<(), Verdict> {
    unreachable_file(path).map_or(Ok(()), Err)
}

fn unreachable_file(path: &Path) -> Option<Verdict> {
    use StoreErrorKind::{Denied, Invalid, Malformed, Unsupported};
    let refuse = |kind, what: String| Some(Verdict::new(kind, what));
    let directory = path.parent().unwrap_or(Path::new("/"));
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => {
            return refuse(Invalid, format!("{directory:?} is not a directory: choose a path in one"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse(
                Invalid,
                format!("the directory {directory:?} does not exist: create it, or choose another path"),
            );
        }
        _ => {}
    }
    if let Some(name) = filesystem::of_other_hosts(directory) {
        return refuse(
            Unsupported,
            format!(
                "{directory:?} lies on {name}, where sqlite's locks do not reach other hosts: choose a path on a local \
                 disk, or another store"
            ),
        );
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            refuse(Invalid, format!("{path:?} is a directory: name a file in it, such as {:?}", path.join("tenure.db")))
        }
        Ok(found) if !found.is_file() => {
            refuse(Invalid, format!("{path:?} is not a regular file: name one, or a path where none is yet"))
        }
        Ok(_) if !may(path, true, true) => refuse(
            Denied,
            format!(
                "the database file {path:?} may not be {} by this user: candidates need both; change its owner or mode, \
                 or choose another path",
                if may(path, true, false) { "written" } else { "read" }
            ),
        ),
        _ if !may(directory, false, true) => refuse(
            Denied,
            format!(
                "the directory {directory:?} may not be written by this user: sqlite keeps its -wal and -shm files \
                 beside the database; change its owner or mode, or choose another path"
            ),
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refuse(
            Denied,
            format!("the path {path:?} may not be entered by this user: change a mode, or choose another"),
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => refuse(
            Malformed,
            format!("the database file {path:?} does not exist: ensure_schema, or tenure schema, creates it"),
        ),
        Err(error) => refuse(
            StoreErrorKind::Unavailable,
            format!("the database file {path:?} cannot be looked at: {}", error.kind()),
        ),
        Ok(_) => None,
    }
}

#[cfg(unix)]
fn may(path: &Path, read: bool, write: bool) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let mut access = Access::EXISTS;
    access.set(Access::READ_OK, read);
    access.set(Access::WRITE_OK, write);
    !matches!(
        accessat(CWD, path, access, AtFlags::EACCESS),
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS | rustix::io::Errno::PERM)
    )
}

#[cfg(not(unix))]
fn may(_: &Path, _: bool, _: bool) -> bool {
    true
}

/// Which file a path leads to: another one after the database was removed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    /// The file that `path` leads to now.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|found| Self(found.dev(), found.ino()))
    }

    /// No identity is told: replacing the database under a running store goes unnoticed.
    #[cfg(not(unix))]
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|_| Self(0, 0))
    }
}
