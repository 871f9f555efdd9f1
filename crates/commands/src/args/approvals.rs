//! Arguments of `approvals`, `approve` and `deny`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// `approvals`.
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ApprovalsCommand {
    /// List the questions that wait for an answer, of every process of this home.
    List,
}

/// `approve`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Approve {
    /// The question: its id, or the beginning of it.
    pub id: String,
    /// One of the answers the question takes [default: its first].
    #[arg(long, value_name = "WORD")]
    #[serde(default)]
    pub answer: Option<String>,
}

/// `deny`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Deny {
    /// The question: its id, or the beginning of it.
    pub id: String,
    /// Why not: kept with the answer.
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    pub reason: Option<String>,
}
