//! Content of an imported file, after every record was checked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use loom::memory::MemoryTree;
use loom::reader::Injection;
use loom::verify::{Evidence, Gap, Problem as Finding, Report, Reread, status, verify};
use loom::{Block, Digest, GenerationId, ModelSource, NodeId, NodeRow, RowError, TreeReader};
use serde::Serialize;

use super::record::FileHeader;
use super::source::{ArchivedResponse, ExportSource, FileBody, StoredGeneration};

/// Problem found in a file while reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadProblem {
    /// The line, from 1; 0 where it concerns the whole file.
    pub line: u64,
    pub why: String,
    /// Whether the tree does not stand without what is wrong: the file is then refused, or copied without it.
    /// Otherwise the record alone was skipped.
    pub breaks: bool,
}

/// Bytes that belong to a tree: manifests, file bodies, responses and media.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Materials {
    pub manifests: BTreeMap<Digest, Vec<u8>>,
    /// The file bodies each manifest names.
    pub bodies_of: BTreeMap<Digest, Vec<FileBody>>,
    pub bodies: BTreeMap<Digest, Vec<u8>>,
    pub responses: BTreeMap<Digest, ArchivedResponse>,
    pub blobs: BTreeMap<Digest, Vec<u8>>,
}

/// A file that was read. Every row in `tree` refers to rows that are in it too, and fits its own hashes.
#[derive(Debug, Clone)]
pub struct ImportedFile {
    pub header: FileHeader,
    /// The tree. All trust in it is `outside`.
    pub tree: MemoryTree,
    /// Injections of its nodes, in their order, all of trust `outside`.
    pub injections: Vec<Injection>,
    pub generations: BTreeMap<GenerationId, StoredGeneration>,
    pub materials: Materials,
    /// Problems, in order; bounded.
    pub problems: Vec<ReadProblem>,
    pub further: u64,
    /// Lines that a problem was found in.
    pub lines_left_out: u64,
    /// SHA-256 over all lines but the last: names the file.
    pub digest: Digest,
    /// Nodes whose content the export left out.
    pub withheld: BTreeSet<NodeId>,
}

/// Reads a stored response again. The dialects are above this crate, so they come in.
pub trait ResponseParser {
    /// Content blocks of one choice of a response, or the gap in the evidence.
    fn blocks(&self, source: &ModelSource, response: &ArchivedResponse) -> Result<Vec<Block>, Gap>;
}

/// No parser at hand: responses are checked by their digest alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unparsed;

impl ResponseParser for Unparsed {
    fn blocks(&self, _: &ModelSource, _: &ArchivedResponse) -> Result<Vec<Block>, Gap> {
        Err(Gap::Parser)
    }
}

impl ImportedFile {
    /// The first problem the tree does not stand with.
    pub fn broken(&self) -> Option<&ReadProblem> {
        self.problems.iter().find(|problem| problem.breaks)
    }

    /// The response of a generation, with the metadata of this one; none where the file does not have it.
    pub fn received(&self, generation: &StoredGeneration) -> Option<Cow<'_, ArchivedResponse>> {
        let held = self.materials.responses.get(&generation.response?)?;
        Some(match generation.metadata.clone() {
            Some(metadata) => Cow::Owned(ArchivedResponse { metadata, ..held.clone() }),
            None => Cow::Borrowed(held),
        })
    }

    /// Verifies the file by itself. Problems of reading are findings too: of a file that was touched, nothing
    /// is valid.
    ///
    /// # Errors
    /// [`RowError`] never occurs for rows in memory.
    pub fn verify(&self, parser: &dyn ResponseParser) -> Result<Report, RowError> {
        let shared = self.header.variant.is_shared();
        let mut report = verify(&self.tree, &FileEvidence { file: self, parser })?;
        for finding in &mut report.problems {
            let is_withheld = finding.node.is_none_or(|node| self.withheld.contains(&node));
            if shared && is_withheld && finding.gap == Some(Gap::Purged) {
                finding.gap = Some(Gap::Shared);
                finding.why = "it was left out of the shared file".to_owned();
            }
        }
        let found = |why: String, gap| Finding { node: None, seq: None, why, gap };
        if shared {
            report
                .problems
                .push(found("the file is shared: not all of its tree is in it".into(), Some(Gap::Shared)));
        }
        let read = self.problems.iter().map(|problem| match problem.line {
            0 => problem.why.clone(),
            line => format!("line {line}: {}", problem.why),
        });
        report.problems.extend(read.map(|why| found(why, None)));
        report.status = status(&report.problems);
        Ok(report)
    }
}

/// Manifests and responses as the file has them.
struct FileEvidence<'a> {
    file: &'a ImportedFile,
    parser: &'a dyn ResponseParser,
}

impl FileEvidence<'_> {
    const fn absent(&self) -> Gap {
        if self.file.header.variant.is_shared() { Gap::Shared } else { Gap::Missing }
    }

    /// The response of a node: as its generation got it, if that is in the file.
    fn response(&self, node: &NodeRow, source: &ModelSource) -> Option<Cow<'_, ArchivedResponse>> {
        let generation = node.node.generation.and_then(|id| self.file.generations.get(&id));
        match generation.filter(|generation| generation.response == source.response) {
            Some(generation) => self.file.received(generation),
            None => self.file.materials.responses.get(&source.response?).map(Cow::Borrowed),
        }
    }
}

impl Evidence for FileEvidence<'_> {
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError> {
        let bytes = self.file.materials.manifests.get(&digest);
        Ok(bytes.map(|bytes| Digest::of(bytes)).ok_or(self.absent()))
    }

    fn reread(&self, node: &NodeRow, source: &ModelSource) -> Result<Reread, RowError> {
        let Some(response) = self.response(node, source) else {
            return Ok(Reread::Gap { digest: None, gap: self.absent() });
        };
        if response.purged {
            return Ok(Reread::Gap { digest: None, gap: Gap::Purged });
        }
        let digest = Digest::of(&response.bytes);
        Ok(match self.parser.blocks(source, &response) {
            Ok(blocks) => Reread::Blocks { digest, blocks },
            Err(gap) => Reread::Gap { digest: Some(digest), gap },
        })
    }

    /// [`super::check::chained`] did, and left out those that do not fit.
    fn has_checked_records(&self) -> bool {
        true
    }
}

impl ExportSource for ImportedFile {
    fn rows(&self) -> &dyn TreeReader {
        &self.tree
    }

    fn injections(&self) -> Result<Vec<Injection>, RowError> {
        Ok(self.injections.clone())
    }

    fn generations(
        &self,
        after: Option<GenerationId>,
        limit: usize,
    ) -> Result<Vec<StoredGeneration>, RowError> {
        use std::ops::Bound::{Excluded, Unbounded};
        let range = (after.map_or(Unbounded, Excluded), Unbounded);
        Ok(self.generations.range(range).map(|(_, held)| held.clone()).take(limit).collect())
    }

    fn manifest(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(self.materials.manifests.get(&digest).cloned())
    }

    fn bodies(&self, manifest: Digest) -> Result<Vec<FileBody>, RowError> {
        Ok(self.materials.bodies_of.get(&manifest).cloned().unwrap_or_default())
    }

    fn body(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(self.materials.bodies.get(&digest).cloned())
    }

    fn response(&self, digest: Digest) -> Result<Option<ArchivedResponse>, RowError> {
        Ok(self.materials.responses.get(&digest).cloned())
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, RowError> {
        Ok(self.materials.blobs.get(&digest).cloned())
    }
}
