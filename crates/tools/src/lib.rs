//! Tools of an agent (spec: agent §3): one table of them, the check of what they are called with, and those that look
//! at files.
//!
//! A tool is a name, a description and a schema made of the type of its arguments. All that there are look at files and
//! change nothing.

mod arguments;
pub mod edits;
mod files;
mod registry;
mod tool;

pub use registry::{CheckedCall, ToolRegistry};
pub use tool::{Tool, ToolOutput, ToolScope};
