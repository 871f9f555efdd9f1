//! What is said about passages without changing them: flags, marks, remarks; and the tree's head and note.

use loom::{
    CellKey, CellValue, KeepScope, Op, OpTarget, PositionId, Refusal, RowError, Slot, TreeId, TreeReader,
    ViewName, path, resolve,
};

use super::telling::{first_words, passage as named_passage, passage_at, shown_at, word_change};
use super::{label, look, siblings};
use crate::app::{App, NamedNode};
use crate::args::tree::{
    Annotate, Bookmark, DraftArgs, Flag, HeadArgs, KeepArgs, Mark, NoteArgs, PassageArg,
};
use crate::args::{NodeArg, TreeArg};
use crate::error::CommandError;
use crate::results::tree::{NodeNamed, StoredText};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;
use crate::shell::quoted;

/// Accepts what stands above a passage as its basis.
pub(super) async fn keep(app: &App, asker: &Asker, args: KeepArgs) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let scope = if args.below { KeepScope::Below } else { KeepScope::Here };
    let op = Op::Keep { position: named.position, scope };
    let below = if args.below { " with all below it" } else { "" };
    marked(app, asker, named, op, |passage| format!("marked {passage}{below} as reviewed")).await
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
    let op = op(target);
    let (done, is_pruning, is_restoring) = match op {
        Op::Prune(_) => ("hid", true, false),
        Op::Restore(_) => ("shown again:", false, true),
        Op::Exclude(_) => ("left out", false, false),
        _ => ("taken in again:", false, false),
    };
    let (tree, view, position) = (named.tree, named.view.clone(), named.position);
    let before = tip(app, asker, tree, &view).await?.0;
    let mut told = marked_with_words(app, asker, named, op, |passage| format!("{done} {passage}")).await?;
    if is_pruning {
        let (now, at) = tip(app, asker, tree, &view).await?;
        if now != before {
            told.sentence += &format!("; {view} now ends at {at}");
        }
    }
    if is_restoring {
        let name = view.clone();
        let found = look(app, asker, tree, &view, move |rows, tip| {
            let pruned =
                path::pruned_above(rows, position)?.map(|at| shown_at(rows, &name, at)).transpose()?;
            Ok((path::is_ancestor(rows, position, tip)?, pruned))
        });
        let (tree, node) = (quoted(&args.node.tree.tree), &args.node.node);
        match found.await? {
            (_, Some(above)) if above.node.position == position => {
                told.sentence += &format!("; its passage is pruned: `drawloom tree restore {tree} {node}`");
            }
            (_, Some(above)) => {
                let (named, above) = (named_passage(&above.short_id, &above.node.text()), above.short_id);
                told.sentence += &format!(
                    "; it stands below {named}, which is pruned: `drawloom tree restore {tree} {above}`"
                );
            }
            (false, None) => {
                told.sentence += &format!("; to go there: `drawloom tree switch {tree} {node}`");
            }
            (true, None) => {}
        }
    }
    Ok(CommandOutcome::Node(told))
}

/// The end of the path of a view, and the passage there.
async fn tip(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: &ViewName,
) -> Result<(PositionId, String), CommandError> {
    let name = view.clone();
    look(app, asker, tree, view, move |rows, tip| Ok((tip, passage_at(rows, &name, tip)?))).await
}

/// Sets or removes the bookmark of a passage.
pub(super) async fn bookmark(
    app: &App,
    asker: &Asker,
    args: Bookmark,
) -> Result<CommandOutcome, CommandError> {
    let named = app.node(asker, &args.node).await?;
    let title = match args.text {
        _ if args.remove => None,
        None => Some(String::new()),
        Some(text) => Some(given(label(app, "bookmark", &text)?, "leave the title out, or give --remove")?),
    };
    let op = Op::Bookmark { position: named.position, title: title.clone() };
    let told = |passage: &str| match title.as_deref() {
        None => format!("took the bookmark off {passage}"),
        Some("") => format!("bookmarked {passage}"),
        Some(title) => format!("bookmarked {passage} as “{title}”"),
    };
    marked(app, asker, named, op, told).await
}

