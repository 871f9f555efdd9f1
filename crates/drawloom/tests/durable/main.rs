//! What the program keeps, whatever happens to it: killed, stopped, raced, fed with nonsense, out of space, in
//! front of broken servers and damaged files (spec: loom §10.7, security §7, §8, §28).
//!
//! Every test runs the real binary in a home of its own. A refusal is one line with its exit code, and the tree is
//! the same before and after: [`support::Before`] compares text, log and `tree verify`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

mod damage;
mod disk;
mod input;
mod kill;
mod leftovers;
mod migrating;
mod migrating_kills;
mod mock;
mod power;
mod processes;
#[path = "../shared/program.rs"]
mod program;
mod reading;
mod servers;
mod sessions;
mod support;
mod surroundings;
mod syncing;
mod turns;
