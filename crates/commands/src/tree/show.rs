//! Showing nodes: the path of a view from its tip upwards, or every node in the order it was made.
//!
//! A page costs what it holds. What was chosen on the path (selections, keeps, what is pruned or left out) is read
//! once a call, of a node off the path with the node; each node then takes a fixed number of reads, and one search
//! along jump pointers where drift is asked for (spec: loom §3).

use std::collections::{BTreeMap, BTreeSet};

use loom::drift::is_drifted;
use loom::path::{ViewOverrides, ancestor_at, is_ancestor, position};
use loom::render::window;
use loom::source;
use loom::{
    CellKey, NodeId, NodeRow, OpTarget, Position, PositionId, PositionKind, Refusal, RowError, Slot,
    TreeReader, ViewName, resolve,
};

use super::mark::{draft_at, stored_head, stored_note};
use super::{look, page_size};
use crate::app::{App, NamedNode};
use crate::args::tree::ShowArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{AnnotationShown, BlobShown, NodeShown, StoredText, TreeShown};
use crate::rights::Asker;
use crate::transfer::naming;

/// Nodes looked at for a page of `--all --depth`: where few are so high up, the page is short and says where to
/// go on.
const MAX_LOOKED_AT: usize = 5_000;

pub(super) async fn show(app: &App, asker: &Asker, args: ShowArgs) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let from = match &args.from {
        Some(name) => Some(app.node_anywhere(asker, Some(tree), name).await?),
        None => None,
    };
    let limit = page_size(app, args.limit)?;
    let wanted = Wanted { view: view.clone(), from, depth: args.depth, limit };
    let imports = app.imports(asker, tree).await?;
    let page = look(app, asker, tree, &view, move |rows, tip| {
        naming(rows, &imports, |rows| {
            let page = if args.all { every(rows, tip, &wanted).map(Ok) } else { path(rows, tip, &wanted) };
            match page? {
                Ok(page) => page.completed(rows, &wanted.view).map(Ok),
                refused => Ok(refused),
            }
        })
    });
    let page = page.await??;
    let Page { nodes, next, head, note, draft, .. } = page;
    Ok(CommandOutcome::Shown(TreeShown { tree, nodes, next, head, note, draft }))
}

/// What a page is to hold.
struct Wanted {
    view: ViewName,
    from: Option<NamedNode>,
    depth: Option<u32>,
    limit: usize,
}

/// A page, and the `--from` of the one after it.
#[derive(Default)]
struct Page {
    nodes: Vec<NodeShown>,
    next: Option<String>,
    head: Option<StoredText>,
    note: Option<StoredText>,
    draft: Option<StoredText>,
    /// Whether it ends where the path does, or the tree.
    is_last: bool,
}

impl Page {
    /// With tags and remarks of its nodes, and what stands around the path.
    fn completed(self, rows: &dyn TreeReader, view: &ViewName) -> Result<Self, RowError> {
        let draft = if self.is_last { draft_at(rows, view, Slot::Buffer)? } else { None };
        Ok(Self {
            nodes: with_marks(rows, self.nodes)?,
            head: stored_head(rows, view)?,
            note: stored_note(rows, view)?,
            draft,
            ..self
        })
    }
}

/// Nodes with the tags and remarks of their positions, read in as many rounds for many as for one.
pub(super) fn with_marks(
    rows: &dyn TreeReader,
    mut nodes: Vec<NodeShown>,
) -> Result<Vec<NodeShown>, RowError> {
    let at: BTreeSet<PositionId> = nodes.iter().map(|node| node.position).collect();
    let at: Vec<PositionId> = at.into_iter().collect();
    let mut tags = BTreeMap::<PositionId, Vec<String>>::new();
    for (position, tag) in rows.tags(&at)? {
        tags.entry(position).or_default().push(tag);
    }
    let hung = rows.annotations(Some(&at))?;
    let originals: Vec<NodeId> = hung.iter().map(|remark| remark.id.original()).collect();
    let mut remarks = BTreeMap::<PositionId, Vec<AnnotationShown>>::new();
    for (remark, row) in hung.iter().zip(rows.nodes(&originals)?) {
        let Some(parent) = remark.parent.filter(|_| !row.purged) else { continue };
        remarks.entry(parent).or_default().push(AnnotationShown {
            node: row.node.id,
            short_id: row.short_id.clone(),
            text: row.node.text().into_owned(),
            author: row.node.author.id,
            author_kind: row.node.author.kind,
        });
    }
    for node in &mut nodes {
        node.tags = tags.get(&node.position).cloned().unwrap_or_default();
        node.annotations = remarks.get(&node.position).cloned().unwrap_or_default();
    }
    Ok(nodes)
}

