//! What a Gemini request says besides its contents: sampling, form and thinking, and which tools may be called.

use serde::Serialize;
use serde_json::{Value, json};

use crate::encoded::EncodeError;
use crate::prompt::{Params, Thinking, ToolChoice};
use crate::quirks::{Quirks, SchemaForm, ThinkingForm};

/// The most stop texts the API takes.
const MAX_STOPS: usize = 5;

/// Tokens of a little thinking.
const LOW_BUDGET: u32 = 1_024;

/// Tokens of much thinking: the most that every model with a budget takes.
const HIGH_BUDGET: u32 = 24_576;

/// The least budget of models that cannot leave thinking alone.
const LEAST_BUDGET: u32 = 128;

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    include_thoughts: bool,
}

/// What is asked of the answer; nothing where the server's own ways will do.
pub(crate) fn generation_config(
    params: &Params,
    quirks: Quirks,
) -> Result<Option<GenerationConfig<'_>>, EncodeError> {
    params.check()?;
    if params.min_p.is_some() && quirks.min_p {
        return Err(EncodeError::Unsupported { what: "min_p" });
    }
    if params.stop.len() > MAX_STOPS {
        return Err(EncodeError::Parameter { name: "stop" });
    }
    let seed = params.seed.filter(|_| quirks.seed).map(i32::try_from).transpose();
    let schema = params.schema.as_ref();
    let config = GenerationConfig {
        temperature: params.temperature.filter(|_| quirks.sampling),
        top_p: params.top_p.filter(|_| quirks.sampling),
        max_output_tokens: params.max_tokens,
        stop_sequences: &params.stop,
        seed: seed.map_err(|_| EncodeError::Parameter { name: "seed" })?,
        candidate_count: (params.n > 1).then_some(params.n),
        response_logprobs: params.logprobs.map(|_| true),
        logprobs: params.logprobs.filter(|&alternatives| alternatives > 0),
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema
            .filter(|_| quirks.schema == SchemaForm::Schema)
            .map(|schema| &schema.schema),
        thinking_config: params.thinking.and_then(|thinking| thinking_config(thinking, params, quirks)),
    };
    Ok((config != GenerationConfig::default()).then_some(config))
}

fn thinking_config(thinking: Thinking, params: &Params, quirks: Quirks) -> Option<ThinkingConfig> {
    let include_thoughts = thinking != Thinking::Off;
    match quirks.thinking {
        ThinkingForm::Budget => {
            let least = if quirks.thinking_always { LEAST_BUDGET } else { 0 };
            let budget = match thinking {
                Thinking::Off => 0,
                Thinking::Low => LOW_BUDGET,
                Thinking::High => HIGH_BUDGET,
            };
            // Thoughts count against the limit of the answer: half of it stays for what is said.
            let most = params.max_tokens.map_or(HIGH_BUDGET, |limit| limit / 2);
            let thinking_budget = Some(budget.min(most).max(least));
            Some(ThinkingConfig { thinking_budget, thinking_level: None, include_thoughts })
        }
        ThinkingForm::Level => {
            let level = match thinking {
                Thinking::Off if !quirks.thinking_always => "MINIMAL",
                Thinking::Off | Thinking::Low => "LOW",
                Thinking::High => "HIGH",
            };
            Some(ThinkingConfig { thinking_budget: None, thinking_level: Some(level), include_thoughts })
        }
        ThinkingForm::None
        | ThinkingForm::Effort
        | ThinkingForm::ReasoningObject
        | ThinkingForm::TemplateSwitch
        | ThinkingForm::SwitchAndEffort => None,
    }
}

/// Which tools may be called.
pub(crate) fn tool_config(choice: &ToolChoice) -> Option<Value> {
    let config = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Some(json!({"functionCallingConfig": config}))
}
