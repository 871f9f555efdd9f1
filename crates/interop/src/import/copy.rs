//! Copying a file's tree under new ids.
//!
//! A copy is a new tree with a log of two operations: its making, and the import of all other nodes with the
//! cells that show what the file's `main` showed. Every chain hash is made anew, because ids and the tree are
//! in it; responses named the old nodes, so models' text is `unattested` (spec: loom §8).

use std::collections::BTreeMap;

use loom::cell::{CellScope, TextOffset};
use loom::digest::PathDigest;
use loom::id::Entropy;
use loom::operation::TimelineEffect;
use loom::position::Sums;
use loom::record::{Links, chain_hash};
use loom::tree::{TreeOrigin, TreeOriginKind};
use loom::{
    CellChange, CellKey, CellValue, Digest, Millis, Node, NodeId, NodeRow, OpKind, OpTarget, Operation, Plan,
    Position, PositionId, TreeId, TreeReader, TreeRow, ViewName,
};

use super::known::each_node;
use super::{ImportRefusal, Provenance};
use crate::own::ImportedFile;

/// A copy as planned: two plans for an empty tree, to be applied in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyPlan {
    pub tree: TreeId,
    /// The tree in the file.
    pub imported_from: TreeId,
    /// Makes the tree, then fills it.
    pub plans: [Plan; 2],
    /// New ids by old ones.
    pub ids: BTreeMap<NodeId, NodeId>,
    pub provenance: Provenance,
}

/// Plans a copy of what stands in a file, whatever of it does not. `agent` is who asks.
///
/// # Errors
/// [`ImportRefusal::Copy`] when not even its genesis stands.
pub fn plan_copy(
    file: &ImportedFile,
    agent: &str,
    now: Millis,
    entropy: &mut Entropy<'_>,
) -> Result<CopyPlan, ImportRefusal> {
    let old = &file.header.tree;
    let mut copy = Copy { file, tree: entropy.next(now), ids: BTreeMap::new(), made: BTreeMap::new() };
    let mut all = (Vec::new(), Vec::new());
    each_node(&file.tree, |row| -> Result<(), ImportRefusal> {
        let (position, node) = copy.node(row, entropy, now)?;
        all.0.extend(position);
        all.1.push(node);
        Ok(())
    })?;
    let (positions, nodes) = all;
    let genesis = copy.ids.get(&old.root.original()).copied();
    let genesis =
        genesis.ok_or_else(|| ImportRefusal::Copy("the beginning of the tree is not in the file".into()))?;
    let row = TreeRow {
        id: copy.tree,
        mode: old.mode,
        root: genesis.as_position(),
        created_at: now,
        origin: Some(TreeOrigin { tree: old.id, node: None, kind: TreeOriginKind::Copy }),
    };
    let is_first = |id: NodeId| id == genesis;
    let (first, rest): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| is_first(node.id));
    let (root, below): (Vec<_>, Vec<_>) =
        positions.into_iter().partition(|position| is_first(position.id.original()));
    let main = ViewName::default();
    let tip = CellKey::Tip { view: main.clone() };
    let made = vec![
        set(CellKey::View { view: main }, CellValue::Text(agent.to_owned())),
        set(tip, CellValue::Position(row.root)),
    ];
    let cells = copy.cells(row.root)?;
    let op = |kind, nodes: &[Node], cells| Operation {
        tree: row.id,
        agent: agent.to_owned(),
        view: None,
        kind,
        at: now,
        cells,
        nodes: nodes.iter().map(|node| (node.id, node.chain_hash)).collect(),
        skipped: Vec::new(),
        timeline: TimelineEffect::None,
    };
    let (create, import) = (op(OpKind::Create, &first, made), op(OpKind::Import, &rest, cells));
    let plans = [
        Plan { tree: Some(row), positions: root, nodes: first, op: Some(create), ..Plan::default() },
        Plan { positions: below, nodes: rest, op: Some(import), ..Plan::default() },
    ];
    Ok(CopyPlan {
        tree: copy.tree,
        imported_from: old.id,
        plans,
        ids: copy.ids,
        provenance: Provenance { file: file.digest },
    })
}

const fn set(key: CellKey, new: CellValue) -> CellChange {
    CellChange { key, old: CellValue::None, new }
}

struct Copy<'a> {
    file: &'a ImportedFile,
    tree: TreeId,
    ids: BTreeMap<NodeId, NodeId>,
    /// State of made nodes that later ones need: chain hash, and the position row of originals.
    made: BTreeMap<NodeId, (Digest, Option<Position>)>,
}

