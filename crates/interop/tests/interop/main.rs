//! The crate through its public face: export, import, and what people read.

#![allow(clippy::wildcard_imports, reason = "tests speak the words of the tree crate")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "modules of one test binary")]

extern crate drawloom_interop as interop;

mod driver;
mod hostile;
mod import;
mod own;
mod reading;
mod schema;
