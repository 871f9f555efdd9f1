//! What a generation left in the store, read again: manifests, bodies, responses.

use std::cell::RefCell;
use text::cut::Boundary;

use context::{Manifest, StoredBody};
use loom::content::NotCanonical;
use loom::plan::MAX_NODE_BYTES;
use loom::reader::StoredResponse;
use loom::verify::{Evidence, Gap, Reread};
use loom::{Block, Digest, GenerationId, ModelSource, NodeId, NodeRow, ResponsePart, RowError, TreeReader};
use model::{DialectName, PARSER_VERSION, ParsedResponse, RawResponse, ReplyPiece, Timings, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::answer_end::AnswerEnd;

/// What is kept of a response besides its body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseMeta {
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Names of headers whose values were not kept.
    pub removed_headers: Vec<String>,
    /// Whether the body is a stream.
    pub streamed: bool,
    /// When it came; none for one that was recovered.
    pub timings: Option<Timings>,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// The dialect of the body.
    pub dialect: DialectName,
    /// Version of the parser that read it first.
    pub parser_version: u32,
    pub usage: Option<TokenUsage>,
    /// Counts as reported that cannot all be those of this request and answer: they are not plausible, and not believed.
    /// Of those whose output alone is too small the input holds, and stands in the estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implausible_usage: Option<TokenUsage>,
    /// Counts where those of the input alone were reported, as of an answer that was cut: the output is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_usage: Option<TokenUsage>,
    /// Names of known secrets that were masked in the body.
    #[serde(default)]
    pub masked: Vec<String>,
    /// How it broke off, if it did.
    #[serde(default)]
    pub interrupted: Option<String>,
    /// The model as requested: what it wants back unchanged goes to it alone.
    #[serde(default)]
    pub model: String,
    /// Where its choices are cut; its body goes on behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Boundary>,
    /// Texts that stand in its body though they stop an answer: its choices are cut before them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
}

impl ResponseMeta {
    /// What is kept of a response to a request, but for its token counts.
    pub(crate) fn of(raw: &RawResponse, model: &str) -> Self {
        Self {
            status: raw.status,
            headers: raw.headers.clone(),
            removed_headers: raw.removed_headers.clone(),
            streamed: raw.streamed,
            timings: Some(raw.timings),
            attempt: raw.attempt,
            dialect: raw.dialect,
            parser_version: raw.parser_version,
            usage: None,
            implausible_usage: None,
            estimated_usage: None,
            masked: Vec::new(),
            interrupted: None,
            model: model.to_owned(),
            ends_at: None,
            stops: Vec::new(),
        }
    }

    /// Where its choices are cut.
    pub(crate) fn end(&self) -> AnswerEnd {
        AnswerEnd::new(self.ends_at, &self.stops)
    }

    /// Tokens of the request and its answer; none where not even those of the input were reported.
    pub(crate) fn used(&self) -> Option<u64> {
        let usage = self.usage.or(self.estimated_usage)?;
        Some(usage.input().saturating_add(usage.output))
    }

    pub(crate) fn to_json(&self) -> Result<String, NotCanonical> {
        serde_json::to_string(self).map_err(|error| NotCanonical(error.to_string()))
    }
}

/// The content blocks of one choice of a response. `held` is the white space that stands in the document already.
pub fn blocks(mut choice: model::Choice, held: &str, meta: &ResponseMeta) -> Vec<Block> {
    cut_at(&mut choice, &meta.end());
    let mut blocks = Vec::new();
    let mut held = held;
    let silent = choice.text().is_empty();
    for piece in choice.pieces {
        let opaque = if matches!(piece, ReplyPiece::Thinking { .. }) { piece.opaque() } else { None };
        match piece {
            ReplyPiece::Thinking { text, .. } => blocks.push(Block::Thinking { text, opaque }),
            ReplyPiece::Text(mut said) => {
                // Only the beginning of the first text stands in the document already.
                let new = context::held::rest(std::mem::take(&mut held), &said).len();
                said.drain(..said.len() - new);
                if !said.is_empty() {
                    blocks.push(Block::Text { text: said });
                }
            }
            ReplyPiece::Refusal(said) if silent && !said.is_empty() => blocks.push(Block::text(said)),
            ReplyPiece::Refusal(_) => {}
            ReplyPiece::Call(call) => {
                let arguments = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| serde_json::Value::String(call.arguments));
                blocks.push(Block::ToolCall { id: call.id, name: call.name, arguments });
            }
            ReplyPiece::Opaque(json) => blocks.push(Block::Opaque {
                dialect: meta.dialect.as_str().to_owned(),
                model: meta.model.clone(),
                json,
            }),
            ReplyPiece::Media(media) => {
                let (blob, mime) = (Digest::of(&media.data), media.mime);
                blocks.push(if mime.starts_with("audio/") {
                    Block::Audio { blob, mime }
                } else {
                    Block::Image { blob, mime }
                });
            }
        }
    }
    fit(&mut blocks);
    blocks
}

