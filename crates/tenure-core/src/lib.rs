//! Lease-based leader election: values, the [`LeaseStore`] contract, the state machine, the driver and a memory store.
//!
//! Most programs use the `tenure` facade, which re-exports this crate and adds backends by feature. A backend depends
//! on this crate alone.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod campaign;
mod candidate;
pub mod clock;
mod descriptor;
mod driver;
mod election;
mod election_error;
mod error;
mod fence;
mod invalid;
mod leadership;
mod lease;
pub mod machine;
mod memory;
#[cfg(feature = "metrics")]
mod meter;
#[cfg(not(feature = "metrics"))]
#[path = "meter/none.rs"]
mod meter;
mod name;
mod observe;
mod outcome;
mod overrun;
mod payload;
mod store;
mod tasks;
mod timing;
mod token;
mod url;

pub use async_trait::async_trait;
pub use candidate::{CandidateId, Label};
pub use descriptor::{LeaseClock, StoreDescriptor, TokenDurability, WakeUpKind};
pub use election::{Election, ElectionBuilder, Ended};
pub use election_error::ElectionError;
pub use error::{Operation, StoreError, StoreErrorKind};
pub use fence::{Fence, Fenced, StaleToken};
pub use invalid::Invalid;
pub use leadership::{Leadership, Term};
pub use lease::{Bid, Grant, LeaseRecord, Receipt};
pub use machine::{OnFinish, Standing};
pub use memory::{Fault, FaultHook, MemoryStore, StoreCall};
pub use name::LeaseName;
pub use observe::{LeaderChange, observe, observe_on};
pub use outcome::{Acquired, LossReason, Released, Renewed, WakeUp};
pub use overrun::OverrunPolicy;
pub use payload::Payload;
pub use store::LeaseStore;
pub use timing::{Timing, TimingBuilder};
pub use token::FencingToken;
pub use tokio_util::sync::CancellationToken;
pub use url::{StoreHost, StoreUrl};
