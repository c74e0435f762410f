//! Where the client comes from, and how it is made anew when the cluster's certificates or its own credentials change.

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;

use crate::config::Target;
use crate::error::{Failure, is_refused_certificate, is_refused_login};

/// Files are read again at most so often: a login that is simply wrong costs one more request and not two.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) enum Source {
    /// The service's own: it is used as it is.
    Given(Client),
    /// Made from a URL.
    Made { target: Box<Target>, current: Mutex<Made> },
}

#[derive(Clone)]
pub(crate) struct Made {
    client: Client,
    at: Instant,
}

impl Source {
    pub(crate) async fn made(target: Target) -> Result<(Self, String), Failure> {
        let (client, namespace) = open(&target).await?;
        let current = Mutex::new(Made { client, at: Instant::now() });
        Ok((Self::Made { target: Box::new(target), current }, namespace))
    }

    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Given(client) => client.clone(),
            Self::Made { current, .. } => lock(current).client.clone(),
        }
    }

    /// Sends `request`. One that was refused for its login, or never left for a certificate that is not trusted, was
    /// surely not applied: it is sent once more with what the files say now.
    pub(crate) async fn send<T, F>(&self, request: impl Fn(Client) -> F) -> Result<T, kube::Error>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        match request(self.client()).await {
            Err(error) if is_refused_login(&error) || is_refused_certificate(&error) => match self.anew().await {
                Some(client) => request(client).await,
                None => Err(error),
            },
            answer => answer,
        }
    }

    async fn anew(&self) -> Option<Client> {
        let Self::Made { target, current } = self else { return None };
        if lock(current).at.elapsed() < PAUSE {
            return None;
        }
        lock(current).at = Instant::now();
        let (client, _) = open(target).await.ok()?;
        *lock(current) = Made { client: client.clone(), at: Instant::now() };
        Some(client)
    }
}

async fn open(target: &Target) -> Result<(Client, String), Failure> {
    let config = target.config().await?;
    let namespace = target.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| Failure::of_client(&error))?;
    Ok((client, namespace))
}

/// Shows nothing of what it holds: credentials.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given"),
            Self::Made { target, .. } => f.debug_tuple("Made").field(target).finish(),
        }
    }
}

/// A panic elsewhere cannot leave a half-made change behind: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
