//! The sampling that a request says: a dialect leaves out what it has no field for, or what its model does not take.

use std::collections::BTreeMap;

use loom::GenerationSettings;
use model::{EncodedRequest, Params, SentSampling, Thinking};
use serde::de::IgnoredAny;
use serde_json::Number;

/// What is kept of the sampling beside a request that was told to think so, and the names of what was asked for and is
/// not in it.
pub(crate) fn settings(
    params: &Params,
    thinking: Option<Thinking>,
    encoded: &EncodedRequest,
) -> (GenerationSettings, Vec<&'static str>) {
    let sent = SentSampling::read(encoded.dialect(), encoded.body()).unwrap_or_else(|error| {
        tracing::warn!(%error, "the sampling of a request cannot be read");
        SentSampling::default()
    });
    let mut unsent = Vec::new();
    let mut kept = |name, asked: Option<f64>, sent: Option<f64>| {
        unsent.extend((asked.is_some() && sent.is_none()).then_some(name));
        asked.filter(|_| sent.is_some()).and_then(Number::from_f64)
    };
    let temperature = kept("temperature", params.temperature, sent.temperature);
    let top_p = kept("top-p", params.top_p, sent.top_p);
    let min_p = kept("min-p", params.min_p, sent.min_p);
    let lacks = |name: &String| !encoded_has(encoded, name);
    unsent.extend(params.provider.keys().any(lacks).then_some("provider_parameters"));
    unsent.extend((params.seed.is_some() && sent.seed.is_none()).then_some("seed"));
    let settings = GenerationSettings {
        temperature,
        top_p,
        min_p,
        max_tokens: params.max_tokens,
        seed: params.seed.filter(|_| sent.seed.is_some()),
        thinking: thinking.map(|thinking| thinking.as_str().to_owned()),
        stop: params.stop.clone(),
        ends_at: params.ends_at,
        preset: params.preset.clone(),
    };
    (settings, unsent)
}

/// Whether a body has a member of this name.
fn encoded_has(encoded: &EncodedRequest, name: &str) -> bool {
    let members = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(encoded.body());
    members.is_ok_and(|members| members.contains_key(name))
}

#[cfg(test)]
mod tests {
    use model::DialectName;

    use super::*;

    fn request(dialect: DialectName, body: &str) -> EncodedRequest {
        EncodedRequest::new(dialect, "", body.to_owned().into(), Vec::new(), false).unwrap()
    }

    #[test]
    fn what_a_body_does_not_say_was_not_asked() {
        let asked = Params {
            temperature: Some(0.4),
            top_p: Some(0.9),
            min_p: Some(0.2),
            seed: Some(5),
            ..Params::default()
        };
        for (dialect, body, words, unsent) in [
            (
                DialectName::OpenAiChat,
                r#"{"messages":[{"seed":1}],"temperature":0.4,"top_p":0.9,"min_p":0.2,"seed":5}"#,
                &["temperature 0.4", "top-p 0.9", "min-p 0.2", "seed 5"][..],
                &[][..],
            ),
            (
                DialectName::AnthropicMessages,
                r#"{"temperature":0.4,"messages":[]}"#,
                &["temperature 0.4"],
                &["top-p", "min-p", "seed"],
            ),
            (
                DialectName::Gemini,
                r#"{"contents":[],"generationConfig":{"temperature":0.4,"topP":0.9,"seed":5}}"#,
                &["temperature 0.4", "top-p 0.9", "seed 5"],
                &["min-p"],
            ),
            (
                DialectName::OpenAiResponses,
                r#"{"input":"x"}"#,
                &[],
                &["temperature", "top-p", "min-p", "seed"],
            ),
        ] {
            let (kept, left_out) = settings(&asked, None, &request(dialect, body));
            assert_eq!(kept.words(), words, "{body}");
            assert_eq!(left_out, unsent, "{body}");
        }
        let said = request(DialectName::OpenAiChat, r#"{"temperature":1}"#);
        let (kept, left_out) = settings(&Params::default(), None, &said);
        assert_eq!((kept, left_out), (GenerationSettings::default(), Vec::new()), "a default of ours");
    }

    #[test]
    fn texts_that_end_an_answer_are_kept_and_shown() {
        let asked = Params { stop: vec!["XYZ".to_owned(), "\n".to_owned()], ..Params::default() };
        let kept = settings(&asked, None, &request(DialectName::OpenAiChat, "{}")).0;
        assert_eq!(kept.words(), ["to \"XYZ\"", "to \"␊\""]);
    }

    #[test]
    fn a_model_that_cannot_be_told_how_to_think_was_not_told() {
        let asked = Params { thinking: Some(Thinking::High), ..Params::default() };
        let body = request(DialectName::OpenAiChat, "{}");
        assert_eq!(settings(&asked, None, &body).0.thinking, None);
        assert_eq!(settings(&asked, Some(Thinking::Off), &body).0.thinking.as_deref(), Some("off"));
    }
}
