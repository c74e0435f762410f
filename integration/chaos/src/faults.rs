//! What harm is done, drawn by chance.

use std::time::Duration;

use rustix::process::Signal;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::case::Candidates;
use crate::proxies::{Mode, Proxy, set};
use crate::target::{Target, server};

/// One kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// A candidate's process is killed, and started again.
    Kill,
    /// It is asked to stop, and started again.
    Stop,
    /// It is frozen for so long.
    Freeze,
    /// Its network does this for so long.
    Network(Mode),
    /// The connections that stand go silent for good; new ones pass.
    HalfOpen,
    /// A server is frozen for so long.
    Pause,
    /// A server is killed, and started again after so long.
    Restart,
    /// The member that leads the store's own cluster is frozen for so long.
    PauseLeader,
    /// It is killed, and started again after so long.
    RestartLeader,
    /// The database is locked by somebody else for so long.
    Lock,
}

impl Harm {
    /// Draws one that the target can suffer.
    pub(crate) fn draw(random: &mut fastrand::Rng, target: &Target, ttl: Duration) -> Self {
        let delay = ttl.mul_f64(random.f64() * 0.6);
        let mut kinds = vec![Self::Kill, Self::Kill, Self::Stop, Self::Freeze, Self::Freeze];
        if target.servers.is_empty() {
            kinds.extend([Self::Lock, Self::Lock]);
        } else {
            kinds.extend([Mode::Silent, Mode::Cut, Mode::LoseAnswers, Mode::LoseRequests].map(Self::Network));
            kinds.extend([Mode::DelayAnswers(delay), Mode::DelayRequests(delay)].map(Self::Network));
            kinds.push(Self::Network(Mode::CutEvery(random.u32(2..6))));
            kinds.extend([Self::HalfOpen, Self::Pause, Self::Restart]);
            if target.has_leader() {
                kinds.extend([Self::PauseLeader, Self::RestartLeader].repeat(2));
            }
        }
        kinds[random.usize(..kinds.len())]
    }

    /// Whether it befalls the store, and not one candidate.
    pub(crate) fn hits_everybody(self) -> bool {
        matches!(self, Self::Pause | Self::Restart | Self::PauseLeader | Self::RestartLeader | Self::Lock)
    }

    /// How it is shown.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Network(mode) => format!("{mode:?}").split('(').next().unwrap_or_default().to_lowercase(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Does it to candidate `victim`, or to a server, and makes it good again after `lasts`; says whether it came about.
    pub(crate) async fn befall(
        self,
        victim: usize,
        lasts: Duration,
        candidates: &mut Candidates,
        random: &mut fastrand::Rng,
    ) -> bool {
        match self {
            Self::Kill => {
                candidates.end(victim, Signal::KILL).await;
                tokio::time::sleep(lasts / 4).await;
                candidates.start(victim).await;
                // Now and then nothing else happens until somebody must lead again, so that this is measured.
                if random.bool() {
                    tokio::time::sleep(candidates.ttl().mul_f64(1.4)).await;
                }
            }
            Self::Stop => {
                candidates.end(victim, Signal::TERM).await;
                candidates.start(victim).await;
            }
            Self::Freeze => {
                candidates.signal(victim, Signal::STOP);
                tokio::time::sleep(lasts).await;
                candidates.signal(victim, Signal::CONT);
            }
            Self::Network(mode) => {
                set(candidates.proxies(victim), mode);
                tokio::time::sleep(lasts).await;
                set(candidates.proxies(victim), Mode::Pass);
            }
            Self::HalfOpen => {
                candidates.proxies(victim).iter().for_each(Proxy::kill_standing);
                tokio::time::sleep(lasts).await;
            }
            Self::Pause => {
                pause(&one_of(&candidates.target.servers, random), lasts).await;
            }
            Self::PauseLeader => match candidates.target.leader().await {
                Some(name) => pause(&name, lasts).await,
                None => return false,
            },
            Self::RestartLeader => match candidates.target.leader().await {
                Some(name) => restart(&name, lasts).await,
                None => return false,
            },
            Self::Restart => {
                restart(&one_of(&candidates.target.servers, random), lasts).await;
            }
            Self::Lock => {
                let options = SqliteConnectOptions::new().filename(candidates.target.file());
                let Ok(mut connection) = options.connect().await else { return false };
                if sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut connection).await.is_err() {
                    return false;
                }
                tokio::time::sleep(lasts).await;
                let _ = sqlx::raw_sql("ROLLBACK").execute(&mut connection).await;
            }
        }
        true
    }
}

async fn pause(name: &str, lasts: Duration) {
    server("pause", name).await;
    tokio::time::sleep(lasts).await;
    server("resume", name).await;
}

async fn restart(name: &str, lasts: Duration) {
    server("kill", name).await;
    tokio::time::sleep(lasts / 2).await;
    server("start", name).await;
    server("wait", name).await;
}

fn one_of(names: &[String], random: &mut fastrand::Rng) -> String {
    names[random.usize(..names.len())].clone()
}
