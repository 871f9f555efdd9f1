//! What only a file can show: durability, faults, foreign and damaged files, several processes, bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

extern crate drawloom_store as store;

#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/both.rs"]
mod both;
#[path = "sqlite/bytes.rs"]
mod bytes;
#[path = "sqlite/damage.rs"]
mod damage;
#[path = "suite/damaged.rs"]
mod damaged;
#[path = "sqlite/faults.rs"]
mod faults;
#[path = "sqlite/files.rs"]
mod files;
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/generations.rs"]
mod generations;
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/home.rs"]
mod home;
#[path = "sqlite/large.rs"]
mod large;
#[path = "sqlite/limits.rs"]
mod limits;
#[path = "sqlite/merging.rs"]
mod merging;
#[path = "sqlite/moved.rs"]
mod moved;
#[path = "sqlite/processes.rs"]
mod processes;
#[path = "sqlite/removal.rs"]
mod removal;
#[cfg(feature = "postgres")]
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/server.rs"]
mod server;
