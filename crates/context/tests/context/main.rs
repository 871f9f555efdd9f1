//! Behaviour of the context crate through its public face.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod damaged;
mod dialogue;
mod document;
mod estimate;
mod fixed;
mod planning;
mod sending;
mod session;
mod support;
