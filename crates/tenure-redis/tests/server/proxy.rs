//! A TCP proxy that loses, delays and silences connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// What happens to data in one direction.
#[derive(Clone, Copy, Default)]
pub(crate) enum Fate {
    #[default]
    Pass,
    /// Lost, and with it all that comes after on the same connection: a stream has no holes.
    Lose,
    Delay(Duration),
    /// Sent once more after this time, on a connection of its own.
    Repeat(Duration),
}

#[derive(Clone, Copy, Default)]
struct Weather {
    /// Connections up to this number carry nothing any more, and stay open.
    silent_up_to: usize,
    /// Connections up to this number are closed.
    cut_up_to: usize,
    requests: Fate,
    answers: Fate,
    /// Fates await a connection only once it has carried a script.
    spares_handshakes: bool,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (weather, seen) = watch::channel(Weather::default());
        let accepted = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(AtomicUsize::new(0));
        let (count, carried) = (accepted.clone(), open.clone());
        let task = tokio::spawn(async move {
            loop {
                let (inbound, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let (seen, carried) = (seen.clone(), carried.clone());
                tokio::spawn(async move {
                    carried.fetch_add(1, Ordering::SeqCst);
                    carry(inbound, target, number, seen).await;
                    carried.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, weather, accepted, open, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// What happens to requests and to answers from now on.
    pub(crate) fn decree(&self, requests: Fate, answers: Fate) {
        self.weather.send_modify(|weather| (weather.requests, weather.answers) = (requests, answers));
    }

    /// From now on a connection can be opened whatever the weather.
    pub(crate) fn spare_handshakes(&self) {
        self.weather.send_modify(|weather| weather.spares_handshakes = true);
    }

    /// Every connection there is stays open and carries nothing any more; new ones work.
    pub(crate) fn silence(&self) {
        self.weather.send_modify(|weather| weather.silent_up_to = self.accepted());
    }

    /// No connection carries anything, now and later.
    pub(crate) fn silence_for_ever(&self) {
        self.weather.send_modify(|weather| weather.silent_up_to = usize::MAX);
    }

    /// Every connection there is is closed; new ones work.
    pub(crate) fn cut(&self) {
        self.weather.send_modify(|weather| weather.cut_up_to = self.accepted());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(inbound: TcpStream, target: SocketAddr, number: usize, mut weather: watch::Receiver<Weather>) {
    let Ok(outbound) = TcpStream::connect(target).await else { return };
    let (in_read, in_write) = inbound.into_split();
    let (out_read, out_write) = outbound.into_split();
    let way = Way { number, target, weather: weather.clone(), scripted: Arc::default() };
    let requests = way.clone().pump(in_read, out_write, true);
    let answers = way.pump(out_read, in_write, false);
    tokio::select! {
        _ = weather.wait_for(|weather| number <= weather.cut_up_to) => {}
        () = requests => {}
        () = answers => {}
    }
}

/// One connection.
#[derive(Clone)]
struct Way {
    number: usize,
    target: SocketAddr,
    weather: watch::Receiver<Weather>,
    /// Whether it has carried a script.
    scripted: Arc<AtomicBool>,
}

impl Way {
    async fn pump(mut self, mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, out: bool) {
        let mut buffer = vec![0; 16 * 1024];
        let mut lost = false;
        loop {
            let Ok(length @ 1..) = from.read(&mut buffer).await else { return };
            let data = &buffer[..length];
            if out && data.windows(4).any(|word| word == b"EVAL") {
                self.scripted.store(true, Ordering::SeqCst);
            }
            match self.fate(out) {
                Fate::Pass => {}
                Fate::Lose => lost = true,
                Fate::Delay(delay) => sleep(delay).await,
                Fate::Repeat(delay) => drop(tokio::spawn(repeat(self.target, data.to_vec(), delay))),
            }
            if lost {
                continue;
            }
            let _ = self.weather.wait_for(|weather| self.number > weather.silent_up_to).await;
            if to.write_all(data).await.is_err() {
                return;
            }
        }
    }

    fn fate(&self, out: bool) -> Fate {
        let weather = self.weather.borrow();
        match (weather.spares_handshakes && !self.scripted.load(Ordering::SeqCst), out) {
            (true, _) => Fate::Pass,
            (false, true) => weather.requests,
            (false, false) => weather.answers,
        }
    }
}

async fn repeat(target: SocketAddr, data: Vec<u8>, delay: Duration) {
    sleep(delay).await;
    let mut connection = TcpStream::connect(target).await.unwrap();
    connection.write_all(&data).await.unwrap();
    let _ = connection.read(&mut [0; 1024]).await;
}
