//! Tokens, estimated from characters (spec: context §4).
//!
//! A linear model over counts by character class, places where tokenizers cut first, messages and schemas. Its weights begin as priors of the
//! tokenizer's family and are fitted to what the provider reports ([`crate::Calibration`]); a safety factor on top keeps
//! it on the upper side. The fit is named in the manifest, so that an old estimate can be told from a new one.

use std::sync::Arc;

use model::{ChatPart, Prompt, TokenCounter};
use text::class::ClassCounts;

/// How many numbers the model has: seven classes, runs, gaps, humps, messages, characters of schemas.
pub const FEATURES: usize = 12;

/// What a request is counted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Characters by class, of everything but schemas.
    pub counts: ClassCounts,
    pub messages: u64,
    pub schema_chars: u64,
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

    fn add(&mut self, text: &str) {
        self.counts += ClassCounts::of(text);
    }

    /// As numbers, in the order of the weights.
    pub fn as_array(&self) -> [f64; FEATURES] {
        let mut all = [0.0; FEATURES];
        let counts = self.counts.as_array().into_iter().chain([self.messages, self.schema_chars]);
        for (feature, count) in all.iter_mut().zip(counts) {
            *feature = count as f64;
        }
        all
    }
}

/// A linear estimate of tokens, and the model's own count where there is one.
#[derive(Debug, Clone)]
pub struct Estimator {
    pub fit: String,
    /// Tokens a character of each class: Latin letters, digits, spaces, punctuation, CJK, other scripts, emoji; and
    /// tokens a run, a gap and a hump ([`ClassCounts`]).
    pub weights: [f64; 10],
    pub message: f64,
    /// Tokens a character of a tool's schema.
    pub schema: f64,
    /// What every estimate is multiplied with: how far the weights may be off.
    pub factor: f64,
    counter: Option<Arc<dyn TokenCounter>>,
}

impl PartialEq for Estimator {
    fn eq(&self, other: &Self) -> bool {
        let counted = self.counter.as_ref().map(|counter| counter.name());
        let other_counted = other.counter.as_ref().map(|counter| counter.name());
        self.fit == other.fit
            && self.as_array() == other.as_array()
            && self.factor.to_bits() == other.factor.to_bits()
            && counted == other_counted
    }
}

/// A sum over texts.
pub(crate) struct TokenSum<'a> {
    estimator: &'a Estimator,
    counts: ClassCounts,
    counted: u64,
}

impl TokenSum<'_> {
    pub(crate) fn add(&mut self, text: &str) {
        match self.estimator.counted(text) {
            Some(tokens) => self.counted += tokens,
            None => self.counts += ClassCounts::of(text),
        }
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.counted + self.estimator.of_counts(&self.counts)
    }
}

/// How far priors may be off.
const UNFITTED: f64 = 1.2;

/// Weights by family of tokenizers, as [`model::ModelInfo`] names them: measured on English, Chinese, code and JSON
/// where a tokenizer could be asked, else those of the nearest.
const PRIORS: [(&str, [f64; FEATURES]); 7] = [
    ("openai_o200k", [0.051, 0.36, 0.02, 0.12, 0.80, 0.60, 2.5, 0.79, 1.0, 1.5, 4.0, 0.24]),
    ("openai_cl100k", [0.053, 0.36, 0.02, 0.12, 1.30, 0.85, 2.5, 0.79, 1.0, 1.7, 4.0, 0.24]),
    ("llama", [0.053, 0.40, 0.02, 0.13, 1.10, 0.80, 2.5, 0.80, 1.0, 1.6, 5.0, 0.26]),
    ("qwen", [0.053, 1.00, 0.02, 0.12, 0.75, 0.90, 2.5, 0.79, 1.0, 1.6, 5.0, 0.26]),
    ("claude", [0.070, 0.45, 0.03, 0.18, 1.25, 0.95, 3.0, 0.90, 1.1, 1.7, 5.0, 0.30]),
    ("gemini", [0.055, 1.00, 0.02, 0.16, 0.75, 0.60, 2.5, 0.80, 1.0, 1.5, 4.0, 0.26]),
    ("smollm", [0.055, 0.80, 0.02, 0.20, 1.93, 1.80, 4.0, 0.95, 1.0, 1.5, 5.0, 0.32]),
];

/// Families that are always known by name: an unknown model is none of theirs.
const KNOWN_BY_NAME: [&str; 2] = ["claude", "smollm"];

