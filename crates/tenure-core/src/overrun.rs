//! Work that goes on after it was cut off.

/// Says what happens when work outlives its cut-off: it blocks its thread, or it swallowed its cancellation.
///
/// No library can end such work from outside. It has no authority any more, and [`Leadership::check`] says so; only the
/// fencing token keeps its writes from taking effect.
///
/// [`Leadership::check`]: crate::Leadership::check
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OverrunPolicy {
    /// Report it: an error-level log line, [`Election::overruns`](crate::Election::overruns), and the standing.
    #[default]
    Detach,
    /// End the process at once, without running destructors: for work whose double execution is worse than a crash.
    Abort,
}
