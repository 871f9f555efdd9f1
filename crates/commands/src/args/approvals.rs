//! Arguments of `approvals`, `approve` and `deny`.

use agent::questions::{ALWAYS, ONCE, SESSION};
use clap::{Args, Subcommand, ValueEnum};
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
    #[arg(long, value_name = "WORD", conflicts_with = "holds")]
    #[serde(default)]
    pub answer: Option<String>,
    /// How long the answer holds, for a question about a call of a tool [default: once].
    #[arg(long = "for", value_name = "HOW_LONG", value_enum)]
    #[serde(default, rename = "for")]
    pub holds: Option<Holds>,
    /// What a field of the question is answered with, where a server of tools asks; may be repeated.
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = field)]
    #[serde(default)]
    pub fields: Vec<(String, String)>,
}

/// A field and its value.
fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a field is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// For this call.
    Once,
    /// For such calls in this session.
    Session,
    /// For good: the rule that the question names is written to the configuration.
    Always,
}

impl Holds {
    /// The words it takes.
    pub const WORDS: [&'static str; 3] = [ONCE, SESSION, ALWAYS];

    /// The answer of the question.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Once => ONCE,
            Self::Session => SESSION,
            Self::Always => ALWAYS,
        }
    }
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
