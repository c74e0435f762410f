//! Lease-based leader election: values, the [`LeaseStore`] contract, the state machine, the driver and a memory store.
//!
//! Most programs use the `tenure` facade, which re-exports this crate and adds backends by feature. A backend depends
//! on this crate alone.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod candidate;
pub mod clock;
mod descriptor;
mod error;
mod invalid;
mod lease;
mod memory;
mod name;
mod outcome;
mod payload;
mod store;
mod token;
mod url;

pub use async_trait::async_trait;
pub use candidate::{CandidateId, Label};
pub use descriptor::{LeaseClock, StoreDescriptor, TokenDurability, WakeUpKind};
pub use error::{Operation, StoreError, StoreErrorKind};
pub use invalid::Invalid;
pub use lease::{Bid, Grant, LeaseRecord, Receipt};
pub use memory::{Fault, FaultHook, MemoryStore, StoreCall};
pub use name::LeaseName;
pub use outcome::{Acquired, LossReason, Released, Renewed, WakeUp};
pub use payload::Payload;
pub use store::LeaseStore;
pub use token::FencingToken;
pub use url::{StoreHost, StoreUrl};
