//! Writing a file: one pass over each kind of row, page by page.
//!
//! The order is fixed, so that the same tree gives the same bytes: positions and nodes in the order of the
//! tree, operations, seals, generations by id, then bytes by their digest. Memory grows with the number of
//! digests, not with what lies under them.

use std::collections::BTreeSet;
use std::io::Write;

use loom::reader::{Injection, Order};
use loom::seal::{first_head, next_head};
use loom::{Block, Digest, NodeRow, PositionKind, RowError, Seq};
use sha2::{Digest as _, Sha256};
use text::mask::Masker;

use super::bytes::Data;
use super::contents::{ExportVariant, RecordCounts};
use super::line::ReadLimits;
use super::record::{
    BodyRecord, BytesRecord, End, FORMAT, FileHeader, GenerationRecord, InjectionRecord, NodeRecord,
    PositionRecord, Record, ResponseRecord, VERSION,
};
use super::source::ExportSource;
use crate::ExportError;

/// Rows read at a time.
const PAGE: usize = 256;

#[derive(Debug, Clone, Copy, Default)]
pub struct ExportOptions<'a> {
    pub variant: ExportVariant,
    /// Known secrets: one that stands in a shared file stops the export.
    pub secrets: Option<&'a Masker>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    pub end: End,
    /// Bytes too large for a line, of which only digest and length are in the file.
    pub too_large: Vec<Digest>,
}

/// Writes a tree in the own format.
///
/// # Errors
/// [`ExportError`]; what was written until then has no last line and reads as damaged.
pub fn export(
    source: &dyn ExportSource,
    options: ExportOptions<'_>,
    out: &mut dyn Write,
) -> Result<ExportReport, ExportError> {
    let tree = source.rows().tree()?;
    let mut writer = Writer {
        source,
        options,
        out,
        hasher: Sha256::new(),
        tally: RecordCounts::default(),
        head: first_head(tree.id),
        last: Seq(0),
        manifests: BTreeSet::new(),
        responses: BTreeSet::new(),
        blobs: BTreeSet::new(),
        too_large: Vec::new(),
    };
    let variant = options.variant;
    writer.line(&Record::Header(Box::new(FileHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        variant,
        contains: variant.contains(),
        left_out: variant.left_out(),
        tree,
    })))?;
    writer.nodes()?;
    writer.operations()?;
    writer.seals()?;
    if !variant.is_shared() {
        writer.injections()?;
        writer.generations()?;
        writer.manifests()?;
        writer.responses()?;
    }
    writer.blobs()?;
    writer.end()
}

struct Writer<'a> {
    source: &'a dyn ExportSource,
    options: ExportOptions<'a>,
    out: &'a mut dyn Write,
    hasher: Sha256,
    tally: RecordCounts,
    head: Digest,
    last: Seq,
    manifests: BTreeSet<Digest>,
    responses: BTreeSet<Digest>,
    blobs: BTreeSet<Digest>,
    too_large: Vec<Digest>,
}

