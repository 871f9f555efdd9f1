//! The parameters of a messages request, and which of them exclude each other.
//!
//! Thinking is the difficult one. A model that thinks takes no temperature, no forced tool and no beginning of
//! its answer. Sampling is then not sent, as for every server that does not take it ([`Quirks::sampling`]); what
//! would change the answer's form is refused before anything is sent.

use serde_json::json;

use crate::anthropic::DEFAULT_MAX_TOKENS;
use crate::encoded::{BodyWriter, EncodeError};
use crate::prompt::{Chat, Params, Thinking, ToolChoice};
use crate::quirks::{Quirks, SchemaForm, ThinkingForm, ThinkingOff};

/// The least budget of thinking the API takes, in tokens.
const LEAST_BUDGET: u32 = 1024;
/// The budget of a little thinking, in tokens.
const LOW_BUDGET: u32 = 2048;
/// The budget of much thinking, in tokens.
const HIGH_BUDGET: u32 = 16_384;

/// Opens the body and writes model and parameters, which change rarely: what grows comes last, so that two
/// bodies of a session share the longest beginning and end.
pub(crate) fn open_body(
    body: &mut BodyWriter,
    model: &str,
    params: &Params,
    quirks: &Quirks,
    chat: &Chat,
) -> Result<(), EncodeError> {
    let wish = Wish::of(params, quirks);
    refuse(params, quirks, chat, wish.thinks)?;
    body.frame("{\"model\":");
    body.frame_value(model);
    let limit = params.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS + wish.budget.unwrap_or(0));
    body.frame(",\"max_tokens\":");
    body.frame_value(&limit);
    if params.stream {
        body.frame(",\"stream\":true");
    }
    sampling(body, params, quirks, wish.thinks)?;
    if !params.stop.is_empty() {
        body.frame(",\"stop_sequences\":");
        body.frame_value(&params.stop);
    }
    if let Some(thinking) = wish.thinking(limit)? {
        body.frame(",\"thinking\":");
        body.frame_value(&thinking);
    }
    output_config(body, params, &wish);
    if !chat.tools.is_empty() {
        tool_choice(body, &params.tool_choice);
    }
    Ok(())
}

/// Whether earlier thinking goes back. What is bound to its conversation may not, where nothing is to be thought: the
/// server could not be told to leave it out.
pub(crate) fn takes_thinking_back(params: &Params, quirks: &Quirks) -> bool {
    !quirks.thinking_bound || params.thinking != Some(Thinking::Off) || quirks.thinking_always
}

/// What is asked of the model's thinking.
struct Wish {
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

impl Wish {
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
    fn thinking(&self, limit: u32) -> Result<Option<serde_json::Value>, EncodeError> {
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

fn sampling(
    body: &mut BodyWriter,
    params: &Params,
    quirks: &Quirks,
    thinks: bool,
) -> Result<(), EncodeError> {
    let free = quirks.sampling && !thinks;
    for (name, sent, value) in [
        ("temperature", free, params.temperature),
        ("top_p", free, params.top_p),
        ("min_p", free && quirks.min_p, params.min_p),
    ] {
        let Some(value) = value.filter(|_| sent) else { continue };
        if !(0.0..=1.0).contains(&value) {
            return Err(EncodeError::Parameter { name });
        }
        body.frame(",\"");
        body.frame(name);
        body.frame("\":");
        body.frame_value(&value);
    }
    if let Some(seed) = params.seed.filter(|_| quirks.seed) {
        body.frame(",\"seed\":");
        body.frame_value(&seed);
    }
    Ok(())
}

fn output_config(body: &mut BodyWriter, params: &Params, wish: &Wish) {
    let mut config = serde_json::Map::new();
    if let Some(effort) = wish.effort() {
        config.insert("effort".to_owned(), effort.into());
    }
    if let Some(form) = &params.schema {
        config.insert("format".to_owned(), json!({"type": "json_schema", "schema": form.schema}));
    }
    if !config.is_empty() {
        body.frame(",\"output_config\":");
        body.frame_value(&config);
    }
}

fn tool_choice(body: &mut BodyWriter, choice: &ToolChoice) {
    let choice = match choice {
        ToolChoice::Auto => return,
        ToolChoice::None => json!({"type": "none"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
    };
    body.frame(",\"tool_choice\":");
    body.frame_value(&choice);
}
