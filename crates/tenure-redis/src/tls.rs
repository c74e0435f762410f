//! The certificates of a `rediss://` URL.
//!
//! The only place that knows which TLS features are on.

use redis::cluster::ClusterClientBuilder;
use redis::sentinel::SentinelClientBuilder;
use redis::{Client, ConnectionAddr, ConnectionInfo, RedisResult, TlsMode};
use tenure_core::Invalid;

use crate::config::TlsFiles;

/// How to speak TLS, the certificates read.
pub(crate) struct Tls {
    #[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
    certificates: Option<redis::TlsCertificates>,
}

impl Tls {
    /// Reads `files`.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the file that cannot be read, or the feature that is off.
    #[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, Invalid> {
        choose_provider();
        let read = |what: &str, path: &str| {
            std::fs::read(path).map_err(|error| {
                Invalid::new(format!("redis url parameter {what}: cannot read {path:?}: {}", error.kind()))
            })
        };
        let root_cert = files.ca.as_deref().map(|path| read("ca", path)).transpose()?;
        let client_tls = match &files.client {
            None => None,
            Some((cert, key)) => {
                Some(redis::ClientTlsConfig { client_cert: read("cert", cert)?, client_key: read("key", key)? })
            }
        };
        let given = root_cert.is_some() || client_tls.is_some();
        Ok(Self { certificates: given.then_some(redis::TlsCertificates { client_tls, root_cert }) })
    }

    #[cfg(not(any(feature = "tls-rustls", feature = "tls-native")))]
    pub(crate) fn read(_: &TlsFiles) -> Result<Self, Invalid> {
        Err(Invalid::new("rediss:// needs tls: turn on the feature tls-rustls or tls-native of tenure-redis"))
    }

    pub(crate) fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        #[cfg(any(feature = "tls-rustls", feature = "tls-native"))]
        if let Some(certificates) = &self.certificates {
            return Client::build_with_tls(info, certificates.clone());
        }
        Client::open(info)
    }

    /// The addresses of the sentinels come with TLS already.
    pub(crate) fn sentinel(&self, builder: SentinelClientBuilder) -> RedisResult<SentinelClientBuilder> {
        let builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
        #[cfg(feature = "tls-rustls")]
        if let Some(certificates) = &self.certificates {
            return Ok(builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone()));
        }
        self.refuse_certificates()?;
        Ok(builder)
    }

    /// The addresses of the nodes come with TLS already.
    pub(crate) fn cluster(&self, builder: ClusterClientBuilder) -> RedisResult<ClusterClientBuilder> {
        #[cfg(feature = "tls-rustls")]
        if let Some(certificates) = &self.certificates {
            return Ok(builder.certs(certificates.clone()));
        }
        self.refuse_certificates()?;
        Ok(builder)
    }

    /// The client takes certificates for discovered nodes with rustls only.
    fn refuse_certificates(&self) -> RedisResult<()> {
        #[cfg(all(feature = "tls-native", not(feature = "tls-rustls")))]
        if self.certificates.is_some() {
            return Err((
                redis::ErrorKind::InvalidClientConfig,
                "ca, cert and key with sentinel or cluster need the feature tls-rustls",
            )
                .into());
        }
        Ok(())
    }
}

/// `host:port`, spoken to with TLS or without.
pub(crate) fn address(host: &str, port: u16, tls: bool) -> ConnectionAddr {
    if tls {
        ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure: false, tls_params: None }
    } else {
        ConnectionAddr::Tcp(host.to_owned(), port)
    }
}

/// rustls panics when it is used while no crypto provider is chosen and more than one is compiled in.
#[cfg(feature = "tls-rustls")]
fn choose_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that somebody else chose one meanwhile.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

#[cfg(all(feature = "tls-native", not(feature = "tls-rustls")))]
fn choose_provider() {}
