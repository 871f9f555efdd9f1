//! Arguments of `approvals`, `approve` and `deny`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `approvals`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ApprovalsCommand {
    /// List the questions that wait for an answer.
    List,
}

/// `approve`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Approve {
    /// The question: its id, or at least the first four characters of it.
    pub id: String,
    /// One of the answers that the question takes [default: the first].
    #[arg(long, value_name = "WORD")]
    #[serde(default)]
    pub answer: Option<String>,
}

/// `deny`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Deny {
    /// The question: its id, or at least the first four characters of it.
    pub id: String,
    /// The reason, for whoever asked.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}
