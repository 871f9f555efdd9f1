//! A plan under construction: what it has added so far, over the slice it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cell::{CellChange, CellKey, CellValue, OpTarget};
use crate::content::{Block, Counts, content_hash, plain_text};
use crate::digest::PathDigest;
use crate::draft::{Draft, Slot};
use crate::generation::GenerationId;
use crate::id::{Entropy, NodeId, PositionId, Seq, ViewName};
use crate::node::{Author, Finish, ModelSource, Node, Origin, OriginRole, Quote, Role, Trust};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::{DraftChange, MAX_NODE_BYTES, Plan, PlanError, Refusal, Request, change, operation};
use crate::position::{Position, PositionKind, Sums};
use crate::read_set::{Needs, ReadKey, ReadSet};
use crate::record::{Links, chain_hash};
use crate::tree::Mode;

/// A node to be made, before its place and hashes are known.
pub(super) struct NewNode {
    pub(super) content: Arc<Vec<Block>>,
    pub(super) author: Author,
    pub(super) trust: Trust,
    pub(super) edited_from: Option<NodeId>,
    pub(super) quote: Option<Quote>,
    pub(super) source: Option<ModelSource>,
    pub(super) generation: Option<GenerationId>,
    pub(super) finish: Option<Finish>,
    /// Extra inputs, behind the origin parent.
    pub(super) inputs: Vec<(OriginRole, NodeId)>,
}

impl NewNode {
    /// Content by an author, and nothing else.
    pub(super) fn new(content: impl Into<Arc<Vec<Block>>>, author: Author, trust: Trust) -> Self {
        Self {
            content: content.into(),
            author,
            trust,
            edited_from: None,
            quote: None,
            source: None,
            generation: None,
            finish: None,
            inputs: Vec::new(),
        }
    }
}

pub(super) struct PlanBuilder<'a, 'e> {
    pub(super) request: &'a Request,
    pub(super) slice: &'a ReadSet,
    entropy: &'a mut Entropy<'e>,
    positions: Vec<Position>,
    nodes: Vec<Node>,
    /// Where each stands among them: a text of a novel becomes tens of thousands.
    planned_positions: BTreeMap<PositionId, usize>,
    planned_nodes: BTreeMap<NodeId, usize>,
    cells: Vec<CellChange>,
    drafts: Vec<DraftChange>,
    /// Drafts that hold nothing: gone once the plan does something.
    blank: Vec<DraftChange>,
    skipped: Vec<CellKey>,
    kind: Option<OpKind>,
    timeline: TimelineEffect,
    /// The tip as stored, before this plan.
    pub(super) stored_tip: PositionId,
}

impl<'a, 'e> PlanBuilder<'a, 'e> {
    pub(super) fn new(
        request: &'a Request,
        slice: &'a ReadSet,
        entropy: &'a mut Entropy<'e>,
    ) -> Result<Self, PlanError> {
        let view = &request.view;
        slice.require([
            ReadKey::Tree,
            ReadKey::Cell(CellKey::Tip { view: view.clone() }),
            ReadKey::Drafts(view.clone()),
            ReadKey::Timeline(view.clone()),
        ])?;
        let tip = slice.cell(&CellKey::Tip { view: view.clone() })?.value.as_position();
        let stored_tip = tip.ok_or_else(|| Refusal::NoView(view.clone()))?;
        Ok(Self {
            request,
            slice,
            entropy,
            positions: Vec::new(),
            nodes: Vec::new(),
            planned_positions: BTreeMap::new(),
            planned_nodes: BTreeMap::new(),
            cells: Vec::new(),
            drafts: Vec::new(),
            blank: Vec::new(),
            skipped: Vec::new(),
            kind: None,
            timeline: TimelineEffect::Push,
            stored_tip,
        })
    }

    pub(super) fn view(&self) -> ViewName {
        self.request.view.clone()
    }

    pub(super) fn mode(&self) -> Result<Mode, PlanError> {
        Ok(self.slice.tree()?.mode)
    }

    /// Names the operation; the first name stands.
    pub(super) fn name(&mut self, kind: OpKind) {
        self.kind.get_or_insert(kind);
    }

