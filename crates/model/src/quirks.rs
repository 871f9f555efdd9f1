//! In what servers of one dialect differ, as data: no dialect asks which server it speaks to.
//!
//! Every field says what a server wants; [`Quirks::default`] is what compatible servers take. Rows for the
//! providers that are known by name stand in [`crate::providers()`].

use serde::{Deserialize, Serialize};

use crate::dialect::DialectName;
use crate::prompt::Thinking;

/// What a server wants of a request beyond its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// The name of the output limit in chat completions.
    pub limit: LimitField,
    /// How the server is told to continue the assistant's beginning.
    pub prefill: PrefillForm,
    /// The role that instructions have in chat completions and responses.
    pub instructions: InstructionRole,
    /// How much thinking is asked for.
    pub thinking: ThinkingForm,
    /// How it is told not to think at all, where its dialect has a way to say so.
    pub thinking_off: ThinkingOff,
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
    /// Whether it takes `return_progress`, and then tells how far it has read a prompt.
    pub prompt_progress: bool,
    /// Whether the model always thinks: thinking cannot be switched off, and excludes what it excludes.
    pub thinking_always: bool,
    /// Whether thinking goes back only into the very conversation it came from, so that the server has to be told to
    /// leave out what stood behind something that has changed since (newer models of Anthropic).
    pub thinking_bound: bool,
    /// Whether it takes instructions inside a conversation with a role of their own, where its dialect says that
    /// they may stand only above it (newer models of Anthropic).
    pub instructions_inside: bool,
    /// Whether a server of responses serves chat completions beside them, which know texts that end an answer.
    pub chat_beside: bool,
    /// The least effort it knows, which is asked for where no thinking is wanted.
    pub least_effort: LeastEffort,
    /// Whether what it wants back in responses keeps the id it gave it. Such an id names an item the server kept,
    /// and nothing is kept there; some servers demand it all the same.
    pub item_ids: bool,
    /// Whether calls that came without a signature are sent with the one the provider takes for them (Gemini 3
    /// and later refuse them otherwise).
    pub signature_stand_in: bool,
    /// Whether pictures may stand inside a tool's result where the dialect has a place for them there.
    pub media_in_results: bool,
}

impl Quirks {
    /// What can be said to a model about its thinking in a dialect.
    pub fn thinks(&self, dialect: DialectName) -> ThinkingControl {
        let effort = matches!(self.thinking, ThinkingForm::Effort);
        match self.thinking.is_of(dialect) {
            false => ThinkingControl::Untold,
            true if self.thinking_always || (effort && self.least_effort != LeastEffort::None) => {
                ThinkingControl::Always
            }
            true => ThinkingControl::Told,
        }
    }
}

/// What can be said to a model about its thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingControl {
    /// Nothing: it does not think, or as it likes.
    #[default]
    Untold,
    /// How much, and that it should not.
    Told,
    /// How much; it cannot be kept from thinking a little.
    Always,
}

impl Default for Quirks {
    /// What compatible servers take; the rows of providers say only in what they differ.
    fn default() -> Self {
        Self {
            limit: LimitField::MaxTokens,
            prefill: PrefillForm::Trailing,
            instructions: InstructionRole::System,
            thinking: ThinkingForm::None,
            thinking_off: ThinkingOff::Disabled,
            thinking_back: ThinkingBack::Nothing,
            schema: SchemaForm::Schema,
            cache: CacheForm::Implicit,
            call_ids: CallIds::Any,
            min_p: true,
            seed: true,
            sampling: true,
            stream_options: true,
            prompt_progress: false,
            least_effort: LeastEffort::Low,
            thinking_always: false,
            thinking_bound: false,
            chat_beside: false,
            instructions_inside: false,
            item_ids: false,
            signature_stand_in: false,
            media_in_results: false,
        }
    }
}

/// The name of the output limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// `max_tokens`: what compatible servers know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: what OpenAI's reasoning models demand.
    MaxCompletionTokens,
}

/// How a server is told to continue the last assistant message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefillForm {
    /// In no way: a trailing assistant message is continued (llama.cpp, gateways to Anthropic).
    #[default]
    Trailing,
    /// By `continue_final_message` (vLLM, SGLang).
    ContinueFinalMessage,
    /// By `prefix: true` on the message (DeepSeek, Mistral).
    PrefixFlag,
}

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingForm {
    /// In no way; the wish is not sent.
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

/// How a model that can do without thinking is told so in messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingOff {
    /// By the type `disabled`.
    #[default]
    Disabled,
    /// By the type `between_tools`: it thinks nothing before it answers.
    BetweenTools,
    /// By saying nothing: it thinks only where it is asked to. Some such models refuse to be told not to.
    Unsaid,
}

impl ThinkingForm {
    /// Whether a dialect has this form.
    pub const fn is_of(self, dialect: DialectName) -> bool {
        match dialect {
            DialectName::OpenAiChat => !matches!(self, Self::None | Self::Budget | Self::Level),
            DialectName::OpenAiResponses => {
                matches!(self, Self::Effort | Self::ReasoningObject | Self::TemplateSwitch)
            }
            DialectName::AnthropicMessages | DialectName::Gemini => {
                matches!(self, Self::Budget | Self::Level)
            }
            DialectName::OpenAiCompletions | DialectName::Embedded => false,
        }
    }
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
    /// `high`: it knows no other.
    High,
}

impl LeastEffort {
    /// Name of the effort on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Minimal => "minimal",
            Self::None => "none",
            Self::High => "high",
        }
    }

    /// The name of the effort that comes nearest to a wish.
    pub fn nearest(self, wish: Thinking) -> &'static str {
        match (wish, self) {
            (Thinking::Off, least) => least.as_str(),
            (Thinking::Low, Self::High) | (Thinking::High, _) => "high",
            (Thinking::Low, _) => "low",
        }
    }
}

/// What of its thinking a server wants back in chat completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingBack {
    #[default]
    Nothing,
    /// `reasoning_content`, in every answer of a conversation with tools (DeepSeek).
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
    #[default]
    Any,
    /// Nine letters and digits: Mistral. Others are replaced by ones derived from them.
    Nine,
}