/// The path that ends at the tip or at `from`: its last rows, in reading order.
fn path(rows: &dyn TreeReader, tip: PositionId, wanted: &Wanted) -> Result<Result<Page, Refusal>, RowError> {
    let mut end = position(rows, wanted.from.as_ref().map_or(tip, |from| from.position))?;
    if end.kind != PositionKind::Path {
        return Ok(Err(Refusal::OffPath(end.id)));
    }
    if let Some(depth) = wanted.depth.filter(|depth| *depth < end.depth)
        && let Some(above) = ancestor_at(rows, end.id, depth)?
    {
        end = above;
    }
    let mut reader = Reader::read(rows, &wanted.view, end.id)?;
    let mut nodes = Vec::new();
    for passage in window(rows, &wanted.view, &reader.path, None, wanted.limit)? {
        let pending = passage.pending.then_some(passage.text);
        nodes.push(reader.shown(&passage.position, passage.row, pending, true)?);
    }
    let next = nodes.first().and_then(|first| first.parent).map(|parent| parent.to_string());
    let is_last = end.id == tip;
    Ok(Ok(Page { nodes, next, is_last, ..Page::default() }))
}

/// Every node of the tree behind `from`, in the order they were made. Drift is that of the view's path: a node
/// is marked where what stands above it on that path is no longer what it followed from.
fn every(rows: &dyn TreeReader, tip: PositionId, wanted: &Wanted) -> Result<Page, RowError> {
    let mut reader = Reader::read(rows, &wanted.view, tip)?;
    let mut pending = pending_edits(rows, &wanted.view)?;
    let mut last = match &wanted.from {
        Some(from) => rows.node(from.node)?.map(|row| (row.node.id, (row.seq, row.place))),
        None => None,
    };
    let mut nodes = Vec::new();
    let mut looked_at = 0;
    while nodes.len() < wanted.limit && looked_at < MAX_LOOKED_AT {
        let page = rows.nodes_in_order(last.map(|(_, order)| order), wanted.limit - nodes.len())?;
        let Some(end) = page.last() else { return Ok(Page { nodes, is_last: true, ..Page::default() }) };
        last = Some((end.node.id, (end.seq, end.place)));
        looked_at += page.len();
        for row in page {
            let at = position(rows, row.node.position)?;
            if wanted.depth.is_none_or(|depth| at.depth <= depth) {
                let text = pending.remove(&row.node.id);
                nodes.push(reader.shown(&at, row, text, false)?);
            }
        }
    }
    let more = !rows.nodes_in_order(last.map(|(_, order)| order), 1)?.is_empty();
    let next = last.filter(|_| more).map(|(node, _)| node.to_string());
    Ok(Page { nodes, next, is_last: !more, ..Page::default() })
}

/// The texts of pending edits, by the version each is an edit of.
fn pending_edits(rows: &dyn TreeReader, view: &ViewName) -> Result<BTreeMap<NodeId, String>, RowError> {
    let mut pending = BTreeMap::new();
    for (slot, draft) in rows.drafts(view)? {
        if let Slot::Edit(at) = slot {
            pending.insert(resolve::shown(rows, view, at)?, draft.text);
        }
    }
    Ok(pending)
}

/// What is the same for all nodes of a call, and what one node tells about the next.
pub(super) struct Reader<'a> {
    rows: &'a dyn TreeReader,
    path: ViewOverrides,
    on_path: Chosen,
    /// Positions already asked whether they, or one above, are pruned.
    hidden: BTreeMap<PositionId, bool>,
    /// Children of positions already counted.
    children: BTreeMap<PositionId, u64>,
}

/// What was chosen on a path.
struct Chosen {
    pruned: BTreeSet<OpTarget>,
    excluded: BTreeSet<OpTarget>,
}