    /// Names the operation, whatever it was called before.
    pub(super) fn rename(&mut self, kind: OpKind) {
        self.kind = Some(kind);
    }

    pub(super) fn timeline(&mut self, effect: TimelineEffect) {
        self.timeline = effect;
    }

    /// Has it undone together with the operation that began its turn, if everything since belongs to that; by itself, if
    /// not.
    pub(super) fn join(&mut self, part_of: Option<Seq>) -> Result<(), PlanError> {
        let undoable = self.slice.timeline(&self.request.view)?.undo;
        let joins = match (part_of, undoable) {
            (Some(first), Some(newest)) if newest != first => {
                let newest = self.slice.operation(newest)?;
                newest.is_some_and(|record| record.op.timeline == TimelineEffect::Join(first))
            }
            (first, newest) => first == newest,
        };
        self.timeline(match part_of {
            Some(first) if joins => TimelineEffect::Join(first),
            _ => TimelineEffect::Push,
        });
        Ok(())
    }

    /// Refuses to take a draft, and has what can be undone be undone with its turn.
    pub(super) fn by_tool(&mut self, part_of: Option<Seq>) -> Result<(), PlanError> {
        if !self.drafts.is_empty() {
            return Err(Refusal::DraftHeld.into());
        }
        match part_of {
            Some(_) if self.timeline == TimelineEffect::Push => self.join(part_of),
            _ => Ok(()),
        }
    }

    /// Whether anything has been added.
    pub(super) fn has_work(&self) -> bool {
        !self.cells.is_empty() || !self.nodes.is_empty()
    }

    /// A cell's value, as this plan leaves it.
    pub(super) fn value(&self, key: &CellKey) -> Result<CellValue, Needs> {
        match self.cells.iter().rev().find(|change| change.key == *key) {
            Some(change) => Ok(change.new.clone()),
            None => self.stored(key),
        }
    }

    /// A cell's value before this plan. Cells of what the plan itself makes were never set, and are not asked
    /// for: their ids are other ones each time the plan is made again.
    fn stored(&self, key: &CellKey) -> Result<CellValue, Needs> {
        let planned = match key {
            CellKey::Selected { position, .. } | CellKey::LastTip { position, .. } => {
                self.planned_positions.contains_key(position)
            }
            CellKey::Pruned { target: OpTarget::Version(id) } => self.planned_nodes.contains_key(id),
            _ => false,
        };
        if planned { Ok(CellValue::None) } else { Ok(self.slice.cell(key)?.value.clone()) }
    }

    /// Sets a cell. A value it has already is no change.
    pub(super) fn set(&mut self, key: CellKey, new: CellValue) -> Result<(), Needs> {
        if let Some(earlier) = self.cells.iter_mut().find(|change| change.key == key) {
            earlier.new = new;
            return Ok(());
        }
        let old = self.stored(&key)?;
        if old != new {
            self.cells.push(change(key, old, new));
        }
        Ok(())
    }

    /// Adds a change as given, for cells that are not rows (drafts) or are kept even if equal (keep).
    pub(super) fn push(&mut self, change: CellChange) {
        self.cells.push(change);
    }

    pub(super) fn skip(&mut self, key: CellKey) {
        self.skipped.push(key);
    }

    pub(super) fn change_draft(&mut self, draft: DraftChange) {
        self.drafts.push(draft);
    }

    /// Drops a draft that holds nothing, if the plan comes to do something. Were it dropped by a plan that does
    /// not, keystrokes that were undone in it could no longer be done again.
    pub(super) fn drop_blank(&mut self, slot: Slot, draft: &Draft) {
        self.blank.push(DraftChange { view: self.view(), slot, expected: Some(draft.revision), new: None });
    }

    /// The tip, as this plan leaves it.
    pub(super) fn tip(&self) -> Result<PositionId, PlanError> {
        let tip = self.value(&CellKey::Tip { view: self.view() })?.as_position();
        Ok(tip.unwrap_or(self.stored_tip))
    }

    pub(super) fn set_tip(&mut self, to: PositionId) -> Result<(), Needs> {
        self.set(CellKey::Tip { view: self.view() }, CellValue::Position(to))
    }

