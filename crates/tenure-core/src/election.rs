//! What a user holds: an election, ready to be led.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::campaign::Campaign;
use crate::clock::{Clock, SystemClock};
use crate::machine::{Cause, End, Herd, OnFinish, Standing};
use crate::meter::Meter;
use crate::{
    ElectionError, Invalid, Label, Leadership, LeaseName, LeaseStore, LossReason, OverrunPolicy, Payload, Term, Timing,
};

/// One candidate's part in the contest for one lease.
///
/// Cheap to clone; clones share the configuration and the published [`standing`](Self::standing). Each campaign draws
/// its own [`CandidateId`](crate::CandidateId), so two campaigns never mistake each other's grants for their own.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_core::{CancellationToken, Election, Ended, MemoryStore};
///
/// let election = Election::builder("nightly-compaction", MemoryStore::new()).candidate("worker-7").build()?;
/// let shutdown = CancellationToken::new();
/// let ended = election
///     .run_as_leader(shutdown, |lead| async move { format!("compacted under token {}", lead.token()) })
///     .await?;
/// assert!(matches!(ended, Ended::Finished(text) if text == "compacted under token 1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Election {
    shared: Arc<Shared>,
}

/// What all campaigns of an election have in common.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn LeaseStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) name: LeaseName,
    pub(crate) label: Label,
    pub(crate) timing: Timing,
    pub(crate) payload: Payload,
    pub(crate) on_finish: OnFinish,
    pub(crate) overrun: OverrunPolicy,
    pub(crate) overruns: AtomicU64,
    pub(crate) standing: watch::Sender<Standing>,
    pub(crate) meter: Meter,
    herd: Mutex<Herd>,
    once: bool,
}

/// How [`Election::run_as_leader`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum Ended<T> {
    /// The work returned by itself, with this value, and the lease was given back.
    Finished(T),
    /// This candidate was asked to stop: it never led, or its work was cut off.
    Shutdown,
    /// Leadership was lost, and the election was built to run [`once`](ElectionBuilder::once).
    Lost(LossReason),
}

impl Election {
    /// Starts to describe a candidacy for the lease `name` in `store`.
    ///
    /// `store` is a store of its own, or an `Arc` that other elections share.
    pub fn builder<N>(name: N, store: impl LeaseStore) -> ElectionBuilder
    where
        N: TryInto<LeaseName>,
        N::Error: Into<Invalid>,
    {
        ElectionBuilder {
            name: name.try_into().map_err(Into::into),
            store: Arc::new(store),
            clock: Arc::new(SystemClock::new()),
            label: None,
            payload: Ok(Payload::default()),
            timing: Timing::default(),
            on_finish: OnFinish::default(),
            overrun: OverrunPolicy::default(),
            once: false,
        }
    }

    /// Runs `work` whenever this candidate leads, and campaigns again after a loss, until the work returns by itself or
    /// `shutdown` is cancelled.
    ///
    /// Each term calls `work` once. The work's future runs in the caller's task; when the term ends it is told to stop
    /// ([`Leadership::stopping`]) and dropped at the deadline at the latest, before anybody else can lead. What the work
    /// moves into other tasks belongs into [`Leadership::spawn`].
    ///
    /// On shutdown the lease is kept until the work has stopped, and given back then. A panic in the work gives the
    /// lease back and goes on up.
    ///
    /// # Errors
    ///
    /// [`ElectionError`] when the store refuses for good (credentials, permissions, something foreign under the name).
    /// Trouble that may pass never ends it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work first; the lease is then given back in the background, as far as the runtime lives.
    pub async fn run_as_leader<T, F>(
        &self,
        shutdown: CancellationToken,
        mut work: impl FnMut(Leadership) -> F,
    ) -> Result<Ended<T>, ElectionError>
    where
        F: Future<Output = T>,
    {
        let mut pause = Duration::ZERO;
        loop {
            if shutdown.is_cancelled() {
                return Ok(Ended::Shutdown);
            }
            let mut campaign = Campaign::start(self.shared.clone(), pause, true);
            let elected = tokio::select! {
                biased;
                () = shutdown.cancelled() => false,
                elected = campaign.elected() => elected,
            };
            if !elected {
                campaign.withdraw();
                match self.ended(campaign.ended().await)?.cause {
                    Cause::Failed(kind) => return Err(campaign.failed(kind)),
                    Cause::ShortGrant(granted) => return Err(self.short_grant(granted)),
                    _ => return Ok(Ended::Shutdown),
                }
            }
            let outcome = self.lead(&mut campaign, &shutdown, &mut work).await;
            campaign.work_ended();
            let end = campaign.ended().await;
            match outcome {
                Outcome::Returned(Ok(value)) => return Ok(Ended::Finished(value)),
                Outcome::Returned(Err(panic)) => resume_unwind(panic),
                Outcome::Cut => match self.ended(end)?.cause {
                    Cause::Lost(reason) if self.shared.once => return Ok(Ended::Lost(campaign.explained(reason))),
                    Cause::Lost(_) => pause = self.shared.timing.retry_every(),
                    _ => return Ok(Ended::Shutdown),
                },
            }
        }
    }

