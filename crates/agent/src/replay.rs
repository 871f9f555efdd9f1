//! An earlier request for another model: its sources once more, in the form the other model takes (spec: context §1,
//! security §10).
//!
//! Stored bytes go only to the model they were written for. Another one gets a request of its own, with its own
//! manifest, put together from the tree as [`context::replay`] says; of the sampling, what every provider knows by
//! some name goes along: temperature, nucleus, the limit of the answer and the texts that end it. No other model
//! takes over when it does not answer: it was named.

use std::sync::Arc;

use context::Manifest;
use loom::{GenerationRow, GenerationSettings, NodeId, OriginRole};
use model::{DialectName, Model, Params, SentSampling, SiblingSlot};
use serde_json::Number;
use store::Principal;
use text::cut::Boundary;

use crate::call::Call;
use crate::commit::node_of;
use crate::error::AgentError;
use crate::exchange::PassedGate;
use crate::request::{GenerationRequest, PathRequest};
use crate::runtime::Runtime;
use crate::stored::ResponseMeta;
use crate::variant::RequestVariant;

/// An earlier request, as far as it is known.
pub struct RecordedRequest<'a> {
    pub generation: &'a GenerationRow,
    pub manifest: Manifest,
    /// Body of the request; none where it was removed since.
    pub body: Option<&'a [u8]>,
    /// The agent that is the author of its answer.
    pub agent: &'a str,
    /// What was sent in it besides the path.
    pub inputs: &'a [(OriginRole, NodeId)],
}

impl RecordedRequest<'_> {
    /// A request with the same question for another model. The view does not follow its answer.
    ///
    /// # Errors
    /// The store fails.
    pub async fn for_model(
        self,
        runtime: &Runtime,
        who: &Principal,
        model: Arc<dyn Model>,
    ) -> Result<GenerationRequest, AgentError> {
        let (ends_at, stops) = recorded_end(runtime, who, self.generation).await?;
        let named = |role: OriginRole| {
            let of_role = self.inputs.iter().filter(move |(is, _)| *is == role);
            of_role.map(|(_, node)| *node).collect::<Vec<_>>()
        };
        let to = model.info().dialect;
        let sampling = match (&self.generation.settings, self.body) {
            // A body may hold a limit that nobody asked for, and may be gone.
            (Some(settings), _) => sampling_of_settings(settings, to),
            (None, Some(body)) => sampling(body, self.manifest.model.dialect, to),
            (None, None) => Params::default(),
        };
        let place = self.generation.place.as_ref();
        let path = PathRequest {
            view: place.map(|place| place.view.clone()).unwrap_or_default(),
            from: place.map(|place| place.parent),
            context: named(OriginRole::Context),
            instruction: named(OriginRole::Instruction),
            variant: RequestVariant { again: Some(Arc::new(self.manifest)), ..RequestVariant::default() },
            ..PathRequest::default()
        };
        let mut params = Params { n: 1, ends_at, ..sampling };
        // What a server is not told is cut here, but a dialect without a field for stops is asked with none.
        if params.stop.is_empty() && model.info().dialect != DialectName::OpenAiResponses {
            params.stop = stops;
        }
        Ok(GenerationRequest {
            purpose: self.generation.purpose,
            tree: self.generation.tree,
            source: path.into(),
            agent: self.agent.to_owned(),
            profile: self.generation.profile,
            params,
            part_of: None,
            guards: Vec::new(),
            model,
        })
    }
}

impl GenerationRequest {
    /// Asks this one model, whoever else might answer.
    ///
    /// # Errors
    /// When nothing was sent, nothing came, or the answer was empty.
    pub async fn of_this_one(&self, runtime: &Runtime, call: &Call) -> Result<NodeId, AgentError> {
        runtime.require_space()?;
        let spending = runtime.new_turn()?;
        let slot = SiblingSlot::alone(spending.turn().to_owned());
        node_of(self.send_to_one(runtime, call, slot, &PassedGate::default()).await?)
    }
}

