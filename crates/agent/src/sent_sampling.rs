//! The sampling that a request says: a dialect leaves out what it has no field for, or what its model does not take.

use loom::GenerationSettings;
use model::Params;
use serde::Deserialize;
use serde_json::Number;

/// The fields of a body in any dialect; whatever else stands there is passed over.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SentSampling {
    temperature: Option<f64>,
    #[serde(alias = "topP")]
    top_p: Option<f64>,
    min_p: Option<f64>,
    seed: Option<i64>,
    #[serde(rename = "generationConfig")]
    nested: Option<Box<Self>>,
}

/// What is kept of the sampling beside the request of this body, and the names of what was asked for and is not in it.
pub(crate) fn settings(params: &Params, body: &[u8]) -> (GenerationSettings, Vec<&'static str>) {
    let sent: SentSampling = serde_json::from_slice(body).unwrap_or_default();
    let sent = sent.nested.map_or(SentSampling { nested: None, ..sent }, |nested| *nested);
    let mut unsent = Vec::new();
    let mut kept = |name, asked: Option<f64>, sent: Option<f64>| {
        unsent.extend((asked.is_some() && sent.is_none()).then_some(name));
        asked.filter(|_| sent.is_some()).and_then(Number::from_f64)
    };
    let temperature = kept("temperature", params.temperature, sent.temperature);
    let top_p = kept("top-p", params.top_p, sent.top_p);
    let min_p = kept("min-p", params.min_p, sent.min_p);
    unsent.extend((params.seed.is_some() && sent.seed.is_none()).then_some("seed"));
    let settings = GenerationSettings {
        temperature,
        top_p,
        min_p,
        max_tokens: params.max_tokens,
        seed: params.seed.filter(|_| sent.seed.is_some()),
        thinking: params.thinking.map(|thinking| thinking.as_str().to_owned()),
        ends_at: params.ends_at,
        preset: params.preset.clone(),
    };
    (settings, unsent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_does_not_say_was_not_asked() {
        let asked = Params {
            temperature: Some(0.4),
            top_p: Some(0.9),
            min_p: Some(0.2),
            seed: Some(5),
            ..Params::default()
        };
        for (body, words, unsent) in [
            (
                r#"{"messages":[{"seed":1}],"temperature":0.4,"top_p":0.9,"min_p":0.2,"seed":5}"#,
                &["temperature 0.4", "top-p 0.9", "min-p 0.2", "seed 5"][..],
                &[][..],
            ),
            (r#"{"temperature":0.4,"messages":[]}"#, &["temperature 0.4"], &["top-p", "min-p", "seed"]),
            (
                r#"{"contents":[],"generationConfig":{"temperature":0.4,"topP":0.9,"seed":5}}"#,
                &["temperature 0.4", "top-p 0.9", "seed 5"],
                &["min-p"],
            ),
            (r#"{"input":"x"}"#, &[], &["temperature", "top-p", "min-p", "seed"]),
        ] {
            let (kept, left_out) = settings(&asked, body.as_bytes());
            assert_eq!(kept.words(), words, "{body}");
            assert_eq!(left_out, unsent, "{body}");
        }
        let (kept, left_out) = settings(&Params::default(), br#"{"temperature":1}"#);
        assert_eq!((kept, left_out), (GenerationSettings::default(), Vec::new()), "a default of ours");
    }
}
