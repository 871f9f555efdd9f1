//! Verify: that what is stored is complete and agrees with itself (spec: loom §6).
//!
//! One pass over the log, in order; memory grows with the cells, not with the nodes. It does not prove who
//! wrote a text, when, or that a provider sent it; without a seal it does not find a rewritten whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cell::{CellKey, CellScope, CellValue};
use crate::content::{Block, Counts, content_hash};
use crate::digest::{Digest, PathDigest};
use crate::id::{NodeId, PositionId, Seq};
use crate::node::{ModelSource, NodeRow, OriginRole};
use crate::operation::OpRecord;
use crate::position::{Position, PositionKind, Sums};
use crate::reader::{RowError, TreeReader};
use crate::record::{Links, chain_hash};
use crate::seal::{first_head, is_signed, next_head};
use crate::tree::TreeRow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All present and in agreement.
    Valid,
    Invalid,
    /// Nothing disagrees, but not everything is there to be compared.
    Incomplete,
}

/// What the answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assurance {
    /// The tree agrees with itself.
    Internal,
    /// A signature covers its whole log.
    Sealed,
}

/// Why something could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    Missing,
    /// A known secret was masked in it.
    Masked,
    Purged,
    /// The response was read by another version of the parser.
    Parser,
    /// Bodies are not in the file.
    Context,
    /// The part was left out of a shared file.
    Shared,
    /// The text was counted by another version of the Unicode tables.
    Tables,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The node, where it concerns one.
    pub node: Option<NodeId>,
    /// The operation, where it concerns one.
    pub seq: Option<Seq>,
    pub why: String,
    /// Why it could not be compared; none when it disagrees.
    pub gap: Option<Gap>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Valid, invalid or incomplete.
    pub status: Status,
    pub assurance: Assurance,
    pub nodes: u64,
    /// Model nodes without a response: counted, not a fault.
    pub unattested: u64,
    pub problems: Vec<Problem>,
    /// The head of the tree after its last operation.
    pub head: Digest,
}

/// What a response says when it is read again.
#[derive(Debug, Clone, PartialEq)]
pub enum Reread {
    /// Blocks of the choice, from bytes with this digest.
    Blocks {
        /// Digest recomputed from the stored bytes.
        digest: Digest,
        /// What the choice says: text, tool calls.
        blocks: Vec<Block>,
    },
    /// The bytes have this digest, but cannot be compared for this reason.
    Gap {
        /// Digest recomputed from the stored bytes, if they are there.
        digest: Option<Digest>,
        gap: Gap,
    },
}

/// Where manifests and responses are read from: a store or a file.
pub trait Evidence {
    /// The digest recomputed from a stored manifest, or why it is not there.
    fn manifest(&self, digest: Digest) -> Result<Result<Digest, Gap>, RowError>;
    /// What a node's response says when it is read again.
    fn reread(&self, node: &NodeRow, source: &ModelSource) -> Result<Reread, RowError>;
    /// Whether the hash of each record that is whole was compared with its content when the rows were read, so that it
    /// need not be computed again.
    fn has_checked_records(&self) -> bool;
}

/// Rows of the log read at a time.
const PAGE: usize = 256;

/// Verifies a whole tree.
///
/// # Errors
/// [`RowError`] when the store fails; what it finds is in the report.
pub fn verify(rows: &dyn TreeReader, evidence: &dyn Evidence) -> Result<Report, RowError> {
    let tree = rows.tree()?;
    let mut pass = Pass {
        rows,
        evidence,
        tree: tree.clone(),
        tables: rows.tables()?,
        report: Report {
            status: Status::Valid,
            assurance: Assurance::Internal,
            nodes: 0,
            unattested: 0,
            problems: Vec::new(),
            head: first_head(tree.id),
        },
        cells: BTreeMap::new(),
    };
    let mut seals: BTreeMap<Seq, _> = rows.seals()?.into_iter().map(|seal| (seal.seq, seal)).collect();
    let (mut prev, mut last) = (Digest::ZERO, Seq(0));
    loop {
        let page = rows.operations(last, PAGE)?;
        for record in &page {
            pass.operation(record, prev, last)?;
            // Never back: a damaged number must not make this read the same page for ever.
            (prev, last) = (record.hash, record.seq.max(last));
            pass.report.head = next_head(pass.report.head, record.hash);
            if let Some(seal) = seals.remove(&record.seq) {
                if seal.head != pass.report.head || !is_signed(&seal, tree.id) {
                    pass.wrong(None, Some(record.seq), "the seal does not fit the log it signs");
                } else {
                    pass.report.assurance = Assurance::Sealed;
                }
            } else {
                pass.report.assurance = Assurance::Internal;
            }
        }
        if page.len() < PAGE {
            break;
        }
    }
    if last == Seq(0) {
        pass.wrong(None, None, "the log is empty");
    }
    for seq in seals.into_keys() {
        pass.wrong(None, Some(seq), "a seal names an operation that is not there");
    }
    pass.nodes_belong_to_operations()?;
    pass.cells_agree()?;
    let mut report = pass.report;
    report.status = status(&report.problems);
    Ok(report)
}

