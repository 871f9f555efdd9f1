//! Known secrets in what a model answers: masked before anybody sees it, and before it is stored (spec: security §11).
//!
//! A secret may be split over deltas or written with escapes, so that it stands nowhere in the bytes and yet in the
//! text. Hence two rules: deltas are masked as text on their way to the client, and a stored body is edited until
//! neither its bytes nor the text read from it hold a secret.

mod frames;

use std::collections::{BTreeMap, BTreeSet};

use loom::NodeId;
use model::{DialectName, ParsedResponse, ReplyPiece, reparse};
use text::mask::{MaskTextStream, Masker};

use crate::event::{EventSink, SessionEvent};

/// Deltas of the nodes of one request, masked on their way to a client.
pub(crate) struct MaskedDeltas<'a> {
    events: &'a dyn EventSink,
    masker: &'a Masker,
    nodes: &'a [NodeId],
    choices: BTreeMap<u32, Streams>,
}

#[derive(Default)]
struct Streams {
    text: Option<MaskTextStream>,
    thinking: Option<MaskTextStream>,
    /// Bytes of text that were passed on.
    written: u64,
}

impl<'a> MaskedDeltas<'a> {
    /// `nodes` are those of the choices, by index.
    pub(crate) fn new(events: &'a dyn EventSink, masker: &'a Masker, nodes: &'a [NodeId]) -> Self {
        Self { events, masker, nodes, choices: BTreeMap::new() }
    }

    /// Passes on what a delta completes. Thinking ends where text begins.
    pub(crate) fn event(&mut self, event: &model::ModelEvent) {
        match event {
            model::ModelEvent::Text { choice, text } => {
                let Some(node) = self.node(*choice) else { return };
                let streams = self.choices.entry(*choice).or_default();
                finish(streams.thinking.take(), |text| {
                    self.events.emit(SessionEvent::Thinking { node, text });
                });
                let stream = streams.text.get_or_insert_with(|| self.masker.text_stream());
                let text = stream.push(text);
                pass(text, |text| self.events.emit(streams.delta(node, text)));
            }
            model::ModelEvent::Thinking { choice, text } => {
                let Some(node) = self.node(*choice) else { return };
                let streams = self.choices.entry(*choice).or_default();
                let stream = streams.thinking.get_or_insert_with(|| self.masker.text_stream());
                pass(stream.push(text), |text| self.events.emit(SessionEvent::Thinking { node, text }));
            }
            model::ModelEvent::PromptRead { done, total } => {
                self.events.emit(SessionEvent::Reading { done: *done, total: *total });
            }
            _ => {}
        }
    }

    /// Passes on what was held back as the possible beginning of a secret.
    pub(crate) fn finish(mut self) {
        for (choice, mut streams) in std::mem::take(&mut self.choices) {
            let Some(node) = self.node(choice) else { continue };
            finish(streams.thinking.take(), |text| self.events.emit(SessionEvent::Thinking { node, text }));
            finish(streams.text.take(), |text| self.events.emit(streams.delta(node, text)));
        }
    }

    fn node(&self, choice: u32) -> Option<NodeId> {
        self.nodes.get(choice as usize).copied()
    }
}

impl Streams {
    /// More text of a node.
    fn delta(&mut self, node: NodeId, text: String) -> SessionEvent {
        let offset = self.written;
        self.written += text.len() as u64;
        SessionEvent::Delta { node, offset, text }
    }
}

fn finish(stream: Option<MaskTextStream>, show: impl FnOnce(String)) {
    if let Some(stream) = stream {
        pass(stream.finish().rest, show);
    }
}

fn pass(text: String, show: impl FnOnce(String)) {
    if !text.is_empty() {
        show(text);
    }
}

/// A response body with known secrets masked, in an error guessed ones too, and what is read from it.
pub(crate) struct MaskedResponse {
    pub(crate) body: Vec<u8>,
    pub(crate) parsed: ParsedResponse,
    pub(crate) names: BTreeSet<String>,
}

impl MaskedResponse {
    /// Masks `body` in its bytes; where the text read from it still holds a secret, in the strings of its JSON; where
    /// that is not enough, the text alone is kept, masked, and no body.
    pub(crate) fn of(
        masker: &Masker,
        dialect: DialectName,
        body: Vec<u8>,
        streamed: bool,
        parsed: ParsedResponse,
    ) -> Self {
        let mut names = BTreeSet::new();
        // Where no model says anything a server does: its text enters as that of a tool (spec: security §11).
        let body = match str::from_utf8(&body) {
            Ok(text) if parsed.choices.is_empty() => {
                let entering = masker.mask_entering(text);
                names.extend(entering.spans.into_iter().map(|span| span.name));
                entering.text.into_owned().into_bytes()
            }
            _ => body,
        };
        let body = if masker.finds_in(&body) {
            let masked = masker.mask_bytes(&body);
            names.extend(masked.spans.into_iter().map(|span| span.name));
            masked.bytes
        } else {
            body
        };
        // What was read while it arrived holds where its bytes are as they came.
        let parsed = if names.is_empty() { parsed } else { reparse(dialect, &body, streamed) };
        let found = names_in(masker, &parsed);
        if found.is_empty() {
            return Self { body, parsed, names };
        }
        names.extend(found);
        let edited = frames::masked(masker, dialect, &body, streamed);
        let again = reparse(dialect, &edited, streamed);
        if says(masker, &parsed, &again) && names_in(masker, &again).is_empty() {
            return Self { body: edited, parsed: again, names };
        }
        let mut parsed = parsed;
        mask_choices(masker, &mut parsed);
        Self { body: Vec::new(), parsed, names }
    }
}

/// Whether `edited` has the text of `whole`, masked.
fn says(masker: &Masker, whole: &ParsedResponse, edited: &ParsedResponse) -> bool {
    let masked = |text: &str| masker.mask(text).text.into_owned();
    whole.choices.len() == edited.choices.len()
        && whole.choices.iter().zip(&edited.choices).all(|(whole, edited)| {
            masked(&whole.text()) == edited.text() && masked(&whole.thinking()) == edited.thinking()
        })
}

/// Names of the secrets in the texts of a response.
fn names_in(masker: &Masker, parsed: &ParsedResponse) -> BTreeSet<String> {
    let texts = parsed.texts();
    texts.iter().flat_map(|text| masker.mask(text).spans).map(|span| span.name).collect()
}

/// Leaves of each choice its text alone, masked.
fn mask_choices(masker: &Masker, reparsed: &mut ParsedResponse) {
    for choice in &mut reparsed.choices {
        let text = choice.text();
        let said = if text.is_empty() { choice.refusal() } else { text };
        let masked = masker.mask(&said).text.into_owned();
        choice.pieces = vec![ReplyPiece::Text(masked)];
        choice.logprobs.clear();
    }
}

#[cfg(test)]
mod tests;
