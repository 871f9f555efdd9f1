//! The parameters of a messages request, and which of them exclude each other.
//!
//! Thinking is the difficult one. A model that thinks takes no temperature, no forced tool and no beginning of
//! its answer. Sampling is then not sent, as for every server that does not take it ([`Quirks::sampling`]); what
//! would change the answer's form is refused before anything is sent.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::anthropic::DEFAULT_MAX_TOKENS;
use crate::anthropic_body::{self, Message, WrittenBlock};
use crate::anthropic_turns::Turns;
use crate::encoded::EncodeError;
use crate::parts::Parts;
use crate::prompt::{Chat, Params, Thinking, ToolChoice};
use crate::quirks::{CacheForm, Quirks, SchemaForm, ThinkingForm, ThinkingOff};

/// The least budget of thinking the API takes, in tokens.
const LEAST_BUDGET: u32 = 1024;
/// The budget of a little thinking, in tokens.
const LOW_BUDGET: u32 = 2048;
/// The budget of much thinking, in tokens.
const HIGH_BUDGET: u32 = 16_384;

/// Model and parameters change rarely and stand first: two bodies of a session share the longest beginning and end.
#[derive(Serialize)]
pub(crate) struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    output_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<WrittenBlock>,
    messages: Vec<Message>,
}

impl<'a> Request<'a> {
    /// The body of a request.
    ///
    /// # Errors
    /// When nothing is left to answer to, or the API has no form for something.
    pub(crate) fn new(
        parts: &mut Parts<'a>,
        model: &'a str,
        params: &'a Params,
        quirks: &Quirks,
        chat: &'a Chat,
    ) -> Result<Self, EncodeError> {
        let wish = ThinkingRequest::of(params, quirks);
        refuse(params, quirks, chat, wish.thinks)?;
        let max_tokens = params.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS + wish.budget.unwrap_or(0));
        let free = quirks.sampling && !wish.thinks;
        let share = |name, value: Option<f64>, sent: bool| match value.filter(|_| sent) {
            Some(value) if !(0.0..=1.0).contains(&value) => Err(EncodeError::Parameter { name }),
            value => Ok(value),
        };
        let (temperature, top_p) =
            (share("temperature", params.temperature, free)?, share("top_p", params.top_p, free)?);
        let min_p = share("min_p", params.min_p, free && quirks.min_p)?;
        let thinking = wish.thinking(max_tokens)?;
        let mut turns = Turns::of(chat, quirks.instructions_inside, takes_thinking_back(params, quirks))?;
        if quirks.cache == CacheForm::Marks {
            turns.mark(!chat.tools.is_empty());
        }
        Ok(Self {
            model,
            max_tokens,
            stream: params.stream.then_some(true),
            temperature,
            top_p,
            min_p,
            seed: params.seed.filter(|_| quirks.seed),
            stop_sequences: &params.stop,
            thinking,
            output_config: output_config(params, &wish),
            tool_choice: if chat.tools.is_empty() { None } else { tool_choice(&params.tool_choice) },
            tools: anthropic_body::tools(parts, &chat.tools, turns.tools_marked),
            system: anthropic_body::blocks(parts, &turns.system)?,
            messages: anthropic_body::messages(parts, &turns.messages)?,
        })
    }
}

/// Whether earlier thinking goes back. What is bound to its conversation may not, where nothing is to be thought: the
/// server could not be told to leave it out.
fn takes_thinking_back(params: &Params, quirks: &Quirks) -> bool {
    !quirks.thinking_bound || params.thinking != Some(Thinking::Off) || quirks.thinking_always
}

/// What is asked of the model's thinking.
struct ThinkingRequest {
    form: ThinkingForm,
    asked: Option<Thinking>,
    /// What not to think is called, where it can be said.
    off: Option<&'static str>,
    always: bool,
    /// Whether thinking goes back only into the conversation it came from.
    bound: bool,
    /// Whether the model will think.
    thinks: bool,
    /// The budget in tokens, where the form is one.
    budget: Option<u32>,
}

