//! Forgetting in plain maps.

use std::collections::BTreeSet;

use loom::{CellKey, Digest, GenerationId, Millis, Seq, TreeId};

use crate::error::StoreError;
use crate::event::Happening;
use crate::forget::{Forget, Forgotten, Place, Target, operation};
use crate::job::JobState;
use crate::memory::find::blobs;
use crate::memory::state::{State, only_owner};
use crate::memory::tree::Tree;
use crate::principal::Principal;

impl State {
    pub(super) fn forget(
        &mut self,
        who: &Principal,
        what: &Forget,
        now: Millis,
    ) -> Result<Forgotten, StoreError> {
        only_owner(who, "forget")?;
        let target = match what {
            Forget::Node { tree, node } => {
                let row = self.tree(who, *tree)?.nodes.get(node).ok_or(StoreError::NotFound("node"))?;
                let mut target = Target::new(None);
                target.add_node(*tree, *node, &row.node.content);
                target
            }
            Forget::Text(text) => {
                let mut target = Target::text(text)?;
                for (id, tree) in &self.trees {
                    let holding = tree.nodes.values().filter(|row| target.is_in(&row.node.content));
                    let found: Vec<_> = holding.map(|row| (*id, row.node.id)).collect();
                    target.nodes.extend(found);
                }
                target
            }
        };
        self.remove(&target, now)
    }

    pub(super) fn purge(
        &mut self,
        who: &Principal,
        id: TreeId,
        now: Millis,
    ) -> Result<Forgotten, StoreError> {
        only_owner(who, "purge")?;
        let mut target = Target::new(Some(id));
        for row in self.tree(who, id)?.nodes.values() {
            target.add_node(id, row.node.id, &row.node.content);
        }
        self.remove(&target, now)
    }

    fn remove(&mut self, target: &Target, now: Millis) -> Result<Forgotten, StoreError> {
        let mut places = BTreeSet::new();
        let mut shown = BTreeSet::new();
        let mut made_by = BTreeSet::new();
        for tree in self.trees.values_mut() {
            let (blobs, generations) = tree.forget_nodes(target, &mut places);
            shown.extend(blobs);
            made_by.extend(generations);
            tree.forget_drafts(target, &mut places);
            tree.forget_shown(target, &mut places);
            tree.forget_labels(target, &mut places);
            tree.purged |= target.tree == Some(tree.row.id);
        }
        let of_tree = self.generations.values().filter(|generation| target.tree == Some(generation.row.tree));
        made_by.extend(of_tree.map(|generation| generation.row.id));
        self.forget_responses(target, &made_by, &mut places);
        self.forget_sent(target, &mut places);
        self.forget_jobs(target, &mut places);
        let touched: BTreeSet<TreeId> = places.iter().filter_map(Place::tree).chain(target.tree).collect();
        for id in touched {
            if let Some(tree) = self.trees.get_mut(&id) {
                let seq = Seq(tree.operations.len() as u64 + 1);
                tree.append(operation(id, now), seq)?;
                self.happened(id, Happening::Removed);
            }
        }
        let rows = self.trees.values().flat_map(|tree| tree.nodes.values());
        let still: BTreeSet<Digest> = rows.flat_map(|row| blobs(&row.node.content)).collect();
        let blobs = shown.difference(&still).copied().collect();
        Ok(Forgotten { places: places.into_iter().collect(), blobs })
    }

    fn forget_responses(
        &mut self,
        target: &Target,
        of: &BTreeSet<GenerationId>,
        places: &mut BTreeSet<Place>,
    ) {
        for (id, response) in self.responses.iter_mut().filter(|(_, response)| !response.purged) {
            let needles = &target.needles;
            let holds = needles.occur_in(&response.bytes) || needles.occur_in(response.metadata.as_bytes());
            if holds || of.contains(id) {
                response.bytes.clear();
                response.metadata.clear();
                response.purged = true;
                places.insert(Place::Response { generation: *id });
            }
        }
    }

