//! The request before: what a new one shares with it, and what is known from it.
//!
//! It is found on the way from the place that is asked from to the top, so that a request on another branch goes on
//! from what was sent there, and after a restart of the process from what was sent before it.

use std::sync::Arc;

use bytes::Bytes;
use context::{Manifest, Prefix, Previous, Source, StoredBody, TargetModel, activation};
use loom::{Answers, Digest, Millis, NodeId, PositionId, RowError, TreeReader};

use crate::recent_requests::RecentRequest;
use crate::stored::{self, ResponseMeta};

/// An earlier request on the path.
pub(crate) struct PreviousRequest {
    pub(crate) digest: Digest,
    pub(crate) manifest: Arc<Manifest>,
    at: Millis,
    /// Tokens of it and its answer.
    used: u64,
    /// Body of the request, with the stored bodies it is rebuilt from; none where a part was removed since.
    pub(crate) stored: Option<(Vec<StoredBody>, Bytes)>,
    prefix: Option<Prefix>,
}

impl PreviousRequest {
    /// The nearest one at or above a position, however many results and texts stand between. What is known of it is not
    /// read again.
    pub(crate) fn read(
        rows: &dyn TreeReader,
        parent: PositionId,
        recent: Option<&RecentRequest>,
    ) -> Result<Option<Self>, RowError> {
        for answer in Answers::new(rows, parent) {
            let answer = answer?;
            let Some(generation) = rows.generation(answer.generation)? else { continue };
            if let Some(recent) = recent.filter(|recent| recent.digest == generation.manifest) {
                return Ok(Some(Self {
                    digest: recent.digest,
                    manifest: Arc::clone(&recent.manifest),
                    at: answer.created_at,
                    used: used(rows, answer.node)?.unwrap_or(recent.manifest.tokens),
                    stored: Some((recent.chain.clone(), recent.body.clone())),
                    prefix: recent.prefix.clone(),
                }));
            }
            let Some(manifest) = stored::manifest(rows, generation.manifest)? else { continue };
            let stored = match stored::chain(rows, &manifest)? {
                Some(chain) => stored::rebuilt(rows, &chain)?.map(|body| (chain, body.into())),
                None => None,
            };
            let prefix = match manifest.prefix {
                // A prefix that cannot be read any more is read anew.
                Some(digest) => rows.body(digest)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()),
                None => None,
            };
            let used = used(rows, answer.node)?.unwrap_or(manifest.tokens);
            let (digest, at, manifest) = (generation.manifest, answer.created_at, Arc::new(manifest));
            return Ok(Some(Self { digest, manifest, at, used, stored, prefix }));
        }
        Ok(None)
    }

    /// Where its text began, and after how many bytes of that passage.
    pub(crate) fn begins(&self) -> Option<(PositionId, u64)> {
        self.manifest.runs.first().map(|run| (run.from, run.cut))
    }

    /// What a request to `target` made at `now` goes on from.
    pub(crate) fn previous(&self, target: &TargetModel, now: Millis) -> Previous {
        let left_out = self.manifest.segments.iter().filter(|segment| segment.bytes.is_none());
        let told = left_out.filter_map(|segment| match &segment.source {
            Source::File { path, digest } => Some((path.clone(), *digest)),
            _ => None,
        });
        Previous {
            prefix: self.prefix.clone(),
            cold: activation::is_cold(&self.manifest.model, self.at, target, now),
            calls: self.manifest.runs.iter().flat_map(|run| run.calls.clone()).collect(),
            used: Some(self.used),
            told: told.collect(),
        }
    }
}

/// Tokens of the request a node was made of and of its answer, as far as they were reported.
fn used(rows: &dyn TreeReader, node: NodeId) -> Result<Option<u64>, RowError> {
    let Some(response) = rows.response(node)?.filter(|response| !response.purged) else { return Ok(None) };
    let meta: Option<ResponseMeta> = serde_json::from_str(&response.metadata).ok();
    Ok(meta.and_then(|meta| meta.used()))
}
