//! Writing: committed text, drafts, edits.

use loom::plan::EditAs;
use loom::{Mode, NodeId, Op, PositionId, Refusal, Slot, TreeId, ViewName, resolve};
use store::{DraftEdit, DraftName, StoreError};
use workspace::Accept;

use super::telling::{
    count, first_words, passage, shown_at, tree_argument, view_option, word_change, words_of,
};
use super::{editing, look, typed_role, words};
use crate::app::input::argument_name;
use crate::app::{App, NamedNode};
use crate::args::NodeArg;
use crate::args::tree::{Append, DraftArgs, Edit, EditAsArg};
use crate::error::CommandError;
use crate::results::tree::{DraftDone, Edited, NodeNamed};
use crate::results::{CommandOutcome, Told};
use crate::rights::Asker;

/// Commits a text after the tip; as the owner's turn in a dialogue.
pub(super) async fn append(app: &App, asker: &Asker, args: Append) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let hint = "`drawloom tree append TREE TEXT`, or pipe it";
    let text = match &args.text {
        Some(text) => app.text(text)?,
        None => app.piped_text()?.ok_or_else(|| CommandError::usage("no text is given", hint))?,
    };
    let role = typed_role(app, asker, tree).await?;
    app.fits_node("the text", &text, role.is_none())?;
    let begins = first_words(&text);
    let applied = app.change(asker, tree, &view, Op::Append(asker.text(text, role))).await?;
    // Drafts were committed before it; a long text became several nodes: the last is where the view is now.
    let (node, short_id) = applied.nodes.last().cloned().ok_or(Refusal::Empty)?;
    let words = word_change(app, asker, (tree, &view), applied.seq).await?;
    let made = match applied.nodes.len() {
        1 => format!("{short_id} {begins}"),
        number => format!("{number} passages, the last of them {short_id}"),
    };
    let sentence = format!("added {made}{words}");
    Ok(CommandOutcome::Node(Told { result: NodeNamed { node, short_id }, sentence }))
}

/// How often a draft is set anew when somebody typed in between.
const TRIES: usize = 8;

/// Sets the whole text of the working buffer or of a pending edit.
pub(super) async fn draft(app: &App, asker: &Asker, args: DraftArgs) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = app.tree(asker, &args.tree).await?;
    let text = app.text(args.text.as_deref().unwrap_or_default())?;
    let slot = match &args.at {
        Some(node) => Slot::Edit(app.node_named(asker, Some(tree), node).await?.1),
        None => Slot::Buffer,
    };
    app.fits_node("the text", &text, slot == Slot::Buffer)?;
    let name = DraftName { tree, view: view.clone(), slot };
    let revision = set_draft(app, asker, &name, &text).await?;
    let (revision, made, words) = if args.commit {
        let applied = app.change(asker, tree, &view, Op::Commit).await?;
        let words = word_change(app, asker, (tree, &view), applied.seq).await?;
        (None, applied.nodes, words)
    } else {
        (Some(revision), Vec::new(), super::WordChange::default())
    };
    let (nodes, short_ids): (Vec<_>, Vec<_>) = made.into_iter().unzip();
    let sentence = match (&args.at, revision) {
        (_, None) if short_ids.is_empty() => "nothing was committed".to_owned(),
        (_, None) => format!("committed {}{words}", short_ids.join(" ")),
        (None, Some(_)) => format!("kept a draft of {}", count(words_of(&text), "word", "words")),
        (Some(_), Some(_)) => {
            let name = view.clone();
            let short = look(app, asker, tree, &view, move |rows, _| match slot {
                Slot::Edit(position) => Ok(shown_at(rows, &name, position)?.short_id),
                Slot::Buffer => Ok(String::new()),
            });
            let words = count(words_of(&text), "word", "words");
            format!("kept a pending edit of {}: {words}", short.await?)
        }
    };
    let draft = match slot {
        Slot::Buffer => "buffer".to_owned(),
        Slot::Edit(position) => position.to_string(),
    };
    let result = DraftDone { draft, revision, nodes, short_ids };
    Ok(CommandOutcome::Draft(Told { result, sentence }))
}

