//! What the rest of the crate holds of a running campaign: its handle, and what it tells the world.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::clock::{Clock, Moment};
use crate::driver::{Driver, explained};
use crate::election::Shared;
use crate::machine::End;
use crate::tasks::Tasks;
use crate::{ElectionError, FencingToken, Grant, LossReason, Operation, StoreError, StoreErrorKind};

/// A running campaign, and whoever holds it keeps it running: dropping it withdraws the candidate.
pub(crate) struct Campaign {
    handle: Handle,
    receiver: watch::Receiver<Published>,
}

/// The means to follow and to steer a campaign. Does not keep it running.
#[derive(Clone)]
pub(crate) struct Handle {
    commands: mpsc::UnboundedSender<Command>,
    receiver: watch::Receiver<Published>,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
}

/// What a campaign tells the world; `lost()`, `stopping()` and the outcome of calls all derive from it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// The term, once there is one.
    pub(crate) grant: Option<Grant>,
    /// The end of authority as it stands.
    pub(crate) deadline: Moment,
    /// The stop signal, and why.
    pub(crate) stopping: Option<LossReason>,
    /// Authority has ended, and why.
    pub(crate) lost: Option<LossReason>,
    /// The work is to be dropped.
    pub(crate) cut_off: bool,
    pub(crate) end: Option<End>,
    pub(crate) last_error: Option<Arc<StoreError>>,
}

/// What the holder of a campaign asks of it.
pub(crate) enum Command {
    Stop,
    Resign,
    /// The caller's part of the work has ended.
    WorkEnded,
    /// Stop, and there is no work of the caller's any more.
    Withdraw,
}

impl Campaign {
    /// Starts a campaign of a new candidate that bids first after `pause`. `managed` says that the caller runs the work
    /// and reports its end.
    pub(crate) fn start(shared: Arc<Shared>, pause: Duration, managed: bool) -> Self {
        let (commands, receive_commands) = mpsc::unbounded_channel();
        let (publish, receiver) = watch::channel(Published::default());
        let tasks = Tasks::default();
        let handle = Handle { commands, receiver: receiver.clone(), tasks: tasks.clone(), clock: shared.clock.clone() };
        tokio::spawn(Driver::new(shared, pause, managed, receive_commands, publish, tasks).run());
        Self { handle, receiver }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until this candidate leads (`true`) or the campaign is over.
    pub(crate) async fn elected(&mut self) -> bool {
        match self.receiver.wait_for(|published| published.grant.is_some() || published.end.is_some()).await {
            Ok(published) => published.grant.is_some(),
            Err(_) => false,
        }
    }

    /// Waits until the work is to be dropped.
    pub(crate) async fn cut_off(&mut self) {
        // A driver that is gone renews no more: nothing may go on.
        let _ = self.receiver.wait_for(|published| published.cut_off).await;
    }

    /// Waits for the end; `None` when the driver is gone without one.
    pub(crate) async fn ended(&mut self) -> Option<End> {
        self.receiver.wait_for(|published| published.end.is_some()).await.ok()?.end.clone()
    }

    /// Asks for a planned stop: the work is told, the lease kept until it has ended.
    pub(crate) fn stop(&self) {
        self.handle.send(Command::Stop);
    }

    pub(crate) fn work_ended(&self) {
        self.handle.send(Command::WorkEnded);
    }

    pub(crate) fn withdraw(&self) {
        self.handle.send(Command::Withdraw);
    }

    /// The error behind a campaign or a release that failed.
    pub(crate) fn failed(&self, kind: StoreErrorKind) -> ElectionError {
        let known = self.receiver.borrow().last_error.clone().filter(|error| error.kind() == kind);
        ElectionError::Store(known.unwrap_or_else(|| {
            Arc::new(StoreError::new(kind, Operation::Release, "store").with_detail("no answer in time"))
        }))
    }

    /// `reason`, with the error behind it.
    pub(crate) fn explained(&self, reason: LossReason) -> LossReason {
        explained(reason, &self.receiver.borrow().last_error)
    }
}

impl Drop for Campaign {
    fn drop(&mut self) {
        self.withdraw();
    }
}

impl Handle {
    pub(crate) fn published(&self) -> watch::Ref<'_, Published> {
        self.receiver.borrow()
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn resign(&self) {
        self.send(Command::Resign);
    }

    /// Waits until `condition` holds, or the driver is gone.
    pub(crate) async fn wait_for(&self, condition: impl FnMut(&Published) -> bool) {
        let _ = self.receiver.clone().wait_for(condition).await;
    }

    fn send(&self, command: Command) {
        // A driver that has ended needs no command.
        let _ = self.commands.send(command);
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Campaign").field(&self.published().grant).finish()
    }
}

impl Published {
    /// The number of the term. Only handles of an elected campaign ask.
    pub(crate) fn token(&self) -> FencingToken {
        self.grant.as_ref().map_or(FencingToken(0), |grant| grant.token)
    }

    /// What somebody may wait for. A deadline that moves wakes nobody.
    pub(crate) fn stage(&self) -> [bool; 5] {
        [self.grant.is_some(), self.stopping.is_some(), self.lost.is_some(), self.cut_off, self.end.is_some()]
    }
}