/// The answer that findings add up to.
pub fn status(problems: &[Problem]) -> Status {
    if problems.iter().any(|problem| problem.gap.is_none()) {
        Status::Invalid
    } else if problems.is_empty() {
        Status::Valid
    } else {
        Status::Incomplete
    }
}

struct Pass<'a> {
    rows: &'a dyn TreeReader,
    evidence: &'a dyn Evidence,
    tree: TreeRow,
    /// The version of the tables that derived numbers were counted by.
    tables: u32,
    report: Report,
    cells: BTreeMap<CellKey, CellValue>,
}

impl Pass<'_> {
    fn wrong(&mut self, node: Option<NodeId>, seq: Option<Seq>, why: impl Into<String>) {
        self.report.problems.push(Problem { node, seq, why: why.into(), gap: None });
    }

    fn lacks(&mut self, node: Option<NodeId>, seq: Option<Seq>, why: &str, gap: Gap) {
        self.report.problems.push(Problem { node, seq, why: why.to_owned(), gap: Some(gap) });
    }

    fn operation(&mut self, record: &OpRecord, prev: Digest, last: Seq) -> Result<(), RowError> {
        let seq = Some(record.seq);
        if record.seq.0 != last.0 + 1 {
            self.wrong(None, seq, format!("operation {} is missing", last.0 + 1));
        } else if record.prev != prev {
            self.wrong(None, seq, "the record does not name the one before it");
        }
        let is_checked = !record.purged && self.evidence.has_checked_records();
        let fits = is_checked || record.compute_hash().ok() == Some(record.hash);
        match (record.purged, fits) {
            (false, true) => {}
            (false, false) => self.wrong(None, seq, "the record's hash does not fit its content"),
            (true, false) => self.lacks(None, seq, "a text in the record was forgotten", Gap::Purged),
            (true, true) => self.wrong(None, seq, "the record is marked as forgotten and is whole"),
        }
        if record.op.tree != self.tree.id {
            self.wrong(None, seq, "the record is of another tree");
        }
        for change in &record.op.cells {
            if matches!(change.key, CellKey::Draft { .. }) || record.purged && is_nameless(&change.key) {
                continue;
            }
            let before = self.cells.insert(change.key.clone(), change.new.clone()).unwrap_or_default();
            if before != change.old {
                self.wrong(None, seq, format!("the log skips a change of {}", change.key));
            }
        }
        for (place, (id, chain)) in record.op.nodes.iter().enumerate() {
            match self.rows.node(*id)? {
                None => self.wrong(Some(*id), seq, "the node is missing"),
                Some(row) => {
                    if row.node.id != *id || row.node.tree != self.tree.id {
                        self.wrong(Some(*id), seq, "another node is in its place");
                    }
                    if row.seq != record.seq || u64::from(row.place) != place as u64 {
                        self.wrong(Some(*id), seq, "the node is at another place of the history");
                    }
                    if row.node.chain_hash != *chain {
                        self.wrong(Some(*id), seq, "the log names another chain hash");
                    }
                    self.node(&row)?;
                }
            }
        }
        Ok(())
    }

    fn node(&mut self, row: &NodeRow) -> Result<(), RowError> {
        let node = &row.node;
        let id = Some(node.id);
        self.report.nodes += 1;
        if row.purged {
            self.lacks(id, None, "its content was forgotten", Gap::Purged);
            if !node.content.is_empty() || node.kept_hash.is_none_or(|kept| content_hash(&[]) == Ok(kept)) {
                self.wrong(id, None, "it is marked as forgotten and is whole");
            }
        } else {
            if node.kept_hash.is_some_and(|kept| content_hash(&node.content) != Ok(kept)) {
                self.wrong(id, None, "the content does not fit its hash");
            }
            let said = node.text();
            let counts = Counts::of(&said);
            let lengths = (counts.bytes, counts.chars) == (node.counts.bytes, node.counts.chars);
            let derived = counts == node.counts && PathDigest::term(node.position, &said) == node.term;
            match (lengths && derived, lengths && self.tables != text::grapheme::TABLES) {
                (true, _) => {}
                (false, false) => self.wrong(id, None, "the counts do not fit the content"),
                (false, true) => {
                    let why = "its clusters were counted with other tables: `drawloom store check --repair` recomputes them";
                    self.lacks(id, None, why, Gap::Tables);
                }
            }
        }
        let links = Links {
            position: if node.is_original() { None } else { self.chain(node.position.original())? },
            edited_from: match node.edited_from {
                None => None,
                Some(from) => self.chain(from)?,
            },
        };
        if chain_hash(node, links) != Ok(node.chain_hash) {
            self.wrong(id, None, "the chain hash does not fit the record");
        }
        self.place(row)?;
        for origin in &node.origins {
            if self.chain(origin.node)? != Some(origin.chain) {
                self.wrong(id, None, format!("the origin {} is missing or differs", origin.node));
            }
        }
        if let Some(quote) = &node.quote
            && self.chain(quote.node)? != Some(quote.chain)
        {
            self.wrong(id, None, format!("the quoted node {} is missing or differs", quote.node));
        }
        if let Some(source) = &node.source {
            self.attested(row, source)?;
        }
        Ok(())
    }

    fn chain(&self, id: NodeId) -> Result<Option<Digest>, RowError> {
        Ok(self.rows.node(id)?.map(|row| row.node.chain_hash))
    }

    /// The position a node stands at: its role, and what was fixed from its parent.
    fn place(&mut self, row: &NodeRow) -> Result<(), RowError> {
        let node = &row.node;
        let id = Some(node.id);
        let Some(position) = self.rows.position(node.position)? else {
            self.wrong(id, None, "its position is missing");
            return Ok(());
        };
        if position.id != node.position || position.tree != self.tree.id {
            self.wrong(id, None, "another position is in its place");
        }
        if position.role != node.role {
            self.wrong(id, None, "its role is not that of its position");
        }
        let origin = node.origins.first();
        match (position.parent, origin) {
            (None, None) if position.id == self.tree.root && position.kind == PositionKind::Path => {}
            (Some(parent), Some(origin)) => {
                let belongs = self.rows.node(origin.node)?.is_some_and(|from| from.node.position == parent);
                if !belongs || origin.role != role_of(position.kind) {
                    self.wrong(id, None, "its origin does not belong to the parent of its position");
                }
            }
            _ => self.wrong(id, None, "the beginning of the tree, and nothing else, follows from nothing"),
        }
        if node.is_original() {
            self.fixed(&position, row)?;
        }
        Ok(())
    }

    /// What a position row carries from its parent.
    fn fixed(&mut self, position: &Position, row: &NodeRow) -> Result<(), RowError> {
        let own = Sums { counts: row.node.counts, digest: row.node.term };
        let expected = match position.parent {
            None => Some((0, position.id, Sums::default())),
            Some(parent) => self.inherited(parent)?,
        };
        if expected != Some((position.depth, position.jump, position.above)) || position.own != own {
            self.wrong(Some(row.node.id), None, "its position does not fit the one above it");
        }
        Ok(())
    }

    fn inherited(&self, parent: PositionId) -> Result<Option<(u32, PositionId, Sums)>, RowError> {
        let Some(above) = self.rows.position(parent)? else { return Ok(None) };
        let Some(jump) = self.rows.position(above.jump)? else { return Ok(None) };
        let Some(jump_jump) = self.rows.position(jump.jump)? else { return Ok(None) };
        if jump.depth > above.depth || jump_jump.depth > jump.depth {
            return Ok(None);
        }
        Ok(Some((above.depth + 1, Position::child_jump(&above, &jump, &jump_jump), above.below())))
    }

    /// A model node: its manifest and its response.
    fn attested(&mut self, row: &NodeRow, source: &ModelSource) -> Result<(), RowError> {
        let id = Some(row.node.id);
        let manifest = self.evidence.manifest(source.manifest)?;
        match manifest {
            Ok(digest) if digest == source.manifest => {}
            Ok(_) => self.wrong(id, None, "the manifest does not fit its digest"),
            Err(gap) => self.lacks(id, None, "the manifest is not there", gap),
        }
        let Some(expected) = source.response else {
            self.report.unattested += 1;
            return Ok(());
        };
        match self.evidence.reread(row, source)? {
            Reread::Blocks { digest, .. } | Reread::Gap { digest: Some(digest), .. }
                if digest != expected =>
            {
                self.wrong(id, None, "the response does not fit its digest");
            }
            Reread::Blocks { blocks, .. } => {
                if !row.purged && !is_said(&blocks, &row.node.content, manifest.is_ok()) {
                    self.wrong(id, None, "the response says something else than the node");
                }
            }
            Reread::Gap { gap, .. } => self.lacks(id, None, "the response cannot be compared", gap),
        }
        Ok(())
    }

    /// A node outside the log was put in by other means.
    fn nodes_belong_to_operations(&mut self) -> Result<(), RowError> {
        let mut after = None;
        // In the order of the log, so that each operation is read once, however many nodes it made.
        let mut last: Option<(Seq, Option<OpRecord>)> = None;
        loop {
            let page = self.rows.nodes_in_order(after, PAGE)?;
            for row in &page {
                let record = match last.take().filter(|(seq, _)| *seq == row.seq) {
                    Some((_, record)) => record,
                    None => self.rows.operation(row.seq)?,
                };
                let named = record.as_ref().is_some_and(|record| {
                    record.op.nodes.get(row.place as usize).is_some_and(|(id, _)| *id == row.node.id)
                });
                last = Some((row.seq, record));
                if !named {
                    self.wrong(Some(row.node.id), Some(row.seq), "no operation made this node");
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE && after < Some((last.seq, last.place)) => {
                    after = Some((last.seq, last.place));
                }
                _ => return Ok(()),
            }
        }
    }

    /// Cells hold what the log says they do, and none is set that the log does not know.
    fn cells_agree(&mut self) -> Result<(), RowError> {
        let logged = std::mem::take(&mut self.cells);
        for (key, expected) in &logged {
            if self.rows.cell(key)?.value != *expected {
                self.wrong(None, None, format!("{key} is not what the log says"));
            }
        }
        let mut scopes = vec![
            CellScope::Views,
            CellScope::Pruned,
            CellScope::Excluded,
            CellScope::Bookmarks,
            CellScope::AllTags,
        ];
        for key in logged.keys() {
            if let CellKey::View { view } = key {
                scopes.extend([CellScope::Selected(view.clone()), CellScope::Keeps(view.clone())]);
            }
        }
        for scope in scopes {
            for (key, cell) in self.rows.cells(&scope)? {
                if !cell.value.is_none() && !logged.contains_key(&key) && !is_nameless(&key) {
                    self.wrong(None, None, format!("{key} was set by no operation"));
                }
            }
        }
        Ok(())
    }
}

