//! Which file systems are shared with other kernels, where SQLite's locks and its shared memory do not work.

use std::path::Path;

/// The name of the file system that `directory` lies on, when other hosts, or a host outside this virtual machine, may
/// have it mounted too. `None` for a local one, and where it cannot be told.
#[cfg(target_os = "linux")]
pub(super) fn of_other_hosts(directory: &Path) -> Option<String> {
    // The numbers are the kernel's (linux/magic.h, and the file systems' own sources); some are signed in `statfs`.
    const NETWORK: [(u32, &str); 14] = [
        (0x6969, "nfs"),
        (0xff53_4d42, "cifs"),
        (0xfe53_4d42, "smb"),
        (0x517b, "smb"),
        (0x0102_1997, "9p"),
        (0x00c3_6400, "ceph"),
        (0x5346_414f, "afs"),
        (0x7375_7245, "coda"),
        (0x0bd0_0bd0, "lustre"),
        (0x4750_4653, "gpfs"),
        (0x1983_0326, "beegfs"),
        (0x0116_1970, "gfs2"),
        (0x7461_636f, "ocfs2"),
        (0x786f_4256, "vboxsf"),
    ];
    const FUSE: u32 = 0x6573_5546;
    let found = rustix::fs::statfs(directory).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the magic number is 32 bits wide")]
    let magic = found.f_type as u32;
    if magic == FUSE {
        // virtiofs has FUSE's number: only the mount table tells them apart.
        let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let name = mounted(&table, &device(directory)?)?;
        return network_fuse(&name).then_some(name);
    }
    NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned())
}

#[cfg(target_os = "linux")]
fn device(directory: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(directory).ok()?.dev();
    Some(format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device)))
}

/// The type of the file system on `device` in a mount table (proc(5), "mountinfo": the third field is the device, the
/// type comes after a lone hyphen).
#[cfg(target_os = "linux")]
fn mounted(table: &str, device: &str) -> Option<String> {
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

/// FUSE carries local file systems too (ntfs, an encrypted or overlaid directory): only these are known to be shared.
#[cfg(target_os = "linux")]
fn network_fuse(name: &str) -> bool {
    const SHARED: [&str; 12] = [
        "sshfs",
        "glusterfs",
        "s3fs",
        "gcsfuse",
        "rclone",
        "juicefs",
        "mfs",
        "ceph",
        "grpcfuse",
        "cvmfs2",
        "davfs",
        "vmhgfs-fuse",
    ];
    name == "virtiofs" || name.strip_prefix("fuse.").is_some_and(|name| SHARED.contains(&name))
}

#[cfg(target_os = "macos")]
pub fn of_other_hosts(directory: &Path) -> Option<String> {
    /// `MNT_LOCAL` of sys/mount.h.
    const LOCAL: u32 = 0x1000;
    let found = rustix::fs::statfs(directory).ok()?;
    (found.f_flags & LOCAL == 0).then(|| "a network file system".to_owned())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn of_other_hosts(_: &Path) -> Option<String> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
35 22 0:31 / /mnt/share rw,relatime shared:2 master:1 - virtiofs share rw
36 22 0:32 / /mnt/remote rw,nosuid - fuse.sshfs me@host:/ rw,user_id=0
37 22 0:33 / /mnt/stick rw - fuseblk /dev/sdb1 rw
";

    #[test]
    fn virtiofs_and_network_fuse_are_told_from_local_fuse() {
        let shared = |device| mounted(TABLE, device).is_some_and(|name| network_fuse(&name));
        assert!(shared("0:31") && shared("0:32"));
        assert!(!shared("0:33") && !shared("8:1") && !shared("9:9"));
    }

    #[test]
    fn a_local_directory_is_not_refused() {
        assert_eq!(of_other_hosts(Path::new("/dev/shm")), None);
    }
}
