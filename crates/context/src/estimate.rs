//! Tokens, estimated from characters (spec: context §4).
//!
//! Every text is so many units of its kinds ([`crate::units`]): prose of a language, code, hex, letters of a script. A unit's
//! tokens begin as a prior of the tokenizer's family and follow, kind by kind, what the provider reports
//! ([`crate::Calibration`]); both lie on the upper side. The fit is named in the manifest, so that an old estimate can be
//! told from a new one.

use std::sync::Arc;

use model::{ChatPart, Prompt, TokenCounter};

use crate::priors::Prior;
use crate::units::{KINDS, each_unit};

/// What a request is counted by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Units of each kind, of everything but schemas.
    pub(crate) units: [f64; KINDS],
    pub messages: u64,
    pub schema_chars: u64,
}

impl Default for Features {
    fn default() -> Self {
        Self { units: [0.0; KINDS], messages: 0, schema_chars: 0 }
    }
}

impl Features {
    /// What a prompt holds; none if it holds pictures or sounds, which are no characters.
    pub fn of(prompt: &Prompt) -> Option<Self> {
        let mut features = Self::default();
        match prompt {
            Prompt::Raw(parts) => parts.iter().for_each(|part| features.add(&part.text)),
            Prompt::Chat(chat) => {
                for tool in &chat.tools {
                    let chars = tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
                    features.schema_chars += chars as u64;
                }
                for message in &chat.messages {
                    features.message(message)?;
                }
                if let Some(prefill) = &chat.prefill {
                    features.messages += 1;
                    features.add(&prefill.text);
                }
            }
        }
        Some(features)
    }

    fn message(&mut self, message: &ChatPart) -> Option<()> {
        self.messages += 1;
        match message {
            ChatPart::System(part)
            | ChatPart::User(part)
            | ChatPart::Injected(part)
            | ChatPart::Assistant(part) => self.add(&part.text),
            ChatPart::Opaque(part) => self.add(part.thinking.as_deref().unwrap_or_default()),
            ChatPart::Media(_) => return None,
            ChatPart::ToolRound(round) => {
                self.messages += round.len() as u64;
                for exchange in round {
                    if !exchange.result.media.is_empty() {
                        return None;
                    }
                    self.add(&exchange.call.name);
                    self.add(&exchange.call.arguments);
                    self.add(&exchange.result.text);
                }
            }
        }
        Some(())
    }

    /// Takes a text in.
    pub fn add(&mut self, text: &str) {
        each_unit(text, |kind, units| self.units[kind] += units);
    }
}

/// An estimate of tokens, and the model's own count where there is one.
#[derive(Debug, Clone)]
pub struct Estimator {
    pub fit: String,
    /// Tokens a unit of each kind.
    pub(crate) weights: [f64; KINDS],
    pub message: f64,
    /// Tokens a character of a tool's schema.
    pub schema: f64,
    counter: Option<Arc<dyn TokenCounter>>,
}

impl PartialEq for Estimator {
    fn eq(&self, other: &Self) -> bool {
        let counted = self.counter.as_ref().map(|counter| counter.name());
        let other_counted = other.counter.as_ref().map(|counter| counter.name());
        self.fit == other.fit
            && self.weights == other.weights
            && [self.message, self.schema] == [other.message, other.schema]
            && counted == other_counted
    }
}

/// A sum over texts.
pub(crate) struct TokenSum<'a> {
    estimator: &'a Estimator,
    estimated: f64,
    counted: u64,
}

impl TokenSum<'_> {
    pub(crate) fn add(&mut self, text: &str) {
        match self.estimator.counted(text) {
            Some(tokens) => self.counted += tokens,
            None => self.estimated += self.estimator.weigh(text),
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.counted + self.estimated.ceil() as u64
    }
}

/// How far priors may be off.
pub(crate) const UNFITTED: f64 = 1.2;

impl Default for Estimator {
    /// Priors of a tokenizer nothing is known of.
    fn default() -> Self {
        Self::prior("unknown")
    }
}

impl Estimator {
    /// Priors of a family, before any usage was reported.
    pub fn prior(family: &str) -> Self {
        let prior = Prior::of(family);
        Self::new(format!("prior/{}", prior.family), weights(&prior), &prior)
    }

    /// With these tokens a unit; a message and a schema cost what the prior says.
    pub(crate) fn new(fit: String, weights: [f64; KINDS], prior: &Prior) -> Self {
        let [message, schema] = [prior.message, prior.schema].map(|weight| weight * UNFITTED);
        Self { fit, weights, message, schema, counter: None }
    }

