//! Showing nodes: the path of a view from its tip upwards, or every node in the order it was made.
//!
//! A page costs what it holds. What was chosen on the path (selections, keeps, what is pruned or left out) is read
//! once a call, of a node off the path with the node; each node then takes a fixed number of reads, and one search
//! along jump pointers where drift is asked for (spec: loom §3).

use std::collections::{BTreeMap, BTreeSet};

use loom::attribution::Attributions;
use loom::drift::is_drifted;
use loom::path::{ViewOverrides, ancestor_at, is_ancestor, position};
use loom::render::window;
use loom::source;
use loom::{
    AuthorKind, CellKey, NodeId, NodeRow, OpTarget, Position, PositionId, PositionKind, Refusal, RowError,
    Slot, TextOffset, TreeReader, ViewName, resolve,
};

use super::mark::{draft_at, stored_head, stored_note};
use super::telling::{tree_argument, view_option};
use super::{look, page_size};
use crate::app::{App, NamedNode};
use crate::args::tree::{PAGE, ShowArgs};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{AnnotationShown, BlobShown, NodeShown, StoredText, ToolCallShown, TreeShown};
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
    let around = match &args.around {
        Some(name) => Some(app.node_anywhere(asker, Some(tree), name).await?.position),
        None => None,
    };
    let node = match &args.node {
        Some(name) => Some(app.node_anywhere(asker, Some(tree), name).await?),
        None => None,
    };
    let limit = page_size(app, args.limit)?;
    let wanted = Wanted { view: view.clone(), node, from, around, depth: args.depth, limit };
    let (all, unfolded) = (args.all || around.is_some(), around.is_some());
    let imports = app.imports(asker, tree).await?;
    let page = look(app, asker, tree, &view, move |rows, tip| {
        naming(rows, &imports, |rows| {
            let page = match (&wanted.node, wanted.around) {
                (Some(node), _) => alone(rows, tip, node, &wanted).map(Ok),
                (None, Some(around)) => surroundings(rows, tip, around, &wanted).map(Ok),
                _ if args.all => every(rows, tip, &wanted).map(Ok),
                _ => path(rows, tip, &wanted),
            };
            match page? {
                Ok(page) => page.completed(rows, &wanted.view, tip).map(Ok),
                refused => Ok(refused),
            }
        })
    });
    let page = page.await??;
    let Page { nodes, next, next_short, head, note, draft, window, is_cut, .. } = page;
    let cut_at = args.depth.filter(|_| is_cut);
    let more = match next_short {
        Some(from) => Some(next_page(&tree_argument(app, asker, tree).await?, &args, &view, &from)),
        None => None,
    };
    let (window, window_inside) = (window.map(|(at, _)| at), window.is_some_and(|(_, inside)| inside));
    let shown = TreeShown {
        tree,
        nodes,
        next,
        more,
        cut_at,
        head,
        note,
        draft,
        window,
        window_inside,
        all,
        unfolded,
        whole: args.node.is_some(),
    };
    Ok(CommandOutcome::Shown(shown))
}

/// The command that shows the page behind this one.
fn next_page(tree: &str, args: &ShowArgs, view: &ViewName, from: &str) -> String {
    let mut command = format!("drawloom tree show {tree}{}", view_option(view));
    if args.all {
        command += " --all";
    }
    if let Some(depth) = args.depth {
        command += &format!(" --depth {depth}");
    }
    if args.limit != PAGE {
        command += &format!(" --limit {}", args.limit);
    }
    command + " --from " + from
}

/// What a page is to hold.
struct Wanted {
    view: ViewName,
    /// The only node of the page.
    node: Option<NamedNode>,
    from: Option<NamedNode>,
    around: Option<PositionId>,
    depth: Option<u32>,
    limit: usize,
}

/// A page, and the `--from` of the one after it.
#[derive(Default)]
struct Page {
    nodes: Vec<NodeShown>,
    next: Option<String>,
    /// `next` by its short id.
    next_short: Option<String>,
    head: Option<StoredText>,
    note: Option<StoredText>,
    draft: Option<StoredText>,
    /// Where what the model sees begins, and whether that is inside of the passage there.
    window: Option<(PositionId, bool)>,
    /// Whether it ends where the path does, or the tree.
    is_last: bool,
    /// Whether something is deeper than was asked for.
    is_cut: bool,
}

impl Page {
    /// With tags and remarks of its nodes, and what stands around the path.
    fn completed(self, rows: &dyn TreeReader, view: &ViewName, tip: PositionId) -> Result<Self, RowError> {
        let window = window_start(rows, view, tip, &self.nodes)?;
        let draft = if self.is_last { draft_at(rows, view, Slot::Buffer)? } else { None };
        let next = self.next.as_ref().and_then(|next| next.parse::<NodeId>().ok());
        let next = next.map(|node| rows.node(node)).transpose()?.flatten();
        Ok(Self {
            next_short: next.map(|row| row.short_id),
            nodes: with_marks(rows, view, self.nodes)?,
            head: stored_head(rows, view)?,
            note: stored_note(rows, view)?,
            draft,
            window,
            ..self
        })
    }
}

