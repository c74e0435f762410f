#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod admin;
mod bench;
mod check;
mod child;
mod clause;
mod clauses;
mod client;
mod elsewhere;
mod fault_injector;
mod figures;
mod harness;
mod macros;
mod plan;
mod report;
mod run;
mod store_harness;
mod unable;

pub use admin::{Admin, Foreign};
#[doc(hidden)]
pub use check::{check, check_child, check_skips};
pub use child::{ChildProcess, serve_child};
pub use clause::Clause;
pub use clauses::clauses;
pub use elsewhere::{Elsewhere, Surroundings};
pub use fault_injector::{FaultInjector, FaultsInFront};
pub use figures::{Figure, Figures, Summary};
pub use harness::{Harness, Trespass};
pub use plan::Plan;
pub use report::{ClauseReport, Outcome, Report};
pub use run::run;
pub use store_harness::StoreHarness;
pub use tenure_core::async_trait;
pub use unable::Unable;
