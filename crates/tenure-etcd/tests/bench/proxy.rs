//! A TCP proxy that goes silent, cuts, loses and delays; and ports at which nothing is heard.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// What happens to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They pass.
    Pass,
    /// They wait until this is over; connections stay open.
    Silent,
    /// Standing connections are cut, and new ones closed at once.
    Cut,
    /// Requests are lost; a connection that lost some is cut when this is over.
    LoseRequests,
    /// Answers are lost, likewise.
    LoseAnswers,
    /// Requests come later.
    DelayRequests(Duration),
    /// Answers come later.
    DelayAnswers(Duration),
    /// Of so many chunks of requests one is passed on and never answered: its connection is cut right behind it.
    CutEvery(u32),
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Request,
    Answer,
}

pub struct Proxy {
    pub address: String,
    server: watch::Sender<String>,
    mode: watch::Sender<Mode>,
    /// Connections below this number are silent for ever.
    dead_below: watch::Sender<usize>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (mode, _) = watch::channel(Mode::Pass);
        let (dead_below, _) = watch::channel(0);
        let (accepted, open) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (server, target) = watch::channel(server.to_owned());
        let (modes, dead) = (mode.clone(), dead_below.clone());
        let (count, standing) = (accepted.clone(), open.clone());
        let requests = Arc::<AtomicU32>::default();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = State {
                    number: count.fetch_add(1, Ordering::SeqCst),
                    mode: modes.subscribe(),
                    dead_below: dead.subscribe(),
                    lost_some: Arc::default(),
                    requests: requests.clone(),
                };
                let (server, standing) = (target.borrow().clone(), standing.clone());
                tokio::spawn(async move {
                    standing.fetch_add(1, Ordering::SeqCst);
                    carry(client, server, state).await;
                    standing.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, server, mode, dead_below, accepted, open, task }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Sends connections that come from now on to another server.
    pub fn turn_to(&self, server: &str) {
        self.server.send_replace(server.to_owned());
    }

    /// Silences every connection that stands now for good; new ones pass.
    pub fn kill_standing(&self) {
        self.dead_below.send_replace(self.accepted());
    }

    /// How many connections came so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// How many stand now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct State {
    number: usize,
    mode: watch::Receiver<Mode>,
    dead_below: watch::Receiver<usize>,
    lost_some: Arc<AtomicBool>,
    /// Chunks of requests of all connections so far.
    requests: Arc<AtomicU32>,
}

impl State {
    fn now(&self) -> Mode {
        if self.number < *self.dead_below.borrow() { Mode::Silent } else { *self.mode.borrow() }
    }

    async fn until(&mut self, wanted: impl Fn(&Self) -> bool) {
        while !wanted(self) {
            let changed = tokio::select! {
                changed = self.mode.changed() => changed,
                changed = self.dead_below.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        match self.now() {
            Mode::Cut => true,
            Mode::LoseRequests | Mode::LoseAnswers => false,
            _ => self.lost_some.load(Ordering::SeqCst),
        }
    }
}

async fn carry(client: TcpStream, server: String, mut state: State) {
    if state.now() == Mode::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pump(Way::Request, from_client, to_server, state.clone()) => {}
        () = pump(Way::Answer, from_server, to_client, state.clone()) => {}
        () = state.until(State::is_over) => {}
    }
}

/// Carries bytes one way; each chunk leaves when its time has come, in order. Ends at the end of either side, and behind a chunk
/// that is to be the last.
async fn pump(way: Way, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, mut state: State) {
    let (queue, mut due) = mpsc::unbounded_channel::<(Instant, Vec<u8>, bool)>();
    let mut read = pin!(async move {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(n @ 1..) = from.read(&mut bytes).await {
            state.until(|state| state.now() != Mode::Silent).await;
            let delay = match (state.now(), way) {
                (Mode::LoseRequests, Way::Request) | (Mode::LoseAnswers, Way::Answer) => {
                    state.lost_some.store(true, Ordering::SeqCst);
                    continue;
                }
                (Mode::DelayRequests(delay), Way::Request) | (Mode::DelayAnswers(delay), Way::Answer) => delay,
                _ => Duration::ZERO,
            };
            let last = match (state.now(), way) {
                (Mode::CutEvery(n), Way::Request) => state.requests.fetch_add(1, Ordering::SeqCst) % n == n - 1,
                _ => false,
            };
            if queue.send((Instant::now() + delay, bytes[..n].to_vec(), last)).is_err() {
                return;
            }
        }
    });
    let mut write = pin!(async move {
        while let Some((at, bytes, last)) = due.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() || last {
                return;
            }
        }
    });
    tokio::select! {
        () = &mut write => {}
        () = &mut read => write.await,
    }
}

/// An address at which SYNs are dropped: its queue of connections is full, and nobody takes any.
pub struct DeafPort {
    pub address: SocketAddr,
    _listener: TcpListener,
    _fillers: Vec<JoinHandle<()>>,
}

impl DeafPort {
    pub async fn open() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let fill = || {
            tokio::spawn(async move {
                let _filler = TcpStream::connect(address).await;
                std::future::pending::<()>().await;
            })
        };
        let fillers = (0..4).map(|_| fill()).collect();
        let deaf = Self { address, _listener: listener, _fillers: fillers };
        // Full once a connection no longer comes about at once.
        while tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await.is_ok() {}
        deaf
    }
}

/// An address at which nobody listens.
pub async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
