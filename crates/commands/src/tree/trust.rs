//! Nodes whose text from outside the owner answers for, and what still taints (spec: security §3).

use std::collections::BTreeSet;

use loom::call_lines::whole_call_lines;
use loom::content::whole_text;
use loom::path::ViewOverrides;
use loom::render::{find_in_window, tip, window_start};
use loom::{Block, CellKey, NodeId, NodeRow, Op, RowError, TreeId, TreeReader, Trust, ViewName, resolve};

use crate::app::App;
use crate::args::tree::TrustArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::{TaintingNode, Trusted};
use crate::rights::Asker;

/// Lines of a text that are shown before its owner answers for it; of a longer one its beginning and its end.
const LINES: usize = 400;

/// Which nodes are trusted, or no more.
pub(crate) struct TrustChoice {
    pub(crate) nodes: Vec<String>,
    pub(crate) off: bool,
    pub(crate) yes: bool,
}

/// `tree trust TREE NODE…`.
pub(crate) async fn trust_nodes(
    app: &App,
    asker: &Asker,
    args: TrustArgs,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let choice = TrustChoice { nodes: args.nodes, off: args.off, yes: args.yes };
    trust_in(app, asker, (tree, &view), choice).await
}

/// Has nodes of a tree count as accepted files do, or as from outside again, and says what taints a view then. Without
/// nodes it only says that. An answer that was made in sight of such a text keeps its own trust.
///
/// # Errors
/// A node that is not there, that is not from outside (or was not trusted so), or that nobody answers for.
pub(crate) async fn trust_in(
    app: &App,
    asker: &Asker,
    (tree, view): (TreeId, &ViewName),
    choice: TrustChoice,
) -> Result<CommandOutcome, CommandError> {
    let mut nodes = BTreeSet::new();
    for name in &choice.nodes {
        nodes.insert(app.node_anywhere(asker, Some(tree), name).await?.node);
    }
    let nodes: Vec<NodeId> = nodes.into_iter().collect();
    let changed = if nodes.is_empty() {
        Vec::new()
    } else {
        let (named, off) = (nodes.clone(), choice.off);
        let rows = app.read(asker, tree, move |rows| meant(rows, &named, off)).await??;
        if !choice.off {
            confirm(app, &rows, choice.yes)?;
        }
        app.change(asker, tree, view, Op::Trust { nodes, on: !choice.off }).await?;
        rows.iter().map(shown).collect()
    };
    let view = view.clone();
    let taints = app.read(asker, tree, move |rows| tainting(rows, &view)).await?;
    Ok(CommandOutcome::Trusted(Trusted { tree, on: !choice.off, changed, taints }))
}

/// The nodes, if there is something to change of each.
fn meant(
    rows: &dyn TreeReader,
    nodes: &[NodeId],
    off: bool,
) -> Result<Result<Vec<NodeRow>, CommandError>, RowError> {
    let found = rows.nodes(nodes)?;
    for row in &found {
        let is_trusted = rows.cell(&CellKey::Trusted { node: row.node.id })?.value.is_set()
            && row.node.trust == Trust::Workspace;
        let short_id = &row.short_id;
        if off && !is_trusted {
            let message = format!("{short_id} was not trusted by itself");
            return Ok(Err(CommandError::refused("not_trusted", message, "name a node that was")));
        }
        if !off && row.node.trust != Trust::Outside {
            let message = format!("{short_id} is not from outside: it taints nothing");
            let hint = "`/trust` in a conversation lists what taints";
            return Ok(Err(CommandError::refused("not_outside", message, hint)));
        }
    }
    Ok(Ok(found))
}

/// Shows the texts and asks whether the owner answers for them, unless a yes was given.
fn confirm(app: &App, nodes: &[NodeRow], yes: bool) -> Result<(), CommandError> {
    let lines: Vec<String> = nodes.iter().flat_map(with_text).collect();
    if yes {
        return Ok(());
    }
    let question = "Answer for what it says, as if it were a file of yours?";
    let message = "nobody answered for it, and it stays from outside";
    let confirmed = app.frontend.confirm_shown(&lines, question);
    confirmed.require("not_confirmed", message, "answer yes at a terminal, or give --yes")
}

/// A node with all that it says: its text, and its calls with their arguments.
fn with_text(row: &NodeRow) -> Vec<String> {
    let said = whole_text(&row.node.content);
    let calls = row.node.content.iter().filter_map(|block| match block {
        Block::ToolCall { name, arguments, .. } => Some(whole_call_lines(name, arguments)),
        _ => None,
    });
    let text: Vec<String> = said.lines().map(str::to_owned).chain(calls.flatten()).collect();
    let mut lines = vec![shown(row).line()];
    let left = text.len().saturating_sub(LINES);
    let (head, rest) = text.split_at(text.len().min(LINES / 2));
    lines.extend(head.iter().map(|line| format!("  {line}")));
    if left > 0 {
        let hint = "`drawloom tree text` has it whole";
        lines.push(format!("  … {left} of its {} lines are not shown here: {hint}", text.len()));
    }
    lines.extend(rest[left..].iter().map(|line| format!("  {line}")));
    lines
}

/// What of the window of a view is from outside, from the top, head and note behind it.
pub(crate) fn tainting(rows: &dyn TreeReader, view: &ViewName) -> Result<Vec<TaintingNode>, RowError> {
    let path = ViewOverrides::read(rows, view, tip(rows, view)?)?;
    let start = window_start(rows, view, &path)?;
    let along = rows.injections(start.id.original(), None)?;
    let along = along.iter().filter(|shown| shown.trust == Trust::Outside);
    let injected: BTreeSet<NodeId> = along.map(|shown| shown.node).collect();
    let is_outside = |row: &NodeRow| {
        let says = !row.purged && !row.node.content.is_empty();
        says && row.node.trust == Trust::Outside || injected.contains(&row.node.id)
    };
    let mut found = Vec::new();
    find_in_window(rows, view, &path, |passage| {
        if !passage.excluded && is_outside(&passage.row) {
            found.push(shown(&passage.row));
        }
        None::<()>
    })?;
    found.reverse();
    for key in [CellKey::Head, CellKey::Note] {
        let Some(position) = rows.cell(&key)?.value.as_position() else { continue };
        let row = rows.node(resolve::shown(rows, view, position)?)?;
        found.extend(row.filter(|row| is_outside(row)).as_ref().map(shown));
    }
    Ok(found)
}

fn shown(row: &NodeRow) -> TaintingNode {
    let said = row.node.said();
    TaintingNode {
        node: row.node.id,
        short_id: row.short_id.clone(),
        author: row.node.author.id.clone(),
        chars: said.chars().count(),
        begins: text::title::title(&said),
    }
}
