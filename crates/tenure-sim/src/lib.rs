//! Proof by simulation: a deterministic world around the very state machine that ships, and a model checker.
//!
//! A seed means a [`Scenario`](scenario::Scenario); a [`World`](world::World) plays it; an
//! [`Observer`](observer::Observer) with true time judges it by the [`invariants`]. [`planted`] bugs test the tester. The
//! [`model`] goes through all runs within some bounds instead of drawing one after another.

pub mod clock;
pub mod event;
pub mod invariants;
pub mod lease;
pub mod model;
pub mod observer;
pub mod planted;
pub mod queue;
pub mod runner;
pub mod scenario;
pub mod store;
pub mod times;
pub mod world;
