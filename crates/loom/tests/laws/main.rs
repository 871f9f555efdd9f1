//! The laws of the tree (spec: loom §10), each against a naive model or a control.
//!
//! One test binary, so that the support is compiled once. `PROPTEST_CASES` asks for more cases.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "support code is outside the test functions that the lints know"
)]

mod attribution;
mod cost;
mod damage;
mod drift;
mod history;
mod machine;
mod operations;
mod reads;
mod resolution;
mod stale;
mod support;