    /// The estimator with text counted rather than estimated, as far as the counter knows it.
    #[must_use]
    pub fn counting(self, counter: Option<Arc<dyn TokenCounter>>) -> Self {
        Self { counter, ..self }
    }

    /// The estimator with `scale` times as many tokens for text that is only estimated.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self { weights: self.weights.map(|weight| weight * scale), ..self }
    }

    /// Tokens of a text by the model's own count.
    pub fn counted(&self, text: &str) -> Option<u64> {
        self.counter.as_ref()?.known(text)
    }

    pub(crate) fn sum(&self) -> TokenSum<'_> {
        TokenSum { estimator: self, estimated: 0.0, counted: 0 }
    }

    fn weigh(&self, text: &str) -> f64 {
        let mut tokens = 0.0;
        each_unit(text, |kind, units| tokens += units * self.weights[kind]);
        tokens
    }

    pub fn of(&self, text: &str) -> u64 {
        self.counted(text).unwrap_or_else(|| self.estimated(text))
    }

    /// Tokens of a text, estimated whoever could count it.
    pub fn estimated(&self, text: &str) -> u64 {
        self.weigh(text).ceil() as u64
    }

    /// Tokens that `messages` messages cost besides their text.
    pub(crate) fn of_messages(&self, messages: usize) -> u64 {
        (messages as f64 * self.message).ceil() as u64
    }

    /// Tokens of tool schemas with this many characters.
    pub(crate) fn of_schema(&self, chars: usize) -> u64 {
        (chars as f64 * self.schema).ceil() as u64
    }

    /// Tokens of a whole request.
    pub fn of_features(&self, features: &Features) -> u64 {
        let text: f64 = features.units.iter().zip(self.weights).map(|(units, weight)| units * weight).sum();
        let around = features.messages as f64 * self.message + features.schema_chars as f64 * self.schema;
        (text + around).ceil() as u64
    }
}

/// The upper side of a prior.
fn weights(prior: &Prior) -> [f64; KINDS] {
    let mut weights = middle(prior);
    weights.iter_mut().for_each(|weight| *weight *= UNFITTED);
    weights
}

/// A prior as it was measured.
pub(crate) fn middle(prior: &Prior) -> [f64; KINDS] {
    let mut weights = [0.0; KINDS];
    for (weight, measured) in weights.iter_mut().zip(prior.latin.into_iter().chain(prior.scripts)) {
        *weight = measured;
    }
    weights
}

#[cfg(test)]
mod tests {
    use model::{Chat, PartId, TextPart, ToolSchema};

    use super::*;

    #[test]
    fn the_estimate_grows_with_the_text_and_is_zero_for_none() {
        let estimator = Estimator::default();
        assert_eq!(estimator.of(""), 0);
        let words = estimator.of("the rain is in ");
        assert!(words > 0 && estimator.of(&"the rain is in ".repeat(100)) <= words * 100);
        assert!(estimator.of("雨が降る") >= 4, "a CJK character is about a token");
    }

    #[test]
    fn an_unknown_tokenizer_is_taken_for_the_dearest_it_may_be() {
        let unknown = Estimator::default();
        for family in ["openai_o200k", "openai_cl100k", "llama", "qwen", "smollm", "gemini"] {
            let known = Estimator::prior(family);
            for text in ["The tide is out.", "雨が降る", "{\"a\": [1, 22, 333]}", "Дождь", "😀"] {
                assert!(known.of(text) <= unknown.of(text), "{family}: {text}");
            }
            assert_eq!(known.fit, format!("prior/{family}"));
        }
        assert_eq!(Estimator::prior("never heard of"), unknown);
    }

    #[test]
    fn everything_that_is_sent_is_counted() {
        let text = |text: &str| TextPart::new(PartId(0), text);
        let schema = ToolSchema {
            id: PartId(1),
            name: "ls".to_owned(),
            description: "Lists.".to_owned(),
            parameters: serde_json::json!({}),
        };
        let chat = Chat {
            tools: vec![schema],
            messages: vec![ChatPart::System(text("ab")), ChatPart::User(text("1 雨"))],
            prefill: Some(text("c")),
            ..Chat::default()
        };
        let features = Features::of(&Prompt::Chat(chat)).unwrap();
        let mut expected = Features { messages: 3, schema_chars: 10, ..Features::default() };
        ["ab", "1 雨", "c"].into_iter().for_each(|text| expected.add(text));
        assert_eq!(features, expected);
        assert_eq!(features.units.iter().filter(|units| **units > 0.0).count(), 2);
    }
}
