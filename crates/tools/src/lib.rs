//! Tools of an agent (spec: agent §3): one table of them, the check of what they are called with, and those that look
//! at files.
//!
//! A tool is a name, a description and a schema made of the type of its arguments, with its effects. Policy decides on
//! each call before it runs; one that changes files says first, durably, what it will change.

mod arguments;
mod changes;
pub mod edits;
mod files;
mod registry;
mod tool;

pub use changes::{ChangeRecorder, FileContent, PlannedChange, SeenFiles, give_back, unified_diff};
pub use registry::{CheckedCall, ToolRegistry};
pub use tool::{Tool, ToolOutput, ToolScope};
