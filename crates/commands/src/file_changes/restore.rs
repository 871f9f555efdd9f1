//! `/restore`: a file as it was before tools changed it, whoever changed it since.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent::file_states::is_same;
use agent::on_disk;
use loom::{Digest, NodeId, Seq, TreeId};
use store::{FileChange, FileState, SessionId};
use text::terminal::explicit;
use workspace::RelativePath;

use super::differences::difference_of;
use super::disk::{Found, over_unkept};
use super::path_changes::{PathChange, by_path, links_over_folders};
use super::{bring_back, clear_away, disk, elsewhere, not_kept, shown, shown_lines, standing, turns_of};
use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::FilesGivenBack;
use crate::rights::Asker;
use crate::shell::quoted;

/// What is to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restoration {
    /// A file, or a folder with all that was in it.
    pub(crate) file: PathBuf,
    /// Node of the turn before which the file is restored; before its last change, if none.
    pub(crate) before: Option<NodeId>,
    /// Whether nobody is asked.
    pub(crate) yes: bool,
}

/// A path that is to become what it was.
struct Restored {
    change: PathChange,
    found: Found,
    diff: String,
    is_ours: bool,
}

/// Restores a file while nobody answers in the session.
pub(crate) async fn restore(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    asked: &Restoration,
) -> Result<CommandOutcome, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else { return restore_alone(app, asker, tree, asked).await };
    let restore = |_| Box::pin(restore_alone(app, asker, tree, asked));
    app.runtime.between_turns(&asker.principal, &session, restore).await?
}

/// How a path is restored of which no change stands in a tree.
async fn elsewhere_hint(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    asked: &Restoration,
) -> Result<String, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let workspace = app.workspace.folder.as_deref();
    let is_here = |change: &FileChange| asked.file.is_absolute() || workspace == Some(&change.root);
    let found =
        elsewhere(app, asker, tree, |change| is_here(change) && is_meant(&asked.file, change)).await?;
    let command = match found {
        Some(other) if other.session == session && asked.before.is_none() => {
            format!("files restore {}", quoted(&asked.file.display().to_string()))
        }
        Some(other) => format!("tree undo {} --files", other.short_id),
        None => {
            let hint = "/diff, or `drawloom files diff`, shows what tools changed; a path is one below the workspace";
            return Ok(hint.to_owned());
        }
    };
    Ok(format!("another conversation changed it: `drawloom {command}` gives it back"))
}

async fn restore_alone(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    asked: &Restoration,
) -> Result<CommandOutcome, CommandError> {
    let changes = undone(app, asker, tree, asked).await?;
    let name = asked.file.display().to_string();
    if changes.is_empty() {
        let hint = elsewhere_hint(app, asker, tree, asked).await?;
        return Err(CommandError::not_found("change of tools", &name, hint));
    }
    let mut done = FilesGivenBack::default();
    let hint = match &changes[..] {
        [one] if one.root.join(&one.path).ends_with(&asked.file) => {
            "`/diff` says of each change whether its bytes are kept"
        }
        _ => "name a file in it",
    };
    let (mut paths, mut back) = (Vec::new(), Vec::new());
    for restored in look(app, asker, changes).await? {
        let restored = restored.map_err(|why| CommandError::refused("not_restored", why, hint))?;
        if restored.found.is_back {
            back.extend(restored.change.ids);
        } else {
            paths.push(restored);
        }
    }
    app.runtime.store.take_back_file_changes(&asker.principal, tree, back).await?;
    if paths.is_empty() {
        return Ok(CommandOutcome::FilesGivenBack(done));
    }
    confirm(app, &name, &paths, asked.yes)?;
    // What came from a path that stays as it is may stand nowhere else.
    let mut left = by_path(standing(app, asker, tree).await?);
    left.retain(|other| {
        !paths.iter().any(|path| (&path.change.root, &path.change.path) == (&other.root, &other.path))
    });
    let disk = disk(app)?;
    let links = links_over_folders(&left);
    let is_there = move |other: &PathChange| {
        disk.stands(other, &links).is_ok_and(|(state, ..)| is_same(other.before_last, state))
    };
    let left: Vec<PathChange> =
        on_disk(move || left.into_iter().filter(|other| !is_there(other)).collect()).await;
    let paths = paths.into_iter().map(|path| (path.change, path.found)).collect();
    bring_back(app, asker, tree, (paths, left), &mut done).await?;
    if done.given.is_empty() && !done.left.is_empty() {
        let left =
            done.left.iter().map(|left| format!("{}: {}", explicit(&left.path.to_string_lossy()), left.why));
        let why = format!("left as it is: {}", left.collect::<Vec<_>>().join("; "));
        return Err(CommandError::refused("not_restored", why, hint));
    }
    Ok(CommandOutcome::FilesGivenBack(done))
}