    /// Manifests and bodies: those that hold what is searched for, and those of the purged tree alone.
    fn forget_sent(&mut self, target: &Target, places: &mut BTreeSet<Place>) {
        let generations = &self.generations;
        self.manifests.retain(|digest, manifest| {
            let mut citing = generations.values().filter(|generation| generation.row.manifest == *digest);
            let stays = citing.any(|generation| target.tree != Some(generation.row.tree))
                && !target.needles.occur_in(&manifest.bytes);
            if !stays {
                places.insert(Place::Manifest { digest: *digest });
            }
            stays
        });
        let manifests = &self.manifests;
        self.bodies.retain(|digest, bytes| {
            let cited = manifests.values().any(|manifest| manifest.bodies.contains(digest));
            let stays = cited && !target.needles.occur_in(bytes);
            if !stays {
                places.insert(Place::Body { digest: *digest });
            }
            stays
        });
    }

    fn forget_jobs(&mut self, target: &Target, places: &mut BTreeSet<Place>) {
        for job in self.jobs.values_mut() {
            let whole = job.job.tree.is_some() && job.job.tree == target.tree;
            let result = match &mut job.state {
                JobState::Done(text) | JobState::Failed(text) => Some(text),
                JobState::Queued | JobState::Claimed(_) => None,
            };
            let mut texts: Vec<&mut String> = result.into_iter().chain([&mut job.job.payload]).collect();
            if texts
                .iter()
                .any(|text| !text.is_empty() && (whole || target.needles.occur_in(text.as_bytes())))
            {
                texts.iter_mut().for_each(|text| text.clear());
                places.insert(Place::Job { job: job.id });
            }
        }
    }
}

impl Tree {
    /// Leaves tombstones; returns the blobs and the generations of what went.
    fn forget_nodes(
        &mut self,
        target: &Target,
        places: &mut BTreeSet<Place>,
    ) -> (BTreeSet<Digest>, BTreeSet<GenerationId>) {
        let tree = self.row.id;
        let (mut shown, mut made_by) = (BTreeSet::new(), BTreeSet::new());
        for row in self.nodes.values_mut().filter(|row| target.nodes.contains(&(tree, row.node.id))) {
            made_by.extend(row.node.generation);
            if !row.node.content.is_empty() {
                shown.extend(blobs(&row.node.content));
                row.node.content.clear();
                row.purged = true;
                places.insert(Place::Node { tree, node: row.node.id });
            }
        }
        (shown, made_by)
    }

    fn forget_drafts(&mut self, target: &Target, places: &mut BTreeSet<Place>) {
        let tree = self.row.id;
        self.drafts.retain(|(view, slot), draft| {
            let gone = target.tree == Some(tree)
                || draft.base.is_some_and(|base| target.nodes.contains(&(tree, base)));
            let clean = target.words.without(draft);
            if gone || clean.is_some() {
                places.insert(Place::Draft { tree, view: view.clone(), slot: *slot });
            }
            if let Some(clean) = clean {
                *draft = clean;
            }
            !gone
        });
    }

    fn forget_shown(&mut self, target: &Target, places: &mut BTreeSet<Place>) {
        let tree = self.row.id;
        self.injections.retain(|(node, _), shown| {
            let gone = target.takes_shown(tree, *node, shown.text.as_bytes());
            if gone {
                places.insert(Place::Shown { tree, node: *node });
            }
            !gone
        });
    }

    fn forget_labels(&mut self, target: &Target, places: &mut BTreeSet<Place>) {
        let tree = self.row.id;
        let words = target.words_of(tree);
        for (mut key, mut cell) in std::mem::take(&mut self.cells) {
            let found = words.remove_from_cell(&mut key, &mut [&mut cell.value]);
            if found {
                places.insert(Place::Label { tree });
            }
            // What is left of a tag is no tag.
            if !found || !matches!(key, CellKey::Tag { .. }) {
                self.cells.insert(key, cell);
            }
        }
        for record in &mut self.operations {
            if words.remove_from_changes(&mut record.op.cells, &mut record.op.skipped) {
                record.purged = true;
                places.insert(Place::Operation { tree, seq: record.seq });
            }
        }
    }
}