/// Where the answers of an earlier request were cut, whatever its server was told.
pub(crate) async fn recorded_end(
    runtime: &Runtime,
    who: &Principal,
    earlier: &GenerationRow,
) -> Result<(Option<Boundary>, Vec<String>), AgentError> {
    let asked = earlier.settings.as_ref().and_then(|settings| settings.ends_at);
    let Some(node) = earlier.reserved.first().copied() else { return Ok((asked, Vec::new())) };
    let response = runtime.read(who, earlier.tree, move |rows| rows.response(node)).await?;
    let meta = response.and_then(|response| serde_json::from_str::<ResponseMeta>(&response.metadata).ok());
    Ok(meta.map_or((asked, Vec::new()), |meta| (meta.ends_at, meta.stops)))
}

/// The sampling that was kept with a request, as far as the other dialect has a field for it.
fn sampling_of_settings(settings: &GenerationSettings, to: DialectName) -> Params {
    let number = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
    let stop = if to == DialectName::OpenAiResponses { Vec::new() } else { settings.stop.clone() };
    let (temperature, top_p) = (number(&settings.temperature), number(&settings.top_p));
    Params { temperature, top_p, max_tokens: settings.max_tokens, stop, ..Params::default() }
}

/// What a body says of the sampling, as far as the other dialect has a field for it.
fn sampling(body: &[u8], from: DialectName, to: DialectName) -> Params {
    let said = SentSampling::read(from, body).unwrap_or_else(|error| {
        tracing::warn!(%error, "the sampling of a stored request cannot be read");
        SentSampling::default()
    });
    Params {
        temperature: said.temperature,
        top_p: said.top_p,
        // A limit that must stand in every request says nothing of what was asked for.
        max_tokens: said.max_tokens.filter(|_| from != DialectName::AnthropicMessages),
        stop: if to == DialectName::OpenAiResponses { Vec::new() } else { said.stop },
        ..Params::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_goes_along_as_far_as_the_other_dialect_has_a_field_for_it() {
        let chat = r#"{"model":"m","temperature":0.5,"top_p":0.9,"max_completion_tokens":64,"stop":["\n"]}"#;
        let read = sampling(chat.as_bytes(), DialectName::OpenAiChat, DialectName::Gemini);
        assert_eq!((read.temperature, read.top_p, read.max_tokens), (Some(0.5), Some(0.9), Some(64)));
        assert_eq!(read.stop, ["\n"]);
        let gemini =
            r#"{"generationConfig":{"temperature":1,"topP":0.5,"maxOutputTokens":9,"stopSequences":["x"]}}"#;
        let read = sampling(gemini.as_bytes(), DialectName::Gemini, DialectName::OpenAiResponses);
        assert_eq!((read.temperature, read.top_p, read.max_tokens), (Some(1.0), Some(0.5), Some(9)));
        assert!(read.stop.is_empty(), "that dialect has no field for it");
        let messages = r#"{"model":"m","max_tokens":4096,"stop_sequences":["."]}"#;
        let read = sampling(messages.as_bytes(), DialectName::AnthropicMessages, DialectName::OpenAiChat);
        assert_eq!((read.max_tokens, read.stop.len()), (None, 1), "that limit stands in every request");
        assert_eq!(sampling(b"\x00", DialectName::Embedded, DialectName::OpenAiChat), Params::default());
    }

    #[test]
    fn sampling_that_was_kept_goes_along_without_a_body() {
        let settings = GenerationSettings {
            temperature: Number::from_f64(0.5),
            max_tokens: Some(64),
            stop: vec!["END".to_owned()],
            ..GenerationSettings::default()
        };
        let read = sampling_of_settings(&settings, DialectName::OpenAiChat);
        assert_eq!((read.temperature, read.top_p, read.max_tokens), (Some(0.5), None, Some(64)));
        assert_eq!(read.stop, ["END"]);
        assert_eq!(sampling_of_settings(&settings, DialectName::OpenAiResponses).stop, [""; 0]);
    }
}
