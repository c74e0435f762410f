//! What a run sees of its store: it takes note of bids, and holds a release back until the program is gone.

use std::sync::{Mutex, PoisonError};

use tenure::{Acquired, CandidateId, Grant, StoreError, StoreErrorKind, async_trait};
use tokio::sync::watch;

use crate::witnessed::{Witness, Witnessed};

/// A store, seen by one `tenure run`.
pub(crate) type GatedStore = Witnessed<Gate>;

#[derive(Debug)]
pub(crate) struct Gate {
    last: watch::Sender<Option<Answer>>,
    granted: Mutex<Option<Grant>>,
    program_alive: watch::Receiver<bool>,
}

/// What the store said to a bid.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Granted,
    HeldBy(CandidateId),
    Failed(StoreErrorKind),
}

impl Gate {
    /// `program_alive` tells whether any process of the program is left.
    pub(crate) fn new(program_alive: watch::Receiver<bool>) -> Self {
        Self { last: watch::Sender::new(None), granted: Mutex::new(None), program_alive }
    }

    /// What the store said to the last bid that it answered.
    pub(crate) fn last_answer(&self) -> Option<Answer> {
        self.last.borrow().clone()
    }

    /// What the store granted last.
    pub(crate) fn granted(&self) -> Option<Grant> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns when the first bid was answered.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn first_answer(&self) {
        // The sender lives as long as `self`.
        let _ = self.last.subscribe().wait_for(Option::is_some).await;
    }
}

#[async_trait]
impl Witness for Gate {
    fn acquired(&self, answer: &Result<Acquired, StoreError>) {
        if let Ok(Acquired::Granted(grant)) = answer {
            *self.granted.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant.clone());
        }
        self.last.send_replace(Some(match answer {
            Ok(Acquired::Granted(_)) => Answer::Granted,
            Ok(Acquired::Held(record)) => Answer::HeldBy(record.holder.clone()),
            Err(error) => Answer::Failed(error.kind()),
        }));
    }

    /// Waits for the program to be gone: nobody else may lead before. A program that cannot be killed keeps the lease
    /// until that runs out.
    async fn before_release(&self) {
        // A sender that is gone took the program with it.
        let _ = self.program_alive.clone().wait_for(|alive| !alive).await;
    }
}
