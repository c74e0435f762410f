//! A client of the server, right but for the server's mistake, with a wire on which things get lost.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tenure_core::{
    Acquired, Bid, Fault, Grant, LeaseName, LeaseRecord, LeaseStore, LossReason, Operation, Released, Renewed,
    StoreDescriptor, StoreError, StoreErrorKind, TokenDurability, WakeUp, WakeUpKind, async_trait,
};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::mistake::Mistake;
use crate::server::{Answer, Caller, MAX_TTL, Server, UNIT};
use crate::watch::watch;

/// How long a call waits for its answer.
pub(crate) const CALL_BOUND: Duration = Duration::from_millis(600);

/// What the server lets a client do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    Full,
    ReadOnly,
    None,
}

pub(crate) const SECRET: &str = "canary-41f9";

pub(crate) struct Client {
    pub(crate) server: Arc<Server>,
    pub(crate) fault: Mutex<Fault>,
    caller: Caller,
    pass: Pass,
    connections: Semaphore,
    counted: Mutex<HashMap<LeaseName, u64>>,
    remembered: Mutex<HashSet<String>>,
    unread: Mutex<Option<Option<LeaseRecord>>>,
}

static CLIENTS: AtomicUsize = AtomicUsize::new(1);

impl Client {
    pub(crate) fn new(server: &Arc<Server>, mut caller: Caller, pass: Pass) -> Arc<Self> {
        caller.client = CLIENTS.fetch_add(1, SeqCst);
        server.connections.fetch_add(1, SeqCst);
        Arc::new(Self {
            server: Arc::clone(server),
            fault: Mutex::new(Fault::None),
            caller,
            pass,
            connections: Semaphore::new(8),
            counted: Mutex::default(),
            remembered: Mutex::default(),
            unread: Mutex::default(),
        })
    }

    /// What the server sees of the end of the client's process.
    pub(crate) fn end(&self) {
        self.server.client_gone(self.caller.client);
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.server.makes(mistake)
    }

