//! The bound on every call.

use tenure_core::{LeaseName, Operation, StoreError};
use tokio::time::timeout;

use crate::config::CALL_BOUND;
use crate::error::{Effect, Failure};

/// Runs `call` for at most 5 s, and names operation and lease in its failure. The client hangs for ever by default, on
/// streams and while it connects even with its own time-outs set.
pub(crate) async fn bounded<T>(
    operation: Operation,
    name: Option<&LeaseName>,
    effect: Effect,
    call: impl Future<Output = Result<T, Failure>>,
) -> Result<T, StoreError> {
    let answer = match timeout(CALL_BOUND, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::no_answer(effect, CALL_BOUND)),
    };
    answer.map_err(|failure| failure.into_error(operation, name))
}
