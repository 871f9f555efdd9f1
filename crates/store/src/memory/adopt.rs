//! Taking in a tree as it is.

use loom::{Cell, Digest, NodeId, TreeId, Trust};

use crate::adopt::{Adopted, Import, check_imported};
use crate::error::StoreError;
use crate::event::Happening;
use crate::fence::{Fence, Holder, Tenure};
use crate::generation::{Generation, GenerationState};
use crate::memory::state::{Manifest, State, only_owner};
use crate::principal::Principal;

impl State {
    /// As [`crate::Store::adopt`]. After an error the state is of no use.
    pub(super) fn adopt(&mut self, who: &Principal, adopted: Adopted) -> Result<(), StoreError> {
        only_owner(who, "import")?;
        adopted.check()?;
        let id = adopted.tree.id;
        let is_here = |node| self.trees.values().any(|tree| tree.nodes.contains_key(&node));
        if adopted.nodes.iter().any(|row| is_here(row.node.id)) {
            return Err(StoreError::Exists("node"));
        }
        self.create(who, adopted.tree.clone(), None)?;
        self.adopt_sent(&adopted)?;
        let tree = self.tree_mut(who, id)?;
        for (key, (value, seq)) in adopted.cells() {
            tree.cells.insert(key.clone(), Cell { value: value.clone(), seq });
        }
        let last = adopted.last();
        tree.imports.push(Import { note: adopted.imported, from: loom::Seq(1), to: last });
        tree.positions.extend(adopted.positions.into_iter().map(|position| (position.id, position)));
        tree.injections
            .extend(adopted.injections.into_iter().map(|shown| ((shown.node, shown.ordinal), shown)));
        for row in adopted.nodes {
            tree.order.insert((row.seq, row.place), row.node.id);
            tree.nodes.insert(row.node.id, row);
        }
        let kind = adopted.operations.last().map(|record| (record.op.kind, record.op.view.clone()));
        tree.operations = adopted.operations;
        tree.seals = adopted.seals;
        if let Some((kind, view)) = kind {
            self.happened(id, Happening::Operation { seq: last, kind, view });
        }
        Ok(())
    }

    fn adopt_sent(&mut self, adopted: &Adopted) -> Result<(), StoreError> {
        for body in &adopted.bodies {
            self.bodies.insert(body.digest, body.bytes.clone());
        }
        let came: Vec<Digest> = adopted.manifests.iter().map(|sent| sent.manifest.digest).collect();
        let strange =
            |digest: Digest, state: &Self| !came.contains(&digest) && state.manifests.contains_key(&digest);
        for generation in &adopted.generations {
            let row = &generation.row;
            if self.generations.contains_key(&row.id) {
                return Err(StoreError::Exists("generation"));
            }
            if strange(row.manifest, self) {
                continue;
            }
            let tenure = Tenure { owner: Holder::new(""), fence: Fence::default() };
            let state = GenerationState::Done;
            self.generations.insert(row.id, Generation { row: row.clone(), state, tenure });
            if let Some(response) = &generation.response {
                self.responses.insert(row.id, response.clone());
            }
        }
        for sent in &adopted.manifests {
            let bodies: Vec<Digest> = adopted.bodies_of(sent).collect();
            let bytes = sent.manifest.bytes.clone();
            let held = self.manifests.entry(sent.manifest.digest);
            held.or_insert(Manifest { bytes, bodies: Vec::new() }).bodies.extend(bodies);
        }
        Ok(())
    }

    /// As [`crate::Store::set_trust`].
    pub(super) fn set_trust(
        &mut self,
        who: &Principal,
        id: TreeId,
        nodes: &[(NodeId, Trust)],
    ) -> Result<u64, StoreError> {
        only_owner(who, "trust")?;
        let tree = self.tree_mut(who, id)?;
        let mut changed = 0;
        for (node, trust) in nodes {
            let row = tree.nodes.get_mut(node).ok_or(StoreError::NotFound("node"))?;
            check_imported(&tree.imports, *node, row.seq)?;
            if row.node.trust == Trust::Outside && *trust != Trust::Outside {
                row.node.trust = *trust;
                changed += 1;
            }
            // What was shown with it is nobody's word.
            for (_, shown) in tree.injections.range_mut((*node, 0)..=(*node, u32::MAX)) {
                if shown.trust == Trust::Outside {
                    shown.trust = (*trust).min(Trust::Workspace);
                }
            }
        }
        Ok(changed)
    }
}
