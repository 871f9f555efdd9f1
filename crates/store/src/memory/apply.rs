//! Applying a plan and the rows that go with it.

use loom::rows::StoredResponse;
use loom::{
    Cell, CellKey, Digest, NodeId, NodeRow, OpRecord, Operation, Plan, PositionId, Seq, Slot, TreeId,
    ViewName, short_id,
};

use crate::adopt::Import;
use crate::apply::{
    Applied, AppliedDraft, With, check_shape, fresh_timeline, is_stored, make_fresh, new_views,
};
use crate::draft;
use crate::error::{Changed, StoreError};
use crate::event::Happening;
use crate::fence::Guard;
use crate::generation::{Generation, GenerationState, NewGeneration, Outcome, UsageRow};
use crate::memory::state::{Manifest, State};
use crate::memory::tree::Tree;
use crate::principal::Principal;

impl State {
    /// As [`crate::Store::apply`]. After an error the state is of no use.
    pub(super) fn apply(
        &mut self,
        who: &Principal,
        id: TreeId,
        plan: Plan,
        with: With,
    ) -> Result<Applied, StoreError> {
        check_shape(id, &plan)?;
        if let Some(row) = &plan.tree {
            if let Some(new) = &with.begins {
                self.begin_session(who, new.clone())?;
            }
            let session = with.begins.as_ref().map(|new| new.id.0.clone()).or_else(|| with.session.clone());
            self.create(who, row.clone(), session)?;
        }
        self.tree_mut(who, id)?;
        self.check_guards(who, &with.guards)?;
        if let Some(basis) = &with.basis {
            let changed =
                basis.changed(&self.view(who, self.tree(who, id)?)).map_err(StoreError::from_row_error)?;
            if !changed.is_empty() {
                return Err(StoreError::Conflict(changed));
            }
        }
        let absent = with.absent.clone();
        let mut applied = self.apply_plan(who, id, plan, &absent)?;
        if !with.is_empty() {
            for generation in with.generations {
                self.start(id, generation)?;
            }
            let tree = self.tree_mut(who, id)?;
            for shown in with.injections {
                if !tree.nodes.contains_key(&shown.node) {
                    return Err(StoreError::NotFound("node"));
                }
                tree.injections.entry((shown.node, shown.ordinal)).or_insert(shown);
            }
            for outcome in with.outcomes {
                self.end(id, outcome)?;
            }
        }
        if let (Some(note), Some(seq)) = (with.imported, applied.seq) {
            self.tree_mut(who, id)?.imports.push(Import { note, from: seq, to: seq });
        }
        applied.cursor = self.identity().cursor;
        Ok(applied)
    }

    pub(super) fn create(
        &mut self,
        who: &Principal,
        row: loom::TreeRow,
        session: Option<String>,
    ) -> Result<(), StoreError> {
        if !who.may_write() {
            return Err(StoreError::Denied("write"));
        }
        if self.trees.contains_key(&row.id) {
            return Err(StoreError::Exists("tree"));
        }
        let session = who.session().map(str::to_owned).or(session);
        let taken = |short: &String| self.trees.values().any(|tree| tree.short_id == *short);
        let free = short_id::candidates(row.id.to_bytes()).find(|short| !taken(short));
        self.trees.insert(row.id, Tree::new(row, free.unwrap_or_default(), session));
        Ok(())
    }

    fn check_guards(&self, who: &Principal, guards: &[Guard]) -> Result<(), StoreError> {
        for guard in guards {
            let held = self.leases.get(&guard.lease).is_some_and(|lease| lease.is_current(guard.fence));
            if !held || !who.may_lease(&guard.lease) {
                return Err(StoreError::Fenced { what: guard.lease.clone() });
            }
        }
        Ok(())
    }

    fn apply_plan(
        &mut self,
        who: &Principal,
        id: TreeId,
        plan: Plan,
        absent: &[NodeId],
    ) -> Result<Applied, StoreError> {
        let elsewhere =
            |node| self.trees.iter().any(|(tree, other)| *tree != id && other.nodes.contains_key(&node));
        if plan.nodes.iter().any(|node| elsewhere(node.id)) {
            return Err(StoreError::Exists("node"));
        }
        let tree = self.tree_mut(who, id)?;
        tree.check(&plan)?;
        let mut applied = Applied::default();
        let mut happened = Vec::new();
        for change in plan.drafts {
            let (new, timeline) = draft::planned(&change, tree.timeline_of(&change.view));
            tree.timelines.insert(change.view.clone(), timeline);
            let revision = new.as_ref().map(|draft| draft.revision);
            applied.drafts.push(AppliedDraft { view: change.view.clone(), slot: change.slot, revision });
            happened.push(Happening::Draft { view: change.view.clone(), slot: change.slot, revision });
            match new {
                Some(draft) => tree.drafts.insert((change.view, change.slot), draft),
                None => tree.drafts.remove(&(change.view, change.slot)),
            };
        }
        if let Some(mut op) = plan.op {
            for view in new_views(&op) {
                for slot in tree.freshen(&view, &mut op) {
                    applied.drafts.push(AppliedDraft { view: view.clone(), slot, revision: None });
                    happened.push(Happening::Draft { view: view.clone(), slot, revision: None });
                }
            }
            let seq = Seq(tree.operations.len() as u64 + 1);
            tree.positions.extend(plan.positions.into_iter().map(|position| (position.id, position)));
            for (place, node) in (0..).zip(plan.nodes) {
                let taken = |short: &String| tree.nodes.values().any(|row| row.short_id == *short);
                let free =
                    short_id::candidates(node.id.to_bytes()).find(|short| !taken(short)).unwrap_or_default();
                applied.nodes.push((node.id, free.clone()));
                tree.order.insert((seq, place), node.id);
                let purged = absent.contains(&node.id);
                tree.nodes.insert(node.id, NodeRow { node, seq, place, short_id: free, purged });
            }
            applied.seq = Some(seq);
            applied.skipped.clone_from(&op.skipped);
            happened.push(Happening::Operation { seq, kind: op.kind, view: op.view.clone() });
            tree.append(op, seq)?;
        }
        for what in happened {
            self.happened(id, what);
        }
        Ok(applied)
    }