impl Writer<'_> {
    fn line(&mut self, record: &Record) -> Result<(), ExportError> {
        let mut line = serde_json::to_vec(record)?;
        if self.options.variant.is_shared()
            && self.options.secrets.is_some_and(|secrets| secrets.finds_in(&line))
        {
            return Err(ExportError::Secret { what: name(record) });
        }
        line.push(b'\n');
        self.hasher.update(&line);
        self.out.write_all(&line)?;
        let tally = &mut self.tally;
        let count = match record {
            Record::Header(_) | Record::End(_) => return Ok(()),
            Record::Position(_) => &mut tally.positions,
            Record::Node(_) => &mut tally.nodes,
            Record::Operation(_) => &mut tally.operations,
            Record::Seal(_) => &mut tally.seals,
            Record::Injection(_) => &mut tally.injections,
            Record::Generation(_) => &mut tally.generations,
            Record::Manifest(_) => &mut tally.manifests,
            Record::Body(_) => &mut tally.bodies,
            Record::Response(_) => &mut tally.responses,
            Record::Blob(_) => &mut tally.blobs,
        };
        *count += 1;
        Ok(())
    }

    fn nodes(&mut self) -> Result<(), ExportError> {
        let mut after: Option<Order> = None;
        loop {
            let page = self.source.rows().nodes_in_order(after, PAGE)?;
            let full = page.len() == PAGE;
            after = page.last().map(|row| (row.seq, row.place));
            for row in page {
                self.node(row)?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    fn node(&mut self, row: NodeRow) -> Result<(), ExportError> {
        let id = row.node.position;
        let position = self.source.rows().position(id)?.ok_or_else(|| RowError::missing("position", id))?;
        if row.node.is_original() {
            self.line(&Record::Position(PositionRecord {
                id,
                parent: position.parent,
                kind: position.kind,
                role: position.role,
            }))?;
        }
        let withheld = self.withholds(&row, position.kind);
        if !withheld {
            self.note_blobs(&row.node.content);
        }
        if let Some(source) = &row.node.source {
            self.manifests.insert(source.manifest);
            self.responses.extend(source.response);
        }
        self.line(&Record::Node(Box::new(NodeRecord::of(row, withheld)?)))
    }

    fn withholds(&self, row: &NodeRow, kind: PositionKind) -> bool {
        self.options.variant.withholds(row, kind)
    }

    fn note_blobs(&mut self, blocks: &[Block]) {
        let mut waiting: Vec<&Block> = blocks.iter().collect();
        while let Some(block) = waiting.pop() {
            match block {
                Block::Image { blob, .. } | Block::Audio { blob, .. } => drop(self.blobs.insert(*blob)),
                Block::ToolResult { blocks, .. } => waiting.extend(blocks),
                _ => {}
            }
        }
    }

    fn operations(&mut self) -> Result<(), ExportError> {
        loop {
            let page = self.source.rows().operations(self.last, PAGE)?;
            let full = page.len() == PAGE;
            for record in page {
                (self.head, self.last) = (next_head(self.head, record.hash), record.seq);
                let record = self.options.variant.shown(record);
                self.line(&Record::Operation(Box::new(record)))?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    fn seals(&mut self) -> Result<(), ExportError> {
        for seal in self.source.rows().seals()? {
            self.line(&Record::Seal(seal))?;
        }
        Ok(())
    }

    fn injections(&mut self) -> Result<(), ExportError> {
        for Injection { node, ordinal, source, text, .. } in self.source.injections()? {
            self.line(&Record::Injection(InjectionRecord { node, ordinal, source, text }))?;
        }
        Ok(())
    }

    fn generations(&mut self) -> Result<(), ExportError> {
        let mut after = None;
        loop {
            let page = self.source.generations(after, PAGE)?;
            let full = page.len() == PAGE;
            after = page.last().map(|generation| generation.row.id);
            for generation in page {
                self.manifests.insert(generation.row.manifest);
                self.responses.extend(generation.response);
                self.line(&Record::Generation(Box::new(GenerationRecord {
                    row: generation.row,
                    response: generation.response,
                    metadata: generation.metadata,
                })))?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    fn manifests(&mut self) -> Result<(), ExportError> {
        let mut written = BTreeSet::new();
        for digest in std::mem::take(&mut self.manifests) {
            let Some(bytes) = self.source.manifest(digest)? else { continue };
            let (length, data) = self.data(digest, bytes);
            self.line(&Record::Manifest(BytesRecord { digest, length, data }))?;
            for body in self.source.bodies(digest)? {
                let wanted =
                    self.options.variant == ExportVariant::WithContext && written.insert(body.digest);
                let bytes = if wanted { self.source.body(body.digest)? } else { None };
                let data = bytes.and_then(|bytes| self.data(body.digest, bytes).1);
                self.line(&Record::Body(BodyRecord {
                    manifest: digest,
                    name: body.name,
                    digest: body.digest,
                    length: body.length,
                    data,
                }))?;
            }
        }
        Ok(())
    }

    fn responses(&mut self) -> Result<(), ExportError> {
        for digest in std::mem::take(&mut self.responses) {
            let Some(response) = self.source.response(digest)? else { continue };
            let (length, data) = if response.purged { (0, None) } else { self.data(digest, response.bytes) };
            self.line(&Record::Response(ResponseRecord {
                digest,
                metadata: response.metadata,
                purged: response.purged,
                length,
                data,
            }))?;
        }
        Ok(())
    }

    fn blobs(&mut self) -> Result<(), ExportError> {
        for digest in std::mem::take(&mut self.blobs) {
            let Some(bytes) = self.source.blob(digest)? else { continue };
            let (length, data) = self.data(digest, bytes);
            self.line(&Record::Blob(BytesRecord { digest, length, data }))?;
        }
        Ok(())
    }

    /// Bytes as they go into a line; only their length when they would not fit a line that can be read.
    fn data(&mut self, digest: Digest, bytes: Vec<u8>) -> (u64, Option<Data>) {
        let length = bytes.len() as u64;
        let room = ReadLimits::default().line / 2;
        // Plain text is rarely written longer than twice its size; only what might be is measured.
        if bytes.len() > room / 3 {
            let data = Data::of(bytes);
            if serde_json::to_vec(&data).is_ok_and(|json| json.len() <= room) {
                return (length, Some(data));
            }
            self.too_large.push(digest);
            return (length, None);
        }
        (length, Some(Data::of(bytes)))
    }

    fn end(mut self) -> Result<ExportReport, ExportError> {
        let digest = Digest(std::mem::take(&mut self.hasher).finalize().into());
        let end = End { counts: self.tally, seq: self.last, head: self.head, digest };
        self.line(&Record::End(end.clone()))?;
        self.out.flush()?;
        Ok(ExportReport { end, too_large: self.too_large })
    }
}

/// Name of a record in errors.
fn name(record: &Record) -> String {
    match record {
        Record::Node(node) => format!("node {}", node.short_id),
        Record::Operation(record) => format!("operation {}", record.seq),
        _ => "a record".to_owned(),
    }
}
