//! A wire that can go dead: bytes pass until it is told to hold them.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards connections to one server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    held: Arc<watch::Sender<bool>>,
}

impl Proxy {
    pub(crate) async fn to(host: &str, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let held = Arc::new(watch::Sender::new(false));
        let (gate, upstream) = (held.clone(), (host.to_owned(), port));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (gate, upstream) = (gate.clone(), upstream.clone());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect((upstream.0.as_str(), upstream.1)).await else { return };
                    let (client, server) = (client.into_split(), server.into_split());
                    tokio::join!(
                        forward(client.0, server.1, gate.subscribe()),
                        forward(server.0, client.1, gate.subscribe())
                    );
                });
            }
        });
        Self { address, held }
    }

    /// Holds all bytes, both ways, of old and new connections.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Lets them go.
    pub(crate) fn let_go(&self) {
        self.held.send_replace(false);
    }
}

async fn forward(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut held: watch::Receiver<bool>,
) {
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        if held.wait_for(|held| !held).await.is_err() || to.write_all(&buffer[..n]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