impl Chosen {
    fn read(rows: &dyn TreeReader, end: PositionId) -> Result<Self, RowError> {
        let (mut pruned, mut excluded) = (BTreeSet::new(), BTreeSet::new());
        for (key, _) in rows.choices(None, end)?.into_iter().filter(|(_, cell)| cell.value.is_set()) {
            match key {
                CellKey::Pruned { target } => drop(pruned.insert(target)),
                CellKey::Excluded { target } => drop(excluded.insert(target)),
                _ => {}
            }
        }
        Ok(Self { pruned, excluded })
    }
}

impl<'a> Reader<'a> {
    pub(super) fn read(rows: &'a dyn TreeReader, view: &ViewName, end: PositionId) -> Result<Self, RowError> {
        Ok(Self {
            rows,
            path: ViewOverrides::read(rows, view, end)?,
            on_path: Chosen::read(rows, end)?,
            hidden: BTreeMap::new(),
            children: BTreeMap::new(),
        })
    }

    /// A node at a position, wherever that is, without pending edits.
    pub(super) fn at(&mut self, at: &Position, node: NodeId) -> Result<NodeShown, RowError> {
        let row = self.rows.node(node)?.ok_or_else(|| RowError::missing("node", node))?;
        self.shown(at, row, None, false)
    }

    /// A node as shown, with the text of its pending edit if there is one.
    fn shown(
        &mut self,
        at: &Position,
        row: NodeRow,
        pending: Option<String>,
        on_path: bool,
    ) -> Result<NodeShown, RowError> {
        let siblings = self.siblings(at)?;
        let bookmark = self.rows.cell(&CellKey::Bookmark { position: at.id })?.value;
        let origin = source::origin_of(self.rows, &row.node)?;
        let version = OpTarget::Version(row.node.id);
        let (hidden, own);
        let chosen = if on_path {
            hidden = self.is_hidden(at)?;
            &self.on_path
        } else {
            own = Chosen::read(self.rows, at.id)?;
            hidden = own.pruned.iter().any(|target| matches!(target, OpTarget::Position(_)));
            &own
        };
        Ok(NodeShown {
            id: row.node.id,
            position: at.id,
            parent: at.parent,
            depth: at.depth,
            kind: at.kind,
            role: at.role,
            versions: self.rows.count_versions(at.id)?,
            siblings,
            drifted: at.kind == PositionKind::Path && is_drifted(self.rows, &self.path, at, &row)?,
            pruned: hidden || chosen.pruned.contains(&version),
            excluded: [version, OpTarget::Position(at.id)]
                .iter()
                .any(|target| chosen.excluded.contains(target)),
            pending: pending.is_some(),
            media: row.node.content.iter().filter_map(BlobShown::of).collect(),
            text: pending.unwrap_or_else(|| row.node.text().into_owned()),
            bookmark: bookmark.as_text().map(str::to_owned),
            tags: Vec::new(),
            annotations: Vec::new(),
            settings: origin.as_ref().map(|origin| origin.settings(self.rows)).transpose()?.flatten(),
            model: origin.map(|origin| origin.model),
            author: row.node.author.id,
            author_kind: row.node.author.kind,
            trust: row.node.trust,
            edited_from: row.node.edited_from,
            finish: row.node.finish,
            created: row.node.created_at.0,
            short_id: row.short_id,
            purged: row.purged,
        })
    }

    /// Siblings, itself included. What is off every path has none.
    fn siblings(&mut self, at: &Position) -> Result<u64, RowError> {
        let Some(parent) = at.parent.filter(|_| at.kind == PositionKind::Path) else { return Ok(1) };
        if let Some(count) = self.children.get(&parent) {
            return Ok(*count);
        }
        let count = self.rows.count_children(parent)?;
        self.children.insert(parent, count);
        Ok(count)
    }

    /// Whether a position of the path, or one above it, is pruned. Passages come from the top, so that mostly the
    /// parent's answer is at hand.
    fn is_hidden(&mut self, at: &Position) -> Result<bool, RowError> {
        let known = at.parent.and_then(|parent| self.hidden.get(&parent).copied());
        let hidden = match known {
            Some(above) => above || self.on_path.pruned.contains(&OpTarget::Position(at.id)),
            None => {
                let mut hidden = false;
                for target in &self.on_path.pruned {
                    let OpTarget::Position(pruned) = *target else { continue };
                    hidden = hidden || is_ancestor(self.rows, pruned, at.id)?;
                }
                hidden
            }
        };
        self.hidden.insert(at.id, hidden);
        Ok(hidden)
    }
}