impl ThinkingRequest {
    fn of(params: &Params, quirks: &Quirks) -> Self {
        let form = quirks.thinking;
        let asked = params.thinking.filter(|_| matches!(form, ThinkingForm::Budget | ThinkingForm::Level));
        let budget = match (form, asked) {
            (ThinkingForm::Budget, Some(Thinking::Low)) => Some(LOW_BUDGET),
            (ThinkingForm::Budget, Some(Thinking::High)) => Some(HIGH_BUDGET),
            _ => None,
        };
        let always = quirks.thinking_always;
        let thinks = always || matches!(asked, Some(Thinking::Low | Thinking::High));
        let off = match quirks.thinking_off {
            ThinkingOff::Disabled => Some("disabled"),
            ThinkingOff::BetweenTools => Some("between_tools"),
            ThinkingOff::Unsaid => None,
        };
        Self {
            form,
            asked,
            off: off.filter(|_| !always),
            always,
            bound: quirks.thinking_bound,
            thinks,
            budget,
        }
    }

    /// The `thinking` object. A budget leaves at least half of the limit to the answer, where it can.
    fn thinking(&self, limit: u32) -> Result<Option<Value>, EncodeError> {
        if let Some(budget) = self.budget {
            if limit <= LEAST_BUDGET {
                return Err(EncodeError::Parameter { name: "max_tokens" });
            }
            let budget = budget.min(limit / 2).max(LEAST_BUDGET);
            return Ok(Some(json!({"type": "enabled", "budget_tokens": budget})));
        }
        let mut thinking = match self.asked {
            Some(Thinking::Off) if self.off.is_some() => return Ok(self.off.map(|off| json!({"type": off}))),
            // Newer models show their thinking only when they are asked to.
            Some(Thinking::Low | Thinking::High) => json!({"type": "adaptive", "display": "summarized"}),
            // What these do by themselves.
            _ if self.bound => json!({"type": "adaptive"}),
            _ => return Ok(None),
        };
        if self.bound {
            // A window moves and nodes are edited: what was thought behind them is left out then, not refused.
            thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        }
        Ok(Some(thinking))
    }

    fn effort(&self) -> Option<&'static str> {
        match (self.form, self.asked?) {
            (ThinkingForm::Level, Thinking::Low) => Some("low"),
            (ThinkingForm::Level, Thinking::High) => Some("high"),
            (ThinkingForm::Level, Thinking::Off) if self.always => Some("low"),
            _ => None,
        }
    }
}

fn refuse(params: &Params, quirks: &Quirks, chat: &Chat, thinks: bool) -> Result<(), EncodeError> {
    if params.n == 0 {
        return Err(EncodeError::Parameter { name: "n" });
    }
    let forced = matches!(params.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
    let prefilled = chat.prefill.as_ref().is_some_and(|prefill| !prefill.text.trim().is_empty());
    let refused = [
        (params.n > 1, "more than one choice in a request"),
        (params.logprobs.is_some(), "log-probabilities"),
        (params.stop.iter().any(|stop| stop.trim().is_empty()), "a stop text of nothing but white space"),
        (thinks && forced && !chat.tools.is_empty(), "a forced tool call of a model that thinks"),
        (thinks && prefilled, "a given beginning of the answer of a model that thinks"),
        (params.schema.is_some() && prefilled, "a given beginning of an answer whose form is given"),
        (params.schema.is_some() && quirks.schema != SchemaForm::Schema, "an answer in a given form"),
    ];
    match refused.into_iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(EncodeError::Unsupported { what }),
        None => Ok(()),
    }
}

fn output_config(params: &Params, wish: &ThinkingRequest) -> Map<String, Value> {
    let effort = wish.effort().map(|effort| ("effort".to_owned(), effort.into()));
    let schema = params.schema.as_ref();
    let format =
        schema.map(|form| ("format".to_owned(), json!({"type": "json_schema", "schema": form.schema})));
    effort.into_iter().chain(format).collect()
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"type": "none"})),
        ToolChoice::Required => Some(json!({"type": "any"})),
        ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
    }
}
