//! Decisions through the public face: the table, lines that try to pass rules, and the laws of rules.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

mod bypass;
mod documents;
mod everyday;
mod lasting;
mod laws;
mod rules;
mod skills;
mod support;
mod table;