    /// Sends one request over the wire and waits for its answer.
    async fn request<T: Send + 'static>(
        &self,
        operation: Operation,
        name: &LeaseName,
        apply: impl Fn(&Server) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        self.let_in(operation, name)?;
        let Ok(connection) = timeout(CALL_BOUND, self.connections.acquire()).await else {
            return Err(
                Server::error(StoreErrorKind::Unavailable, operation, name).with_detail("no connection is free")
            );
        };
        let connection = connection.unwrap();
        let kept = self.makes(Mistake::DroppedCallKeepsConnection).then(|| connection.forget());
        yield_now().await;
        let fault = *self.fault.lock().unwrap();
        let answer = self.carry(fault, operation, name, apply).await;
        yield_now().await;
        if kept.is_some() {
            self.connections.add_permits(1);
        }
        answer
    }

    async fn carry<T: Send + 'static>(
        &self,
        fault: Fault,
        operation: Operation,
        name: &LeaseName,
        apply: impl Fn(&Server) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let server = Arc::clone(&self.server);
        match fault {
            Fault::None => apply(&server),
            Fault::LoseRequest => self.no_answer(operation, name).await,
            Fault::LoseReply => {
                drop(apply(&server));
                self.no_answer(operation, name).await
            }
            Fault::DelayRequest(delay) => {
                let under_way = tokio::spawn(async move {
                    sleep(delay).await;
                    apply(&server)
                });
                match timeout(CALL_BOUND, under_way).await {
                    Ok(answer) => answer.unwrap(),
                    Err(_) => Err(Server::error(StoreErrorKind::Unknown, operation, name)),
                }
            }
            Fault::Repeat(delay) => {
                let answer = apply(&server);
                tokio::spawn(async move {
                    sleep(delay).await;
                    drop(apply(&server));
                });
                answer
            }
            other => panic!("this wire cannot cause {other:?}"),
        }
    }

    async fn no_answer<T>(&self, operation: Operation, name: &LeaseName) -> Answer<T> {
        if self.makes(Mistake::WaitsForEver) {
            return pending().await;
        }
        sleep(CALL_BOUND).await;
        let kind =
            if self.makes(Mistake::UnknownIsRefused) { StoreErrorKind::Unavailable } else { StoreErrorKind::Unknown };
        Err(Server::error(kind, operation, name).with_detail("no answer in time"))
    }

    fn let_in(&self, operation: Operation, name: &LeaseName) -> Answer<()> {
        let denied = |mistake| match self.makes(mistake) {
            true => Server::error(StoreErrorKind::Unavailable, operation, name),
            false => Server::error(StoreErrorKind::Denied, operation, name),
        };
        match self.pass {
            Pass::None if self.makes(Mistake::PasswordInError) => {
                Err(denied(Mistake::WrongPasswordIsPassing).with_source(format!("wrong password {SECRET}")))
            }
            Pass::None => Err(denied(Mistake::WrongPasswordIsPassing)),
            Pass::ReadOnly if operation != Operation::Read => Err(denied(Mistake::MissingRightIsPassing)),
            _ => Ok(()),
        }
    }

    /// Takes the lock that `mistake` leaves behind when the call is dropped before it gives it back.
    async fn locking<T>(&self, mistake: Mistake, name: &LeaseName, call: impl Future<Output = T>) -> T {
        if !self.makes(mistake) {
            return call.await;
        }
        if self.server.lock(name) {
            yield_now().await;
            self.server.unlock(name);
        }
        call.await
    }

    async fn bid(&self, bid: &Bid) -> Answer<Acquired> {
        let (caller, name, sent) = (self.caller, bid.name.clone(), bid.clone());
        let known = format!("bid {} {}", bid.name, bid.candidate);
        if self.makes(Mistake::ClientTrustsItsBid) && !self.remembered.lock().unwrap().insert(known) {
            let token = tenure_core::FencingToken(self.server.next_token(&name) - 1);
            return Ok(Acquired::Granted(Grant::of(bid, token).with_receipt(tenure_core::Receipt::new("1"))));
        }
        let mut token = None;
        if self.makes(Mistake::TokenReadThenWritten) {
            token = Some(self.request(Operation::Read, &name, move |server| Ok(server.next_token(&sent.name))).await?);
            // On a network that takes a while.
            sleep(Duration::from_millis(2)).await;
        }
        let blindly = self.makes(Mistake::CheckThenSet) && self.server.is_free(&name, caller);
        let sent = bid.clone();
        let answer = self
            .request(Operation::Acquire, &name, move |server| server.acquire(&sent, caller, token, blindly))
            .await?;
        if let Acquired::Granted(grant) = &answer
            && self.makes(Mistake::SetThenExpire)
        {
            let grant = grant.clone();
            self.request(Operation::Acquire, &name, move |server| server.set_expiry(&grant, caller)).await?;
        }
        Ok(answer)
    }

    async fn renew_one(&self, grant: &Grant) -> Answer<Renewed> {
        let (caller, sent) = (self.caller, grant.clone());
        let counts = self.makes(Mistake::CountsRenewalsWhenSent);
        let learns = self.makes(Mistake::NeedsLastAnswer);
        let number = (counts || learns).then(|| *self.counted.lock().unwrap().entry(grant.name.clone()).or_default());
        let count = || *self.counted.lock().unwrap().entry(grant.name.clone()).or_default() += 1;
        if counts {
            count();
        }
        let answer =
            self.request(Operation::Renew, &grant.name, move |server| server.renew(&sent, caller, number)).await?;
        if learns {
            count();
        }
        Ok(answer)
    }
}

#[async_trait]
impl LeaseStore for Client {
    fn describe(&self) -> StoreDescriptor {
        let (min, max) = if self.makes(Mistake::DescribesNonsense) { (MAX_TTL, UNIT) } else { (UNIT, MAX_TTL) };
        StoreDescriptor::new("model")
            .with_ttl_limits(min, max, UNIT)
            .with_token(TokenDurability::Durable)
            .with_wake_up(WakeUpKind::Push)
    }