/// Cuts a choice at its end, if it goes on there. Whether it does.
pub(crate) fn cut_at(choice: &mut model::Choice, end: &AnswerEnd) -> bool {
    let Some(mut left) = end.find(&choice.text()) else {
        return false;
    };
    let mut pieces = 0;
    for piece in &mut choice.pieces {
        pieces += 1;
        if let ReplyPiece::Text(text) = piece {
            text.truncate(left.min(text.len()));
            left -= text.len();
            if left == 0 {
                break;
            }
        }
    }
    choice.pieces.truncate(pieces);
    true
}

/// Whether an answer says more than a node holds: the node has its beginning, the response all of it.
pub(crate) fn is_cut(choice: &model::Choice) -> bool {
    choice.text().len() as u64 > MAX_NODE_BYTES
}

/// Cuts texts behind what a node holds, at the end of a character.
fn fit(blocks: &mut Vec<Block>) {
    let mut left = MAX_NODE_BYTES as usize;
    for block in blocks.iter_mut() {
        if let Block::Text { text } = block {
            let end = (0..=left.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            left -= text.len();
        }
    }
    blocks.retain(|block| !matches!(block, Block::Text { text } if text.is_empty()));
}

pub fn manifest(rows: &dyn TreeReader, digest: Digest) -> Result<Option<Manifest>, RowError> {
    let Some(bytes) = rows.manifest(digest)? else { return Ok(None) };
    Manifest::from_bytes(&bytes).map(Some).map_err(|error| RowError::Store(Box::new(error)))
}

/// How a body is stored, from itself down to the full copy it rests on; none when a part is not there.
pub fn chain(rows: &dyn TreeReader, manifest: &Manifest) -> Result<Option<Vec<StoredBody>>, RowError> {
    let mut chain = vec![manifest.body.clone()];
    while let Some(base) = chain.last().and_then(|stored| stored.delta.as_ref()).map(|delta| delta.base) {
        let Some(manifest) = self::manifest(rows, base)? else { return Ok(None) };
        chain.push(manifest.body);
    }
    Ok(Some(chain))
}

/// The request body a manifest describes; none when a part of it is not there.
pub fn body(rows: &dyn TreeReader, manifest: &Manifest) -> Result<Option<Vec<u8>>, RowError> {
    match chain(rows, manifest)? {
        Some(chain) => rebuilt(rows, &chain),
        None => Ok(None),
    }
}

/// The body at the beginning of a chain, put together from the full copy upwards.
pub fn rebuilt(rows: &dyn TreeReader, chain: &[StoredBody]) -> Result<Option<Vec<u8>>, RowError> {
    let mut parts = Vec::with_capacity(chain.len());
    for stored in chain {
        let Some(middle) = rows.body(stored.middle)? else { return Ok(None) };
        parts.push((stored, middle));
    }
    let body = context::body::rebuild(&parts);
    body.map(Some).map_err(|error| RowError::Store(Box::new(error)))
}

/// What a stored response says.
pub struct StoredReply {
    /// What is kept besides its body.
    pub meta: ResponseMeta,
    /// Body of the response, parsed again.
    pub reparsed: ParsedResponse,
}

impl StoredReply {
    /// Tokens as reported, where the report is plausible.
    pub fn usage(&self) -> Option<TokenUsage> {
        let again = self.reparsed.usage.filter(|_| self.meta.implausible_usage.is_none());
        self.meta.usage.or(again)
    }
}

/// Reads the response of a node again; none when there is none.
pub fn response(rows: &dyn TreeReader, node: NodeId) -> Result<Option<StoredReply>, RowError> {
    read_again(rows.response(node)?)
}

/// Reads the response of a generation again; none when there is none.
pub fn reply(rows: &dyn TreeReader, generation: GenerationId) -> Result<Option<StoredReply>, RowError> {
    read_again(rows.answer(generation)?)
}

fn read_again(stored: Option<StoredResponse>) -> Result<Option<StoredReply>, RowError> {
    let Some(stored) = stored.filter(|stored| !stored.purged) else { return Ok(None) };
    let meta: ResponseMeta =
        serde_json::from_str(&stored.metadata).map_err(|error| RowError::Store(Box::new(error)))?;
    let reparsed = model::reparse(meta.dialect, &stored.bytes, meta.streamed);
    Ok(Some(StoredReply { meta, reparsed }))
}

/// Manifests and responses of a store, for `verify`.
pub struct StoreEvidence<'a> {
    rows: &'a dyn TreeReader,
    last: LastResponse,
}

