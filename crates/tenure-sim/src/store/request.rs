//! What goes to the store and comes back.

use tenure_core::StoreErrorKind;

use crate::clock::Nanos;

/// A campaign's identity: the number that its `CandidateId` is made of.
pub type Who = u32;

/// What a candidate asks the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    /// For the lease.
    Bid {
        /// Who asks.
        who: Who,
        /// For how long.
        ttl: Nanos,
    },
    /// For more time.
    Renew {
        /// Who holds it.
        who: Who,
        /// The term.
        token: u64,
        /// For how long.
        ttl: Nanos,
    },
    /// To take it back.
    Release {
        /// Who held it.
        who: Who,
        /// The term.
        token: u64,
    },
    /// Who holds it.
    Read,
    /// Kubernetes: the object as it is.
    Get,
    /// Kubernetes: a new state of the object, if its version is still `version`.
    Put {
        /// The version that was read.
        version: u64,
        /// The new state.
        put: Object,
    },
}

/// A Kubernetes `Lease` object; its version is 0 where there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// `resourceVersion`.
    pub version: u64,
    /// `holderIdentity`.
    pub holder: Option<Who>,
    /// `leaseTransitions`.
    pub token: u64,
    /// `leaseDurationSeconds`.
    pub ttl: Nanos,
}

/// The lease as a read shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seen {
    /// Who holds it.
    pub who: Who,
    /// The term.
    pub token: u64,
    /// The holder's ttl.
    pub ttl: Nanos,
    /// Time left.
    pub remaining: Nanos,
}

/// What comes back from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// The candidate holds the lease.
    Granted {
        /// The term.
        token: u64,
        /// The ttl that was granted.
        ttl: Nanos,
        /// The term before was given up in order.
        after_release: bool,
    },
    /// Somebody else does.
    Held(Seen),
    /// For the full ttl from now on.
    Extended {
        /// The ttl that was granted.
        ttl: Nanos,
    },
    /// Not this term's any more.
    Lost(Loss),
    /// Given back.
    Freed,
    /// Was not this term's.
    NotHeld,
    /// Who holds it.
    Found(Option<Seen>),
    /// No outcome.
    Failed(StoreErrorKind),
    /// Kubernetes: the object.
    Got(Object),
    /// Kubernetes: written.
    Written,
    /// Kubernetes: the version had changed.
    Conflict,
}

/// Why a renewal was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Loss {
    /// Somebody else holds it.
    Superseded(Who),
    /// It ran out.
    Expired,
    /// There is no record.
    Removed,
}
