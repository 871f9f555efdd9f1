//! What only a server can show: refusals by name, races between connections, a server that dies.
//!
//! Without `DRAWLOOM_TEST_POSTGRES` nothing here runs. The server that dies is one of the tests' own.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]

extern crate drawloom_store as store;

#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/both.rs"]
mod both;
#[path = "postgres/damage.rs"]
mod damage;
#[path = "suite/damaged.rs"]
mod damaged;
#[path = "postgres/dying.rs"]
mod dying;
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/generations.rs"]
mod generations;
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/home.rs"]
mod home;
#[path = "postgres/own.rs"]
mod own;
#[path = "postgres/races.rs"]
mod races;
#[path = "postgres/refusals.rs"]
mod refusals;
#[allow(dead_code, reason = "shared with the behavioural suite")]
#[path = "suite/server.rs"]
mod server;
