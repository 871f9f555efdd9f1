//! Tools of an agent (spec: agent §3): one table of them, the check of what they are called with, and those that look
//! at files.
//!
//! A tool is a name, a description, a schema made of the type of its arguments, and what it does to the world. What
//! runs it decides before whether it may ([`Effect`]), and keeps what it said after.

mod arguments;
mod files;
mod registry;
mod tool;

pub use registry::{CheckedCall, ToolRegistry};
pub use tool::{Effect, Tool, ToolOutput, ToolScope};
