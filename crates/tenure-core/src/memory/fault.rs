//! Trouble on purpose.

use std::future::pending;
use std::time::Duration;

use crate::{CandidateId, LeaseName, MemoryStore, Operation, StoreError, StoreErrorKind};

/// Decides what goes wrong with a call.
pub type FaultHook = dyn Fn(&StoreCall) -> Fault + Send + Sync;

/// A call as a hook sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCall {
    /// What is called.
    pub operation: Operation,
    /// The lease that it is about.
    pub name: LeaseName,
    /// Who calls; `None` for reads.
    pub candidate: Option<CandidateId>,
}

impl StoreCall {
    pub(super) fn new(operation: Operation, name: &LeaseName, candidate: Option<&CandidateId>) -> Self {
        Self { operation, name: name.clone(), candidate: candidate.cloned() }
    }
}

/// What goes wrong with one call, in terms of what reaches the store and what comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The store refuses: not applied, an error of this kind at once.
    Fail(StoreErrorKind),
    /// Applied, but the answer is an error of this kind.
    FailAfter(StoreErrorKind),
    /// The request is lost: not applied, no answer ever.
    LoseRequest,
    /// The reply is lost: applied, no answer ever.
    LoseReply,
    /// The request is on its way for so long: applied then, even when the caller has gone, and answered at once.
    DelayRequest(Duration),
    /// The reply is on its way for so long: applied at once, answered then.
    DelayReply(Duration),
    /// Applied and answered, and a copy of the request arrives so much later.
    Repeat(Duration),
}

/// Applies a call, or not, as `fault` says. Requests that are under way outlive their caller, as on a network, so the
/// delayed ones need a tokio runtime.
pub(super) async fn perform<T: Send + 'static>(
    store: MemoryStore,
    fault: Fault,
    call: StoreCall,
    apply: impl Fn(&MemoryStore) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let error = |kind, effect: &'static str| {
        Err(StoreError::new(kind, call.operation, "memory").with_lease(&call.name).with_detail(effect))
    };
    match fault {
        Fault::None => apply(&store),
        Fault::Fail(kind) => error(kind, "failed on purpose before it took effect"),
        Fault::FailAfter(kind) => {
            drop(apply(&store));
            error(kind, "failed on purpose after it took effect")
        }
        Fault::LoseRequest => pending().await,
        Fault::LoseReply => {
            drop(apply(&store));
            pending().await
        }
        Fault::DelayRequest(delay) => {
            let due = store.clock.now() + delay;
            let under_way = tokio::spawn(async move {
                store.clock.sleep_until(due).await;
                apply(&store)
            });
            match under_way.await {
                Ok(answer) => answer,
                Err(_) => error(StoreErrorKind::Unknown, "the runtime shut down while the request was under way"),
            }
        }
        Fault::DelayReply(delay) => {
            let answer = apply(&store);
            store.clock.sleep_until(store.clock.now() + delay).await;
            answer
        }
        Fault::Repeat(delay) => {
            let answer = apply(&store);
            let due = store.clock.now() + delay;
            tokio::spawn(async move {
                store.clock.sleep_until(due).await;
                drop(apply(&store));
            });
            answer
        }
    }
}