/// Sets or removes a tag of a passage; without one lists the passages with tags.
pub(super) async fn tag(app: &App, asker: &Asker, args: Mark) -> Result<CommandOutcome, CommandError> {
    let Some(text) = &args.text else { return siblings::tags(app, asker, args.passage).await };
    let named = passage(app, asker, &args.passage).await?;
    let tag = given(label(app, "tag", text)?, "name the tag")?;
    let op = Op::Tag { position: named.position, tag: tag.clone(), on: !args.remove };
    let told = |passage: &str| match args.remove {
        true => format!("took #{tag} off {passage}"),
        false => format!("tagged {passage} with #{tag}"),
    };
    marked(app, asker, named, op, told).await
}

/// Hangs a remark on a passage, and names the remark; without one lists the passages with remarks.
pub(super) async fn annotate(
    app: &App,
    asker: &Asker,
    args: Annotate,
) -> Result<CommandOutcome, CommandError> {
    let Some(given) = &args.text else { return siblings::annotations(app, asker, args.passage).await };
    let named = passage(app, asker, &args.passage).await?;
    let text = text_of_node(app, given)?;
    let begins = first_words(&text);
    let op = Op::Annotate { position: named.position, text: asker.text(text, None) };
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    let (node, short_id) = applied.nodes.last().cloned().ok_or(Refusal::Empty)?;
    let sentence = format!("remarked on {}: {short_id} {begins}", named.short_id);
    Ok(CommandOutcome::Node(Told { result: NodeNamed { node, short_id }, sentence }))
}

/// Sets the head, or shows it.
pub(super) async fn head(app: &App, asker: &Asker, args: HeadArgs) -> Result<CommandOutcome, CommandError> {
    let Some(text) = &args.text else { return stored(app, asker, &args.tree, stored_head).await };
    let text = asker.text(text_of_node(app, text)?, None);
    pinned(app, asker, &args.tree, ("head", CellKey::Head), Op::PinHead(text)).await
}

/// Sets the note, or shows it.
pub(super) async fn note(app: &App, asker: &Asker, args: NoteArgs) -> Result<CommandOutcome, CommandError> {
    let Some(text) = &args.text else { return stored(app, asker, &args.tree, stored_note).await };
    let text = asker.text(text_of_node(app, text)?, None);
    pinned(app, asker, &args.tree, ("note", CellKey::Note), Op::PinNote { text, depth: args.depth }).await
}

/// Shows the working buffer, or a pending edit.
pub(super) async fn stored_draft(
    app: &App,
    asker: &Asker,
    args: DraftArgs,
) -> Result<CommandOutcome, CommandError> {
    let slot = match &args.at {
        Some(node) => {
            let (tree, _) = app.tree(asker, &args.tree).await?;
            Slot::Edit(app.node_named(asker, Some(tree), node).await?.1)
        }
        None => Slot::Buffer,
    };
    stored(app, asker, &args.tree, move |rows, view| draft_at(rows, view, slot)).await
}

async fn stored(
    app: &App,
    asker: &Asker,
    tree: &TreeArg,
    read: impl FnOnce(&dyn TreeReader, &ViewName) -> Result<Option<StoredText>, RowError> + Send + 'static,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, tree).await?;
    let name = view.clone();
    let found = look(app, asker, tree, &view, move |rows, _| read(rows, &name)).await?;
    Ok(CommandOutcome::StoredText(found.unwrap_or_default()))
}

