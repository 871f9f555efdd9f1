//! In what servers of one dialect differ, as data: no dialect asks which server it speaks to.
//!
//! Every field says what a server wants; [`Quirks::default`] is what compatible servers take. Rows for the
//! providers that are known by name stand in [`crate::providers`].

use serde::{Deserialize, Serialize};

/// What a server wants of a request beyond its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quirks {
    /// The name of the output limit in chat completions.
    pub limit: LimitField,
    /// How the server is told to continue the assistant's beginning.
    pub prefill: PrefillForm,
    /// The role that instructions have in chat completions and responses.
    pub instructions: InstructionRole,
    /// How much thinking is asked for.
    pub thinking: ThinkingForm,
    /// What of its thinking the server wants back.
    pub thinking_back: ThinkingBack,
    /// How a form of the answer is asked for.
    pub schema: SchemaForm,
    /// What the server is told of caching.
    pub cache: CacheForm,
    /// Which ids of tool calls it takes back.
    pub call_ids: CallIds,
    /// Whether it takes `min_p`.
    pub min_p: bool,
    /// Whether it takes `seed`.
    pub seed: bool,
    /// Whether it takes `temperature` and `top_p`.
    pub sampling: bool,
    /// Whether it takes `stream_options`, without which it may report no usage for streams.
    pub stream_options: bool,
    /// The least effort it knows, which is asked for where no thinking is wanted.
    pub least_effort: LeastEffort,
}

impl Quirks {
    /// What compatible servers take; the rows of providers say only in what they differ.
    pub const COMPATIBLE: Self = Self {
        limit: LimitField::MaxTokens,
        prefill: PrefillForm::Trailing,
        instructions: InstructionRole::System,
        thinking: ThinkingForm::None,
        thinking_back: ThinkingBack::Nothing,
        schema: SchemaForm::Schema,
        cache: CacheForm::Implicit,
        call_ids: CallIds::Any,
        min_p: true,
        seed: true,
        sampling: true,
        stream_options: true,
        least_effort: LeastEffort::Low,
    };
}

impl Default for Quirks {
    fn default() -> Self {
        Self::COMPATIBLE
    }
}

/// The name of the output limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// `max_tokens`: what compatible servers know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what OpenAI's reasoning models demand.
    MaxCompletionTokens,
}

/// How a server is told to continue the last assistant message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefillForm {
    /// It continues a trailing assistant message by itself (llama.cpp, gateways to Anthropic).
    #[default]
    Trailing,
    /// It must be asked to by `continue_final_message` (vLLM, SGLang).
    ContinueFinalMessage,
    /// It must be asked to by `prefix: true` on the message (DeepSeek, Mistral).
    PrefixFlag,
}

/// The role of instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionRole {
    /// `system`.
    #[default]
    System,
    /// `developer`: OpenAI's reasoning models.
    Developer,
}

/// How a server is told how much to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingForm {
    /// It cannot be told; the wish is not sent.
    #[default]
    None,
    /// `reasoning_effort` (chat completions), `reasoning.effort` (responses).
    Effort,
    /// OpenRouter's `reasoning` object.
    ReasoningObject,
    /// `chat_template_kwargs.enable_thinking` (vLLM, llama.cpp).
    TemplateSwitch,
    /// A number of tokens: Anthropic's `thinking.budget_tokens`, Gemini's `thinkingBudget`.
    Budget,
    /// The model's own measure with an effort: Anthropic's adaptive thinking, Gemini's `thinkingLevel`.
    Level,
    /// `thinking.type` with `reasoning_effort` beside it in chat completions (DeepSeek).
    SwitchAndEffort,
}

/// The least effort a server knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeastEffort {
    /// `low`: every server that has efforts has it.
    #[default]
    Low,
    /// `minimal`.
    Minimal,
    /// `none`: it does not think at all.
    None,
}

impl LeastEffort {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Minimal => "minimal",
            Self::None => "none",
        }
    }
}

/// What of its thinking a server wants back in chat completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingBack {
    /// Nothing.
    #[default]
    Nothing,
    /// `reasoning_content`, in messages that call tools (DeepSeek).
    Content,
    /// `reasoning_details`, unchanged (OpenRouter).
    Details,
}

/// How a form of the answer is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaForm {
    /// By its schema, in the dialect's own place.
    #[default]
    Schema,
    /// As any JSON object; the schema must be told in words.
    Object,
}

/// What a server is told of caching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheForm {
    /// Nothing: it caches by itself or not at all.
    #[default]
    Implicit,
    /// `prompt_cache_key` ([`crate::Params::cache_key`]).
    Key,
    /// `cache_control` at the boundary and at the end (Anthropic, gateways to it).
    Marks,
}

/// Which ids of tool calls a server takes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// Any.
    #[default]
    Any,
    /// Nine letters and digits: Mistral. Others are replaced by ones derived from them.
    Nine,
}