/// Where what the model sees begins: where the window was moved to, or where that of the last generation of the page since
/// began. None where that is the beginning of the tree, or off the path.
fn window_start(
    rows: &dyn TreeReader,
    view: &ViewName,
    tip: PositionId,
    nodes: &[NodeShown],
) -> Result<Option<(PositionId, bool)>, RowError> {
    let moved = rows.cell(&CellKey::WindowStart { view: view.clone() })?;
    let mut start = moved.value.as_place();
    let made = nodes.iter().rev().find(|node| node.active && node.author_kind == AuthorKind::Model);
    if let Some(made) = made
        && let Some(row) = rows.node(made.id)?
        && (start.is_none() || moved.seq < row.seq)
        && let Some(generation) = row.node.generation
        && let Some(run) = rows.generation(generation)?.and_then(|row| row.runs.last().copied())
        && start.is_none_or(|start| start.position != run.from)
    {
        // One with room for more saw more.
        start = Some(TextOffset { position: run.from, at: 0 });
    }
    let Some(start) = start else { return Ok(None) };
    let Some(at) = rows.position(start.position)? else { return Ok(None) };
    let (is_on_path, is_inside) = (is_ancestor(rows, at.id, tip)?, start.at > 0);
    Ok(((at.depth > 1 || is_inside) && is_on_path).then_some((at.id, is_inside)))
}

/// Nodes with the tags and remarks of their positions.
pub(super) fn with_marks(
    rows: &dyn TreeReader,
    view: &ViewName,
    mut nodes: Vec<NodeShown>,
) -> Result<Vec<NodeShown>, RowError> {
    let marks = marks(rows, view, nodes.iter().map(|node| node.position))?;
    for node in &mut nodes {
        (node.tags, node.annotations) = marks.get(&node.position).cloned().unwrap_or_default();
    }
    Ok(nodes)
}

type Marks = BTreeMap<PositionId, (Vec<String>, Vec<AnnotationShown>)>;

/// The tags and remarks of positions, read in as many rounds for many as for one; a version of a remark costs more.
pub(super) fn marks(
    rows: &dyn TreeReader,
    view: &ViewName,
    at: impl Iterator<Item = PositionId>,
) -> Result<Marks, RowError> {
    let at: Vec<PositionId> = at.collect::<BTreeSet<_>>().into_iter().collect();
    let mut marks = Marks::new();
    for (position, tag) in rows.tags(&at)? {
        marks.entry(position).or_default().0.push(tag);
    }
    let remarks = rows.annotations(Some(&at))?;
    let shown = remarks.iter().map(|remark| resolve::shown(rows, view, remark.id));
    let shown = shown.collect::<Result<Vec<_>, RowError>>()?;
    for (remark, row) in remarks.iter().zip(rows.nodes(&shown)?) {
        let Some(parent) = remark.parent.filter(|_| !row.purged) else { continue };
        marks.entry(parent).or_default().1.push(AnnotationShown {
            node: row.node.id,
            short_id: row.short_id.clone(),
            text: row.node.text().into_owned(),
            author: row.node.author.id,
            author_kind: row.node.author.kind,
        });
    }
    Ok(marks)
}

/// The path that ends at the tip or at `from`: its last rows, in reading order.
fn path(rows: &dyn TreeReader, tip: PositionId, wanted: &Wanted) -> Result<Result<Page, Refusal>, RowError> {
    let mut end = position(rows, wanted.from.as_ref().map_or(tip, |from| from.position))?;
    if end.kind != PositionKind::Path {
        return Ok(Err(Refusal::OffPath(end.id)));
    }
    let mut is_cut = false;
    if let Some(depth) = wanted.depth.filter(|depth| *depth < end.depth)
        && let Some(above) = ancestor_at(rows, end.id, depth)?
    {
        (end, is_cut) = (above, true);
    }
    let mut reader = Reader { tip, ..Reader::read(rows, &wanted.view, end.id)? };
    let mut nodes = Vec::new();
    for passage in window(rows, &wanted.view, &reader.path, None, wanted.limit)? {
        let pending = passage.pending.then_some(passage.text);
        nodes.push(reader.shown(&passage.position, passage.row, pending, true)?);
    }
    let next = nodes.first().and_then(|first| first.parent).map(|parent| parent.to_string());
    let is_last = end.id == tip;
    Ok(Ok(Page { nodes, next, is_last, is_cut, ..Page::default() }))
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
    let (mut looked_at, mut is_cut) = (0, false);
    while nodes.len() < wanted.limit && looked_at < MAX_LOOKED_AT {
        let page = rows.nodes_in_order(last.map(|(_, order)| order), wanted.limit - nodes.len())?;
        let Some(end) = page.last() else {
            return Ok(Page { nodes, is_last: true, is_cut, ..Page::default() });
        };
        last = Some((end.node.id, (end.seq, end.place)));
        looked_at += page.len();
        for row in page {
            let at = position(rows, row.node.position)?;
            if wanted.depth.is_some_and(|depth| at.depth > depth) {
                is_cut = true;
                continue;
            }
            let text = pending.remove(&row.node.id);
            nodes.push(reader.shown(&at, row, text, false)?);
        }
    }
    let more = !rows.nodes_in_order(last.map(|(_, order)| order), 1)?.is_empty();
    let next = last.filter(|_| more).map(|(node, _)| node.to_string());
    Ok(Page { nodes, next, is_last: !more, is_cut, ..Page::default() })
}

