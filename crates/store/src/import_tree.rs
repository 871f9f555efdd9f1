//! Taking in a tree as it is: rows, log and what was sent, under its own ids and numbers (spec: loom §8 *Rules*).
//!
//! A plan cannot do this: it appends one operation with the next number, and the records of an imported log have
//! numbers and hashes of their own that must stay. What arrives is history. Its cells are those the log leaves,
//! its timelines are empty, nothing in it runs, and where it came from stands beside the tree, not in it.

use std::collections::{BTreeMap, BTreeSet};

use loom::reader::{Injection, StoredResponse};
use loom::seal::Seal;
use loom::{
    CellKey, CellValue, Digest, GenerationRow, NodeId, NodeRow, OpRecord, Position, Seq, TreeId, TreeRow,
};

use crate::apply::{ImportNote, is_stored};
use crate::error::StoreError;
use crate::generation::HashedBytes;

/// A whole tree, as read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTree {
    pub tree: TreeRow,
    /// Positions of the tree, each behind its parent.
    pub positions: Vec<Position>,
    /// Nodes in the order of the tree, with the short ids they have.
    pub nodes: Vec<NodeRow>,
    /// Log of the tree, from the first operation on.
    pub operations: Vec<OpRecord>,
    /// Seals of the log, oldest first.
    pub seals: Vec<Seal>,
    /// What was shown with its nodes.
    pub injections: Vec<Injection>,
    /// What was asked of models: ended, whatever became of it.
    pub generations: Vec<ImportedGeneration>,
    pub manifests: Vec<ImportedManifest>,
    /// Bodies that the manifests name.
    pub bodies: Vec<HashedBytes>,
    pub imported: ImportNote,
}

/// A generation of an imported tree.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedGeneration {
    pub row: GenerationRow,
    /// What came back, if anything did.
    pub response: Option<StoredResponse>,
}

/// A manifest of an imported tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedManifest {
    pub manifest: HashedBytes,
    /// The bodies it rests on. One that does not come along is not tied to it, even if this store has it: a file
    /// cannot name its way to what another tree sent.
    pub bodies: Vec<Digest>,
}

/// An import, as remembered beside a tree: the nodes of these operations came from that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Import {
    /// The file and the time.
    pub note: ImportNote,
    pub from: Seq,
    pub to: Seq,
}

impl Import {
    /// Whether a node of this operation came with it.
    pub fn covers(&self, seq: Seq) -> bool {
        (self.from..=self.to).contains(&seq)
    }
}

impl ImportedTree {
    /// The last operation of the log.
    pub(crate) fn last(&self) -> Seq {
        self.operations.last().map(|record| record.seq).unwrap_or_default()
    }

    /// What the log leaves in each cell, and the operation that set it. All views are in it: `verify` compares
    /// the cells with the log.
    pub(crate) fn cells(&self) -> BTreeMap<&CellKey, (&CellValue, Seq)> {
        let mut cells = BTreeMap::new();
        for record in &self.operations {
            for change in record.op.cells.iter().filter(|change| is_stored(&change.key)) {
                cells.insert(&change.key, (&change.new, record.seq));
            }
        }
        cells
    }

    /// Refuses a tree that could not be stored whole or would not verify: the log is chained and complete, every
    /// node is named by its operation, every original has its position, bytes have their digests.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let malformed = |what: String| Err(StoreError::Malformed(what));
        let id = self.tree.id;
        let foreign = self.nodes.iter().any(|row| row.node.tree != id)
            || self.positions.iter().any(|position| position.tree != id)
            || self.operations.iter().any(|record| record.op.tree != id)
            || self.generations.iter().any(|generation| generation.row.tree != id);
        if foreign {
            return malformed("rows of another tree".to_owned());
        }
        self.check_log()?;
        let mut named = self.operations.iter().flat_map(|record| {
            (0_u32..).zip(&record.op.nodes).map(|(place, (id, chain))| (record.seq, place, *id, *chain))
        });
        let mut short_ids = BTreeSet::new();
        for row in &self.nodes {
            if named.next() != Some((row.seq, row.place, row.node.id, row.node.chain_hash)) {
                return malformed(format!("node {} is in another place than the history says", row.node.id));
            }
            if !short_ids.insert(&row.short_id) {
                return malformed(format!("the short id {} names two nodes", row.short_id));
            }
        }
        if let Some((_, _, node, _)) = named.next() {
            return malformed(format!("node {node} is in the log and not in the tree"));
        }
        let originals = self.nodes.iter().filter(|row| row.node.is_original()).map(|row| row.node.position);
        if !originals.eq(self.positions.iter().map(|position| position.id)) {
            return malformed("positions and originals do not fit together".to_owned());
        }
        for seal in &self.seals {
            check_seal(id, self.last(), seal)?;
        }
        self.check_bytes()
    }

    fn check_log(&self) -> Result<(), StoreError> {
        let mut last = (Seq(0), Digest::ZERO);
        for record in &self.operations {
            let follows = record.seq.0 == last.0.0 + 1 && record.prev == last.1;
            let back = [record.undo_prev, record.redo_prev].into_iter().flatten();
            let looks_back = back.into_iter().all(|seq| seq < record.seq);
            let fits = record.purged || record.compute_hash().is_ok_and(|hash| hash == record.hash);
            if !follows || !looks_back || !fits {
                return Err(StoreError::Malformed(format!("operation {} does not fit the log", record.seq)));
            }
            last = (record.seq, record.hash);
        }
        if last.0 == Seq(0) { Err(StoreError::Malformed("an empty log".to_owned())) } else { Ok(()) }
    }

    fn check_bytes(&self) -> Result<(), StoreError> {
        let kept = self.manifests.iter().map(|manifest| &manifest.manifest).chain(&self.bodies);
        let mut all = kept.map(|kept| (kept.digest, kept.bytes.as_slice())).chain(self.responses());
        match all.find(|(digest, bytes)| Digest::of(bytes) != *digest) {
            Some((digest, _)) => Err(StoreError::Malformed(format!("bytes that are not those of {digest}"))),
            None => Ok(()),
        }
    }

    fn responses(&self) -> impl Iterator<Item = (Digest, &[u8])> {
        let responses = self.generations.iter().filter_map(|generation| generation.response.as_ref());
        let whole = responses.filter(|response| !response.purged);
        whole.map(|response| (response.digest, response.bytes.as_slice()))
    }
}

/// Refuses to trust what no import brought in.
pub(crate) fn check_imported(imports: &[Import], node: NodeId, seq: Seq) -> Result<(), StoreError> {
    if imports.iter().any(|import| import.covers(seq)) {
        return Ok(());
    }
    Err(StoreError::Malformed(format!("node {node} was brought in by no import")))
}

/// Refuses a seal that does not fit its tree, whose newest operation is `last`.
pub(crate) fn check_seal(tree: TreeId, last: Seq, seal: &Seal) -> Result<(), StoreError> {
    if seal.seq > last || !loom::seal::is_signed(seal, tree) {
        return Err(StoreError::Malformed(
            "a seal of other operations or without its key's signature".to_owned(),
        ));
    }
    Ok(())
}
