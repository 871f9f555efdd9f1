//! Turns through the public face of the engine: what is durable when, who holds a session, and what becomes of what
//! others say meanwhile (spec: agent §1, security §7).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod answering;
mod approving;
mod attaching;
mod authors;
mod caching;
mod choices;
mod counting;
mod cut_usage;
mod forgetting;
mod handing;
mod joining;
mod leases;
mod limits;
mod meanwhile;
mod prompting;
mod schedules;
mod sending;
mod spending;
mod support;
mod tools;
mod trust;
mod waiting;
mod withdrawing;