impl<'a> StoreEvidence<'a> {
    pub fn new(rows: &'a dyn TreeReader) -> Self {
        Self { rows, last: LastResponse::default() }
    }
}

impl Evidence for StoreEvidence<'_> {
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError> {
        Ok(match self.rows.manifest(digest)? {
            Some(bytes) if bytes.is_empty() => Err(Gap::Purged),
            Some(bytes) => Ok(Digest::of(&bytes)),
            None => Err(Gap::Missing),
        })
    }

    fn reread(&self, node: &NodeRow, source: &ModelSource) -> Result<Reread, RowError> {
        let node = &node.node;
        if let Some(read) =
            node.generation.and_then(|id| self.last.choice((id, source.manifest), source.choice))
        {
            return Ok(read);
        }
        let Some(stored) = self.rows.response(node.id)? else {
            return Ok(Reread::Gap { digest: None, gap: Gap::Missing });
        };
        if stored.purged {
            return Ok(Reread::Gap { digest: None, gap: Gap::Purged });
        }
        let held = manifest(self.rows, source.manifest)?.map(|manifest| manifest.held).unwrap_or_default();
        let read = RereadResponse::of(&stored.bytes, &stored.metadata, held);
        let choice = read.choice(source.choice);
        if let Some(id) = node.generation {
            self.last.keep((id, source.manifest), read);
        }
        Ok(choice)
    }

    fn has_checked_records(&self) -> bool {
        false
    }
}

/// The response read last, by its generation and manifest. Choices of one response follow each other: it is read
/// once for all of them.
#[derive(Default)]
pub struct LastResponse(RefCell<Option<((GenerationId, Digest), RereadResponse)>>);

impl LastResponse {
    /// A choice of the response read last, if it is this one.
    pub fn choice(&self, of: (GenerationId, Digest), choice: ResponsePart) -> Option<Reread> {
        let last = self.0.borrow();
        last.as_ref().filter(|(last, _)| *last == of).map(|(_, read)| read.choice(choice))
    }

    pub fn keep(&self, of: (GenerationId, Digest), read: RereadResponse) {
        self.0.replace(Some((of, read)));
    }
}

/// A response that is read again.
pub struct RereadResponse {
    digest: Digest,
    read: Result<(ResponseMeta, ParsedResponse), Gap>,
    /// The white space its manifest held back.
    held: String,
}

impl RereadResponse {
    pub fn of(bytes: &[u8], metadata: &str, held: String) -> Self {
        let read = match serde_json::from_str::<ResponseMeta>(metadata) {
            Err(_) => Err(Gap::Missing),
            Ok(meta) if !meta.masked.is_empty() => Err(Gap::Masked),
            Ok(meta) if meta.parser_version != PARSER_VERSION => Err(Gap::Parser),
            Ok(meta) => {
                let parsed = model::reparse(meta.dialect, bytes, meta.streamed);
                Ok((meta, parsed))
            }
        };
        Self { digest: Digest::of(bytes), read, held }
    }

    /// What a part of it says.
    pub fn choice(&self, part: ResponsePart) -> Reread {
        let digest = self.digest;
        let (meta, parsed) = match &self.read {
            Ok(read) => read,
            Err(gap) => return Reread::Gap { digest: Some(digest), gap: *gap },
        };
        let found = match part {
            ResponsePart::Index(index) => {
                // Mostly they stand in the order of their numbers.
                let there = parsed.choices.get(index as usize).filter(|choice| choice.index == index);
                let choice = there.or_else(|| parsed.choices.iter().find(|choice| choice.index == index));
                choice.map(|choice| blocks(choice.clone(), &self.held, meta))
            }
            ResponsePart::Token { index, rank } => {
                // Tokens are counted through the whole response, answer after answer.
                let mut tokens = parsed.choices.iter().flat_map(|choice| &choice.logprobs);
                let top = tokens.nth(index as usize).and_then(|token| token.top.get(rank as usize));
                top.map(|top| vec![Block::text(top.token.clone())])
            }
        };
        Reread::Blocks { digest, blocks: found.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_used_is_as_reported_or_as_far_as_it_was() {
        let usage =
            |input_uncached, output| Some(TokenUsage { input_uncached, output, ..TokenUsage::default() });
        let mut meta: ResponseMeta = serde_json::from_value(json!({
            "status": 200, "headers": [], "removed_headers": [], "streamed": true, "attempt": 1,
            "dialect": DialectName::Gemini, "parser_version": PARSER_VERSION,
        }))
        .unwrap();
        assert_eq!(meta.used(), None);
        meta.estimated_usage = usage(700, 3);
        assert_eq!(meta.used(), Some(703));
        meta.usage = usage(700, 9);
        assert_eq!(meta.used(), Some(709));
    }
}
