//! Results of `model` and `init`.

use std::path::PathBuf;

use serde::Serialize;

/// `model list`, `pull`, `use`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelsShown {
    /// The models.
    pub models: Vec<ModelShown>,
    /// The file in which the one model was made the default; none where nothing was changed.
    #[serde(skip)]
    pub kept_in: Option<PathBuf>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelShown {
    /// As it is named with `--model`; of a provider whose models are not known `PROVIDER/…`.
    pub name: String,
    /// Where text goes.
    pub place: model::ModelPlace,
    /// Context window in tokens, as far as it is known.
    pub window: Option<u32>,
    /// Whether nobody said how large the window is.
    pub window_assumed: bool,
    /// Most tokens of one answer, as far as it is known.
    pub output_limit: Option<u32>,
    /// What it costs, as far as it is known.
    pub price: Option<String>,
    /// What it can do.
    pub abilities: Vec<String>,
    /// The host text goes to; none for what runs in this program.
    pub host: Option<String>,
    /// Whether it runs in this process.
    pub embedded: bool,
    /// Of an embedded model whether its weights are here.
    pub installed: Option<bool>,
    /// Whether it is used when none is named.
    pub default: bool,
    /// Where it is known from.
    pub from: String,
    /// What it is, where that is known.
    pub about: Option<String>,
}

/// `model test`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// The model.
    pub name: String,
    /// Where text went.
    pub place: model::ModelPlace,
    /// Whether it runs in this process.
    pub embedded: bool,
    /// What it answered, at most a line of it.
    pub text: String,
    /// Time to the first text of the answer, in ms.
    pub first_text_ms: Option<u64>,
    /// Time to the end of the answer, in ms.
    pub total_ms: u64,
    /// Tokens of the answer, where the model says.
    pub output: Option<u64>,
    /// Tokens of the answer by the second between its first text and its end.
    pub tokens_per_second: Option<f64>,
    /// Whether the model reports tokens at all; without, they are estimated.
    pub usage_reported: bool,
}

/// `init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupReport {
    /// The workspace of this call.
    pub workspace: String,
    /// The model that is used when none is named.
    pub model: Option<String>,
    /// What was looked at, done, or is left to do.
    pub steps: Vec<SetupStep>,
}

/// A step of `init`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetupStep {
    /// What it is about.
    pub name: String,
    /// How it stands.
    pub state: StepState,
    /// What was found or done.
    pub what: String,
    /// What the owner may do; may be empty.
    pub next: String,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Done, now or before.
    Done,
    /// The owner has to decide.
    Open,
    /// There is nothing of the kind.
    None,
}
