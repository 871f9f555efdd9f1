use loom::memory::MemoryTree;
use loom::path::ancestor_at;
use loom::{Position, PositionId, TreeReader};

/// The positions of the path that ends at `own`, each with its parent, and each with its jump, replaced by the position
/// that stands as deep on the path that ends at `other`. What both paths have in common is left out.
pub fn crossings(tree: &MemoryTree, own: PositionId, other: PositionId) -> Vec<Position> {
    let depth = |id| tree.position(id).unwrap().unwrap().depth;
    let across = |id: PositionId| ancestor_at(tree, other, depth(id)).unwrap().map(|found| found.id);
    let mut all = Vec::new();
    for here in tree.upwards(own, usize::MAX).unwrap() {
        let parent = here.parent.map(|id| Position { parent: across(id), ..here.clone() });
        let jump = across(here.jump).map(|jump| Position { jump, ..here.clone() });
        all.extend([parent, jump].into_iter().flatten().filter(|damaged| *damaged != here));
    }
    all
}
