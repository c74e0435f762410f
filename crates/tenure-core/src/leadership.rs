//! What a leader holds: authority that ends, and says so.

use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::campaign::{Campaign, Handle};
use crate::clock::Moment;
use crate::machine::Release;
use crate::{ElectionError, FencingToken, LossReason};

/// Leadership of one term: a deadline, a fencing token, and in the end the reason why it was lost.
///
/// One that came from [`Election::campaign`](crate::Election::campaign) gives the lease up when it is dropped: its tasks
/// are cut off, then the lease is released in the background. In
/// [`run_as_leader`](crate::Election::run_as_leader) the term lasts as long as the work's future, and dropping the handle
/// does nothing.
#[derive(Debug)]
#[must_use = "a leadership from `campaign` is given up when it is dropped"]
pub struct Leadership {
    term: Term,
    /// Present when this handle is what keeps the term.
    owned: Option<Campaign>,
}

/// A view of one term that can be cloned into tasks and threads.
#[derive(Clone, Debug)]
pub struct Term {
    handle: Handle,
}

impl Leadership {
    pub(crate) fn managed(handle: Handle) -> Self {
        Self { term: Term { handle }, owned: None }
    }

    pub(crate) fn owned(campaign: Campaign) -> Self {
        Self { term: Term { handle: campaign.handle() }, owned: Some(campaign) }
    }

    /// The number of this term, for resources to check.
    pub fn token(&self) -> FencingToken {
        self.term.token()
    }

    /// The token, but only while the deadline lies ahead *now*.
    ///
    /// # Errors
    ///
    /// The [`LossReason`] once authority has ended, however late the driver may be to notice.
    pub fn check(&self) -> Result<FencingToken, LossReason> {
        self.term.check()
    }

    /// The end of authority as it stands, on the election's clock; every confirmed renewal moves it.
    pub fn deadline(&self) -> Moment {
        self.term.deadline()
    }

    /// Time left until the deadline as it stands; zero once authority has ended.
    pub fn remaining(&self) -> Duration {
        self.term.remaining()
    }

    /// A view of this term that can be cloned into tasks and threads.
    pub fn term(&self) -> Term {
        self.term.clone()
    }

    /// Waits for the stop signal: a stop budget before the deadline, on shutdown, or at once on a definite loss. Never
    /// later than [`lost`](Self::lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn stopping(&self) {
        self.term.stopping().await;
    }

    /// Waits until authority has ended, and says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn lost(&self) -> LossReason {
        self.term.lost().await
    }

    /// Runs `work` until it returns or the stop signal comes.
    ///
    /// # Errors
    ///
    /// The [`LossReason`] if the work was cut off.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work.
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, LossReason> {
        let _counted = self.term.handle.tasks().token();
        tokio::select! {
            biased;
            () = self.stopping() => Err(self.term.is_ending().unwrap_or(LossReason::EXPIRED)),
            value = work => Ok(value),
        }
    }

    /// Spawns a task that belongs to this term: it is aborted when the term is cut off, and the lease is not released
    /// before it has ended.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.term.handle.tasks().spawn(task)
    }

    /// Gives the lease up: cuts the work off, releases, and returns when the store has confirmed. Inside
    /// [`run_as_leader`](crate::Election::run_as_leader) it does not return: the work is cut off right there, and the
    /// candidate campaigns again.
    ///
    /// # Errors
    ///
    /// [`ElectionError::Store`] when the store did not confirm in time; the lease then runs out by itself.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the release to the background.
    pub async fn resign(mut self) -> Result<(), ElectionError> {
        self.term.handle.resign();
        let Some(mut campaign) = self.owned.take() else {
            return std::future::pending().await;
        };
        campaign.work_ended();
        match campaign.ended().await {
            None => Err(ElectionError::Interrupted),
            Some(end) => match end.release {
                Release::Failed(kind) => Err(campaign.failed(kind)),
                Release::Done(_) | Release::NotNeeded => Ok(()),
            },
        }
    }
}

impl Term {
    /// The number of this term.
    pub fn token(&self) -> FencingToken {
        self.handle.published().token()
    }

    /// The token, but only while the deadline lies ahead *now*.
    ///
    /// # Errors
    ///
    /// The [`LossReason`] once authority has ended.
    pub fn check(&self) -> Result<FencingToken, LossReason> {
        let published = self.handle.published();
        match &published.lost {
            Some(reason) => Err(reason.clone()),
            None if self.handle.now() >= published.deadline => Err(LossReason::EXPIRED),
            None => Ok(published.token()),
        }
    }

    /// The end of authority as it stands, on the election's clock.
    pub fn deadline(&self) -> Moment {
        self.handle.published().deadline
    }

    /// Time left until the deadline as it stands; zero once authority has ended.
    pub fn remaining(&self) -> Duration {
        match self.check() {
            Ok(_) => self.deadline() - self.handle.now(),
            Err(_) => Duration::ZERO,
        }
    }

    /// Waits for the stop signal.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn stopping(&self) {
        self.handle.wait_for(|published| published.stopping.is_some() || published.lost.is_some()).await;
    }

    /// Waits until authority has ended, and says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn lost(&self) -> LossReason {
        self.handle.wait_for(|published| published.lost.is_some()).await;
        // A driver that is gone with its runtime renews no more: nothing was said, but authority ends.
        self.handle.published().lost.clone().unwrap_or(LossReason::EXPIRED)
    }

    /// Why the term is ending, from the stop signal on.
    pub(crate) fn is_ending(&self) -> Option<LossReason> {
        let published = self.handle.published();
        published.lost.clone().or_else(|| published.stopping.clone())
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        if let Some(campaign) = self.owned.take() {
            campaign.withdraw();
        }
    }
}
