//! Wake-ups: one subscription per store, shared by all its watches.
//!
//! Whoever takes or frees a lease announces it on the lease's channel, in the same script. The subscription's task
//! lives while somebody watches. It connects again by itself with backoff, asks the server now and then whether it is
//! still there, and wakes every watch once after each gap, the one before the first subscription included.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use futures::{Stream, StreamExt};
use redis::RedisResult;
use redis::aio::{PubSubSink, PubSubStream};
use tenure_core::{LeaseName, Operation, StoreError, StoreErrorKind, WakeUp};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::config::Bounds;
use crate::error::{Call, Failure};
use crate::keys;
use crate::source::Source;

/// Between two questions whether the server is still there: 0.1 commands a second for a whole store.
const PING_EVERY: Duration = Duration::from_secs(10);
/// After the first failure, doubled with each further one and jittered by half.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);
/// Channels in one command: a reconnect with many watches neither floods the server nor waits for each.
const BATCH: usize = 256;

/// Hands out watches, and runs the subscription while there are any.
pub(crate) struct Hub {
    source: Arc<Source>,
    bounds: Bounds,
    state: Arc<State>,
}

/// What the watches and the task share.
#[derive(Default)]
struct State {
    channels: Mutex<Channels>,
    changed: Notify,
}

#[derive(Default)]
struct Channels {
    watched: HashMap<String, Channel>,
    /// The task that runs, by number.
    task: Option<u64>,
    last_id: u64,
}

#[derive(Default)]
struct Channel {
    subscribed: bool,
    watches: HashMap<u64, Arc<Slot>>,
}

/// The wake-up that a watch has not looked at yet.
#[derive(Default)]
struct Slot {
    pending: Mutex<Option<WakeUp>>,
    waker: AtomicWaker,
}

