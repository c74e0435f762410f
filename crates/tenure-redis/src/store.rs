//! The contract, kept with one script for each decision.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tenure_core::{
    Acquired, Bid, FencingToken, Grant, LeaseClock, LeaseName, LeaseRecord, LeaseStore, Operation, Released, Renewed,
    StoreDescriptor, StoreError, StoreErrorKind, WakeUp, WakeUpKind,
};
use tokio::time::Instant;

use crate::error::{Call, STORE};
use crate::keys::LeaseKeys;
use crate::link::Link;
use crate::script::{self, Answer, Lua};
use crate::seen::Seen;
use crate::survey::Survey;
use crate::watch::Hub;
use crate::{list, record, renew};

/// What is true of every Redis: any ttl of whole milliseconds, by the server's wall clock.
///
/// A key is gone for a script in the very millisecond; the lateness is the rounding of both ends.
static DESCRIPTOR: LazyLock<StoreDescriptor> = LazyLock::new(|| {
    StoreDescriptor::new(STORE).with_lateness(Duration::from_millis(5)).with_clock(LeaseClock::ServerWall)
});

/// Leases in Redis. Clones share the connection, and what it has seen of tokens.
///
/// Made by [`connect`](Self::connect) from a URL, or from a client that the service has already.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) link: Link,
    pub(crate) hub: Option<Hub>,
    pub(crate) seen: Seen,
    pub(crate) survey: Mutex<Survey>,
}

impl RedisStore {
    pub(crate) fn call<'a>(&self, operation: Operation, lease: &'a LeaseName) -> Call<'a> {
        Call { operation, lease: Some(lease), repeats: self.inner.link.is_cluster() }
    }

    pub(crate) fn check_ttl(&self, call: Call<'_>, ttl: Duration) -> Result<(), StoreError> {
        DESCRIPTOR.check_ttl(ttl).map_err(|error| call.error(StoreErrorKind::Invalid, error.to_string()))
    }

    async fn run(
        &self,
        call: Call<'_>,
        script: &Lua,
        slot: u16,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Answer, StoreError> {
        let value = script.run(&self.inner.link, slot, keys, args).await.map_err(|failure| call.failed(failure))?;
        match Answer::parse(value) {
            Some(Answer::Foreign { key, what }) => Err(call.foreign(&key, &what)),
            Some(answer) => Ok(answer),
            None => Err(call.not_understood()),
        }
    }

    /// The record that a script found under the lease's key.
    fn record(
        &self,
        call: Call<'_>,
        name: &LeaseName,
        keys: &LeaseKeys,
        text: &[u8],
        left: u64,
    ) -> Result<LeaseRecord, StoreError> {
        let record = record::parse(name, text, Duration::from_millis(left))
            .ok_or_else(|| call.foreign(&keys.lease, "holds no lease of tenure's"))?;
        self.inner.seen.token(name, record.token);
        Ok(record)
    }
}

#[async_trait]
impl LeaseStore for RedisStore {
    fn describe(&self) -> StoreDescriptor {
        let survey = self.inner.survey();
        DESCRIPTOR
            .clone()
            .with_version(survey.version.clone())
            .with_token(survey.durability())
            .with_wake_up(if self.inner.hub.is_some() { WakeUpKind::Push } else { WakeUpKind::Poll })
    }

    async fn try_acquire(&self, bid: &Bid) -> Result<Acquired, StoreError> {
        let call = self.call(Operation::Acquire, &bid.name);
        self.check_ttl(call, bid.ttl)?;
        let keys = LeaseKeys::of(&bid.name);
        let seen = self.inner.seen.highest(&bid.name).to_string();
        let ttl = bid.ttl.as_millis().to_string();
        let args: [&str; 5] = [bid.candidate.as_str(), &ttl, bid.payload.as_str(), &seen, &keys.channel];
        let sent = Instant::now();
        match self.run(call, &script::ACQUIRE, keys.slot, &keys.both(), &args.map(str::as_bytes)).await? {
            Answer::Granted { token, after_release } => {
                let grant = Grant::of(bid, FencingToken(token)).with_after_release(after_release);
                self.inner.seen.confirmed(&grant, sent);
                Ok(Acquired::Granted(grant))
            }
            Answer::Held { record, left } => self.record(call, &bid.name, &keys, &record, left).map(Acquired::Held),
            _ => Err(call.not_understood()),
        }
    }

    async fn renew(&self, grant: &Grant) -> Result<Renewed, StoreError> {
        renew::one(self, grant).await
    }

    async fn release(&self, grant: &Grant) -> Result<Released, StoreError> {
        let call = self.call(Operation::Release, &grant.name);
        let keys = LeaseKeys::of(&grant.name);
        let term = record::first_line(&grant.candidate, grant.token);
        let token = grant.token.to_string();
        let args: [&str; 3] = [&term, &token, &keys.channel];
        match self.run(call, &script::RELEASE, keys.slot, &keys.both(), &args.map(str::as_bytes)).await? {
            Answer::Freed => Ok(Released::Freed),
            Answer::Gone { .. } => Ok(Released::NotHeld),
            Answer::Held { record, left } => {
                self.record(call, &grant.name, &keys, &record, left).map(|_| Released::NotHeld)
            }
            _ => Err(call.not_understood()),
        }
    }

    async fn read(&self, name: &LeaseName) -> Result<Option<LeaseRecord>, StoreError> {
        let call = self.call(Operation::Read, name);
        let keys = LeaseKeys::of(name);
        match self.run(call, &script::READ, keys.slot, &[&keys.lease], &[]).await? {
            Answer::Free => Ok(None),
            Answer::Held { record, left } => self.record(call, name, &keys, &record, left).map(Some),
            _ => Err(call.not_understood()),
        }
    }

    /// Looks at the server's configuration, which [`describe`](Self::describe) then tells of. There is nothing to set
    /// up.
    async fn prepare(&self) -> Result<(), StoreError> {
        self.survey(Call { operation: Operation::Prepare, lease: None, repeats: false }).await
    }

    fn list(&self) -> BoxStream<'static, Result<LeaseRecord, StoreError>> {
        list::records(self.clone())
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Result<Renewed, StoreError>> {
        renew::many(self, grants).await
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        match &self.inner.hub {
            Some(hub) => hub.watch(name).boxed(),
            None => stream::pending().boxed(),
        }
    }
}

impl Inner {
    pub(crate) fn survey(&self) -> MutexGuard<'_, Survey> {
        // A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
        self.survey.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("link", &self.inner.link).finish_non_exhaustive()
    }
}
