//! Continuity: sessions that pick up where the last one stopped (spec: continuity).

pub mod deterministic;
pub mod draft;
pub mod handoff;
pub mod ledger;
pub mod overflow;