impl Hub {
    pub(crate) fn new(source: Arc<Source>, bounds: Bounds) -> Self {
        Self { source, bounds, state: Arc::default() }
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// A watch of `name`, which hears everything from now on, or of the gap before.
    pub(crate) fn watch(&self, name: &LeaseName) -> Watch {
        let channel = keys::channel_of(name);
        let slot = Arc::new(Slot::default());
        let mut channels = self.state.lock();
        channels.last_id += 1;
        let id = channels.last_id;
        channels.watched.entry(channel.clone()).or_default().watches.insert(id, slot.clone());
        Watch {
            slot,
            seat: Seat { state: self.state.clone(), channel, id },
            start: Some(Start { source: self.source.clone(), bounds: self.bounds }),
        }
    }
}

/// A stream of wake-ups for one lease.
pub(crate) struct Watch {
    slot: Arc<Slot>,
    seat: Seat,
    start: Option<Start>,
}

struct Start {
    source: Arc<Source>,
    bounds: Bounds,
}

/// A watch's place in the shared state, given up when the watch is dropped.
struct Seat {
    state: Arc<State>,
    channel: String,
    id: u64,
}

impl Stream for Watch {
    type Item = WakeUp;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<WakeUp>> {
        // Not when the watch is made: that needs no runtime.
        if let Some(start) = self.start.take() {
            self.seat.state.ensure_task(start);
        }
        self.slot.waker.register(cx.waker());
        self.slot.lock().take().map_or(Poll::Pending, |wake_up| Poll::Ready(Some(wake_up)))
    }
}

impl Slot {
    /// The latest says how things stand, and a gap stays one until somebody has looked.
    fn put(&self, wake_up: WakeUp) {
        let mut pending = self.lock();
        if *pending != Some(WakeUp::Resync) {
            *pending = Some(wake_up);
        }
        drop(pending);
        self.waker.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Option<WakeUp>> {
        // A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut channels = self.state.lock();
        if let Some(channel) = channels.watched.get_mut(&self.channel) {
            channel.watches.remove(&self.id);
        }
        drop(channels);
        self.state.changed.notify_one();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Channels> {
        // A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ensure_task(self: &Arc<Self>, start: Start) {
        let mut channels = self.lock();
        if channels.task.is_none() {
            channels.last_id += 1;
            let id = channels.last_id;
            channels.task = Some(id);
            let task = Task { id, state: self.clone(), source: start.source, bounds: start.bounds };
            tokio::spawn(task.run());
        }
        drop(channels);
        self.changed.notify_one();
    }

    fn wake(&self, channel: &str, wake_up: WakeUp) {
        if let Some(channel) = self.lock().watched.get(channel) {
            channel.wake(wake_up);
        }
    }

    /// The channels to subscribe to and to leave; those that nobody watches any more are forgotten.
    fn due(&self) -> Due {
        let mut channels = self.lock();
        let mut due = Due::default();
        channels.watched.retain(|name, channel| {
            match (channel.watches.is_empty(), channel.subscribed) {
                (true, true) => due.leave.push(name.clone()),
                (false, false) => due.subscribe.push(name.clone()),
                _ => {}
            }
            !channel.watches.is_empty()
        });
        due
    }

    fn subscribed(&self, names: &[String]) {
        let mut channels = self.lock();
        for name in names {
            if let Some(channel) = channels.watched.get_mut(name) {
                channel.subscribed = true;
                channel.wake(WakeUp::Resync);
            }
        }
    }

    /// Ends the task when nobody watches; decided under the lock, so that a new watch finds it running or starts it.
    fn is_over(&self) -> bool {
        let mut channels = self.lock();
        let over = channels.watched.values().all(|channel| channel.watches.is_empty());
        if over {
            channels.watched.clear();
            channels.task = None;
        }
        over
    }
}

impl Channels {
    fn disconnected(&mut self) {
        for channel in self.watched.values_mut() {
            channel.subscribed = false;
        }
    }
}

impl Channel {
    fn wake(&self, wake_up: WakeUp) {
        for slot in self.watches.values() {
            slot.put(wake_up);
        }
    }
}

#[derive(Default)]
struct Due {
    subscribe: Vec<String>,
    leave: Vec<String>,
}

struct Task {
    id: u64,
    state: Arc<State>,
    source: Arc<Source>,
    bounds: Bounds,
}

/// Dropped by its runtime as well: the next watch then starts another task.
impl Drop for Task {
    fn drop(&mut self) {
        let mut channels = self.state.lock();
        if channels.task.take_if(|id| *id == self.id).is_some() {
            channels.disconnected();
        }
    }
}

impl Task {
    async fn run(self) {
        let mut retry = FIRST_RETRY;
        while !self.state.is_over() {
            let began = Instant::now();
            let end = self.listen().await;
            self.state.lock().disconnected();
            let Err(error) = end else { continue };
            // One that held for a while was a good one.
            if began.elapsed() > LAST_RETRY {
                retry = FIRST_RETRY;
            }
            if retry == FIRST_RETRY {
                tracing::warn!(target: "tenure", %error, "the redis subscription ended; waiters poll until it is back");
            } else {
                tracing::debug!(target: "tenure", %error, "no redis subscription yet");
            }
            sleep(retry.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            retry = (retry * 2).min(LAST_RETRY);
        }
    }

    /// Hands wake-ups on until nobody watches (`Ok`) or the subscription is of no use any more.
    async fn listen(&self) -> Result<(), StoreError> {
        let (mut sink, mut messages) = match timeout(self.bounds.call(), self.source.listen()).await {
            Err(_) => return Err(failed(Failure::NotConnected(self.bounds.call()))),
            Ok(Err(error)) => return Err(failed(Failure::Connecting(error))),
            Ok(Ok(connection)) => connection.split(),
        };
        loop {
            self.follow(&mut sink).await?;
            if self.state.is_over() {
                return Ok(());
            }
            self.hear(&mut sink, &mut messages).await?;
        }
    }

    /// Brings the subscriptions in line with the watches.
    async fn follow(&self, sink: &mut PubSubSink) -> Result<(), StoreError> {
        let due = self.state.due();
        for names in due.leave.chunks(BATCH) {
            self.within(sink.unsubscribe(names)).await?;
        }
        for names in due.subscribe.chunks(BATCH) {
            self.within(sink.subscribe(names)).await?;
            self.state.subscribed(names);
        }
        Ok(())
    }

    /// Hands messages on until the watches change.
    async fn hear(&self, sink: &mut PubSubSink, messages: &mut PubSubStream) -> Result<(), StoreError> {
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.state.wake(message.get_channel_name(), said_by(message.get_payload_bytes())),
                    None => return Err(CALL.error(StoreErrorKind::Unavailable, "the server closed the connection")),
                },
                () = self.state.changed.notified() => return Ok(()),
                () = sleep(PING_EVERY) => self.within(sink.ping::<redis::Value>()).await.map(|_| ())?,
            }
        }
    }

    async fn within<T>(&self, request: impl Future<Output = RedisResult<T>>) -> Result<T, StoreError> {
        match timeout(self.bounds.call(), request).await {
            Err(_) => Err(failed(Failure::Unanswered(self.bounds.call()))),
            Ok(answer) => answer.map_err(|error| failed(Failure::Answered(error))),
        }
    }
}

/// What the scripts publish.
fn said_by(payload: &[u8]) -> WakeUp {
    match payload {
        b"granted" => WakeUp::Taken,
        b"released" => WakeUp::Vacated,
        _ => WakeUp::Changed,
    }
}

const CALL: Call<'static> = Call { operation: Operation::Watch, lease: None, repeats: false };

fn failed(failure: Failure) -> StoreError {
    CALL.failed(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_wake_up_stays_and_a_gap_is_not_covered_up() {
        let slot = Slot::default();
        slot.put(WakeUp::Taken);
        slot.put(WakeUp::Vacated);
        assert_eq!(slot.lock().take(), Some(WakeUp::Vacated));
        slot.put(WakeUp::Resync);
        slot.put(WakeUp::Taken);
        assert_eq!(slot.lock().take(), Some(WakeUp::Resync));
        assert_eq!(slot.lock().take(), None);
    }

    #[test]
    fn a_message_of_somebody_else_s_is_a_change() {
        assert_eq!(said_by(b"granted"), WakeUp::Taken);
        assert_eq!(said_by(b"released"), WakeUp::Vacated);
        assert_eq!(said_by(b"look"), WakeUp::Changed);
    }
}
