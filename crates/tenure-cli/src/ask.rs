//! Asking a store something: what `status`, `watch` and `check` have in common.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tenure::{LeaseName, LeaseStore, StoreError, StoreErrorKind};

use crate::args::Global;
use crate::{exit, logging, store};

/// Longest time to wait for one answer: longer than any store needs that works, and short enough for a script.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the store that is meant and lets `question` answer with an exit code. What fails is said on stderr: a usage
/// error is 2, everything else means that nobody can tell, 3.
pub(crate) fn ask<F>(global: &Global, question: impl FnOnce(Arc<dyn LeaseStore>) -> F) -> u8
where
    F: Future<Output = anyhow::Result<u8>>,
{
    let refused = |error: &anyhow::Error, code| {
        logging::failure(global, error);
        code
    };
    let url = match store::choose(&global.store) {
        Ok(url) => url,
        Err(error) => return refused(&error, exit::USAGE),
    };
    let answer = async {
        let store = in_time(store::open(&url)).await?;
        question(store).await
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refused(&error.into(), exit::UNSURE),
    };
    match runtime.block_on(answer) {
        Ok(code) => code,
        Err(error) => refused(&error, if is_usage(&error) { exit::USAGE } else { exit::UNSURE }),
    }
}

/// Waits for an answer of the store, but not for ever.
///
/// # Errors
///
/// The store's own, or that it did not answer.
pub(crate) async fn in_time<T>(call: impl Future<Output = Result<T, StoreError>>) -> anyhow::Result<T> {
    let answer = tokio::time::timeout(PATIENCE, call).await;
    Ok(answer.with_context(|| format!("the store did not answer within {PATIENCE:?}"))??)
}

/// The lease that is meant: named as an argument or with `--name`.
///
/// # Errors
///
/// When both name one, and not the same.
pub(crate) fn one_name<'a>(
    argument: Option<&'a LeaseName>,
    global: &'a Global,
) -> anyhow::Result<Option<&'a LeaseName>> {
    match (argument, &global.name) {
        (Some(argument), Some(name)) if argument != name => {
            Err(Usage(format!("--name {name} and {argument} name two leases; one is expected")).into())
        }
        (argument, name) => Ok(argument.or(name.as_ref())),
    }
}

/// A command line that makes no sense, found out after it was parsed.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whether another command line would do: the store is not even asked.
fn is_usage(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<StoreError>().map(StoreError::kind);
    error.is::<Usage>() || matches!(kind, Some(StoreErrorKind::Invalid | StoreErrorKind::Unsupported))
}
