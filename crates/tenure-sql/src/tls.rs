//! When a connection may be in plain text.

use std::net::IpAddr;

use tenure_core::Invalid;

/// Whether what is sent to `host` does not leave this host: a loopback address, its name, or the path of a socket.
pub(crate) fn stays_on_this_host(host: &str) -> bool {
    host == "localhost" || host.starts_with('/') || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Refuses to go on where encryption is asked for, or is the default, and this build has none.
pub(crate) fn check_built_in(plain: &str) -> Result<(), Invalid> {
    if cfg!(any(feature = "tls-rustls", feature = "tls-native")) {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "this build has no tls, which is the default for other hosts: turn on the feature tls-rustls or tls-native, or \
         say {plain} for plain text"
    )))
}

/// The refusal of an `sslmode` that is not known, or may fall back to plain text in silence.
pub(crate) fn refuse_mode(mode: &str) -> Invalid {
    Invalid::new(format!(
        "store url has sslmode={mode:?}: verify-full, verify-ca, require or disable is expected; what may fall back to \
         plain text in silence is not offered"
    ))
}
