//! Which member of the cluster a request goes to, so that dead ones cost no calls.
//!
//! The client spreads requests over the members it was given and counts one that refuses connections as ready: with two
//! of three members dead, two of three calls fail. So each member has a client of its own here. A request goes to the
//! member that answered last; when that one refuses, or stays silent for a while, the same request goes to the next one
//! too, and the first answer counts. All requests of this crate may be sent twice: writes compare first, keep-alives
//! only extend, and an etcd lease without a key means nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Client, Error};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tenure_core::StoreErrorKind;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::config::EtcdConfig;
use crate::error::{Effect, Failure, translate};

/// Time within which a member that is alive answers; a caller that gives up sooner says nothing about the member.
const SOON: Duration = Duration::from_millis(100);

/// How often a request is sent through a client of the caller's own, which chooses the member itself, at random. With
/// two of three members dead, 10 tries fail in 2 of 100 calls and one try in 67.
const TRIES_OF_ONE_CLIENT: usize = 10;

/// The members, and which of them answers.
pub(crate) struct Endpoints {
    members: Vec<Member>,
    /// Index of the member that is asked first.
    preferred: AtomicUsize,
    tries: usize,
    /// How many copies of one request may be under way at once.
    abreast: usize,
}

impl Endpoints {
    /// One member per address of `config`.
    pub(crate) fn of_config(config: &Arc<EtcdConfig>) -> Self {
        let members: Vec<Member> = (0..config.members.len()).map(|n| Member::listed(config, n)).collect();
        // The only member is asked again over a new connection: the first one may be dead without knowing it.
        let tries = members.len().max(2);
        Self { members, preferred: AtomicUsize::new(0), tries, abreast: tries }
    }

    /// A client that chooses among its members itself.
    pub(crate) fn of_client(client: Client) -> Self {
        let link = Arc::new(Link::logged_in(client));
        let member = Member { link: Mutex::new(Some(link)), source: None };
        Self { members: vec![member], preferred: AtomicUsize::new(0), tries: TRIES_OF_ONE_CLIENT, abreast: 2 }
    }

    /// How many members there are to choose from.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Sends `request` until a member answers: at once to the next one when a member refuses, after `patience` when one
    /// is silent. A refusal that another member would repeat (a wrong password, say) is final.
    pub(crate) async fn call<T, R, F>(&self, effect: Effect, patience: Duration, request: R) -> Result<T, Failure>
    where
        R: Fn(Client) -> F,
        F: Future<Output = Result<T, Error>>,
    {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut tried = 0;
        let mut running = FuturesUnordered::new();
        let mut failure: Option<Failure> = None;
        let mut latest = None;
        loop {
            if tried < self.tries && running.len() < self.abreast {
                let member = (first + tried) % self.members.len();
                let link = self.members[member].link().await?;
                latest = Some(Silence::begin(&link));
                running.push(self.attempt(member, link, effect, &request));
                tried += 1;
            }
            let more = tried < self.tries && running.len() < self.abreast;
            tokio::select! {
                answer = running.next() => match answer {
                    Some(Ok(answer)) => return Ok(answer),
                    Some(Err(refused)) if self.is_final(&refused) => return Err(refused),
                    Some(Err(failed)) => failure = Some(match failure.take() {
                        Some(earlier) => earlier.or_vaguer(failed),
                        None => failed,
                    }),
                    None => return Err(failure.unwrap_or_else(|| Failure::no_answer(effect, Duration::ZERO))),
                },
                () = sleep(patience), if more => if let Some(silence) = &latest {
                    silence.note();
                },
            }
        }
    }

    /// Whether no other member, and no other connection, can make this any better. A certificate is one member's.
    fn is_final(&self, failure: &Failure) -> bool {
        match self.members.len() {
            1 => failure.from_server || !failure.kind.is_transient(),
            _ => failure.from_server && !failure.kind.is_transient(),
        }
    }

