//! Continuity: sessions that pick up where the last one stopped (spec: continuity).

pub mod handoff;
pub mod ledger;
