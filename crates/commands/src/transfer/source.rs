//! The own format's view of a tree in the store: rows, what was sent and what came back, blobs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use context::{Manifest, segment};
use interop::own::{ArchivedResponse, ExportSource, FileBody, StoredGeneration};
use loom::{Digest, GenerationId, RowError, TreeReader};
use store::blobs::{BlobError, Blobs};

/// One tree of the store, within one snapshot.
pub(super) struct StoreSource<'a> {
    rows: &'a dyn TreeReader,
    blobs: &'a Blobs,
    /// The first generation with each response: the store keeps them by generation.
    answers: RefCell<BTreeMap<Digest, GenerationId>>,
}

impl<'a> StoreSource<'a> {
    pub(super) const fn new(rows: &'a dyn TreeReader, blobs: &'a Blobs) -> Self {
        Self { rows, blobs, answers: RefCell::new(BTreeMap::new()) }
    }

    /// The metadata of an answer, where it is not that of the first answer of these bytes.
    fn other_metadata(&self, first: GenerationId, id: GenerationId) -> Result<Option<String>, RowError> {
        let metadata = |id| Ok::<_, RowError>(self.rows.answer(id)?.map(|answer| answer.metadata));
        let (of_first, own) = (metadata(first)?, metadata(id)?);
        Ok(own.filter(|own| of_first.as_ref() != Some(own)))
    }
}

impl ExportSource for StoreSource<'_> {
    fn rows(&self) -> &dyn TreeReader {
        self.rows
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<StoredGeneration>, RowError> {
        let page = self.rows.generations(after, limit)?;
        let mut answers = self.answers.borrow_mut();
        let seen = page.into_iter().map(|(row, response)| {
            let first = response.map(|digest| *answers.entry(digest).or_insert(row.id));
            let metadata = match first {
                Some(first) if first != row.id => self.other_metadata(first, row.id)?,
                _ => None,
            };
            Ok(StoredGeneration { row, response, metadata })
        });
        seen.collect()
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        self.rows.manifest(digest)
    }

    fn bodies(&self, manifest: Digest) -> Result<Vec<FileBody>, RowError> {
        let Some(bytes) = self.rows.manifest(manifest)? else { return Ok(Vec::new()) };
        // One of a form this program does not know names no bodies that it could find.
        Ok(Manifest::from_bytes(&bytes).ok().map(|manifest| body_of(&manifest)).into_iter().collect())
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        self.rows.body(digest)
    }

    fn response(&self, digest: Digest) -> Result<Option<ArchivedResponse>, RowError> {
        let Some(generation) = self.answers.borrow().get(&digest).copied() else { return Ok(None) };
        Ok(self.rows.answer(generation)?.map(|answer| ArchivedResponse {
            metadata: answer.metadata,
            bytes: answer.bytes,
            purged: answer.purged,
        }))
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        match self.blobs.get(digest) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(BlobError::Missing { .. }) => Ok(None),
            Err(error) => Err(RowError::Store(Box::new(error))),
        }
    }
}

/// What a manifest keeps of its request's body: all of it, or what is new since an earlier request.
fn body_of(manifest: &Manifest) -> FileBody {
    let stored = &manifest.body;
    let shared = stored.delta.as_ref().map_or(0, |delta| delta.prefix.saturating_add(delta.suffix));
    let files = manifest.segments.iter().filter_map(|segment| match (&segment.kind, &segment.source) {
        (segment::Kind::File, segment::Source::Product { name }) => Some(name.as_str()),
        _ => None,
    });
    let files: Vec<&str> = files.collect();
    let mut name = format!("request to {}/{}", manifest.model.provider, manifest.model.name);
    if !files.is_empty() {
        name.push_str(&format!(" with {}", files.join(", ")));
    }
    FileBody { name, digest: stored.middle, length: stored.len.saturating_sub(shared) }
}
