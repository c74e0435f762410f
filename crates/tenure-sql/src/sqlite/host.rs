//! Which boot of which host, and which time namespace, a boot-time clock belongs to.

use tenure_core::StoreErrorKind;

use crate::dialect::Verdict;

/// Where a boot-time clock was read: two readings compare only when both parts are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub boot_id: String,
    pub time_namespace: String,
}

impl Host {
    /// This process's.
    ///
    /// # Errors
    ///
    /// Where the system does not tell: without a boot id a lease of before a reboot would look as if it still ran.
    pub(super) fn detect() -> Result<Self, Verdict> {
        let boot_id = boot_id().map_err(|why| {
            Verdict::new(
                StoreErrorKind::Unsupported,
                format!("this host does not tell which boot it runs ({why}), and leases in a file need it; {HINT}"),
            )
        })?;
        Ok(Self { boot_id, time_namespace: time_namespace() })
    }
}

#[cfg(target_os = "linux")]
const HINT: &str = "mount /proc";
#[cfg(not(target_os = "linux"))]
const HINT: &str = "use another store";

#[cfg(target_os = "linux")]
fn boot_id() -> Result<String, String> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    match std::fs::read_to_string(PATH) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => Err(format!("{PATH} is empty")),
        Err(error) => Err(format!("{PATH}: {}", error.kind())),
    }
}

/// The kernel draws these at boot as Linux does; there is no file to read them from, and no safe system call.
#[cfg(any(target_os = "macos", target_os = "freebsd"))]
fn boot_id() -> Result<String, String> {
    const NAME: &str = if cfg!(target_os = "macos") { "kern.bootsessionuuid" } else { "kern.boot_id" };
    let output = std::process::Command::new("/usr/sbin/sysctl").args(["-n", NAME]).output();
    match output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()) {
        Ok(text) if !text.is_empty() => Ok(text),
        Ok(_) => Err(format!("sysctl {NAME} is unknown")),
        Err(error) => Err(format!("sysctl: {}", error.kind())),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_os = "freebsd")))]
fn boot_id() -> Result<String, String> {
    Err("no clock here is shared by all processes and counts suspend".to_owned())
}

/// The namespace that shifts the boot-time clock; a word of our own where there is no such thing.
fn time_namespace() -> String {
    match std::fs::read_link("/proc/self/ns/time") {
        Ok(link) => link.to_string_lossy().into_owned(),
        Err(_) => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn this_host_tells_its_boot_and_stays_the_same() {
        let host = Host::detect().unwrap();
        assert_eq!(host.boot_id.len(), 36, "{host:?}");
        assert_eq!(Host::detect().unwrap(), host);
    }
}
