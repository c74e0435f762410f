//! What all handles of one store share: the dialect, its connections, its watchers, and the bound on each call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{LeaseName, Operation, StoreError, StoreErrorKind};
use tokio::time::{Instant, timeout_at};

use crate::dialect::{Dialect, Effect, Problem, Verdict};
use crate::links::{Lent, Links, State};
use crate::watchers::Watchers;

/// The shared part of a store.
#[derive(Debug)]
pub struct Leases<D: Dialect> {
    pub dialect: Arc<D>,
    pub watchers: Watchers,
    links: Links<D>,
    timeout: Duration,
}

/// One call: a connection lent to it, and the instant at which it is given up.
pub struct Call<'a, D: Dialect> {
    lent: Lent<'a, D>,
    about: About<'a>,
    deadline: Instant,
    timeout: Duration,
}

/// What a call is about, for its errors.
#[derive(Clone, Copy)]
struct About<'a> {
    store: &'static str,
    operation: Operation,
    lease: Option<&'a LeaseName>,
}

type Answer<'c, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'c>>;

impl<D: Dialect> Leases<D> {
    pub fn new(dialect: D, timeout: Duration) -> Self {
        Self { dialect: Arc::new(dialect), watchers: Watchers::new(), links: Links::new(timeout), timeout }
    }

    /// Begins a call: nothing of it has been sent when this fails.
    pub async fn call<'a>(
        &'a self,
        operation: Operation,
        lease: Option<&'a LeaseName>,
    ) -> Result<Call<'a, D>, StoreError> {
        let about = About { store: D::NAME, operation, lease };
        let deadline = Instant::now() + self.timeout;
        match timeout_at(deadline, self.links.lend(&self.dialect)).await {
            Ok(Ok(lent)) => Ok(Call { lent, about, deadline, timeout: self.timeout }),
            Ok(Err(problem)) => Err(about.error(problem, &*self.dialect, Effect::Connect)),
            Err(_) => {
                let detail = format!("no connection within {:?}", self.timeout);
                Err(about.error(Problem::known(StoreErrorKind::Unavailable, detail), &*self.dialect, Effect::Read))
            }
        }
    }
}

impl<D: Dialect> Leases<D> {
    /// Creates what a connection needs to exist.
    pub fn establish(&self, operation: Operation) -> Result<(), StoreError> {
        let about = About { store: D::NAME, operation, lease: None };
        self.dialect.establish().map_err(|problem| about.error(problem, &*self.dialect, Effect::Read))
    }
}

impl<'a, D: Dialect> Call<'a, D> {
    /// Runs one method of the dialect within what is left of the call's time.
    pub async fn run<'s, T>(
        &'s mut self,
        effect: Effect,
        method: impl FnOnce(&'a D, &'s mut D::Link) -> Answer<'s, T>,
    ) -> Result<T, StoreError> {
        let (about, dialect) = (self.about, self.lent.dialect);
        let (link, state) = (&mut self.lent.link, &mut self.lent.state);
        let Some(link) = link.as_mut().filter(|_| *state == State::Ready) else {
            return Err(about.error(sqlx::Error::PoolClosed.into(), dialect, effect));
        };
        *state = State::Busy;
        match timeout_at(self.deadline, method(dialect, link)).await {
            Ok(Ok(value)) => {
                *state = State::Ready;
                Ok(value)
            }
            Ok(Err(problem)) => {
                let usable = match &problem {
                    Problem::Client(error) => dialect.usable_after(error),
                    Problem::Broken(_) => false,
                    Problem::Known(_) => true,
                };
                *state = if usable { State::Ready } else { State::Dead };
                Err(about.error(problem, dialect, effect))
            }
            Err(_) => {
                let verdict = Verdict::in_doubt(effect, format!("no answer within {:?}", self.timeout));
                Err(about.error(Problem::Known(verdict), dialect, effect))
            }
        }
    }

    /// An error of this call.
    pub fn error(&self, problem: Problem) -> StoreError {
        self.about.error(problem, self.lent.dialect, Effect::Read)
    }
}

impl About<'_> {
    fn error<D: Dialect>(self, problem: Problem, dialect: &D, effect: Effect) -> StoreError {
        let (verdict, source) = match problem {
            Problem::Known(verdict) => (verdict, None),
            Problem::Client(error) | Problem::Broken(error) => (dialect.translate(&error, effect), Some(error)),
        };
        let mut error = StoreError::new(verdict.kind, self.operation, self.store).with_detail(verdict.detail);
        if let Some(lease) = self.lease {
            error = error.with_lease(lease);
        }
        match source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}