    /// Contends until this candidate leads, and hands over the leadership.
    ///
    /// The caller's own code has to stop in time: see [`Leadership::run_until_lost`], [`Leadership::check`] and
    /// [`Leadership::stopping`].
    ///
    /// # Errors
    ///
    /// [`ElectionError`] when the store refuses for good. Trouble that may pass never ends it.
    ///
    /// # Cancel safety
    ///
    /// Dropping it withdraws the candidacy in the background; what a bid under way may still take is given back.
    pub async fn campaign(&self) -> Result<Leadership, ElectionError> {
        let mut campaign = Campaign::start(self.shared.clone(), Duration::ZERO, false);
        if campaign.elected().await {
            return Ok(Leadership::owned(campaign));
        }
        match self.ended(campaign.ended().await)?.cause {
            Cause::Failed(kind) => Err(campaign.failed(kind)),
            Cause::ShortGrant(granted) => Err(self.short_grant(granted)),
            _ => Err(ElectionError::Interrupted),
        }
    }

    /// Where this candidate stands by the clock *now*: a leader whose deadline has passed is never shown as leading,
    /// however late its driver may be.
    ///
    /// While several campaigns of clones run, it is the standing of the one that changed last.
    pub fn standing(&self) -> Standing {
        self.shared.standing_now()
    }

    /// Yields the standing now, and whenever it changes. Short-lived standings may be skipped.
    pub fn standings(&self) -> BoxStream<'static, Standing> {
        let mut receiver = self.shared.standing.subscribe();
        receiver.mark_changed();
        stream::unfold((receiver, self.shared.clone()), |(mut receiver, shared)| async move {
            receiver.changed().await.ok()?;
            receiver.mark_unchanged();
            Some((shared.standing_now(), (receiver, shared)))
        })
        .boxed()
    }

    /// How often work went on after it was cut off, because it blocked its thread or swallowed its cancellation.
    pub fn overruns(&self) -> u64 {
        self.shared.overruns.load(Ordering::Relaxed)
    }

    /// Tells the recorder of the `metrics` facade where this candidate stands by the clock *now*. The gauges are set with
    /// every change and every renewal anyway; a program that renders metrics calls this right before.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record_standing(&self) {
        self.shared.record_standing();
    }

    /// The lease that is contended for.
    pub fn name(&self) -> &LeaseName {
        &self.shared.name
    }

    /// The times that this election keeps.
    pub fn timing(&self) -> &Timing {
        &self.shared.timing
    }

    /// Runs the work of one term until it returns or is cut off. When this returns, the work's future is dropped.
    async fn lead<T, F: Future<Output = T>>(
        &self,
        campaign: &mut Campaign,
        shutdown: &CancellationToken,
        work: &mut impl FnMut(Leadership) -> F,
    ) -> Outcome<T> {
        let lead = Leadership::managed(campaign.handle());
        let term = lead.term();
        let mut work = pin!(AssertUnwindSafe(async { work(lead).await }).catch_unwind());
        let mut asked = false;
        loop {
            tokio::select! {
                biased;
                () = campaign.cut_off() => return Outcome::Cut,
                () = shutdown.cancelled(), if !asked => {
                    asked = true;
                    campaign.stop();
                }
                returned = &mut work => {
                    if returned.is_ok() && !asked && let Some(reason) = ending(&term) {
                        tracing::warn!(target: "tenure", lease = %self.shared.name, %reason, "work returned after its term was lost; its result is dropped");
                        return Outcome::Cut;
                    }
                    return Outcome::Returned(returned);
                }
            }
        }
    }

    fn ended(&self, end: Option<End>) -> Result<End, ElectionError> {
        end.ok_or(ElectionError::Interrupted)
    }

    fn short_grant(&self, granted: Duration) -> ElectionError {
        ElectionError::ShortGrant { asked: self.shared.timing.ttl(), granted }
    }
}

