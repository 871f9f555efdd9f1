//! Making a tree: its row, the genesis, the view `main`.

use std::sync::Arc;

use crate::cell::{CellKey, CellValue};
use crate::content::Counts;
use crate::digest::{Digest, PathDigest};
use crate::id::{Entropy, NodeId, ViewName};
use crate::node::{Author, Node, Trust};
use crate::operation::{OpKind, TimelineEffect};
use crate::plan::{Plan, PlanError, Request, change, operation};
use crate::position::{Position, PositionKind, Sums};
use crate::record::{Links, chain_hash};
use crate::tree::{Mode, TreeOrigin, TreeRow};

/// A tree to be made; its id is that of the request.
#[derive(Debug, Clone)]
pub struct NewTree {
    pub mode: Mode,
    /// Title of the tree; may be empty.
    pub title: String,
    /// The tree it comes from.
    pub origin: Option<TreeOrigin>,
}

pub(super) fn create(request: &Request, new: &NewTree, entropy: &mut Entropy<'_>) -> Result<Plan, PlanError> {
    let id: NodeId = entropy.next(request.now);
    let root = id.as_position();
    let mut genesis = Node {
        id,
        tree: request.tree,
        position: root,
        author: Author::owner(),
        role: None,
        created_at: request.now,
        content: Arc::default(),
        edited_from: None,
        quote: None,
        origins: Vec::new(),
        source: None,
        generation: None,
        trust: Trust::Owner,
        finish: None,
        counts: Counts::default(),
        term: PathDigest::term(root, ""),
        kept_hash: None,
        chain_hash: Digest::ZERO,
    };
    genesis.chain_hash = chain_hash(&genesis, Links::default())?;
    let position = Position {
        id: root,
        tree: request.tree,
        parent: None,
        kind: PositionKind::Path,
        role: None,
        depth: 0,
        jump: root,
        above: Sums::default(),
        own: Sums { counts: genesis.counts, digest: genesis.term },
    };
    let main = ViewName::default();
    let mut op = operation(request, OpKind::Create, TimelineEffect::None);
    op.view = None;
    op.nodes = vec![(id, genesis.chain_hash)];
    op.cells = vec![
        change(
            CellKey::View { view: main.clone() },
            CellValue::None,
            CellValue::Text(request.author.id.clone()),
        ),
        change(CellKey::Tip { view: main }, CellValue::None, CellValue::Position(root)),
    ];
    if !new.title.is_empty() {
        op.cells.push(change(CellKey::Title, CellValue::None, CellValue::Text(new.title.clone())));
    }
    let tree = TreeRow {
        id: request.tree,
        mode: new.mode,
        root,
        created_at: request.now,
        origin: new.origin.clone(),
    };
    Ok(Plan {
        tree: Some(tree),
        positions: vec![position],
        nodes: vec![genesis],
        drafts: Vec::new(),
        op: Some(op),
    })
}
