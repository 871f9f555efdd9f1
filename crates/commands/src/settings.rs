//! Settings that commands read: presets and limits. The file they come from is read by the binary alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a model is asked, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preset {
    /// The model; the default one, if none.
    pub model: Option<String>,
    /// Siblings.
    pub n: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Least probability, relative to the likeliest token.
    pub min_p: Option<f64>,
    /// Tokens an answer may have.
    pub max_tokens: Option<u32>,
    /// Texts to stop at.
    pub stop: Vec<String>,
    /// Seed of the sampling.
    pub seed: Option<i64>,
    /// Alternatives a token to keep probabilities of.
    pub logprobs: Option<u8>,
}

/// An agent: a model with how it is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// The model; the default one, if none.
    pub model: Option<String>,
    /// Siblings it adds.
    pub n: Option<u32>,
    /// How it is asked.
    pub preset: Option<String>,
}

/// Settings of commands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The model named on the command line, or the default of the configuration.
    pub model: Option<String>,
    /// `[presets.NAME]`.
    pub presets: BTreeMap<String, Preset>,
    /// `[agents.NAME]`.
    pub agents: BTreeMap<String, Agent>,
}