/// One node, in the version that was named.
fn alone(
    rows: &dyn TreeReader,
    tip: PositionId,
    node: &NamedNode,
    wanted: &Wanted,
) -> Result<Page, RowError> {
    let at = position(rows, node.position)?;
    let shown = Reader::read(rows, &wanted.view, tip)?.at(&at, node.node)?;
    Ok(Page { nodes: vec![shown], ..Page::default() })
}

/// Levels above and below a node that are shown around it.
const LEVELS: u32 = 3;

/// What stands around a position, from the top: above it, and below what stands above it, as far as there is room.
fn surroundings(
    rows: &dyn TreeReader,
    tip: PositionId,
    around: PositionId,
    wanted: &Wanted,
) -> Result<Page, RowError> {
    let levels = wanted.depth.unwrap_or(LEVELS);
    let at = position(rows, around)?;
    let top = ancestor_at(rows, at.id, at.depth.saturating_sub(levels))?.unwrap_or_else(|| at.clone());
    let mut reader = Reader::read(rows, &wanted.view, tip)?;
    let mut level = vec![top];
    let mut nodes = Vec::new();
    while !level.is_empty() {
        let mut below = Vec::new();
        for above in std::mem::take(&mut level) {
            if nodes.len() >= wanted.limit {
                break;
            }
            nodes.push(reader.at(&above, resolve::shown(rows, &wanted.view, above.id)?)?);
            if above.depth < at.depth.saturating_add(levels) {
                let mut children = rows.children(above.id, None, wanted.limit)?;
                children.retain(|child| child.kind == PositionKind::Path);
                below.extend(children.into_iter().rev());
            }
        }
        level = below;
    }
    Ok(Page { nodes, ..Page::default() })
}

/// The texts of pending edits, by the version each is an edit of.
fn pending_edits(rows: &dyn TreeReader, view: &ViewName) -> Result<BTreeMap<NodeId, String>, RowError> {
    let pending = loom::render::pending_edits(rows, view)?;
    pending.into_iter().map(|(at, text)| Ok((resolve::shown(rows, view, at)?, text))).collect()
}

/// What is the same for all nodes of a call, and what one node tells about the next.
pub(super) struct Reader<'a> {
    rows: &'a dyn TreeReader,
    view: ViewName,
    /// The end of the view's path.
    tip: PositionId,
    path: ViewOverrides,
    on_path: Chosen,
    /// Positions already asked whether they, or one above, are pruned.
    hidden: BTreeMap<PositionId, bool>,
    /// Children of positions already counted.
    children: BTreeMap<PositionId, u64>,
    authors: Attributions<'a>,
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
            view: view.clone(),
            tip: end,
            path: ViewOverrides::read(rows, view, end)?,
            on_path: Chosen::read(rows, end)?,
            hidden: BTreeMap::new(),
            children: BTreeMap::new(),
            authors: Attributions::new(rows),
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
        let versions = self.rows.count_versions(at.id)?;
        let shown = on_path || versions == 1 || resolve::shown(self.rows, &self.view, at.id)? == row.node.id;
        let is_whole_path = on_path && self.tip == self.path.tip.id;
        let active = is_whole_path || is_ancestor(self.rows, at.id, self.tip)?;
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
        let mut spans = Vec::new();
        if pending.is_none() && !row.purged && row.node.author.kind == AuthorKind::Human && origin.is_some() {
            spans = self.authors.of(&row)?;
            // What is all of one kind is told by the node's author.
            if spans.iter().all(|span| span.kind == AuthorKind::Human) {
                spans.clear();
            }
        }
        let is_pruned =
            [version, OpTarget::Position(at.id)].iter().any(|target| chosen.pruned.contains(target));
        Ok(NodeShown {
            id: row.node.id,
            position: at.id,
            parent: at.parent,
            depth: at.depth,
            kind: at.kind,
            role: at.role,
            versions,
            shown,
            active,
            siblings,
            drifted: at.kind == PositionKind::Path && is_drifted(self.rows, &self.path, at, &row)?,
            pruned: hidden || is_pruned,
            below_pruned: hidden && !is_pruned,
            excluded: [version, OpTarget::Position(at.id)]
                .iter()
                .any(|target| chosen.excluded.contains(target)),
            pending: pending.is_some(),
            spans,
            media: BlobShown::of(&row.node.content),
            calls: ToolCallShown::of(&row.node.content),
            text: pending.unwrap_or_else(|| row.node.said().into_owned()),
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
