//! From a file, or a copy of it, to what a store imports.

use std::collections::BTreeSet;

use context::{BodyDelta, Manifest, StoredBody};
use interop::import::{CopyPlan, Provenance};
use interop::own::{ArchivedResponse, ImportedFile, StoredGeneration};
use loom::reader::StoredResponse;
use loom::{
    Digest, GenerationId, Millis, NodeId, NodeRow, OpRecord, Position, RowError, Seq, Timeline, TreeReader,
};
use store::{
    HashedBytes, ImportNote, ImportedGeneration, ImportedManifest, ImportedTree, NewGeneration, Received,
    StoreError,
};

use crate::error::CommandError;

/// Bodies a request may rest on.
const MAX_CHAIN: usize = 64;

/// Where a file's rows came from, as the store remembers it.
pub(super) const fn note(provenance: Provenance, at: Millis) -> ImportNote {
    ImportNote { file: provenance.file, at }
}

/// Every node of a file, in the order of its tree: its rows lie in memory, so one page is all of them.
pub(super) fn nodes(file: &ImportedFile) -> Result<Vec<NodeRow>, RowError> {
    file.tree.nodes_in_order(None, usize::MAX)
}

/// The tree of a file, whole, under its own ids. Seals that are none are told by their operation.
pub(super) fn whole(file: &ImportedFile, note: ImportNote) -> Result<(ImportedTree, Vec<Seq>), RowError> {
    let nodes = nodes(file)?;
    let mut positions: Vec<Position> = Vec::new();
    for row in nodes.iter().filter(|row| row.node.is_original()) {
        let id = row.node.position;
        positions.push(file.tree.position(id)?.ok_or_else(|| RowError::missing("position", id))?);
    }
    let operations = file.tree.operations(Seq(0), usize::MAX)?;
    let last = operations.last().map(|record| record.seq).unwrap_or_default();
    let tree = file.header.tree.clone();
    let (seals, strange): (Vec<_>, Vec<_>) = file
        .tree
        .seals()?
        .into_iter()
        .partition(|seal| seal.seq <= last && loom::seal::is_signed(seal, tree.id));
    let materials = &file.materials;
    let generations = file
        .generations
        .values()
        .map(|held| ImportedGeneration { row: held.row.clone(), response: response(file, held) });
    let manifests = materials.manifests.iter().map(|(digest, bytes)| ImportedManifest {
        manifest: HashedBytes { digest: *digest, bytes: bytes.clone() },
        bodies: bodies_of(file, *digest),
    });
    let bodies = materials.bodies.iter();
    let imported = ImportedTree {
        injections: file.injections.clone(),
        positions,
        nodes,
        operations,
        seals,
        generations: generations.collect(),
        manifests: manifests.collect(),
        bodies: bodies.map(|(digest, bytes)| HashedBytes { digest: *digest, bytes: bytes.clone() }).collect(),
        imported: note,
        tree,
    };
    Ok((imported, strange.into_iter().map(|seal| seal.seq).collect()))
}

fn response(file: &ImportedFile, generation: &StoredGeneration) -> Option<StoredResponse> {
    let digest = generation.response?;
    let ArchivedResponse { metadata, bytes, purged } = file.received(generation)?.into_owned();
    Some(StoredResponse { digest, bytes, metadata, purged })
}

/// The bodies a manifest's request is put together from, its own first.
fn bodies_of(file: &ImportedFile, manifest: Digest) -> Vec<Digest> {
    let mut bodies = Vec::new();
    let mut next = Some(manifest);
    while let Some(bytes) = next.and_then(|digest| file.materials.manifests.get(&digest)) {
        let Ok(Manifest { body: StoredBody { middle, delta, .. }, .. }) = Manifest::from_bytes(bytes) else {
            break;
        };
        bodies.push(middle);
        next = delta.map(|BodyDelta { base, .. }| base).filter(|_| bodies.len() < MAX_CHAIN);
    }
    bodies
}

/// What was sent for nodes that are added to a tree, as far as the file has it: ended, as history.
pub(super) fn sent_for(
    file: &ImportedFile,
    nodes: &[loom::Node],
) -> Result<Vec<(NewGeneration, Option<Received>)>, StoreError> {
    let wanted: BTreeSet<GenerationId> = nodes.iter().filter_map(|node| node.generation).collect();
    let held = wanted.iter().filter_map(|id| file.generations.get(id));
    let materials = &file.materials;
    held.filter_map(|held| {
        let manifest = materials.manifests.get(&held.row.manifest)?.clone();
        let bodies = bodies_of(file, held.row.manifest).into_iter();
        let bodies = bodies
            .filter_map(|digest| Some(HashedBytes { digest, bytes: materials.bodies.get(&digest)?.clone() }));
        let claim = store::Claim { owner: store::LeaseOwner::new(""), fence: store::Fence::default() };
        let received = response(file, held).filter(|held| !held.purged);
        let received = received.map(|held| Received::new(&held.bytes, held.metadata)).transpose();
        let (bodies, cited) = (bodies.collect(), Vec::new());
        let row = held.row.clone();
        let sent = NewGeneration { row, claim, manifest, bodies, cited, reservation: None };
        Some(received.map(|received| (sent, received)))
    })
    .collect()
}

/// A copy as a tree of its own: its two operations with their numbers, its nodes with short ids.
pub(super) fn copied(copy: CopyPlan, note: ImportNote) -> Result<ImportedTree, CommandError> {
    let lost = || CommandError::new("copy", 6, "the copy has no tree", "this is a defect: please report it");
    let [create, fill] = copy.plans;
    let mut imported = ImportedTree {
        tree: create.tree.clone().ok_or_else(lost)?,
        positions: Vec::new(),
        nodes: Vec::new(),
        operations: Vec::new(),
        seals: Vec::new(),
        injections: Vec::new(),
        generations: Vec::new(),
        manifests: Vec::new(),
        bodies: Vec::new(),
        imported: note,
    };
    let (mut seq, mut prev) = (Seq(0), Digest::ZERO);
    let mut short_ids = BTreeSet::new();
    for plan in [create, fill] {
        let op = plan.op.ok_or_else(lost)?;
        seq = Seq(seq.0 + 1);
        let record = OpRecord::bind(op, seq, prev, Timeline::default()).map_err(loom::Refusal::from)?;
        prev = record.hash;
        imported.operations.push(record);
        imported.positions.extend(plan.positions);
        for (place, node) in (0..).zip(plan.nodes) {
            let short_id = short_id(node.id, &mut short_ids);
            imported.nodes.push(NodeRow { node, seq, place, short_id, purged: false });
        }
    }
    Ok(imported)
}

/// The first short id that is free in the tree.
fn short_id(id: NodeId, taken: &mut BTreeSet<String>) -> String {
    let free = loom::short_id::candidates(id.to_bytes()).find(|short| !taken.contains(short));
    let short = free.unwrap_or_default();
    taken.insert(short.clone());
    short
}