/// Whether a key is that of a tag whose name was forgotten: several may have become one.
const fn is_nameless(key: &CellKey) -> bool {
    matches!(key, CellKey::Tag { tag, .. } if tag.is_empty())
}

/// What a model says: text and tool calls. Thinking and opaque blocks are not compared.
fn spoken(blocks: &[Block]) -> (String, Vec<&Block>) {
    let calls = blocks.iter().filter(|block| matches!(block, Block::ToolCall { .. })).collect();
    (crate::content::plain_text(blocks).into_owned(), calls)
}

/// Whether a response says what its node holds. The manifest names the white space that the answer was to begin with and
/// that stood in the text already; without it any white space at the beginning may be lacking in the node.
fn is_said(response: &[Block], node: &[Block], has_manifest: bool) -> bool {
    let ((said, said_calls), (held, calls)) = (spoken(response), spoken(node));
    let before = said.strip_suffix(held.as_str());
    said_calls == calls
        && before.is_some_and(|space| space.is_empty() || !has_manifest && space.trim().is_empty())
}

const fn role_of(kind: PositionKind) -> OriginRole {
    match kind {
        PositionKind::Path => OriginRole::Parent,
        PositionKind::Head => OriginRole::Head,
        PositionKind::Note => OriginRole::Note,
        PositionKind::Annotation => OriginRole::Annotation,
    }
}
