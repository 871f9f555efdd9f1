//! What is said about passages without changing them: flags, marks, remarks; and the tree's head and note.

use loom::{CellKey, KeepScope, Op, OpTarget, Refusal, RowError, resolve};

use super::{label, look};
use crate::app::{App, NamedNode};
use crate::args::tree::{Flag, KeepArgs, Mark, Pin};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::tree::NodeDone;
use crate::rights::Asker;

/// Accepts what stands above a passage as its basis.
pub(super) async fn keep(app: &App, asker: &Asker, args: KeepArgs) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let scope = if args.below { KeepScope::Below } else { KeepScope::Here };
    let op = Op::Keep { position: named.position, scope };
    marked(app, asker, named, op).await
}

/// Prunes, restores, excludes or includes a passage, or one version of it.
pub(super) async fn flag(
    app: &App,
    asker: &Asker,
    args: Flag,
    op: fn(OpTarget) -> Op,
) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let target =
        if args.version { OpTarget::Version(named.node) } else { OpTarget::Position(named.position) };
    marked(app, asker, named, op(target)).await
}

/// Sets or removes the bookmark of a passage.
pub(super) async fn bookmark(app: &App, asker: &Asker, args: Mark) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let title = match args.remove {
        true => None,
        false => Some(given(label(app, "bookmark", &args.text)?, "give the bookmark a title, or --remove")?),
    };
    let op = Op::Bookmark { position: named.position, title };
    marked(app, asker, named, op).await
}

/// Sets or removes a tag of a passage.
pub(super) async fn tag(app: &App, asker: &Asker, args: Mark) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let tag = given(label(app, "tag", &args.text)?, "name the tag")?;
    let op = Op::Tag { position: named.position, tag, on: !args.remove };
    marked(app, asker, named, op).await
}

/// Hangs a remark on a passage. The result names the remark.
pub(super) async fn annotate(app: &App, asker: &Asker, args: Mark) -> Result<CommandOutcome, CommandError> {
    if args.remove {
        let hint = "`tree edit` changes a remark, `forget` removes it for good";
        return Err(CommandError::usage("a remark cannot be taken away", hint));
    }
    let named = app.node(asker, &args.node).await?;
    let text = asker.text(app.text(&args.text)?, None);
    let op = Op::Annotate { position: named.position, text };
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    let (node, short_id) = applied.nodes.last().cloned().ok_or(Refusal::Empty)?;
    Ok(CommandOutcome::Node(NodeDone { node, short_id }))
}

pub(super) async fn head(app: &App, asker: &Asker, args: Pin) -> Result<CommandOutcome, CommandError> {
    if args.depth.is_some() {
        return Err(CommandError::usage("a head is always sent first", "--depth belongs to `tree note`"));
    }
    let text = asker.text(app.text(&args.text)?, None);
    pinned(app, asker, &args, CellKey::Head, Op::PinHead(text)).await
}

pub(super) async fn note(app: &App, asker: &Asker, args: Pin) -> Result<CommandOutcome, CommandError> {
    let text = asker.text(app.text(&args.text)?, None);
    pinned(app, asker, &args, CellKey::Note, Op::PinNote { text, depth: args.depth }).await
}

/// Pins a text and names the version the view shows of it.
async fn pinned(
    app: &App,
    asker: &Asker,
    args: &Pin,
    key: CellKey,
    op: Op,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    app.change(asker, tree, &view, op).await?;
    let name = view.clone();
    let row = look(app, asker, tree, &view, move |rows, _| {
        let at =
            rows.cell(&key)?.value.as_position().ok_or_else(|| RowError::missing("position of", &key))?;
        let shown = resolve::shown(rows, &name, at)?;
        rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))
    });
    let row = row.await?;
    Ok(CommandOutcome::Node(NodeDone { node: row.node.id, short_id: row.short_id }))
}

async fn marked(app: &App, asker: &Asker, named: NamedNode, op: Op) -> Result<CommandOutcome, CommandError> {
    app.change(asker, named.tree, &named.view, op).await?;
    Ok(CommandOutcome::Node(NodeDone { node: named.node, short_id: named.short_id }))
}

/// A label that says something.
fn given(text: String, hint: &str) -> Result<String, CommandError> {
    if text.is_empty() { Err(CommandError::usage("the text is empty", hint)) } else { Ok(text) }
}