impl Copy<'_> {
    fn id(&self, old: NodeId) -> Result<NodeId, ImportRefusal> {
        self.ids
            .get(&old)
            .copied()
            .ok_or_else(|| ImportRefusal::Copy(format!("node {old} is not in the file")))
    }

    fn place(&self, old: PositionId) -> Result<PositionId, ImportRefusal> {
        self.id(old.original()).map(NodeId::as_position)
    }

    fn chain(&self, new: NodeId) -> Digest {
        self.made.get(&new).map_or(Digest::ZERO, |(chain, _)| *chain)
    }

    fn row(&self, new: PositionId) -> Result<&Position, ImportRefusal> {
        let held = self.made.get(&new.original()).and_then(|(_, position)| position.as_ref());
        held.ok_or_else(|| ImportRefusal::Copy(format!("position {new} is not in the copy")))
    }

    fn node(
        &mut self,
        row: NodeRow,
        entropy: &mut Entropy<'_>,
        now: Millis,
    ) -> Result<(Option<Position>, Node), ImportRefusal> {
        let mut node = row.node;
        let (old, old_position) = (node.id, node.position);
        let is_original = node.is_original();
        let id: NodeId = entropy.next(now);
        self.ids.insert(old, id);
        node.id = id;
        node.tree = self.tree;
        node.position = self.place(old_position)?;
        node.generation = None;
        node.trust = Provenance::TRUST;
        // A text the file does not have is empty in a copy: there is no other record of it here.
        if row.purged {
            node.kept_hash = None;
            node.counts = Default::default();
        }
        node.term = PathDigest::term(node.position, &node.text());
        if let Some(source) = &mut node.source {
            source.response = None;
        }
        node.edited_from = node.edited_from.map(|from| self.id(from)).transpose()?;
        for origin in &mut node.origins {
            origin.node = self.id(origin.node)?;
            origin.chain = self.chain(origin.node);
        }
        if let Some(quote) = &mut node.quote {
            quote.node = self.id(quote.node)?;
            quote.chain = self.chain(quote.node);
        }
        let position = if is_original { Some(self.position(old_position, &node)?) } else { None };
        let links = Links {
            position: if is_original { None } else { Some(self.chain(node.position.original())) },
            edited_from: node.edited_from.map(|from| self.chain(from)),
        };
        node.chain_hash = chain_hash(&node, links).map_err(|error| ImportRefusal::Copy(error.to_string()))?;
        self.made.insert(id, (node.chain_hash, position.clone()));
        Ok((position, node))
    }

    fn position(&self, old: PositionId, original: &Node) -> Result<Position, ImportRefusal> {
        let held = self.file.tree.position(old)?.ok_or_else(|| loom::RowError::missing("position", old))?;
        let mut new = Position {
            id: original.position,
            tree: self.tree,
            parent: None,
            kind: held.kind,
            role: held.role,
            depth: 0,
            jump: original.position,
            above: Sums::default(),
            own: Sums { counts: original.counts, digest: original.term },
        };
        if let Some(parent) = held.parent {
            let above = self.row(self.place(parent)?)?;
            let jump = self.row(above.jump)?;
            new.parent = Some(above.id);
            new.depth = above.depth + 1;
            new.jump = Position::child_jump(above, jump, self.row(jump.jump)?);
            new.above = above.below();
        }
        Ok(new)
    }

    /// The cells of a copy: what `main` showed, what is hidden or left out, bookmarks, tags, head and note.
    fn cells(&self, root: PositionId) -> Result<Vec<CellChange>, ImportRefusal> {
        let tree = &self.file.tree;
        let main = ViewName::default();
        let mut cells = Vec::new();
        for key in [CellKey::Title, CellKey::Head, CellKey::Note, CellKey::NoteDepth] {
            cells.push((key.clone(), tree.cell(&key)?.value));
        }
        let scopes = [
            CellScope::Selected(main.clone()),
            CellScope::Pruned,
            CellScope::Excluded,
            CellScope::Bookmarks,
            CellScope::AllTags,
        ];
        for scope in scopes {
            cells.extend(tree.cells(&scope)?.into_iter().map(|(key, cell)| (key, cell.value)));
        }
        let mut changes = Vec::new();
        for (key, value) in cells {
            if !value.is_none() {
                changes.push(set(self.key(key)?, self.value(value)?));
            }
        }
        let tip = CellKey::Tip { view: main };
        let end = self.value(tree.cell(&tip)?.value)?;
        if !end.is_none() && end != CellValue::Position(root) {
            changes.push(CellChange { key: tip, old: CellValue::Position(root), new: end });
        }
        Ok(changes)
    }

    fn key(&self, key: CellKey) -> Result<CellKey, ImportRefusal> {
        let target = |target| {
            Ok::<_, ImportRefusal>(match target {
                OpTarget::Position(id) => OpTarget::Position(self.place(id)?),
                OpTarget::Version(id) => OpTarget::Version(self.id(id)?),
            })
        };
        Ok(match key {
            CellKey::Selected { view, position } => {
                CellKey::Selected { view, position: self.place(position)? }
            }
            CellKey::Pruned { target: old } => CellKey::Pruned { target: target(old)? },
            CellKey::Excluded { target: old } => CellKey::Excluded { target: target(old)? },
            CellKey::Bookmark { position } => CellKey::Bookmark { position: self.place(position)? },
            CellKey::Tag { position, tag } => CellKey::Tag { position: self.place(position)?, tag },
            other => other,
        })
    }

    fn value(&self, value: CellValue) -> Result<CellValue, ImportRefusal> {
        Ok(match value {
            CellValue::Position(id) => CellValue::Position(self.place(id)?),
            CellValue::Node(id) => CellValue::Node(self.id(id)?),
            CellValue::Place(TextOffset { position, at }) => {
                CellValue::Place(TextOffset { position: self.place(position)?, at })
            }
            CellValue::Draft { base, text_of } => CellValue::Draft {
                base: base.map(|id| self.id(id)).transpose()?,
                text_of: text_of.into_iter().map(|id| self.id(id)).collect::<Result<_, _>>()?,
            },
            names_nothing @ (CellValue::None
            | CellValue::Set
            | CellValue::Keep(_)
            | CellValue::Text(_)
            | CellValue::Number(_)) => names_nothing,
        })
    }
}