    async fn attempt<T, R, F>(&self, member: usize, link: Arc<Link>, effect: Effect, request: &R) -> Result<T, Failure>
    where
        R: Fn(Client) -> F,
        F: Future<Output = Result<T, Error>>,
    {
        let mut unanswered = Unanswered { endpoints: self, member, silence: Silence::begin(&link), ended: false };
        let answer = match link.log_in().await {
            Ok(()) => request(link.client.clone()).await.map_err(|error| translate(error, effect)),
            Err(failure) => Err(failure),
        };
        unanswered.ended = true;
        match &answer {
            Ok(_) => {
                link.answers.fetch_add(1, Ordering::Relaxed);
                self.preferred.store(member, Ordering::Relaxed);
            }
            Err(failure) => {
                link.answers.fetch_add(u64::from(failure.from_server), Ordering::Relaxed);
                if failure.kind.is_transient() || !failure.from_server {
                    self.pass_over(member);
                }
            }
        }
        answer
    }

    /// Asks the member after `member` first from now on, unless another one is preferred already.
    fn pass_over(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        let _ = self.preferred.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// One member of the cluster, and the client that reaches it.
struct Member {
    link: Mutex<Option<Arc<Link>>>,
    /// The address to open another client for; none for a client that the caller made.
    source: Option<(Arc<EtcdConfig>, usize)>,
}

impl Member {
    fn listed(config: &Arc<EtcdConfig>, number: usize) -> Self {
        Self { link: Mutex::new(None), source: Some((config.clone(), number)) }
    }

    /// The client in use; a new one where there is none or where the last one went silent.
    async fn link(&self) -> Result<Arc<Link>, Failure> {
        if let Some(link) = self.usable() {
            return Ok(link);
        }
        let Some((config, number)) = &self.source else {
            return Err(Failure::new(StoreErrorKind::Unavailable, "the store has no client"));
        };
        // Makes a client and no connection, so it waits for nothing.
        let client = Box::pin(config.open(&config.members[*number])).await?;
        let link = Arc::new(Link { login: Some(config.clone()), ..Link::logged_in(client) });
        // Another call may have been faster; one client is enough.
        let mut slot = self.slot();
        let link = slot.take().filter(|link| !link.silent.load(Ordering::Relaxed)).unwrap_or(link);
        Ok(slot.insert(link).clone())
    }

    fn usable(&self) -> Option<Arc<Link>> {
        let may_be_replaced = self.source.is_some();
        self.slot().clone().filter(|link| !(may_be_replaced && link.silent.load(Ordering::Relaxed)))
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client and what is known of it.
struct Link {
    client: Client,
    /// Who logs the client in before its first request; none where it is logged in already.
    login: Option<Arc<EtcdConfig>>,
    logged_in: OnceCell<()>,
    /// How many requests were answered.
    answers: AtomicU64,
    /// Whether a request stayed without an answer: its connection may be dead without knowing it.
    silent: AtomicBool,
}

impl Link {
    fn logged_in(client: Client) -> Self {
        Self {
            client,
            login: None,
            logged_in: OnceCell::new(),
            answers: AtomicU64::new(0),
            silent: AtomicBool::new(false),
        }
    }

    async fn log_in(&self) -> Result<(), Failure> {
        let Some(config) = &self.login else { return Ok(()) };
        // One login at a time: each costs the server a password hash.
        let login = || async { config.log_in(&self.client).await.map_err(|error| translate(error, Effect::None)) };
        self.logged_in.get_or_try_init(login).await.copied()
    }
}

/// Watches whether a link answers anything from some instant on.
struct Silence {
    link: Arc<Link>,
    answers: u64,
    since: Instant,
}

impl Silence {
    fn begin(link: &Arc<Link>) -> Self {
        Self { link: link.clone(), answers: link.answers.load(Ordering::Relaxed), since: Instant::now() }
    }

    /// Takes the connection for dead if nothing was answered over it since: the next request opens another one. A
    /// request that is still under way may yet be answered over the old one.
    fn note(&self) -> bool {
        let silent = self.link.answers.load(Ordering::Relaxed) == self.answers && self.since.elapsed() >= SOON;
        self.link.silent.fetch_or(silent, Ordering::Relaxed);
        silent
    }
}

/// Notices a request that is dropped without an answer: the next request does not wait for the same member, nor use the
/// same connection.
struct Unanswered<'a> {
    endpoints: &'a Endpoints,
    member: usize,
    silence: Silence,
    ended: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.ended && self.silence.note() {
            self.endpoints.pass_over(self.member);
        }
    }
}