impl Default for Estimator {
    /// Priors of a tokenizer nothing is known of.
    fn default() -> Self {
        Self::prior("unknown")
    }
}

impl Estimator {
    /// Priors of a family, before any usage was reported.
    pub fn prior(family: &str) -> Self {
        let known = PRIORS.iter().find(|(name, _)| *name == family);
        let (name, weights) =
            known.map_or_else(|| ("unknown", dearest()), |(name, weights)| (*name, *weights));
        Self::new(format!("prior/{name}"), weights, UNFITTED)
    }

    pub(crate) fn new(fit: String, weights: [f64; FEATURES], factor: f64) -> Self {
        let [weights @ .., message, schema] = weights;
        Self { fit, weights, message, schema, factor, counter: None }
    }

    /// The weights without the factor, in the order of [`Features::as_array`].
    pub(crate) fn as_array(&self) -> [f64; FEATURES] {
        let [latin, digits, spaces, punctuation, cjk, other, emoji, runs, gaps, humps] = self.weights;
        [latin, digits, spaces, punctuation, cjk, other, emoji, runs, gaps, humps, self.message, self.schema]
    }

    /// The same, where text is counted rather than estimated as far as the counter knows it.
    #[must_use]
    pub fn counting(self, counter: Option<Arc<dyn TokenCounter>>) -> Self {
        Self { counter, ..self }
    }

    /// The same, where text that is only estimated has so many times as much.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self { weights: self.weights.map(|weight| weight * scale), ..self }
    }

    /// Tokens of a text by the model's own count.
    pub fn counted(&self, text: &str) -> Option<u64> {
        self.counter.as_ref()?.known(text)
    }

    pub(crate) fn sum(&self) -> TokenSum<'_> {
        TokenSum { estimator: self, counts: ClassCounts::default(), counted: 0 }
    }

    /// Tokens of text with these counts, estimated.
    fn of_counts(&self, counts: &ClassCounts) -> u64 {
        let weighted: f64 =
            counts.as_array().iter().zip(self.weights).map(|(count, weight)| *count as f64 * weight).sum();
        self.safely(weighted)
    }

    pub fn of(&self, text: &str) -> u64 {
        self.counted(text).unwrap_or_else(|| self.estimated(text))
    }

    /// Tokens of a text, estimated whoever could count it.
    pub fn estimated(&self, text: &str) -> u64 {
        self.of_counts(&ClassCounts::of(text))
    }

    /// Tokens that `messages` messages cost besides their text.
    pub(crate) fn of_messages(&self, messages: usize) -> u64 {
        self.safely(messages as f64 * self.message)
    }

    /// Tokens of tool schemas with this many characters.
    pub(crate) fn of_schema(&self, chars: usize) -> u64 {
        self.safely(chars as f64 * self.schema)
    }

    /// Tokens of a whole request.
    pub fn of_features(&self, features: &Features) -> u64 {
        let weighted: f64 = features.as_array().iter().zip(self.as_array()).map(|(x, w)| x * w).sum();
        self.safely(weighted)
    }

    fn safely(&self, tokens: f64) -> u64 {
        (tokens * self.factor).ceil() as u64
    }
}

/// The dearest weights of those families that an unknown model may be of.
fn dearest() -> [f64; FEATURES] {
    let mut dearest = [0.0_f64; FEATURES];
    for (_, weights) in PRIORS.into_iter().filter(|(family, _)| !KNOWN_BY_NAME.contains(family)) {
        for (most, weight) in dearest.iter_mut().zip(weights) {
            *most = most.max(weight);
        }
    }
    dearest
}

#[cfg(test)]
mod tests {
    use model::{Chat, PartId, TextPart, ToolSchema};

    use super::*;

    #[test]
    fn the_estimate_grows_with_the_text_and_is_zero_for_none() {
        let estimator = Estimator::default();
        assert_eq!(estimator.of(""), 0);
        let word = estimator.of("rain ");
        assert!(word > 0 && estimator.of(&"rain ".repeat(100)) <= word * 100);
        assert!(estimator.of("雨が降る") >= 4, "a CJK character is about a token");
    }

    #[test]
    fn an_unknown_tokenizer_is_taken_for_the_dearest_it_may_be() {
        let unknown = Estimator::default();
        for (family, _) in PRIORS.into_iter().filter(|(family, _)| !KNOWN_BY_NAME.contains(family)) {
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
        assert_eq!(features.as_array(), [3.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 3.0, 0.0, 0.0, 3.0, 10.0]);
    }
}