/// The tree's head as a view shows it, unless it is empty.
pub(super) fn stored_head(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<StoredText>, RowError> {
    pinned_text(rows, view, &CellKey::Head)
}

/// The tree's note as a view shows it, unless it is empty.
pub(super) fn stored_note(rows: &dyn TreeReader, view: &ViewName) -> Result<Option<StoredText>, RowError> {
    let Some(note) = pinned_text(rows, view, &CellKey::Note)? else { return Ok(None) };
    let depth = match rows.cell(&CellKey::NoteDepth)?.value {
        CellValue::Number(depth) => depth,
        _ => context::document::DEFAULT_NOTE_DEPTH,
    };
    Ok(Some(StoredText { depth: Some(depth), ..note }))
}

fn pinned_text(
    rows: &dyn TreeReader,
    view: &ViewName,
    key: &CellKey,
) -> Result<Option<StoredText>, RowError> {
    let Some(at) = rows.cell(key)?.value.as_position() else { return Ok(None) };
    let shown = resolve::shown(rows, view, at)?;
    let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
    let text = row.node.text().into_owned();
    let found = StoredText { text: Some(text), node: Some(row.node.id), ..StoredText::default() };
    Ok(Some(found).filter(|found| found.text.as_deref() != Some("")))
}

/// The draft in a slot of a view, unless it is empty.
pub(super) fn draft_at(
    rows: &dyn TreeReader,
    view: &ViewName,
    slot: Slot,
) -> Result<Option<StoredText>, RowError> {
    let draft = rows.draft(view, slot)?.filter(|draft| slot != Slot::Buffer || !draft.text.is_empty());
    Ok(draft.map(|draft| StoredText {
        text: Some(draft.text),
        revision: Some(draft.revision),
        ..StoredText::default()
    }))
}

/// The node of a passage that must be named.
async fn passage(app: &App, asker: &Asker, args: &PassageArg) -> Result<NamedNode, CommandError> {
    let Some(node) = args.node.clone() else {
        return Err(CommandError::usage(
            "no passage is named",
            "name a node, as `drawloom tree show TREE` lists them",
        ));
    };
    app.node(asker, &NodeArg { tree: args.tree.clone(), node }).await
}

/// The text of a head, note or remark: it is one node.
fn text_of_node(app: &App, given: &str) -> Result<String, CommandError> {
    let text = app.text(given)?;
    app.fits_node("the text", &text, false)?;
    Ok(text)
}

/// Pins a text and names the version the view shows of it.
async fn pinned(
    app: &App,
    asker: &Asker,
    tree: &TreeArg,
    (what, key): (&str, CellKey),
    op: Op,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, tree).await?;
    app.change(asker, tree, &view, op).await?;
    let name = view.clone();
    let row = look(app, asker, tree, &view, move |rows, _| {
        let at =
            rows.cell(&key)?.value.as_position().ok_or_else(|| RowError::missing("position of", &key))?;
        let shown = resolve::shown(rows, &name, at)?;
        rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))
    });
    let row = row.await?;
    let text = row.node.text();
    let sentence = match text.trim() {
        "" => format!("the {what} is empty now"),
        _ => format!("the {what} is {} now", named_passage(&row.short_id, &text)),
    };
    let result = NodeNamed { node: row.node.id, short_id: row.short_id.clone() };
    Ok(CommandOutcome::Node(Told { result, sentence }))
}

/// Marks a passage; `told` says of it what was done.
async fn marked(
    app: &App,
    asker: &Asker,
    named: NamedNode,
    op: Op,
    told: impl FnOnce(&str) -> String,
) -> Result<CommandOutcome, CommandError> {
    let told = marked_with_words(app, asker, named, op, told).await?;
    Ok(CommandOutcome::Node(told))
}

/// Marks a passage; `told` says of it what was done, and the words that came and went are said behind that.
async fn marked_with_words(
    app: &App,
    asker: &Asker,
    named: NamedNode,
    op: Op,
    told: impl FnOnce(&str) -> String,
) -> Result<Told<NodeNamed>, CommandError> {
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    let node = named.node;
    let row = app.read(asker, named.tree, move |rows| rows.node(node)).await?;
    let text = row.map(|row| row.node.text().into_owned()).unwrap_or_default();
    let words = word_change(app, asker, (named.tree, &named.view), applied.seq).await?;
    let passage = named_passage(&named.short_id, &text);
    let sentence = match applied.seq {
        Some(_) => format!("{}{words}", told(&passage)),
        None => format!("nothing changed: so it is with {passage} already"),
    };
    Ok(Told { result: NodeNamed { node, short_id: named.short_id }, sentence })
}

/// A label that says something.
fn given(text: String, hint: &str) -> Result<String, CommandError> {
    if text.is_empty() { Err(CommandError::usage("the text is empty", hint)) } else { Ok(text) }
}
