//! A gate before the API server, with a certificate authority and bearer tokens of its own, both of which can rotate.

use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{server, user_token, variable};

pub struct Gate {
    pub address: String,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

struct State {
    tls: Arc<ServerConfig>,
    /// The one token that is let through, as the user with the minimal Role.
    token: String,
}

/// A new authority's certificate, and the configuration of a server that it vouches for.
fn authority() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![leaf.der().clone()], private);
    (pem, Arc::new(config.unwrap()))
}

impl Gate {
    /// A gate that lets `token` through, and the certificate of its authority.
    pub async fn open(token: &str) -> (Self, String) {
        let (pem, tls) = authority();
        let state = Arc::new(Mutex::new(State { tls, token: token.to_owned() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (tls, token) = {
                    let state = shared.lock().unwrap();
                    (state.tls.clone(), state.token.clone())
                };
                tokio::spawn(async move { serve(client, tls, token).await });
            }
        });
        (Self { address, state, task }, pem)
    }

    /// From now on only `token` is let through.
    pub fn rotate_token(&self, token: &str) {
        self.state.lock().unwrap().token = token.to_owned();
    }

    /// From now on another authority vouches for the gate: this one.
    pub fn rotate_authority(&self) -> String {
        let (pem, tls) = authority();
        self.state.lock().unwrap().tls = tls;
        pem
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request for each connection, so that none outlives a rotation.
async fn serve(client: TcpStream, tls: Arc<ServerConfig>, token: String) -> Option<()> {
    let mut client = TlsAcceptor::from(tls).accept(client).await.ok()?;
    let mut head = Vec::new();
    let end = loop {
        if client.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
        if let Some(at) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at;
        }
    };
    let (text, body) = (String::from_utf8_lossy(&head[..end]).into_owned(), head.split_off(end + 4));
    let bearer = |token: &str| format!("Bearer {token}");
    if !text.contains(&bearer(&token)) {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","code":401}"#;
        let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{status}", status.len());
        client.write_all(answer.as_bytes()).await.ok()?;
        return client.shutdown().await.ok();
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(variable("TENURE_TEST_KUBERNETES_CA")).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let there = TcpStream::connect(server()).await.ok()?;
    let mut there = TlsConnector::from(Arc::new(config)).connect(name, there).await.ok()?;
    let text = text.replace(&bearer(&token), &bearer(&user_token()));
    there.write_all(format!("{text}\r\nconnection: close\r\n\r\n").as_bytes()).await.ok()?;
    there.write_all(&body).await.ok()?;
    copy_bidirectional(&mut client, &mut there).await.ok().map(drop)
}
