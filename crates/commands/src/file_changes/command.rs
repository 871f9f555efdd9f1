//! `files diff`, `history` and `restore`, and `tree undo` and `redo` with `--files`: what conversations have as slash
//! commands (spec: cli §2).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loom::{NodeId, Seq, TreeId};
use store::{FileChange, FileState};
use text::terminal::explicit;
use workspace::canonical;

use super::restore::is_meant;
use super::{DiffScope, Restoration, diff, give_back, redo, restore, shown, standing, turns_of};
use crate::app::App;
use crate::args::files::{DiffArgs, FilesCommand, HistoryArgs, RestoreFileArgs};
use crate::chat;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::{FileHistory, FileVersion, VersionKind};
use crate::rights::Asker;
use crate::tree::tree_argument;

/// What a file that no tool changed is answered with.
const NO_CHANGE: &str = "`drawloom files diff` shows what tools changed in a session (`--session`)";

/// `files`.
pub(crate) async fn command(
    app: &App,
    asker: &Asker,
    command: FilesCommand,
) -> Result<CommandOutcome, CommandError> {
    match command {
        FilesCommand::Diff(args) => changed(app, asker, args).await,
        FilesCommand::History(args) => history(app, asker, args).await,
        FilesCommand::Restore(args) => restored(app, asker, args).await,
    }
}

async fn changed(app: &App, asker: &Asker, args: DiffArgs) -> Result<CommandOutcome, CommandError> {
    let (_, newest) = chat::session_trees(app, asker, &args.session).await?;
    let mut outcome = match &args.turn {
        Some(name) => {
            let node = app.node_anywhere(asker, named_in(name, newest), name).await?;
            diff(app, asker, node.tree, DiffScope::Turn(node.node)).await?
        }
        None => diff(app, asker, newest, DiffScope::Session).await?,
    };
    if let CommandOutcome::FilesChanged(found) = &mut outcome {
        found.redo_with = redo_command(app, asker, newest).await?;
    }
    Ok(outcome)
}

async fn history(app: &App, asker: &Asker, args: HistoryArgs) -> Result<CommandOutcome, CommandError> {
    let (trees, _) = chat::session_trees(app, asker, &args.session).await?;
    let file = named_file(app, &args.file);
    let mut versions = Vec::new();
    for tree in trees {
        let mut changes = standing(app, asker, tree).await?;
        changes.retain(|change| is_meant(&file, change) && change.before != change.after);
        versions.extend(versions_of(app, asker, tree, changes).await?);
    }
    if versions.is_empty() {
        return Err(CommandError::not_found("change of tools", &args.file.display().to_string(), NO_CHANGE));
    }
    versions.reverse();
    let mut restore =
        format!("drawloom files restore {}", crate::shell::quoted(&args.file.display().to_string()));
    if let Some(session) = &args.session.session {
        restore += &format!(" --session {}", crate::shell::quoted(session));
    }
    Ok(CommandOutcome::FileHistory(FileHistory { versions, restore }))
}

/// What stood at paths before each turn that changed them, the oldest first.
async fn versions_of(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    changes: Vec<FileChange>,
) -> Result<Vec<FileVersion>, CommandError> {
    let answers: BTreeSet<NodeId> = changes.iter().map(|change| change.id.call.answer).collect();
    let turns = turns_of(app, asker, tree, answers.clone()).await?;
    let short_ids: BTreeMap<NodeId, String> = app
        .read(asker, tree, move |rows| {
            let named = answers.into_iter().map(|node| Ok(rows.node(node)?.map(|row| (node, row.short_id))));
            Ok(named.collect::<Result<Vec<_>, loom::RowError>>()?.into_iter().flatten().collect())
        })
        .await?;
    let mut seen: BTreeSet<(Option<Seq>, PathBuf, PathBuf)> = BTreeSet::new();
    let mut versions = Vec::new();
    for change in changes {
        let node = change.id.call.answer;
        let turn = turns.get(&node).copied().flatten();
        if !seen.insert((turn, change.root.clone(), change.path.clone())) {
            continue;
        }
        let kept = super::not_kept(app, asker, change.before).await?.is_none();
        let bytes = if kept { bytes_of(app, change.before).await } else { None };
        versions.push(FileVersion {
            path: shown(app.workspace.folder.as_deref(), &change.root, &change.path),
            node,
            short_id: short_ids.get(&node).cloned().unwrap_or_default(),
            at: change.at.0,
            was: VersionKind::of(change.before),
            bytes,
            kept,
        });
    }
    Ok(versions)
}

/// Bytes of a file or of where a link leads, which are kept.
async fn bytes_of(app: &App, state: FileState) -> Option<u64> {
    app.runtime.read_blob(state.blob()?).await.ok().map(|bytes| bytes.len() as u64)
}

async fn restored(app: &App, asker: &Asker, args: RestoreFileArgs) -> Result<CommandOutcome, CommandError> {
    let (trees, newest) = chat::session_trees(app, asker, &args.session).await?;
    let file = named_file(app, &args.file);
    if app.workspace.folder.as_ref().is_some_and(|folder| *folder != file && folder.starts_with(&file)) {
        return Err(CommandError::refused(
            "outside",
            format!("{} is above the workspace", explicit(&file.display().to_string())),
            "name a file or a folder of it",
        ));
    }
    let (mut tree, mut before) = (newest, None);
    if let Some(name) = &args.at {
        let node = app.node_anywhere(asker, named_in(name, tree), name).await?;
        (tree, before) = (node.tree, Some(node.node));
    } else {
        for earlier in trees.into_iter().rev() {
            if standing(app, asker, earlier).await?.iter().any(|change| is_meant(&file, change)) {
                tree = earlier;
                break;
            }
        }
    }
    let outcome = restore(app, asker, tree, &Restoration { file, before, yes: args.yes }).await?;
    with_redo(app, asker, tree, outcome).await
}

/// `tree undo --files` and `tree redo --files`.
pub(crate) async fn step(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    is_redo: bool,
) -> Result<CommandOutcome, CommandError> {
    if is_redo {
        return redo(app, asker, tree).await;
    }
    let outcome = give_back(app, asker, tree).await?;
    with_redo(app, asker, tree, outcome).await
}

/// With the command that takes it again.
async fn with_redo(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    mut outcome: CommandOutcome,
) -> Result<CommandOutcome, CommandError> {
    if let CommandOutcome::FilesGivenBack(done) = &mut outcome {
        done.redo_with = redo_command(app, asker, tree).await?;
    }
    Ok(outcome)
}

async fn redo_command(app: &App, asker: &Asker, tree: TreeId) -> Result<Option<String>, CommandError> {
    Ok(Some(format!("drawloom tree redo {} --files", tree_argument(app, asker, tree).await?)))
}

/// The tree in which a name of a node is looked for; none where the name says it.
fn named_in(name: &str, tree: TreeId) -> Option<TreeId> {
    (!name.contains(':') && name.parse::<NodeId>().is_err()).then_some(tree)
}

/// A file as it was named: from the working directory, where that is in the workspace. A link is itself, not what it leads to.
fn named_file(app: &App, file: &Path) -> PathBuf {
    let here = std::env::current_dir().map(|here| canonical(&here));
    let Ok(here) = here else { return file.to_owned() };
    if file.is_relative() && !app.workspace.folder.as_ref().is_some_and(|folder| here.starts_with(folder)) {
        return file.to_owned();
    }
    let file = here.join(file);
    match (file.parent(), file.file_name()) {
        (Some(above), Some(name)) => canonical(above).join(name),
        _ => canonical(&file),
    }
}
