//! Commands that ask a model, and how.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{NodeArg, TreeArg};
use crate::args::think::Think;

/// How a model is asked.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct Sampling {
    /// How many siblings to ask for.
    #[arg(short = 'n', long = "count", value_name = "N", allow_negative_numbers = true, value_parser = whole::<1, 64>)]
    #[serde(default)]
    pub n: Option<u32>,
    /// Use this preset of the configuration.
    #[arg(long)]
    #[serde(default)]
    pub preset: Option<String>,
    /// Ask this agent of the configuration. Can be repeated.
    #[arg(long = "agent", value_name = "AGENT")]
    #[serde(default)]
    pub agents: Vec<String>,
    /// Sampling temperature, from 0 to 5.
    #[arg(long, allow_negative_numbers = true, value_parser = number::<0, 5>)]
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Nucleus sampling, from 0 to 1.
    #[arg(long, allow_negative_numbers = true, value_parser = number::<0, 1>)]
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Least probability relative to the likeliest token, from 0 to 1.
    #[arg(long, allow_negative_numbers = true, value_parser = number::<0, 1>)]
    #[serde(default)]
    pub min_p: Option<f64>,
    /// Stop at this text, at `sentence` or at `paragraph`. Can be repeated.
    #[arg(long, value_name = "TEXT", value_parser = stop)]
    #[serde(default)]
    pub stop: Vec<String>,
    /// Seed of the first sibling. Each further sibling gets the next number.
    #[arg(long, allow_negative_numbers = true)]
    #[serde(default)]
    pub seed: Option<i64>,
    /// Length limit of an answer, in tokens.
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, value_parser = whole::<1, { u32::MAX }>)]
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// How much the model thinks before it answers.
    #[arg(long, value_name = "off|low|high", hide_possible_values = true)]
    #[serde(default)]
    pub think: Option<Think>,
    /// Keep the probabilities of this many alternatives of each token, from 0 to 20.
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = logprobs)]
    #[serde(default)]
    pub logprobs: Option<u8>,
    /// Send this node before the newest text. Can be repeated.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub context: Vec<String>,
    /// Send this node first, as instructions. Can be repeated.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub instruction: Vec<String>,
    /// Send nothing: show what would be sent and what it would cost.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Send more than 50,000 tokens without asking.
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

/// What is no number, or none that a flag takes.
#[derive(Debug, thiserror::Error)]
#[error("takes a {0}")]
pub struct InvalidNumber(String);

/// A number within the range a preset may have (docs/configuration.md).
pub(in crate::args) fn number<const LEAST: i64, const MOST: i64>(text: &str) -> Result<f64, InvalidNumber> {
    let fits = |number: &f64| (LEAST as f64..=MOST as f64).contains(number);
    text.parse().ok().filter(fits).ok_or_else(|| InvalidNumber(format!("number from {LEAST} to {MOST}")))
}

pub(in crate::args) fn whole<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, InvalidNumber> {
    let range = if MOST == u32::MAX { format!("from {LEAST}") } else { format!("from {LEAST} to {MOST}") };
    let fits = |number: &u32| (LEAST..=MOST).contains(number);
    text.parse().ok().filter(fits).ok_or_else(|| InvalidNumber(format!("whole number {range}")))
}

/// A text that ends an answer, or the name of where it ends. A word that is nearly such a name is meant as one.
fn stop(text: &str) -> Result<String, BadStop> {
    if text.is_empty() {
        return Err(BadStop::Empty);
    }
    let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_meant = |name: &&str| {
        let is_near = is_word && (1..=2).contains(&strsim::damerau_levenshtein(name, text));
        is_near || (text != *name && text.trim().eq_ignore_ascii_case(name))
    };
    let meant = ["sentence", "paragraph"].into_iter().find(is_meant);
    meant.map_or_else(|| Ok(text.to_owned()), |name| Err(BadStop::Misspelt(name)))
}

/// A text at which nothing is to stop.
#[derive(Debug, thiserror::Error)]
enum BadStop {
    /// Text that is nearly this name of a stop.
    #[error("did you mean {0}?")]
    Misspelt(&'static str),
    #[error("an empty text stops nothing: leave the flag out")]
    Empty,
}

fn logprobs(text: &str) -> Result<u8, InvalidNumber> {
    whole::<0, 20>(text).map(|number| number as u8)
}

/// `tree generate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Generate {
    /// The tree.
    #[command(flatten)]
    #[serde(flatten)]
    pub tree: TreeArg,
    /// Continue from this node instead of the end of the path.
    #[arg(long, value_name = "NODE")]
    #[serde(default)]
    pub from: Option<String>,
    /// How the model is asked.
    #[command(flatten)]
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// `tree regenerate`.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Regenerate {
    /// The node.
    #[command(flatten)]
    #[serde(flatten)]
    pub node: NodeArg,
    /// How the model is asked.
    #[command(flatten)]
    #[serde(flatten)]
    pub sampling: Sampling,
}