/// Gives a draft this text, whatever it was. It is one step for undo.
async fn set_draft(app: &App, asker: &Asker, name: &DraftName, text: &str) -> Result<u64, CommandError> {
    let mut tries = 1;
    loop {
        let (view, slot) = (name.view.clone(), name.slot);
        let start = look(app, asker, name.tree, &name.view, move |rows, _| {
            let revision = rows.draft(&view, slot)?.map(|draft| draft.revision);
            let Slot::Edit(at) = slot else { return Ok(Ok((revision, None))) };
            if rows.position(at)?.is_none_or(|position| position.parent.is_none()) {
                return Ok(Err(Refusal::Genesis));
            }
            let shown = resolve::shown(rows, &view, at)?;
            if rows.node(shown)?.is_some_and(|row| row.purged) {
                return Ok(Err(Refusal::Purged(shown)));
            }
            Ok(Ok((revision, Some(shown))))
        });
        let (expected, base) = start.await??;
        let edit = DraftEdit::Set { base, text: text.to_owned() };
        match app.runtime.store.edit_draft(&asker.principal, name.clone(), expected, edit).await {
            Err(StoreError::Conflict(_)) if tries < TRIES => tries += 1,
            done => return Ok(done?.revision),
        }
    }
}

/// Changes the text of a passage at once, or that of the path.
pub(super) async fn edit(app: &App, asker: &Asker, args: Edit) -> Result<CommandOutcome, CommandError> {
    let Some(node) = args.node.clone() else { return editing::edit_path(app, asker, args).await };
    let named = app.node(asker, &NodeArg { tree: args.tree.clone(), node }).await?;
    let shown = || says(app, asker, &named);
    let (mut file, mut held, mut saved) = (None, None, Vec::new());
    let (over, text) = match (&args.text, &args.file, args.replace.as_slice()) {
        (Some(text), ..) => {
            let text = app.text(text)?;
            let is_line = !text.ends_with('\n') && is_document(app, asker, named.tree).await?;
            (None, if is_line { editing::with_break_of(&shown().await?, &text) } else { text })
        }
        (None, Some(path), _) => {
            saved = app.file_bytes(path, Accept::RegularOrPipe)?;
            let mut text = app.text_of(&argument_name(path), saved.clone())?;
            held = editing::text_before(app, asker, &named, (path, &text)).await?;
            let base = held.as_ref().map(|(text, _)| text.clone());
            let before = match &base {
                Some(base) => base.clone(),
                None => shown().await?,
            };
            if base.is_some() {
                text = editing::as_edited(&before, &text);
            } else {
                text = editing::with_line_ends_of(&before, &text);
                if is_document(app, asker, named.tree).await? {
                    text = editing::with_break_of(&before, &text);
                }
            }
            if !editing::is_meant(app, &before, &text, &named.short_id) {
                return Err(editing::not_meant("nothing was changed"));
            }
            (base, text)
        }
        (None, None, [old, new]) => {
            let text = shown().await?;
            let places = if args.all { words::all(&text, old)? } else { vec![words::one(&text, old)?] };
            let replaced = words::replaced(&text, &places, &app.masked(new));
            (Some(text), replaced)
        }
        _ => {
            let before = shown().await?;
            let was_read = stands_in_text(app, asker, &named).await?;
            let Some((text, edit_file)) = editing::edit_text(app, asker, &named, &args, &before).await?
            else {
                let (result, text) =
                    edited(app, asker, named.tree, &named.view, named.position, None).await?;
                let sentence = format!("nothing was changed: {} stays", passage(&result.short_id, &text));
                return Ok(CommandOutcome::Edited(Told { result, sentence }));
            };
            if was_read && !stands_in_text(app, asker, &named).await? {
                let refused = StoreError::Refused(Refusal::ChangedMeanwhile(named.position));
                return Err(edit_file.kept(app, refused.into()));
            }
            file = Some(edit_file);
            (Some(before), text)
        }
    };
    let done = change(app, asker, &named, (over, text), args.edit_as).await;
    let file = match (file, &args.file, held) {
        (Some(file), ..) => Some(editing::PassageFile::Edited(file)),
        (None, Some(path), Some((_, held))) => {
            Some(editing::PassageFile::Named { path, held, saved: &saved })
        }
        _ => None,
    };
    match (done, file) {
        (Ok(done), Some(file)) => {
            editing::remove_passage_file(app, &named, (&args, &done.result), file);
            Ok(CommandOutcome::Edited(done))
        }
        (Err(error), Some(editing::PassageFile::Edited(file))) => Err(file.kept(app, error)),
        (done, _) => done.map(CommandOutcome::Edited),
    }
}

async fn is_document(app: &App, asker: &Asker, tree: TreeId) -> Result<bool, CommandError> {
    Ok(app.read(asker, tree, |rows| Ok(rows.tree()?.mode)).await? == Mode::Buffer)
}

/// Whether a passage stands in the text of its view.
async fn stands_in_text(app: &App, asker: &Asker, named: &NamedNode) -> Result<bool, CommandError> {
    let (view, at) = (named.view.clone(), named.position);
    let read = app.read(asker, named.tree, move |rows| {
        let shown = shown_at(rows, &view, at)?.node.id;
        editing::is_read(rows, (at, shown), loom::render::tip(rows, &view)?)
    });
    read.await
}

