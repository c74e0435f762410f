//! A row of the table, as it comes from the database, and the record that it makes.

use std::time::{Duration, SystemTime};

use tenure_core::{CandidateId, FencingToken, LeaseName, LeaseRecord, Payload, StoreErrorKind};

use crate::dialect::Problem;

/// A row of the lease table. Times are microseconds.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: String,
    /// `None`: the lease was released.
    pub candidate: Option<String>,
    pub token: i64,
    pub remaining: Remaining,
    pub ttl: i64,
    /// Since the Unix epoch.
    pub acquired_at: i64,
    pub payload: String,
}

/// How long a lease still lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// By the database's clock, in microseconds; negative when the lease ran out.
    Known(i64),
    /// The row has no expiry.
    Missing,
    /// The expiry was written by a clock that cannot be compared with this process's.
    OtherClock,
}

/// Who holds a lease, as far as a watcher cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub name: String,
    pub candidate: Option<String>,
    pub token: i64,
}

impl Row {
    /// The record of the row's holder, with no time left when the lease ran out; `None` when it was released.
    pub fn record(self) -> Result<Option<LeaseRecord>, Problem> {
        let Some(candidate) = self.candidate else {
            return Ok(None);
        };
        let name = LeaseName::new(self.name).map_err(foreign)?;
        let candidate = CandidateId::from_wire(candidate).map_err(foreign)?;
        let payload = Payload::new(self.payload).map_err(foreign)?;
        let remaining = match self.remaining {
            Remaining::Known(remaining) => remaining,
            Remaining::Missing => return Err(foreign("it has no expiry")),
            Remaining::OtherClock => return Err(Problem::known(StoreErrorKind::Unsupported, OTHER_CLOCK)),
        };
        let record = LeaseRecord::new(name, candidate, token(self.token)?, micros(self.ttl))
            .with_payload(payload)
            .with_remaining(micros(remaining))
            .with_acquired_at(SystemTime::UNIX_EPOCH.checked_add(micros(self.acquired_at)));
        Ok(Some(record))
    }
}

const OTHER_CLOCK: &str = "it is held from another time namespace of this host, whose clock cannot be compared with this \
                           one's: run all candidates in one time namespace, or set candidate to null in its row once \
                           the holder is gone";

/// A token as the table holds it.
pub(crate) fn token(number: i64) -> Result<FencingToken, Problem> {
    u64::try_from(number).map(FencingToken).map_err(|_| foreign("its token is negative"))
}

/// Text that the table holds as bytes.
#[cfg(feature = "mysql")]
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, Problem> {
    String::from_utf8(bytes).map_err(|_| foreign("it holds text that is not utf-8"))
}

/// A duration as the table holds it. Bounded by what the descriptor allows, so that it always fits.
pub(crate) fn as_micros(d: Duration) -> i64 {
    i64::try_from(d.as_micros()).unwrap_or(i64::MAX)
}

fn micros(number: i64) -> Duration {
    u64::try_from(number).map_or(Duration::ZERO, Duration::from_micros)
}

fn foreign(what: impl std::fmt::Display) -> Problem {
    Problem::known(
        StoreErrorKind::Malformed,
        format!("the row of this lease was not written by tenure ({what}); delete the row or choose another name"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            name: "nightly".into(),
            candidate: Some("worker_1".into()),
            token: 7,
            remaining: Remaining::Known(5_000_000),
            ttl: 15_000_000,
            acquired_at: 1,
            payload: String::new(),
        }
    }

    #[test]
    fn a_row_shows_its_holder_and_the_time_left() {
        let record = row().record().unwrap().unwrap();
        assert_eq!((record.token, record.remaining), (FencingToken(7), Duration::from_secs(5)));
        let late = Row { remaining: Remaining::Known(-1), ..row() }.record().unwrap().unwrap();
        assert_eq!(late.remaining, Duration::ZERO);
        assert!(Row { candidate: None, remaining: Remaining::Missing, ..row() }.record().unwrap().is_none());
    }

    #[test]
    fn a_row_of_another_writer_is_malformed() {
        for row in [
            Row { remaining: Remaining::Missing, ..row() },
            Row { token: -1, ..row() },
            Row { candidate: Some(String::new()), ..row() },
            Row { payload: "x".repeat(1025), ..row() },
        ] {
            match row.record() {
                Err(Problem::Known(verdict)) => assert_eq!(verdict.kind, StoreErrorKind::Malformed),
                other => panic!("{other:?}"),
            }
        }
    }
}
