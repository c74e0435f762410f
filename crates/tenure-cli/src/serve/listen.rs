//! Where HTTP is served.

use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};

/// An address, or the path of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What is listened on.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("the path of the socket is missing: write unix:/run/tenure.sock".to_owned()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                format!("{text:?} is no address: write 127.0.0.1:4040, [::1]:4040 or unix:/run/tenure.sock")
            }),
        }
    }
}

impl Listen {
    /// Takes the place.
    ///
    /// # Errors
    ///
    /// Says what is taken.
    pub(crate) fn bind(&self) -> anyhow::Result<Listener> {
        match self {
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            Self::Unix(path) => {
                remove_dead(path)?;
                let listener =
                    UnixListener::bind(path).with_context(|| format!("cannot listen on unix:{}", path.display()))?;
                // Whoever may connect may resign.
                fs::set_permissions(path, Permissions::from_mode(0o600))?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(listener))
            }
        }
    }

    /// Takes a socket away that nobody serves any more.
    pub(crate) fn remove(&self) {
        if let Self::Unix(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// A socket that an earlier process left behind is in the way; one that answers is somebody's.
fn remove_dead(path: &Path) -> anyhow::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            bail!("cannot listen on unix:{}: somebody else does", path.display());
        }
        fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_anything_else_refused_with_examples() {
        assert_eq!("127.0.0.1:4040".parse(), Ok(Listen::Tcp("127.0.0.1:4040".parse().unwrap())));
        assert_eq!("unix:/x".parse(), Ok(Listen::Unix("/x".into())));
        for text in ["", "4040", "localhost", "unix:"] {
            assert!(text.parse::<Listen>().unwrap_err().contains("write "), "{text}");
        }
    }
}