/// Why the term is over or ending, though the driver may not have noticed its deadline yet.
fn ending(term: &Term) -> Option<LossReason> {
    term.is_ending().or_else(|| term.check().err())
}

enum Outcome<T> {
    Returned(std::thread::Result<T>),
    Cut,
}

impl Shared {
    pub(crate) fn herd(&self) -> Herd {
        *self.herd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_herd(&self, herd: Herd) {
        *self.herd.lock().unwrap_or_else(PoisonError::into_inner) = herd;
    }

    /// Sets what is true of this moment only.
    pub(crate) fn record_standing(&self) {
        self.meter.stands(match self.standing_now() {
            Standing::Leading { deadline, .. } | Standing::Stopping { deadline: Some(deadline), .. } => {
                let left = deadline.saturating_since(self.clock.now());
                Some(left).filter(|left| !left.is_zero())
            }
            _ => None,
        });
    }

    fn standing_now(&self) -> Standing {
        match *self.standing.borrow() {
            Standing::Leading { token, deadline } if self.clock.now() >= deadline => {
                Standing::Stopping { token: Some(token), deadline: None, overrun: false }
            }
            standing => standing,
        }
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election")
            .field("name", &self.shared.name)
            .field("label", &self.shared.label)
            .field("store", &self.shared.store.describe().name)
            .field("timing", &self.shared.timing)
            .finish_non_exhaustive()
    }
}

/// Describes a candidacy; [`build`](Self::build) checks it.
#[must_use]
pub struct ElectionBuilder {
    name: Result<LeaseName, Invalid>,
    store: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    label: Option<Result<Label, Invalid>>,
    payload: Result<Payload, Invalid>,
    timing: Timing,
    on_finish: OnFinish,
    overrun: OverrunPolicy,
    once: bool,
}

impl ElectionBuilder {
    /// Names the candidate, as people know it. Default: the host's name. It need not be unique.
    pub fn candidate(mut self, label: impl Into<String>) -> Self {
        self.label = Some(Label::new(label));
        self
    }

    /// Sets the times. Default: [`Timing::default`], a ttl of 15 s.
    pub fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// Sets what observers see of this candidate while it leads. Default: nothing.
    pub fn payload(mut self, payload: impl Into<String>) -> Self {
        self.payload = Payload::new(payload);
        self
    }

    /// Does not campaign again after a loss: [`Election::run_as_leader`] returns [`Ended::Lost`].
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Sets what becomes of the lease when the work has returned. Default: it is released at once.
    pub fn on_finish(mut self, on_finish: OnFinish) -> Self {
        self.on_finish = on_finish;
        self
    }

    /// Sets what happens to work that outlives its cut-off. Default: it is reported.
    pub fn overrun_policy(mut self, policy: OverrunPolicy) -> Self {
        self.overrun = policy;
        self
    }

    /// Sets the clock, for tests and simulators. Default: the host's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Checks everything that was given.
    ///
    /// # Errors
    ///
    /// [`ElectionError::Invalid`] for a bad name, label or payload, and for a ttl that the store does not keep as asked.
    pub fn build(self) -> Result<Election, ElectionError> {
        self.store.describe().check_ttl(self.timing.ttl())?;
        let (standing, _) = watch::channel(Standing::Following);
        let name = self.name?;
        let shared = Shared {
            meter: Meter::new(&name, &self.store.describe().name),
            name,
            label: self.label.unwrap_or_else(host_name)?,
            payload: self.payload?,
            store: self.store,
            clock: self.clock,
            timing: self.timing,
            on_finish: self.on_finish,
            overrun: self.overrun,
            overruns: AtomicU64::new(0),
            standing,
            herd: Mutex::default(),
            once: self.once,
        };
        Ok(Election { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for ElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn host_name() -> Result<Label, Invalid> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Label::new(name).or_else(|_| Label::new("localhost"))
}

#[cfg(not(unix))]
fn host_name() -> Result<Label, Invalid> {
    Label::new(std::env::var("COMPUTERNAME").unwrap_or_default()).or_else(|_| Label::new("localhost"))
}
