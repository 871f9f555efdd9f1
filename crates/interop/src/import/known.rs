//! Adding to a tree that is here what a file has beyond it.

use std::collections::BTreeSet;

use loom::cell::CellScope;
use loom::operation::TimelineEffect;
use loom::reader::Order;
use loom::{
    CellChange, CellKey, CellValue, Millis, Node, NodeRow, OpKind, OpTarget, Operation, Plan, Position, Seq,
    TreeReader, ViewName,
};

use super::{ImportChange, ImportPlan, ImportRefusal};
use crate::own::ImportedFile;

/// Rows read at a time.
const PAGE: usize = 256;

/// Calls `each` for every node, in the order of the tree.
pub(super) fn each_node<E: From<loom::RowError>>(
    rows: &dyn TreeReader,
    mut each: impl FnMut(NodeRow) -> Result<(), E>,
) -> Result<(), E> {
    let mut after: Option<Order> = None;
    loop {
        let page = rows.nodes_in_order(after, PAGE)?;
        let full = page.len() == PAGE;
        after = page.last().map(|row| (row.seq, row.place));
        page.into_iter().try_for_each(&mut each)?;
        if !full {
            return Ok(());
        }
    }
}

pub(super) fn add(
    file: &ImportedFile,
    rows: &dyn TreeReader,
    agent: &str,
    now: Millis,
    plan: &mut ImportPlan,
) -> Result<(), ImportRefusal> {
    let stored = rows.tree()?;
    if stored != file.header.tree {
        return Err(ImportRefusal::Differs { what: "tree", id: stored.id.to_string() });
    }
    let mut added = Plan::default();
    let mut cells = Vec::new();
    let views: Vec<ViewName> = rows
        .cells(&CellScope::Views)?
        .into_iter()
        .filter_map(|(key, _)| if let CellKey::View { view } = key { Some(view) } else { None })
        .collect();
    each_node(&file.tree, |row| -> Result<(), ImportRefusal> {
        let id = row.node.position;
        let position = file.tree.position(id)?.ok_or_else(|| loom::RowError::missing("position", id))?;
        if row.node.is_original() && is_new_position(rows, &position)? {
            added.positions.push(position);
        }
        match rows.node(row.node.id)? {
            Some(held) if same(&held, &row) => {
                let is_missing = held.purged && !row.purged;
                *(if is_missing { &mut plan.missing_texts } else { &mut plan.skipped }) += 1;
            }
            Some(_) => return Err(ImportRefusal::Differs { what: "node", id: row.node.id.to_string() }),
            None => {
                cells.extend(kept_out(rows, &views, &row)?);
                added.nodes.push(row.node);
            }
        }
        Ok(())
    })?;
    plan.history = operations_not_here(file, rows)?;
    plan.missing_requests = requests_not_here(file, rows, &added.nodes)?;
    if added.nodes.is_empty() {
        plan.change = ImportChange::Nothing;
        return Ok(());
    }
    added.op = Some(Operation {
        tree: stored.id,
        agent: agent.to_owned(),
        view: None,
        kind: OpKind::Import,
        at: now,
        cells,
        nodes: added.nodes.iter().map(|node| (node.id, node.chain_hash)).collect(),
        skipped: Vec::new(),
        timeline: TimelineEffect::None,
    });
    plan.change = ImportChange::Added(Box::new(added));
    Ok(())
}

fn is_new_position(rows: &dyn TreeReader, position: &Position) -> Result<bool, ImportRefusal> {
    match rows.position(position.id)? {
        None => Ok(true),
        Some(held) if held == *position => Ok(false),
        Some(_) => Err(ImportRefusal::Differs { what: "position", id: position.id.to_string() }),
    }
}

/// Whether two rows are the same node. Where the text is gone on one side the hashes decide: what was forgotten
/// here stays forgotten. Trust, short id and place in the log are the store's own.
fn same(held: &NodeRow, read: &NodeRow) -> bool {
    let (a, b) = (&held.node, &read.node);
    let text =
        held.purged || read.purged || (a.content == b.content && a.counts == b.counts && a.term == b.term);
    text && a.chain_hash == b.chain_hash
        && a.content_hash() == b.content_hash()
        && a.position == b.position
        && a.author == b.author
        && a.role == b.role
        && a.created_at == b.created_at
        && a.edited_from == b.edited_from
        && a.quote == b.quote
        && a.origins == b.origins
        && a.source == b.source
        && a.generation == b.generation
        && a.finish == b.finish
}

/// A view shows the newest visible version where the one it selected, or else the original, is pruned. There a
/// version that arrives would be shown unasked, so it arrives pruned: a person restores and selects it.
fn kept_out(
    rows: &dyn TreeReader,
    views: &[ViewName],
    row: &NodeRow,
) -> Result<Option<CellChange>, ImportRefusal> {
    let position = row.node.position;
    if row.node.is_original() || rows.position(position)?.is_none() {
        return Ok(None);
    }
    let is_pruned = |version| -> Result<bool, loom::RowError> {
        Ok(rows.cell(&CellKey::Pruned { target: OpTarget::Version(version) })?.value.is_set())
    };
    let mut shows_newest = is_pruned(position.original())?;
    for view in views {
        let selected = rows.cell(&CellKey::Selected { view: view.clone(), position })?.value.as_node();
        shows_newest |= selected.map_or(Ok(false), is_pruned)?;
    }
    let key = CellKey::Pruned { target: OpTarget::Version(row.node.id) };
    Ok(shows_newest.then_some(CellChange { key, old: CellValue::None, new: CellValue::Set }))
}

/// Number of operations of the file that are not in the stored log.
fn operations_not_here(file: &ImportedFile, rows: &dyn TreeReader) -> Result<u64, ImportRefusal> {
    let (mut last, mut other) = (Seq(0), 0);
    loop {
        let page = file.tree.operations(last, PAGE)?;
        for record in &page {
            let held = rows.operation(record.seq)?;
            other += u64::from(held.is_none_or(|held| held.hash != record.hash));
        }
        match page.last() {
            Some(record) if page.len() == PAGE => last = record.seq,
            _ => return Ok(other),
        }
    }
}

/// Number of manifests, responses and bodies of the file that are not stored and do not come with nodes that are added.
fn requests_not_here(
    file: &ImportedFile,
    rows: &dyn TreeReader,
    added: &[Node],
) -> Result<u64, ImportRefusal> {
    let materials = &file.materials;
    let comes: BTreeSet<_> = added.iter().filter_map(|node| node.generation).collect();
    let (mut responses, mut digests) = (0, BTreeSet::new());
    for (id, held) in &file.generations {
        if comes.contains(id) {
            continue;
        }
        let received = held.response.and_then(|digest| materials.responses.get(&digest));
        if received.is_some_and(|received| !received.purged) && !rows.has_answer(*id)? {
            responses += 1;
        }
        let manifest = held.row.manifest;
        if materials.manifests.contains_key(&manifest) && rows.manifest(manifest)?.is_none() {
            digests.insert(manifest);
        }
        let bodies = materials.bodies_of.get(&manifest).into_iter().flatten().map(|body| body.digest);
        for body in bodies.filter(|body| materials.bodies.contains_key(body)) {
            if !rows.has_body(body)? {
                digests.insert(body);
            }
        }
    }
    Ok(responses + digests.len() as u64)
}
