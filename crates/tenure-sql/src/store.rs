//! The store: one for all dialects.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::{self, BoxStream, TryStreamExt};
use tenure_core::{
    Acquired, Bid, Grant, LeaseName, LeaseRecord, LeaseStore, LossReason, Operation, Released, Renewed,
    StoreDescriptor, StoreError, StoreErrorKind, WakeUp,
};

use crate::dialect::{BATCH, Decision, Dialect, Effect, PAGE};
use crate::leases::{Call, Leases};
use crate::row::{Row, token};
use crate::{SqlConfig, watchers};

/// Keeps leases as rows of one table. Made as `SqliteStore`, `PostgresStore` or `MySqlStore`.
///
/// Clones share connections and watches.
pub struct SqlStore<D: Dialect> {
    leases: Arc<Leases<D>>,
}

impl<D: Dialect> SqlStore<D> {
    pub(crate) fn with_dialect(dialect: D, config: &SqlConfig) -> Self {
        Self { leases: Arc::new(Leases::new(dialect, config.timeout())) }
    }

    /// Creates the table where it is missing, and checks that it is Tenure's. Safe when many processes do it at once.
    ///
    /// The same as [`LeaseStore::prepare`].
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Denied`] where the right to create it is missing, [`StoreErrorKind::Malformed`] for a table of
    /// the same name that is not Tenure's.
    ///
    /// # Cancel safety
    ///
    /// A dropped call may leave the table created or not; calling again finishes it.
    pub async fn ensure_schema(&self) -> Result<(), StoreError> {
        self.set_up(Operation::Prepare).await
    }

    pub(crate) async fn set_up(&self, operation: Operation) -> Result<(), StoreError> {
        self.leases.establish(operation)?;
        let mut call = self.leases.call(operation, None).await?;
        call.run(Effect::Read, |dialect, link| dialect.prepare(link)).await
    }

    /// Opens a connection, so that what is wrong with the address or the credentials is told at once.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(crate) async fn greet(&self) -> Result<(), StoreError> {
        self.leases.call(Operation::Connect, None).await.map(drop)
    }

    async fn renew_batch(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        let extended = async {
            for grant in grants {
                self.check_ttl(Operation::Renew, &grant.name, grant.ttl)?;
            }
            let mut call = self.leases.call(Operation::Renew, None).await?;
            call.run(Effect::Write, |dialect, link| dialect.renew_many(link, grants)).await
        };
        match extended.await {
            // What was not extended is asked for one by one: why it is lost, or whether it was locked only.
            Ok(extended) => {
                let answers = grants.iter().zip(extended).map(|(grant, extended)| async move {
                    if extended { Ok(Renewed::Extended(grant.clone())) } else { self.renew(grant).await }
                });
                join_all(answers).await
            }
            Err(error) if error.kind() == StoreErrorKind::Invalid => {
                join_all(grants.iter().map(|grant| self.renew(grant))).await
            }
            Err(error) => grants.iter().map(|grant| Err(about(&error, &grant.name))).collect(),
        }
    }

    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) fn leases(&self) -> &Arc<Leases<D>> {
        &self.leases
    }

    fn check_ttl(&self, operation: Operation, name: &LeaseName, ttl: Duration) -> Result<(), StoreError> {
        self.leases.dialect.describe().check_ttl(ttl).map_err(|invalid| {
            StoreError::new(StoreErrorKind::Invalid, operation, D::NAME)
                .with_lease(name)
                .with_detail(invalid.to_string())
        })
    }
}

#[async_trait]
impl<D: Dialect> LeaseStore for SqlStore<D> {
    fn describe(&self) -> StoreDescriptor {
        self.leases.dialect.describe()
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        self.check_ttl(Operation::Acquire, &bid.name, bid.ttl)?;
        let mut call = self.leases.call(Operation::Acquire, Some(&bid.name)).await?;
        let found = match call.run(Effect::Write, |dialect, link| dialect.bid(link, bid)).await? {
            Decision::Won { token: number, after_release } => {
                let token = token(number).map_err(|problem| call.error(problem))?;
                return Ok(Acquired::Granted(Grant::of(bid, token).with_after_release(after_release)));
            }
            Decision::Lost(Some(row)) => row.record().map_err(|problem| call.error(problem))?,
            Decision::Lost(None) => found(&mut call, &bid.name).await?,
        };
        Ok(Acquired::Held(held(bid, found)))
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        self.check_ttl(Operation::Renew, &grant.name, grant.ttl)?;
        let mut call = self.leases.call(Operation::Renew, Some(&grant.name)).await?;
        if call.run(Effect::Write, |dialect, link| dialect.renew(link, grant)).await? {
            return Ok(Renewed::Extended(grant.clone()));
        }
        // That it is lost is decided already: a second read that fails or makes no sense leaves only the reason open.
        Ok(Renewed::Lost(match found(&mut call, &grant.name).await {
            Ok(found) => reason(grant, found),
            Err(error) if error.kind() == StoreErrorKind::Malformed => LossReason::Malformed,
            Err(_) => LossReason::EXPIRED,
        }))
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let mut call = self.leases.call(Operation::Release, Some(&grant.name)).await?;
        let freed = call.run(Effect::Write, |dialect, link| dialect.release(link, grant)).await?;
        Ok(if freed { Released::Freed } else { Released::NotHeld })
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let mut call = self.leases.call(Operation::Read, Some(name)).await?;
        Ok(found(&mut call, name).await?.filter(|record| !record.remaining.is_zero()))
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.ensure_schema().await
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        let first = Some((self.leases.clone(), String::new()));
        stream::try_unfold(first, |state| async move {
            let Some((leases, after)) = state else { return Ok::<_, StoreError>(None) };
            let mut call = leases.call(Operation::List, None).await?;
            let rows = call.run(Effect::Read, |dialect, link| dialect.page(link, &after)).await?;
            let last = rows.last().filter(|_| rows.len() == usize::from(PAGE)).map(|row| row.name.clone());
            let records: Vec<_> = rows.into_iter().filter_map(|row| listed(&call, row)).collect();
            drop(call);
            Ok(Some((stream::iter(records), last.map(|last| (leases, last)))))
        })
        .try_flatten()
        .boxed()
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        let distinct: HashSet<&LeaseName> = grants.iter().map(|grant| &grant.name).collect();
        // The same lease twice is no batch: which of the two would a row of the answer belong to?
        if distinct.len() < grants.len() || grants.len() < 2 {
            return join_all(grants.iter().map(|grant| self.renew(grant))).await;
        }
        let mut all = Vec::with_capacity(grants.len());
        for batch in grants.chunks(BATCH) {
            all.extend(self.renew_batch(batch).await);
        }
        all
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        watchers::watch(&self.leases, name)
    }
}

/// The error of a batch, for one of its leases.
fn about(error: &StoreError, lease: &LeaseName) -> StoreError {
    let detail = error.detail().unwrap_or_default().to_owned();
    StoreError::new(error.kind(), error.operation(), error.store().to_owned()).with_lease(lease).with_detail(detail)
}

async fn found<D: Dialect>(call: &mut Call<'_, D>, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
    let row = call.run(Effect::Read, |dialect, link| dialect.find(link, name)).await?;
    row.map_or(Ok(None), Row::record).map_err(|problem| call.error(problem))
}

/// Who holds the lease that the bid did not get. When it was given up, or became the candidate's own by a late copy of
/// an earlier bid, since the decision: nobody whose time the bidder would have to wait for.
fn held(bid: &Bid, found: Option<LeaseRecord>) -> LeaseRecord {
    match found {
        Some(record) if record.holder == bid.candidate => record.with_remaining(Duration::ZERO),
        Some(record) => record,
        None => LeaseRecord::new(bid.name.clone(), bid.candidate.clone(), tenure_core::FencingToken(0), bid.ttl),
    }
}

/// Why a renewal was refused.
fn reason(grant: &Grant, found: Option<LeaseRecord>) -> LossReason {
    match found {
        None => LossReason::Removed,
        Some(record) if record.remaining.is_zero() => LossReason::EXPIRED,
        Some(record) if record.holder == grant.candidate && record.token == grant.token => LossReason::EXPIRED,
        Some(record) => LossReason::Superseded { by: Some(record.holder) },
    }
}

/// A row as the list shows it: nothing when nobody holds the lease, and one error for a row that is no lease.
fn listed<D: Dialect>(call: &Call<'_, D>, row: Row) -> Option<Result<LeaseRecord, StoreError>> {
    let name = LeaseName::new(row.name.clone()).ok();
    match row.record() {
        Ok(record) => record.filter(|record| !record.remaining.is_zero()).map(Ok),
        Err(problem) => {
            let error = call.error(problem);
            Some(Err(match &name {
                Some(name) => error.with_lease(name),
                None => error,
            }))
        }
    }
}

impl<D: Dialect> Clone for SqlStore<D> {
    fn clone(&self) -> Self {
        Self { leases: self.leases.clone() }
    }
}

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqlStore").field(&self.leases.dialect).finish()
    }
}