    /// A position, stored or planned.
    pub(super) fn position(&self, id: PositionId) -> Result<Position, PlanError> {
        if let Some(planned) = self.planned_positions.get(&id) {
            return Ok(self.positions[*planned].clone());
        }
        Ok(self.slice.position(id)?.ok_or(Refusal::NoPosition(id))?.clone())
    }

    /// A position that stands on paths and is not the genesis.
    pub(super) fn passage(&self, id: PositionId) -> Result<Position, PlanError> {
        let position = self.position(id)?;
        if position.kind != PositionKind::Path {
            return Err(Refusal::OffPath(id).into());
        }
        if position.parent.is_none() {
            return Err(Refusal::Genesis.into());
        }
        Ok(position)
    }

    /// A node, stored or planned, whose content is still there.
    pub(super) fn node(&self, id: NodeId) -> Result<Node, PlanError> {
        if let Some(planned) = self.planned_node(id) {
            return Ok(planned.clone());
        }
        let row = self.slice.node(id)?.ok_or(Refusal::NoNode(id))?;
        if row.purged {
            return Err(Refusal::Purged(id).into());
        }
        Ok(row.node.clone())
    }

    /// The chain hash of a node, purged or not.
    pub(super) fn chain(&self, id: NodeId) -> Result<crate::digest::Digest, PlanError> {
        if let Some(planned) = self.planned_node(id) {
            return Ok(planned.chain_hash);
        }
        Ok(self.slice.node(id)?.ok_or(Refusal::NoNode(id))?.node.chain_hash)
    }

    /// The version this view shows at a position.
    pub(super) fn shown(&self, position: PositionId) -> Result<NodeId, PlanError> {
        let selected = self.value(&CellKey::Selected { view: self.view(), position })?.as_node();
        let wanted = selected.unwrap_or(position.original());
        if self.planned_node(wanted).is_some() {
            return Ok(wanted);
        }
        let pruned = self.value(&CellKey::Pruned { target: OpTarget::Version(wanted) })?.is_set();
        if !pruned {
            return Ok(wanted);
        }
        Ok(self.slice.found_node(ReadKey::NewestVisible(position))?.unwrap_or(wanted))
    }

    /// Adds a node at a new position under `parent`.
    pub(super) fn add_position(
        &mut self,
        parent: PositionId,
        kind: PositionKind,
        role: Option<Role>,
        id: Option<NodeId>,
        seed: NewNode,
    ) -> Result<PositionId, PlanError> {
        let shown = self.shown(parent)?;
        self.add_child_of_version(parent, shown, kind, role, id, seed)
    }

    /// Adds a node at a new position under a named version of `parent`.
    pub(super) fn add_child_of_version(
        &mut self,
        parent: PositionId,
        version: NodeId,
        kind: PositionKind,
        role: Option<Role>,
        id: Option<NodeId>,
        seed: NewNode,
    ) -> Result<PositionId, PlanError> {
        let above = self.position(parent)?;
        let jump = self.position(above.jump)?;
        let jump_jump = self.position(jump.jump)?;
        let id = id.unwrap_or_else(|| self.entropy.next(self.request.now)).as_position();
        let origin = match kind {
            PositionKind::Path => OriginRole::Parent,
            PositionKind::Head => OriginRole::Head,
            PositionKind::Note => OriginRole::Note,
            PositionKind::Annotation => OriginRole::Annotation,
        };
        let node = self.make(id, id.original(), role, (origin, version), seed)?;
        self.planned_positions.insert(id, self.positions.len());
        self.positions.push(Position {
            id,
            tree: self.request.tree,
            parent: Some(parent),
            kind,
            role,
            depth: above.depth + 1,
            jump: Position::child_jump(&above, &jump, &jump_jump),
            above: above.below(),
            own: Sums { counts: node.counts, digest: node.term },
        });
        self.plan_node(node);
        Ok(id)
    }

    fn planned_node(&self, id: NodeId) -> Option<&Node> {
        self.planned_nodes.get(&id).map(|at| &self.nodes[*at])
    }

    fn plan_node(&mut self, node: Node) {
        self.planned_nodes.insert(node.id, self.nodes.len());
        self.nodes.push(node);
    }

