//! The sampling that the body of a request says, in any dialect: one leaves out what it has no field for, or what its
//! model does not take.

use serde::Deserialize;
use serde_json::Value;

use crate::dialect::DialectName;

/// What a body says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SentSampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub min_p: Option<f64>,
    pub seed: Option<i64>,
    /// Tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Texts that end it.
    pub stop: Vec<String>,
}

impl SentSampling {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// When it is no JSON.
    pub fn read(dialect: DialectName, body: &[u8]) -> serde_json::Result<Self> {
        let members: SamplingMembers = serde_json::from_slice(body)?;
        let members = match dialect {
            DialectName::Gemini => members
                .generation_config
                .map_or_else(|| Ok(SamplingMembers::default()), serde_json::from_value)?,
            _ => members,
        };
        let limits = [
            members.max_tokens,
            members.max_completion_tokens,
            members.max_output_tokens,
            members.most_tokens,
        ];
        let stops = [members.stop, members.stop_sequences, members.stops];
        let stop = match stops.into_iter().flatten().next() {
            Some(Value::String(stop)) => vec![stop],
            Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let share = |member: Option<Value>| member.as_ref().and_then(Value::as_f64);
        let limit = limits.into_iter().flatten().next().as_ref().and_then(Value::as_u64);
        Ok(Self {
            temperature: share(members.temperature),
            top_p: share(members.top_p.or(members.nucleus)),
            min_p: share(members.min_p),
            seed: members.seed.as_ref().and_then(Value::as_i64),
            max_tokens: limit.and_then(|limit| u32::try_from(limit).ok()),
            stop,
        })
    }
}

/// The members of a body that say its sampling, in every dialect's names. What else stands in it is passed over: a
/// conversation is long.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SamplingMembers {
    temperature: Option<Value>,
    top_p: Option<Value>,
    #[serde(rename = "topP")]
    nucleus: Option<Value>,
    min_p: Option<Value>,
    seed: Option<Value>,
    max_tokens: Option<Value>,
    max_completion_tokens: Option<Value>,
    max_output_tokens: Option<Value>,
    #[serde(rename = "maxOutputTokens")]
    most_tokens: Option<Value>,
    stop: Option<Value>,
    stop_sequences: Option<Value>,
    #[serde(rename = "stopSequences")]
    stops: Option<Value>,
    #[serde(rename = "generationConfig")]
    generation_config: Option<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_from_every_form_of_a_request() {
        let read = |dialect, body: &str| SentSampling::read(dialect, body.as_bytes()).unwrap();
        let chat = r#"{"model":"m","messages":[{"seed":1}],"temperature":0.5,"top_p":0.9,"min_p":0.2,
            "max_completion_tokens":64,"stop":["\n"],"seed":-5}"#;
        let said = SentSampling {
            temperature: Some(0.5),
            top_p: Some(0.9),
            min_p: Some(0.2),
            seed: Some(-5),
            max_tokens: Some(64),
            stop: vec!["\n".to_owned()],
        };
        assert_eq!(read(DialectName::OpenAiChat, chat), said);
        let gemini = r#"{"contents":[],"temperature":2,"generationConfig":{"temperature":0.5,"topP":0.9,
            "maxOutputTokens":64,"stopSequences":["\n"],"seed":-5}}"#;
        assert_eq!(read(DialectName::Gemini, gemini), SentSampling { min_p: None, ..said.clone() });
        let messages = r#"{"model":"m","max_tokens":64,"stop_sequences":["\n"]}"#;
        let said = SentSampling { max_tokens: Some(64), stop: said.stop, ..SentSampling::default() };
        assert_eq!(read(DialectName::AnthropicMessages, messages), said);
        let completions = r#"{"prompt":"x","max_tokens":64,"stop":"\n"}"#;
        assert_eq!(read(DialectName::OpenAiCompletions, completions), said);
        assert_eq!(read(DialectName::OpenAiResponses, r#"{"input":"seed"}"#), SentSampling::default());
        SentSampling::read(DialectName::Embedded, b"\x00").unwrap_err();
    }
}
