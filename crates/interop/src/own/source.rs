//! Source of an export: the rows of a tree, and the bytes that belong to it.

use loom::reader::Injection;
use loom::{Digest, GenerationId, GenerationRow, RowError, TreeReader};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredGeneration {
    pub row: GenerationRow,
    /// Digest of its response, if it got one.
    pub response: Option<Digest>,
    /// Metadata of its response, where that of [`ExportSource::response`] is of another generation: equal bytes came
    /// more than once, at other times and cut at other places.
    pub metadata: Option<String>,
}

/// A file body that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileBody {
    /// Owner of the text, as the manifest says.
    pub name: String,
    /// SHA-256 of the body.
    pub digest: Digest,
    /// Size in bytes.
    pub length: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedResponse {
    /// Status, headers, timings, usage: JSON text, kept byte for byte.
    pub metadata: String,
    /// The body as received, uncompressed. Empty once forgotten.
    pub bytes: Vec<u8>,
    /// Whether the body was forgotten.
    pub purged: bool,
}

/// One tree and what belongs to it, as one reader may see it. Asked page by page and one value at a time.
pub trait ExportSource {
    /// The rows of the tree.
    fn rows(&self) -> &dyn TreeReader;
    /// Generations of the tree with an id behind `after`, in order of their ids, at most `limit`.
    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<StoredGeneration>, RowError>;
    /// Injections of nodes of the tree, in the order of the nodes.
    fn injections(&self) -> Result<Vec<Injection>, RowError> {
        let root = self.rows().tree()?.root;
        self.rows().injections(root.original(), None)
    }
    /// The bytes of a manifest; none if they are gone.
    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError>;
    /// The file bodies a manifest names, in a fixed order.
    fn bodies(&self, manifest: Digest) -> Result<Vec<FileBody>, RowError>;
    /// A file body; none if it is gone.
    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError>;
    /// A response; none if it is gone.
    fn response(&self, digest: Digest) -> Result<Option<ArchivedResponse>, RowError>;
    /// A blob; none if it is gone.
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError>;
}
