//! What the answers of a store tell about who leads.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure::clock::{Clock, Moment, SystemClock};
use tenure::{Acquired, CandidateId, Released, Renewed, StoreError};

use crate::witnessed::Witness;

#[derive(Debug, Default)]
pub(super) struct Sight {
    seen: Mutex<Option<Seen>>,
}

/// Whom an answer showed, and how long that holds.
#[derive(Clone, Debug)]
struct Seen {
    holder: CandidateId,
    until: Moment,
}

impl Sight {
    /// The label of the holder that was seen last, as long as its lease cannot have run out.
    pub(super) fn holder(&self) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.as_ref().filter(|seen| SystemClock.now() < seen.until)?;
        Some(seen.holder.label().to_owned())
    }

    fn see(&self, holder: Option<(&CandidateId, Duration)>) {
        let now = SystemClock.now();
        let seen = holder.map(|(holder, lasts)| Seen { holder: holder.clone(), until: now + lasts });
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Witness for Sight {
    fn acquired(&self, answer: &Result<Acquired, StoreError>) {
        match answer {
            Ok(Acquired::Granted(grant)) => self.see(Some((&grant.candidate, grant.ttl))),
            Ok(Acquired::Held(record)) => self.see(Some((&record.holder, record.remaining))),
            Err(_) => {}
        }
    }

    fn renewed(&self, answer: &Result<Renewed, StoreError>) {
        match answer {
            Ok(Renewed::Extended(grant)) => self.see(Some((&grant.candidate, grant.ttl))),
            Ok(Renewed::Lost(_)) => self.see(None),
            Err(_) => {}
        }
    }

    fn released(&self, answer: &Result<Released, StoreError>) {
        if answer.is_ok() {
            self.see(None);
        }
    }
}
