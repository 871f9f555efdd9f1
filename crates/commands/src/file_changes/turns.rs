//! Changes of files by the turns of a conversation.

use std::collections::{BTreeMap, BTreeSet};

use loom::{NodeId, Seq, TreeId, TreeReader};
use store::FileChange;

use super::standing;
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// The changes that stand, a turn each, the newest first.
pub(super) async fn by_turn(
    app: &App,
    asker: &Asker,
    tree: TreeId,
) -> Result<Vec<Vec<FileChange>>, CommandError> {
    let all = standing(app, asker, tree).await?;
    let turns = turns_of(app, asker, tree, all.iter().map(|change| change.id.call.answer).collect()).await?;
    let mut found: BTreeMap<Option<Seq>, Vec<FileChange>> = BTreeMap::new();
    for change in all {
        let turn = turns.get(&change.id.call.answer).copied().flatten();
        found.entry(turn).or_default().push(change);
    }
    Ok(found.into_values().rev().collect())
}

/// The operations that began the turns of nodes.
pub(super) async fn turns_of(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    nodes: BTreeSet<NodeId>,
) -> Result<BTreeMap<NodeId, Option<Seq>>, CommandError> {
    let read = move |rows: &dyn TreeReader| {
        let turns = nodes.into_iter().map(|node| Ok((node, turn_of(rows, node)?)));
        turns.collect::<Result<BTreeMap<_, _>, loom::RowError>>()
    };
    app.read(asker, tree, read).await
}

fn turn_of(rows: &dyn TreeReader, node: NodeId) -> Result<Option<Seq>, loom::RowError> {
    let Some(row) = rows.node(node)? else { return Ok(None) };
    Ok(rows.operation(row.seq)?.map(|record| record.turn()))
}