    /// Adds a version at a position.
    pub(super) fn add_version(&mut self, at: &Position, seed: NewNode) -> Result<NodeId, PlanError> {
        let parent = at.parent.ok_or(Refusal::Genesis)?;
        let id: NodeId = self.entropy.next(self.request.now);
        let origin = match at.kind {
            PositionKind::Path => OriginRole::Parent,
            PositionKind::Head => OriginRole::Head,
            PositionKind::Note => OriginRole::Note,
            PositionKind::Annotation => OriginRole::Annotation,
        };
        let shown = self.shown(parent)?;
        let node = self.make(at.id, id, at.role, (origin, shown), seed)?;
        self.plan_node(node);
        Ok(id)
    }

    fn make(
        &self,
        position: PositionId,
        id: NodeId,
        role: Option<Role>,
        (origin, parent): (OriginRole, NodeId),
        seed: NewNode,
    ) -> Result<Node, PlanError> {
        let text = plain_text(&seed.content);
        let counts = Counts::of(&text);
        if counts.bytes > MAX_NODE_BYTES {
            return Err(Refusal::TooLarge { len: counts.bytes, limit: MAX_NODE_BYTES }.into());
        }
        let mut origins = vec![Origin { role: origin, node: parent, chain: self.chain(parent)? }];
        for (role, input) in seed.inputs {
            origins.push(Origin { role, node: input, chain: self.chain(input)? });
        }
        let links = Links {
            position: (position.original() != id).then(|| self.chain(position.original())).transpose()?,
            edited_from: seed.edited_from.map(|from| self.chain(from)).transpose()?,
        };
        let mut node = Node {
            id,
            tree: self.request.tree,
            position,
            author: seed.author,
            role,
            created_at: self.request.now,
            kept_hash: links.position.map(|_| content_hash(&seed.content)).transpose()?,
            term: PathDigest::term(position, &text),
            content: Arc::clone(&seed.content),
            edited_from: seed.edited_from,
            quote: seed.quote,
            origins,
            source: seed.source,
            generation: seed.generation,
            trust: seed.trust,
            finish: seed.finish,
            counts,
            chain_hash: crate::digest::Digest::ZERO,
        };
        node.chain_hash = chain_hash(&node, links)?;
        Ok(node)
    }

    /// A draft as it stands in the slice.
    pub(super) fn draft(&self, slot: Slot) -> Result<Option<&'a Draft>, Needs> {
        let drafts = self.slice.drafts(&self.request.view)?;
        Ok(drafts.iter().find(|(other, _)| *other == slot).map(|(_, draft)| draft))
    }

    /// The plan. Without cells and nodes there is no operation.
    pub(super) fn finish(mut self) -> Result<Plan, Needs> {
        let undo_or_redo = matches!(self.timeline, TimelineEffect::Undo { .. } | TimelineEffect::Redo { .. });
        let works = self.has_work() || undo_or_redo;
        if works && matches!(self.timeline, TimelineEffect::Push | TimelineEffect::Join(_)) {
            self.drafts.append(&mut self.blank);
            self.forget_undone()?;
        }
        let op = self.kind.filter(|_| works).map(|kind| {
            let mut op = operation(self.request, kind, self.timeline);
            op.nodes = self.nodes.iter().map(|node| (node.id, node.chain_hash)).collect();
            op.cells = self.cells;
            op.skipped = self.skipped;
            op
        });
        Ok(Plan { tree: None, positions: self.positions, nodes: self.nodes, drafts: self.drafts, op })
    }

    /// After a new operation no keystroke undone before it can be done again.
    fn forget_undone(&mut self) -> Result<(), Needs> {
        for (slot, draft) in self.slice.drafts(&self.request.view)? {
            let mut forgotten = draft.clone();
            let planned = self.drafts.iter().any(|change| change.slot == *slot);
            if !planned && forgotten.forget_undone() {
                let (view, expected) = (self.view(), Some(draft.revision));
                self.drafts.push(DraftChange { view, slot: *slot, expected, new: Some(forgotten) });
            }
        }
        Ok(())
    }
}
