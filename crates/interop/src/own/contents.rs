//! Contents of an export: parts contained and left out, known before anything is written.

use loom::{AuthorKind, Block, CellKey, NodeRow, OpRecord, PositionKind, Role};
use serde::{Deserialize, Serialize};

use super::source::{ExportSource, FileBody};
use crate::ExportError;

/// Variant of an export (spec: loom §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportVariant {
    #[default]
    Full,
    WithContext,
    /// For others to read: content, authors, structure.
    Shared {
        /// Whether remarks, bookmarks and tags go along.
        annotations: bool,
    },
}

impl ExportVariant {
    /// Whether the file is for others.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Shared { .. })
    }

    pub fn contains(self) -> Vec<ExportPart> {
        ExportPart::ALL.into_iter().filter(|part| part.is_in(self)).collect()
    }

    /// Parts this variant leaves out.
    pub fn left_out(self) -> Vec<ExportPart> {
        ExportPart::ALL.into_iter().filter(|part| !part.is_in(self)).collect()
    }

    /// Whether the content of a node stays out: what tools said, and remarks.
    pub(super) fn withholds(self, row: &NodeRow, kind: PositionKind) -> bool {
        let Self::Shared { annotations } = self else { return false };
        if row.node.content.is_empty() {
            // Nothing is there to leave out, and a tombstone of nothing would be a lie.
            return false;
        }
        let tool = row.node.author.kind == AuthorKind::Tool
            || row.node.role == Some(Role::Tool)
            || row.node.content.iter().any(|block| matches!(block, Block::ToolResult { .. }));
        tool || (kind == PositionKind::Annotation && !annotations)
    }

    /// An operation as this kind of file shows it: without bookmarks and tags where they stay out. Its hash
    /// stays, and can then no longer be recomputed.
    pub(super) fn shown(self, mut record: OpRecord) -> OpRecord {
        if self == (Self::Shared { annotations: false }) {
            let before = record.op.cells.len();
            let is_mark = |key: &CellKey| matches!(key, CellKey::Bookmark { .. } | CellKey::Tag { .. });
            record.op.cells.retain(|change| !is_mark(&change.key));
            let skipped = record.op.skipped.len();
            record.op.skipped.retain(|key| !is_mark(key));
            if before != record.op.cells.len() || skipped != record.op.skipped.len() {
                record.purged = true;
            }
        }
        record
    }
}

/// A part of a tree and of what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportPart {
    /// Positions, nodes with all versions, their authors, pruned ones too.
    Content,
    /// Operation records, views and selections among them.
    Operations,
    Seals,
    /// Pictures and sounds of nodes.
    Blobs,
    ToolOutput,
    Annotations,
    /// Requests to models, and what was shown in them besides.
    Generations,
    /// Manifests, without file bodies.
    Manifests,
    /// Responses, as received.
    Responses,
    /// Bodies of files that were sent.
    FileBodies,
    /// Hashes and sizes of what is left out.
    Hashes,
    Drafts,
    Trust,
}

impl ExportPart {
    /// All parts, in the order they are told.
    pub const ALL: [Self; 13] = [
        Self::Content,
        Self::Operations,
        Self::Seals,
        Self::Blobs,
        Self::ToolOutput,
        Self::Annotations,
        Self::Generations,
        Self::Manifests,
        Self::Responses,
        Self::FileBodies,
        Self::Hashes,
        Self::Drafts,
        Self::Trust,
    ];

    const fn is_in(self, variant: ExportVariant) -> bool {
        match self {
            Self::Content | Self::Operations | Self::Seals | Self::Blobs | Self::Hashes => true,
            Self::ToolOutput | Self::Generations | Self::Manifests | Self::Responses => !variant.is_shared(),
            Self::Annotations => !matches!(variant, ExportVariant::Shared { annotations: false }),
            Self::FileBodies => matches!(variant, ExportVariant::WithContext),
            Self::Drafts | Self::Trust => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the number of records of that name")]
pub struct RecordCounts {
    pub positions: u64,
    pub nodes: u64,
    pub operations: u64,
    pub seals: u64,
    /// Left out where there are none, so that a file without any is that of a program that does not know of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub injections: u64,
    pub generations: u64,
    pub manifests: u64,
    pub bodies: u64,
    pub responses: u64,
    pub blobs: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Summary of an export, made before it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportSummary {
    pub contains: Vec<ExportPart>,
    pub left_out: Vec<ExportPart>,
    /// The files whose bodies go along, by name and digest.
    pub bodies: Vec<FileBody>,
}

/// Says what an export will contain. Reads the list of generations where bodies go along.
///
/// # Errors
/// [`ExportError::Rows`] when the store fails.
pub fn survey(source: &dyn ExportSource, variant: ExportVariant) -> Result<ExportSummary, ExportError> {
    let mut bodies = Vec::new();
    if variant == ExportVariant::WithContext {
        let mut after = None;
        loop {
            let page = source.generations(after, 256)?;
            for generation in &page {
                bodies.extend(source.bodies(generation.row.manifest)?);
            }
            match page.last() {
                Some(last) if page.len() == 256 => after = Some(last.row.id),
                _ => break,
            }
        }
        bodies.sort();
        bodies.dedup();
    }
    Ok(ExportSummary { contains: variant.contains(), left_out: variant.left_out(), bodies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_either_in_or_left_out() {
        for variant in
            [ExportVariant::Full, ExportVariant::WithContext, ExportVariant::Shared { annotations: false }]
        {
            assert_eq!(variant.contains().len() + variant.left_out().len(), ExportPart::ALL.len());
            assert!(variant.left_out().contains(&ExportPart::Drafts));
        }
        let shared = ExportVariant::Shared { annotations: false }.left_out();
        for part in
            [ExportPart::Manifests, ExportPart::Responses, ExportPart::ToolOutput, ExportPart::Annotations]
        {
            assert!(shared.contains(&part), "{part:?}");
        }
    }
}
