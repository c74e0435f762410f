//! A wire on which bytes are held, lost and late.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// What happens to bytes that arrive now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wire {
    /// They wait until this is over.
    pub(crate) held: bool,
    /// Those of the client are lost, and so is all that follows them on the same connection.
    pub(crate) requests_lost: bool,
    /// What the server says to a statement is lost, and so is all that follows it on the same connection. Connecting
    /// works: the statement is executed.
    pub(crate) replies_lost: bool,
    /// Those of the client come later.
    pub(crate) request_delay: Duration,
    /// Those of the server come later.
    pub(crate) reply_delay: Duration,
}

/// What the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Postgres,
    MySql,
}

impl Protocol {
    /// Whether `bytes`, as a client writes them at once, execute a statement that was prepared.
    fn executes(self, bytes: &[u8]) -> bool {
        match self {
            // Bind.
            Self::Postgres => bytes.first() == Some(&b'B'),
            // COM_STMT_EXECUTE, after three bytes of length and a sequence number that begins anew.
            Self::MySql => bytes.get(3..5) == Some(&[0, 0x17]),
        }
    }
}

/// Forwards connections to one server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    wire: Arc<watch::Sender<Wire>>,
}

#[derive(Clone, Copy)]
enum Way {
    Request,
    Reply,
}

impl Proxy {
    pub(crate) async fn to(protocol: Protocol, host: &str, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Arc::new(watch::Sender::new(Wire::default()));
        let (state, host) = (wire.clone(), host.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (state, host) = (state.clone(), host.clone());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect((host.as_str(), port)).await else { return };
                    let ((client_in, client_out), (server_in, server_out)) = (client.into_split(), server.into_split());
                    let unanswered = Arc::<AtomicBool>::default();
                    let pump = |way| Pump { way, protocol, wire: state.subscribe(), unanswered: unanswered.clone() };
                    // Requests under way reach the server even when the client has gone.
                    tokio::join!(
                        pump(Way::Request).forward(client_in, server_out),
                        pump(Way::Reply).forward(server_in, client_out)
                    );
                });
            }
        });
        Self { address, wire }
    }

    pub(crate) fn set(&self, wire: Wire) {
        self.wire.send_replace(wire);
    }

    /// Holds all bytes, both ways, of old and new connections.
    pub(crate) fn hold(&self) {
        self.set(Wire { held: true, ..Wire::default() });
    }

    /// Lets everything pass again.
    pub(crate) fn let_go(&self) {
        self.set(Wire::default());
    }
}

struct Pump {
    way: Way,
    protocol: Protocol,
    wire: watch::Receiver<Wire>,
    /// Whether the connection's replies are lost from here on.
    unanswered: Arc<AtomicBool>,
}

impl Pump {
    async fn forward(mut self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin) {
        let (queue, mut due) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
        let read = async move {
            let (mut buffer, mut broken) = ([0; 8192], false);
            while let Ok(n @ 1..) = from.read(&mut buffer).await {
                let Ok(now) = self.wire.wait_for(|wire| !wire.held).await.map(|now| *now) else { return };
                broken |= self.loses(now, &buffer[..n]);
                let delay = match self.way {
                    Way::Request => now.request_delay,
                    Way::Reply => now.reply_delay,
                };
                if !broken && queue.send((Instant::now() + delay, buffer[..n].to_vec())).is_err() {
                    return;
                }
            }
        };
        let write = async move {
            while let Some((at, bytes)) = due.recv().await {
                sleep_until(at).await;
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            let _ = to.shutdown().await;
        };
        tokio::join!(read, write);
    }

    fn loses(&self, now: Wire, bytes: &[u8]) -> bool {
        match self.way {
            Way::Request => {
                if now.replies_lost && self.protocol.executes(bytes) {
                    self.unanswered.store(true, Ordering::SeqCst);
                }
                now.requests_lost
            }
            Way::Reply => self.unanswered.load(Ordering::SeqCst),
        }
    }
}
