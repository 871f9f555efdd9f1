//! What a generation left in the store, read again: manifests, bodies, responses.

use context::{Manifest, StoredBody};
use loom::content::NotCanonical;
use loom::reader::StoredResponse;
use loom::verify::{Evidence, Gap, Reread};
use loom::{Block, Digest, GenerationId, ModelSource, NodeId, NodeRow, ResponsePart, RowError, TreeReader};
use model::{DialectName, PARSER_VERSION, ParsedResponse, RawResponse, ReplyPiece, Timings, TokenUsage};
use serde::{Deserialize, Serialize};

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
    /// Counts as reported that cannot be those of this request and answer: they are not plausible, and not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implausible_usage: Option<TokenUsage>,
    /// Names of known secrets that were masked in the body.
    #[serde(default)]
    pub masked: Vec<String>,
    /// How it broke off, if it did.
    #[serde(default)]
    pub interrupted: Option<String>,
    /// The model as requested: what it wants back unchanged goes to it alone.
    #[serde(default)]
    pub model: String,
}

impl ResponseMeta {
    /// What is kept of a response to a request; `plausible` says whether a count of tokens can be its own.
    pub(crate) fn of(raw: &RawResponse, model: &str, plausible: impl Fn(&TokenUsage) -> bool) -> Self {
        let (usage, implausible_usage) = match raw.parsed.usage {
            Some(usage) if !plausible(&usage) => (None, Some(usage)),
            usage => (usage, None),
        };
        Self {
            status: raw.status,
            headers: raw.headers.clone(),
            removed_headers: raw.removed_headers.clone(),
            streamed: raw.streamed,
            timings: Some(raw.timings),
            attempt: raw.attempt,
            dialect: raw.dialect,
            parser_version: raw.parser_version,
            usage,
            implausible_usage,
            masked: Vec::new(),
            interrupted: None,
            model: model.to_owned(),
        }
    }

    pub(crate) fn to_json(&self) -> Result<String, NotCanonical> {
        serde_json::to_string(self).map_err(|error| NotCanonical(error.to_string()))
    }
}

/// The content blocks of one choice of a response. `held` is the white space that stands in the document already.
pub fn blocks(choice: &model::Choice, held: &str, meta: &ResponseMeta) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut held = held;
    let silent = choice.text().is_empty();
    for piece in &choice.pieces {
        match piece {
            ReplyPiece::Thinking { text, .. } => {
                blocks.push(Block::Thinking { text: text.clone(), opaque: piece.opaque() });
            }
            ReplyPiece::Text(said) => {
                // Only the beginning of the first text stands in the document already.
                let text = context::held::rest(std::mem::take(&mut held), said);
                if !text.is_empty() {
                    blocks.push(Block::text(text));
                }
            }
            ReplyPiece::Refusal(said) if silent && !said.is_empty() => blocks.push(Block::text(said.clone())),
            ReplyPiece::Refusal(_) => {}
            ReplyPiece::Call(call) => {
                let arguments = serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| serde_json::Value::String(call.arguments.clone()));
                blocks.push(Block::ToolCall { id: call.id.clone(), name: call.name.clone(), arguments });
            }
            ReplyPiece::Opaque(json) => blocks.push(Block::Opaque {
                dialect: meta.dialect.as_str().to_owned(),
                model: meta.model.clone(),
                json: json.clone(),
            }),
            ReplyPiece::Media(media) => {
                let (blob, mime) = (Digest::of(&media.data), media.mime.clone());
                blocks.push(if mime.starts_with("audio/") {
                    Block::Audio { blob, mime }
                } else {
                    Block::Image { blob, mime }
                });
            }
        }
    }
    blocks
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
    let mut body: Option<Vec<u8>> = None;
    for stored in chain.iter().rev() {
        let Some(middle) = rows.body(stored.middle)? else { return Ok(None) };
        let whole = context::body::rebuild(stored, &middle, body.as_deref());
        body = Some(whole.map_err(|error| RowError::Store(Box::new(error)))?);
    }
    Ok(body)
}

/// What a stored response says.
pub struct StoredReply {
    /// What is kept besides its body.
    pub meta: ResponseMeta,
    /// Its body, read again.
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
pub struct StoreEvidence<'a>(pub &'a dyn TreeReader);

impl Evidence for StoreEvidence<'_> {
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError> {
        Ok(match self.0.manifest(digest)? {
            Some(bytes) if bytes.is_empty() => Err(Gap::Purged),
            Some(bytes) => Ok(Digest::of(&bytes)),
            None => Err(Gap::Missing),
        })
    }

    fn reread(&self, node: &NodeRow, source: &ModelSource) -> Result<Reread, RowError> {
        let Some(stored) = self.0.response(node.node.id)? else {
            return Ok(Reread::Gap { digest: None, gap: Gap::Missing });
        };
        if stored.purged {
            return Ok(Reread::Gap { digest: None, gap: Gap::Purged });
        }
        let held = manifest(self.0, source.manifest)?.map(|manifest| manifest.held).unwrap_or_default();
        Ok(reread(&stored.bytes, &stored.metadata, source.choice, &held))
    }
}

/// Reads one choice of a response again.
pub fn reread(bytes: &[u8], metadata: &str, choice: ResponsePart, held: &str) -> Reread {
    let digest = Digest::of(bytes);
    let Ok(meta) = serde_json::from_str::<ResponseMeta>(metadata) else {
        return Reread::Gap { digest: Some(digest), gap: Gap::Missing };
    };
    if !meta.masked.is_empty() {
        return Reread::Gap { digest: Some(digest), gap: Gap::Masked };
    }
    if meta.parser_version != PARSER_VERSION {
        return Reread::Gap { digest: Some(digest), gap: Gap::Parser };
    }
    let reparsed = model::reparse(meta.dialect, bytes, meta.streamed);
    let found = match choice {
        ResponsePart::Index(index) => reparsed
            .choices
            .iter()
            .find(|choice| choice.index == index)
            .map(|choice| blocks(choice, held, &meta)),
        ResponsePart::Token { index, rank } => {
            // Tokens are counted through the whole response, answer after answer.
            let mut tokens = reparsed.choices.iter().flat_map(|choice| &choice.logprobs);
            let top = tokens.nth(index as usize).and_then(|token| token.top.get(rank as usize));
            top.map(|top| vec![Block::text(top.token.clone())])
        }
    };
    Reread::Blocks { digest, blocks: found.unwrap_or_default() }
}
