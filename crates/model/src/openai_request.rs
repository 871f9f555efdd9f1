//! Parameters that chat completions and completions share.

use serde::Serialize;
use serde_json::{Value, json};

use crate::encoded::EncodeError;
use crate::prompt::Params;
use crate::quirks::{LimitField, Quirks};

/// Model and sampling, which change rarely: what grows comes last, so that two bodies of a session share the longest
/// beginning and end.
#[derive(Serialize)]
pub(crate) struct Parameters<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_progress: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
}

impl<'a> Parameters<'a> {
    /// What only shapes the choice of tokens is left out where a server refuses it; what changes the task is not.
    pub(crate) fn new(
        model: &'a str,
        params: &'a Params,
        limit: LimitField,
        quirks: &Quirks,
    ) -> Result<Self, EncodeError> {
        params.check()?;
        Ok(Self {
            model,
            stream: params.stream.then_some(true),
            stream_options: (params.stream && quirks.stream_options).then(|| json!({"include_usage": true})),
            return_progress: (params.stream && quirks.prompt_progress).then_some(true),
            temperature: params.temperature.filter(|_| quirks.sampling),
            top_p: params.top_p.filter(|_| quirks.sampling),
            min_p: params.min_p.filter(|_| quirks.min_p),
            max_tokens: params.max_tokens.filter(|_| limit == LimitField::MaxTokens),
            max_completion_tokens: params.max_tokens.filter(|_| limit == LimitField::MaxCompletionTokens),
            stop: &params.stop,
            seed: params.seed.filter(|_| quirks.seed),
            n: (params.n > 1).then_some(params.n),
        })
    }
}