    async fn try_acquire(&self, bid: &Bid) -> Answer<Acquired> {
        let lenient = [Mistake::FractionsCutOff, Mistake::ShortTtlIsForever, Mistake::LongTtlWraps];
        if let Err(invalid) = self.describe().check_ttl(bid.ttl)
            && !lenient.into_iter().any(|mistake| self.makes(mistake))
        {
            let error = Server::error(StoreErrorKind::Invalid, Operation::Acquire, &bid.name);
            return Err(error.with_detail(invalid.to_string()));
        }
        self.locking(Mistake::DroppedBidLocks, &bid.name, self.bid(bid)).await
    }

    async fn renew(&self, grant: &Grant) -> Answer<Renewed> {
        self.locking(Mistake::DroppedRenewalLocks, &grant.name, self.renew_one(grant)).await
    }

    async fn release(&self, grant: &Grant) -> Answer<Released> {
        let (caller, sent) = (self.caller, grant.clone());
        let known = format!("release {} {}", grant.name, grant.token);
        if self.makes(Mistake::ForgetsWhenSent) && !self.remembered.lock().unwrap().insert(known) {
            return Ok(Released::Freed);
        }
        let call = self.request(Operation::Release, &grant.name, move |server| server.release(&sent, caller));
        self.locking(Mistake::DroppedReleaseLocks, &grant.name, call).await
    }

    async fn read(&self, name: &LeaseName) -> Answer<Option<LeaseRecord>> {
        if let Some(unread) = self.unread.lock().unwrap().take() {
            return Ok(unread);
        }
        let (caller, asked) = (self.caller, name.clone());
        let answer = self.request(Operation::Read, name, move |server| server.read(&asked, caller)).await?;
        if self.makes(Mistake::DroppedReadAnswersNext) {
            *self.unread.lock().unwrap() = Some(answer.clone());
            yield_now().await;
            self.unread.lock().unwrap().take();
        }
        Ok(answer)
    }

    async fn prepare(&self) -> Answer<()> {
        let alone = self.server.begin_setup();
        sleep(Duration::from_millis(5)).await;
        self.server.end_setup();
        let refused = StoreError::new(StoreErrorKind::Malformed, Operation::Prepare, "model");
        if alone { Ok(()) } else { Err(refused.with_detail("the table exists already")) }
    }

    fn list(&self) -> BoxStream<'static, Answer<LeaseRecord>> {
        stream::iter(self.server.list(self.caller)).boxed()
    }

    async fn renew_many(&self, grants: &[Grant]) -> Vec<Answer<Renewed>> {
        if grants.is_empty() && self.makes(Mistake::EmptyBatchIsAnError) {
            return vec![Err(StoreError::new(StoreErrorKind::Malformed, Operation::Renew, "model"))];
        }
        let mut answers = Vec::with_capacity(grants.len());
        for (at, grant) in grants.iter().enumerate() {
            let skipped = at > 0 && self.makes(Mistake::BatchRenewsFirst);
            let unknown = at >= 100 && self.makes(Mistake::BatchOfHundred)
                || grant.name.as_str().contains(',') && self.makes(Mistake::BatchSplitsNames);
            answers.push(match () {
                () if skipped => Ok(Renewed::Extended(grant.clone())),
                () if unknown => Ok(Renewed::Lost(LossReason::Removed)),
                () => self.locking(Mistake::DroppedBatchLocks, &grant.name, self.renew_one(grant)).await,
            });
        }
        if self.makes(Mistake::ForeignSpoilsBatch) && answers.iter().any(Result::is_err) {
            let spoilt = |grant: &Grant| Err(Server::error(StoreErrorKind::Malformed, Operation::Renew, &grant.name));
            return grants.iter().map(spoilt).collect();
        }
        if self.makes(Mistake::BatchSorted) {
            let mut sorted: Vec<_> = grants.iter().map(|grant| grant.name.clone()).zip(answers).collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            return sorted.into_iter().map(|(_, answer)| answer).collect();
        }
        answers
    }

    fn watch(&self, name: &LeaseName) -> BoxStream<'static, WakeUp> {
        watch(&self.server, name)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.server.connections.fetch_sub(1, SeqCst);
        self.end();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