    fn start(&mut self, tree: TreeId, new: NewGeneration) -> Result<(), StoreError> {
        let id = new.row.id;
        if new.row.tree != tree || new.row.manifest != Digest::of(&new.manifest) {
            return Err(StoreError::Malformed("a generation of another tree or manifest".to_owned()));
        }
        if self.generations.contains_key(&id) {
            return Err(StoreError::Exists("generation"));
        }
        if new.cited.iter().any(|digest| !self.bodies.contains_key(digest)) {
            return Err(StoreError::NotFound("body"));
        }
        let mut bodies = new.cited;
        for body in new.bodies {
            bodies.push(body.digest);
            self.bodies.insert(body.digest, body.bytes);
        }
        self.manifests.insert(new.row.manifest, Manifest { bytes: new.manifest, bodies });
        let state = GenerationState::Started;
        self.generations.insert(id, Generation { row: new.row, state, tenure: new.tenure });
        self.happened(tree, Happening::Generation { id });
        Ok(())
    }

    fn end(&mut self, tree: TreeId, outcome: Outcome) -> Result<(), StoreError> {
        let id = outcome.generation;
        let fenced = || StoreError::Fenced { what: format!("generation {id}") };
        let generation = self.generations.get_mut(&id).filter(|generation| generation.row.tree == tree);
        let generation = generation.ok_or(StoreError::NotFound("generation"))?;
        if generation.state != GenerationState::Started || generation.tenure != outcome.tenure {
            return Err(fenced());
        }
        generation.state = outcome.state;
        if let Some(received) = outcome.response {
            let (digest, bytes) = (received.body.digest, received.body.bytes);
            self.responses
                .insert(id, StoredResponse { digest, bytes, metadata: received.metadata, purged: false });
        }
        if let Some(usage) = outcome.usage {
            self.usage.retain(|row| row.generation != id);
            self.usage.push(UsageRow { generation: id, tree, at: outcome.at, usage });
        }
        self.happened(tree, Happening::Generation { id });
        Ok(())
    }
}

impl Tree {
    /// Refuses a plan whose cells and drafts are not as it expects, or whose rows exist.
    fn check(&self, plan: &Plan) -> Result<(), StoreError> {
        let cells = plan.op.iter().flat_map(|op| &op.cells);
        let stale =
            cells.filter(|change| is_stored(&change.key) && self.cell_now(&change.key).value != change.old);
        let mut changed: Vec<_> = stale.map(|change| Changed::Cell(change.key.clone())).collect();
        for draft in &plan.drafts {
            let revision = self.drafts.get(&(draft.view.clone(), draft.slot)).map(|draft| draft.revision);
            if revision != draft.expected {
                changed.push(Changed::Draft { view: draft.view.clone(), slot: draft.slot, revision });
            }
        }
        if !changed.is_empty() {
            return Err(StoreError::Conflict(changed));
        }
        if plan.nodes.iter().any(|node| self.nodes.contains_key(&node.id)) {
            return Err(StoreError::Exists("node"));
        }
        let exists =
            |id: PositionId| self.positions.contains_key(&id) || plan.positions.iter().any(|p| p.id == id);
        match plan.nodes.iter().find(|node| !exists(node.position)) {
            Some(node) => Err(StoreError::Malformed(format!("node {} has no position", node.id))),
            None => Ok(()),
        }
    }

    /// Makes a view new, whatever one of its name left behind. Returns the drafts that are gone.
    fn freshen(&mut self, view: &ViewName, op: &mut Operation) -> Vec<Slot> {
        let own = |key: &CellKey| match key {
            CellKey::Selected { view: of, .. }
            | CellKey::LastTip { view: of, .. }
            | CellKey::Keep { view: of, .. } => of == view,
            _ => false,
        };
        let left = self.cells.iter().filter(|(key, _)| own(key));
        make_fresh(op, left.map(|(key, cell)| (key.clone(), cell.clone())).collect());
        self.timelines.insert(view.clone(), fresh_timeline(self.timeline_of(view)));
        let drafts = self.drafts.keys().filter(|(of, _)| of == view);
        let slots: Vec<Slot> = drafts.map(|(_, slot)| *slot).collect();
        self.drafts.retain(|(of, _), _| of != view);
        slots
    }

    /// Appends an operation, with what it does to cells and timeline.
    pub(super) fn append(&mut self, op: Operation, seq: Seq) -> Result<(), StoreError> {
        let prev = self.operations.last().map_or(Digest::ZERO, |last| last.hash);
        let before = op.view.as_ref().map(|view| self.timeline_of(view)).unwrap_or_default();
        for change in op.cells.iter().filter(|change| is_stored(&change.key)) {
            self.cells.insert(change.key.clone(), Cell { value: change.new.clone(), seq });
        }
        if let Some(view) = &op.view {
            self.timelines.insert(view.clone(), before.after(&op.timeline, seq));
        }
        self.operations.push(OpRecord::bind(op, seq, prev, before).map_err(loom::Refusal::from)?);
        Ok(())
    }
}
