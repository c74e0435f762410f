//! Watching the server.

use std::collections::HashSet;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tenure_core::{LeaseName, WakeUp};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use crate::mistake::Mistake;
use crate::names::key_of;
use crate::server::Server;

/// How long a watch needs to be back after its connection was cut.
const RECONNECT: Duration = Duration::from_millis(50);

type Changes = Receiver<(Option<String>, WakeUp)>;

struct Watch {
    server: Arc<Server>,
    key: String,
    changes: Option<Changes>,
    cut_off: bool,
}

pub(crate) fn watch(server: &Arc<Server>, name: &LeaseName) -> BoxStream<'static, WakeUp> {
    let key = key_of(server.mistake, name);
    let subscribe = || Some(server.changes.subscribe());
    let changes = if server.makes(Mistake::SubscribesAtFirstPoll) { None } else { subscribe() };
    server.connections.fetch_add(1, SeqCst);
    if server.makes(Mistake::OneWatcherIsWoken) && !watched(server, &key) {
        return stream::pending().boxed();
    }
    let watch = Watch { server: Arc::clone(server), key, changes, cut_off: false };
    stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) }).boxed()
}

/// Whether this is the first watch of the lease.
fn watched(server: &Arc<Server>, key: &str) -> bool {
    static WATCHED: Mutex<Option<HashSet<(usize, String)>>> = Mutex::new(None);
    let server = Arc::as_ptr(server) as usize;
    WATCHED.lock().unwrap().get_or_insert_default().insert((server, key.to_owned()))
}

impl Watch {
    async fn next(&mut self) -> WakeUp {
        loop {
            let changes = self.changes.get_or_insert_with(|| self.server.changes.subscribe());
            match changes.recv().await {
                Ok((Some(key), woken)) if key == self.key && !self.cut_off => return woken,
                Ok((Some(_), _)) => {}
                Ok((None, _)) => {
                    self.cut_off = self.server.makes(Mistake::SilentAfterCut);
                    sleep(RECONNECT).await;
                    // What happened meanwhile went past this connection.
                    self.changes = Some(self.server.changes.subscribe());
                    if !self.cut_off && !self.server.makes(Mistake::GapIsNotTold) {
                        return WakeUp::Resync;
                    }
                }
                Err(RecvError::Lagged(_)) => return WakeUp::Resync,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.server.makes(Mistake::DroppedWatchKeepsConnection) {
            self.server.connections.fetch_sub(1, SeqCst);
        }
    }
}
