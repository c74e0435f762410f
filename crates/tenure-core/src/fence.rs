//! The check of a fencing token at a resource in this process.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::FencingToken;

/// Guards a resource of this process with fencing tokens: whoever comes with a token older than one that was seen is
/// refused, however late its request arrives.
///
/// The check and the use of the resource are one step, since [`enter`](Self::enter) keeps others out until its guard is
/// dropped. Resources elsewhere need the same in their own terms: see the fencing helpers of the backends. A new leader
/// enters once, before it reads any state: until then an older leader's late write would still be let in.
///
/// ```
/// use tenure_core::{Fence, FencingToken};
///
/// let ledger = Fence::new(Vec::new());
/// ledger.enter(FencingToken(7))?.push("written by term 7");
/// ledger.enter(FencingToken(8))?.push("written by term 8");
/// let stale = ledger.enter(FencingToken(7)).unwrap_err();
/// assert_eq!(stale.to_string(), "fencing token 7 is stale: 8 has been seen");
/// # Ok::<(), tenure_core::StaleToken>(())
/// ```
#[derive(Debug, Default)]
pub struct Fence<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug, Default)]
struct Inner<T> {
    seen: FencingToken,
    resource: T,
}

/// Access to a fenced resource; others are kept out until it is dropped.
#[derive(Debug)]
pub struct Fenced<'a, T> {
    inner: MutexGuard<'a, Inner<T>>,
}

/// A token was refused because a later term has been here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fencing token {presented} is stale: {seen} has been seen")]
pub struct StaleToken {
    /// The token that was refused.
    pub presented: FencingToken,
    /// The largest token so far.
    pub seen: FencingToken,
}

impl<T> Fence<T> {
    /// Guards `resource`; no token has been seen yet.
    pub fn new(resource: T) -> Self {
        Self { inner: Mutex::new(Inner { seen: FencingToken(0), resource }) }
    }

    /// Lets the holder of `token` at the resource, and shuts out all older ones from now on. The same token may enter
    /// any number of times.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] when a larger token has been seen.
    pub fn enter(&self, token: FencingToken) -> Result<Fenced<'_, T>, StaleToken> {
        // A panic of an earlier user concerns the resource, not the order of tokens.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if token < inner.seen {
            return Err(StaleToken { presented: token, seen: inner.seen });
        }
        inner.seen = token;
        Ok(Fenced { inner })
    }
}

impl<T> Deref for Fenced<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner.resource
    }
}

impl<T> DerefMut for Fenced<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner.resource
    }
}
