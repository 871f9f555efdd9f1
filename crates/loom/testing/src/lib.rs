//! What the tests of several crates stand on: a tree in memory that takes plans ([`WriteRows`]), who plans for it
//! ([`Planner`]), and both as one ([`Fixture`]).
//!
//! Nothing of it is in the program: only development dependencies lead here (`xtask/tests/floors.rs`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a fixture fails by panicking"
)]

mod crossings;
mod fixture;
mod no_evidence;
mod planner;
mod write_rows;

pub use crossings::crossings;
pub use fixture::{Fixture, Stored, main_view, purge};
pub use no_evidence::NoEvidence;
pub use planner::{Planner, TREE};
pub use write_rows::{ApplyError, WriteRows};