/// What a passage says: what is typed and not committed yet is its text like any other.
async fn says(app: &App, asker: &Asker, named: &NamedNode) -> Result<String, CommandError> {
    let (name, position) = (named.view.clone(), named.position);
    let said = look(app, asker, named.tree, &named.view, move |rows, _| {
        let shown = shown_at(rows, &name, position)?.node.said().into_owned();
        let Some(draft) = rows.draft(&name, Slot::Edit(position))? else { return Ok(shown) };
        let base = draft.base.map(|base| rows.node(base)).transpose()?.flatten();
        // One that says what it was made from holds nothing.
        let is_blank = draft.text == base.map_or_else(String::new, |row| row.node.text().into_owned());
        Ok(if is_blank { shown } else { draft.text })
    });
    said.await
}

/// Gives a node another text, over the one that was read if it rests on that.
async fn change(
    app: &App,
    asker: &Asker,
    named: &NamedNode,
    (over, text): (Option<String>, String),
    edit_as: Option<EditAsArg>,
) -> Result<Told<Edited>, CommandError> {
    app.fits_node("the text", &text, false)?;
    let edit_as = match edit_as {
        None => EditAs::Default,
        Some(EditAsArg::Version) => EditAs::Version,
        Some(EditAsArg::Branch) => EditAs::Branch,
    };
    let position = named.position;
    let op = match over {
        None => Op::Edit { position, text, edit_as },
        Some(shown) => Op::EditShown { position, shown, text, edit_as },
    };
    let applied = app.change(asker, named.tree, &named.view, op).await?;
    app.note_committed(applied.nodes.split_last().map_or(&[], |(_, typed)| typed));
    let made = applied.nodes.last().map(|(node, _)| *node);
    let words = word_change(app, asker, (named.tree, &named.view), applied.seq).await?;
    let (result, text) = edited(app, asker, named.tree, &named.view, named.position, made).await?;
    let shown = passage(&result.short_id, &text);
    let sentence = match applied.seq {
        None => format!("nothing was changed: {shown} has this text"),
        Some(_) if result.position != named.position => format!("branched off as {shown}{words}"),
        Some(_) => format!("edited: {shown} {}{words}", place(app, asker, named, &result).await?),
    };
    Ok(Told { result, sentence })
}

/// Where a version that was made stands: in the text of its view, or how it is reached.
async fn place(app: &App, asker: &Asker, named: &NamedNode, made: &Edited) -> Result<String, CommandError> {
    let (at, version) = (made.position, made.node);
    let found = look(app, asker, named.tree, &named.view, move |rows, tip| {
        let pruned = match loom::path::pruned_above(rows, at)? {
            Some(pruned) => {
                Some(rows.node(pruned.original())?.map_or_else(|| pruned.to_string(), |row| row.short_id))
            }
            None => None,
        };
        let is_read = editing::is_read(rows, (at, version), tip)?;
        Ok((loom::path::is_ancestor(rows, at, tip)?, is_read, pruned))
    });
    match found.await? {
        (_, true, _) => Ok("is shown now".to_owned()),
        (true, false, _) => Ok("is left out of the text".to_owned()),
        (false, false, Some(pruned)) => {
            let tree = tree_argument(app, asker, named.tree).await?;
            Ok(format!(
                "is hidden, as {pruned} is pruned: `drawloom tree restore {tree} {pruned}` shows it again"
            ))
        }
        (false, false, None) => {
            let (tree, of) = (tree_argument(app, asker, named.tree).await?, view_option(&named.view));
            Ok(format!(
                "stands beside the path of {}: `drawloom tree switch {tree} {}{of}` goes there",
                named.view, made.short_id
            ))
        }
    }
}

/// What stands there after an edit, with its text: the sibling that was made, else the version the view shows. The same
/// text makes neither.
async fn edited(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: &ViewName,
    at: PositionId,
    made: Option<NodeId>,
) -> Result<(Edited, String), CommandError> {
    let name = view.clone();
    let edited = app.read(asker, tree, move |rows| {
        if let Some(made) = made
            && let Some(row) = rows.node(made)?
            && row.node.is_original()
            && row.node.edited_from.is_some()
        {
            let text = row.node.said().into_owned();
            return Ok((editing::edited(rows, made)?, text));
        }
        let shown = shown_at(rows, &name, at)?;
        Ok((editing::edited(rows, shown.node.id)?, shown.node.said().into_owned()))
    });
    edited.await
}