/// The changes that are undone by it, the oldest first.
async fn undone(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    asked: &Restoration,
) -> Result<Vec<PathChange>, CommandError> {
    let mut changes = standing(app, asker, tree).await?;
    changes.retain(|change| is_meant(&asked.file, change));
    // The same path beneath another root is another file: that of the workspace goes before.
    let in_workspace = changes.iter().find(|change| Some(&change.root) == app.workspace.folder.as_ref());
    if let Some(root) = in_workspace.or(changes.first()).map(|change| change.root.clone()) {
        changes.retain(|change| change.root == root);
    }
    clear_away(app, &changes).await?;
    let Some(node) = asked.before else {
        let mut seen = BTreeSet::new();
        changes.reverse();
        changes.retain(|change| seen.insert(change.path.clone()));
        return Ok(by_path(changes));
    };
    let nodes = changes.iter().map(|change| change.id.call.answer).chain([node]);
    let turns = turns_of(app, asker, tree, nodes.collect()).await?;
    let turn = |node: NodeId| -> Option<Seq> { turns.get(&node).copied().flatten() };
    let from = turn(node);
    changes.retain(|change| turn(change.id.call.answer) >= from);
    Ok(by_path(changes))
}

/// Whether a change is one of a file, or of something in a folder, of this name.
pub(super) fn is_meant(file: &Path, change: &FileChange) -> bool {
    if file.is_absolute() {
        return change.root.join(&change.path).starts_with(file);
    }
    let named = file.to_str().and_then(|file| RelativePath::parse(&format!("./{file}")).ok());
    named.is_some_and(|named| !named.is_root() && change.path.starts_with(named.as_path()))
}

/// What each path is and becomes.
async fn look(
    app: &App,
    asker: &Asker,
    changes: Vec<PathChange>,
) -> Result<Vec<Result<Restored, String>>, CommandError> {
    let links = links_over_folders(&changes);
    let mut all = Vec::with_capacity(changes.len());
    for change in changes {
        let gone = not_kept(app, asker, change.before).await?;
        all.push((change, gone));
    }
    let (disk, runtime) = (disk(app)?, app.runtime.clone());
    let (tasks, workspace) = (tokio::runtime::Handle::current(), app.workspace.folder.clone());
    let look = move |(change, gone): (PathChange, Option<String>)| {
        let target = change.before;
        let explained = |why: String| format!("{}: {why}", explicit(&change.path.display().to_string()));
        if let Some(why) = gone {
            return Err(explained(why));
        }
        let blob = |blob: Digest| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
        let kept = target.blob().map(blob).transpose()?.unwrap_or_default();
        let (state, bytes, is_ours) = disk.stands(&change, &links)?;
        if let Some(why) = over_unkept(&change, state).filter(|_| !is_ours) {
            return Err(explained(why));
        }
        let unkept = disk.unkept(&change, state)?;
        let is_any_folder = target == FileState::Folder { mode: None } && state.is_folder();
        let is_back = state == target || is_any_folder;
        let path = shown(workspace.as_deref(), &change.root, &change.path);
        let sides = ((state, &*bytes), (target, &*kept));
        let diff =
            if is_back { String::new() } else { difference_of(&path, sides.0, sides.1, &runtime.masker) };
        Ok(Restored { found: Found { is_back, unkept, ..Found::of(state, target) }, change, diff, is_ours })
    };
    Ok(on_disk(move || all.into_iter().map(look).collect()).await)
}

/// Shows what is restored and asks, unless a yes was given.
fn confirm(app: &App, name: &str, paths: &[Restored], yes: bool) -> Result<(), CommandError> {
    let lines = shown_lines(paths.iter().flat_map(|path| path.diff.lines()));
    let name = explicit(name);
    let others = if paths.iter().all(|path| path.is_ours) { "" } else { ", which somebody changed since" };
    if yes {
        return Ok(());
    }
    let confirmed = app.frontend.confirm_shown(&lines, &format!("Restore {name}{others}?"));
    let message = format!("{name} was not restored");
    confirmed.require("not_confirmed", message, "answer yes at a terminal, or give --yes")
}
