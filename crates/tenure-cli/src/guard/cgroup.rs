//! A control group of the kernel (cgroup v2) around a program: it holds whatever the program starts, wherever that hides, and all
//! in it can be killed in one step. Where none can be had, the tree of processes has to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The group of one program, as a directory of the kernel's.
#[derive(Debug)]
pub(crate) struct Cgroup {
    directory: PathBuf,
}

impl Cgroup {
    /// A new and empty group below the one that this process is in. `None` where that is not allowed, as for most users and in
    /// most containers, or where the kernel is too old to kill a group (before Linux 5.14).
    pub(crate) fn create() -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = own_directory()?.join(format!("tenure-{}-{number}", std::process::id()));
        fs::create_dir(&directory).ok()?;
        let group = Self { directory };
        if !group.file("cgroup.kill").exists() {
            group.remove();
            return None;
        }
        Some(group)
    }

    /// The group that another process has created.
    pub(super) fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Puts this process, and what it will start, into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.file("cgroup.procs"), "0")
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.file("cgroup.kill"), "1")
    }

    /// Takes it away; `false` while there is something in it.
    pub(super) fn remove(&self) -> bool {
        match fs::remove_dir(&self.directory) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The group of this process.
fn own_directory() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    directory_from(&mounts, &own)
}

/// From what the kernel tells of its mounts and of this process's groups.
fn directory_from(mounts: &str, own: &str) -> Option<PathBuf> {
    let of_mount = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split_whitespace().skip(3);
        // Only where it is mounted from its top do the paths of groups mean what they say.
        let is_whole = kind.starts_with("cgroup2 ") && fields.next() == Some("/");
        is_whole.then(|| fields.next().map(PathBuf::from))?
    };
    let mount = mounts.lines().find_map(of_mount)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_either_way_of_mounting() {
        let alone = "24 30 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate";
        let beside = "25 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let own = "4:memory:/x\n0::/user.slice/a.scope\n";
        assert_eq!(directory_from(alone, own), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        assert_eq!(directory_from(beside, "0::/\n"), Some("/sys/fs/cgroup/unified/".into()));
        assert_eq!(directory_from(alone, "4:memory:/x\n"), None, "an old kernel");
        let part = "24 30 0:27 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(directory_from(part, own), None, "paths mean something else here");
    }
}
