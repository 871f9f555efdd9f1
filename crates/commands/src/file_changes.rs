//! What tools changed in files: shown, and given back (spec: agent §3 *Checkpoints*).
//!
//! A path that only tools touched becomes what it was. One that somebody touched since, or between two changes, is named
//! and left; nothing else is looked at.

mod changed_lines;
mod command;
mod differences;
mod disk;
mod git_history;
#[cfg(test)]
mod laws;
mod path_changes;
mod redo;
mod restore;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agent::on_disk;
use loom::{Digest, Millis, NodeId, Seq, TreeId, TreeReader, ViewName};
use store::home::HomeDir;
use store::{
    ChangeStanding, FileChange, FileChangeId, FileState, LIST_PAGE, NewFileChange, SessionId, TreeEntry,
    TreeFilter,
};

use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::{FilesChanged, FilesGivenBack, LeftFile};
use crate::rights::Asker;
pub(crate) use changed_lines::changed_by;
pub(crate) use command::{command, step};
use differences::differences;
use disk::{Disk, Found, leads_to};
use path_changes::{PathChange, by_path, links_over_folders};
pub(crate) use redo::redo;
pub(crate) use restore::{Restoration, restore};
use turns::{by_turn, turns_of};

/// Which changes are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DiffScope {
    /// Changes of the tree of a conversation.
    Conversation,
    /// Changes of all trees of its session.
    Session,
    /// Changes of the turn of this node.
    Turn(NodeId),
}

/// A path as it is shown: relative below the workspace, absolute below another root.
fn shown(workspace: Option<&Path>, root: &Path, path: &Path) -> PathBuf {
    if workspace == Some(root) { path.to_owned() } else { root.join(path) }
}

/// What is said of bytes that were dropped.
const NO_LONGER_KEPT: &str = "its bytes are no longer kept (limits.kept_files, limits.kept_days)";

/// Why what stood at a path can never come back, as its bytes were never kept.
fn never_kept(state: FileState) -> Option<String> {
    match state {
        FileState::Unknown => Some("its bytes were not kept".to_owned()),
        FileState::Large { bytes, .. } => {
            Some(format!("a file of {}, whose bytes are not kept", text::bytes::size(bytes)))
        }
        _ => None,
    }
}

/// Why what stood at a path cannot come back; none where it can: nothing, a folder, or bytes that are kept.
async fn not_kept(app: &App, asker: &Asker, state: FileState) -> Result<Option<String>, CommandError> {
    if let FileState::Special { .. } = state {
        return Ok(Some("a pipe or socket, which is not made again".to_owned()));
    }
    if let Some(why) = never_kept(state) {
        return Ok(Some(why));
    }
    let Some(blob) = state.blob() else { return Ok(None) };
    let is_kept = app.runtime.store.shows_blob(&asker.principal, blob).await?;
    Ok((!is_kept).then(|| NO_LONGER_KEPT.to_owned()))
}

/// Lines of differences that are shown before a question.
const SHOWN_LINES: usize = 400;
/// Paths of which it is said before they are brought back.
const MANY: usize = 1_000;

/// Changes of tools that stand in a tree, the oldest first.
async fn standing(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<FileChange>, CommandError> {
    changes_that(app, asker, tree, ChangeStanding::stands).await
}

/// Changes of a tree whose standing is one of these, the oldest first.
async fn changes_that(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    is_meant: impl Fn(ChangeStanding) -> bool,
) -> Result<Vec<FileChange>, CommandError> {
    let page = |after| app.runtime.store.file_changes(&asker.principal, tree, after, LIST_PAGE);
    let mut all = store::all_pages(|change: &FileChange| change.id, page).await?;
    all.retain(|change| is_meant(change.standing));
    Ok(all)
}

/// Shows what tools changed in files and nobody gave back.
pub(crate) async fn diff(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    scope: DiffScope,
) -> Result<CommandOutcome, CommandError> {
    let is_turn = matches!(scope, DiffScope::Turn(_));
    let changes = match scope {
        DiffScope::Conversation => standing(app, asker, tree).await?,
        DiffScope::Session => {
            let store = &app.runtime.store;
            let session = store.tree(&asker.principal, tree).await?.session;
            let page = |after| store.trees(&asker.principal, TreeFilter::All, after, LIST_PAGE);
            let mut trees = store::all_pages(TreeEntry::place, page).await?;
            trees.retain(|other| other.id == tree || (session.is_some() && other.session == session));
            let mut changes = Vec::new();
            for tree in trees {
                changes.extend(standing(app, asker, tree.id).await?);
            }
            changes.sort_by_key(|change| change.at);
            changes
        }
        DiffScope::Turn(node) => {
            let mut changes = standing(app, asker, tree).await?;
            let answers = changes.iter().map(|change| change.id.call.answer).chain([node]);
            let turns = turns_of(app, asker, tree, answers.collect()).await?;
            changes.retain(|change| turns.get(&change.id.call.answer) == turns.get(&node));
            changes
        }
    };
    let paths = by_path(changes);
    let given_back = if is_turn { Vec::new() } else { redo::last_paths(app, asker, tree).await? };
    let changes = differences(app, asker, paths.iter()).await?;
    Ok(CommandOutcome::FilesChanged(FilesChanged { changes, given_back, redo_with: None }))
}

/// Gives back what the last turn changed in files of which anything can be given back, while nobody answers in the
/// session: its tools would go on from what is taken away.
pub(crate) async fn give_back(
    app: &App,
    asker: &Asker,
    tree: TreeId,
) -> Result<CommandOutcome, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else { return give_back_alone(app, asker, tree).await };
    let give_back = |guard| {
        Box::pin(async move {
            // What a command of theirs changed may not be written down yet.
            let tell = |told: String| app.frontend.note(&told);
            app.runtime.end_calls_of(tree, guard, &tell).await?;
            give_back_alone(app, asker, tree).await
        })
    };
    app.runtime.between_turns(&asker.principal, &session, give_back).await?
}

async fn give_back_alone(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let mut done = FilesGivenBack::default();
    let workspace = app.workspace.folder.as_deref();
    let mut turns = by_turn(app, asker, tree).await?.into_iter().peekable();
    while let Some(changes) = turns.next() {
        clear_away(app, &changes).await?;
        let answers: BTreeSet<NodeId> = changes.iter().map(|change| change.id.call.answer).collect();
        let told: BTreeSet<FileChangeId> = changes
            .iter()
            .filter(|change| change.standing == ChangeStanding::Left)
            .map(|left| left.id)
            .collect();
        let (mut back, mut paths, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (path, examined) in examine(app, asker, by_path(changes)).await? {
            match examined {
                Ok(found) if found.is_back => back.extend(found.ids(&path)),
                Ok(found) => paths.push((path, found)),
                Err(why) => {
                    let named = LeftFile::new(shown(workspace, &path.root, &path.path), why);
                    // A later turn may have left it, too.
                    if !done.left.contains(&named) {
                        done.left.push(named);
                    }
                    left.push(path);
                }
            }
        }
        let store = &app.runtime.store;
        store.take_back_file_changes(&asker.principal, tree, back).await?;
        // What cannot be given back is said before an earlier turn is: whoever asks again means that one.
        let unkept = left.iter().filter(|path| path.is_unkept()).flat_map(|path| path.ids.iter().copied());
        let unkept: Vec<FileChangeId> = unkept.filter(|id| !told.contains(id)).collect();
        if paths.is_empty() {
            if unkept.is_empty() {
                continue;
            }
            store.leave_file_changes(&asker.principal, tree, unkept).await?;
            done.is_more = turns.peek().is_some();
            break;
        }
        let asks = match paths.len() {
            1 => "Give back 1 path as it was before?".to_owned(),
            number => format!("Give back {number} paths as they were before?"),
        };
        confirm(app, asker, &paths, &asks).await?;
        let roots: BTreeSet<PathBuf> = paths.iter().map(|(path, _)| path.root.clone()).collect();
        bring_back(app, asker, tree, (paths, left), &mut done).await?;
        store.leave_file_changes(&asker.principal, tree, unkept).await?;
        if !done.given.is_empty()
            && let Some(began) = began(app, asker, tree, answers).await?
        {
            done.history =
                on_disk(move || roots.iter().find_map(|root| git_history::moved(root, began))).await;
        }
        break;
    }
    if done.given.is_empty() && done.left.is_empty() {
        let is_here = |change: &FileChange| workspace == Some(&change.root);
        if let Some(other) = elsewhere(app, asker, tree, is_here).await? {
            done.elsewhere = Some(format!("drawloom tree undo {} --files", other.short_id));
        }
    }
    Ok(CommandOutcome::FilesGivenBack(done))
}

/// The tree, of others than this one, that was said in last of those in which such a change of tools stands.
async fn elsewhere(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    is_meant: impl Fn(&FileChange) -> bool,
) -> Result<Option<TreeEntry>, CommandError> {
    let page = |after| app.runtime.store.trees(&asker.principal, TreeFilter::All, after, LIST_PAGE);
    for other in store::all_pages(TreeEntry::place, page).await? {
        if other.id != tree && standing(app, asker, other.id).await?.iter().any(&is_meant) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// When the first of some answers came; none where all were forgotten.
async fn began(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    answers: BTreeSet<NodeId>,
) -> Result<Option<Millis>, CommandError> {
    let read = move |rows: &dyn TreeReader| {
        let times = answers.into_iter().map(|node| Ok(rows.node(node)?.map(|row| row.node.created_at)));
        Ok(times.collect::<Result<Vec<_>, loom::RowError>>()?.into_iter().flatten().min())
    };
    app.read(asker, tree, read).await
}

/// Clears away what whoever was stopped while giving these back left beside files.
pub(crate) async fn clear_away(app: &App, changes: &[FileChange]) -> Result<(), CommandError> {
    let Disk { locks, guard, .. } = disk(app)?;
    let files: Vec<_> = changes.iter().cloned().map(agent::left_by).collect();
    let told = on_disk(move || ::tools::recover_files(&locks, &guard, files)).await;
    told.iter().for_each(|told| app.frontend.note(told));
    Ok(())
}

/// What stands at each path, or why it is left.
async fn examine(
    app: &App,
    asker: &Asker,
    paths: Vec<PathChange>,
) -> Result<Vec<(PathChange, Result<Found, String>)>, CommandError> {
    let disk = disk(app)?;
    let is_attended = app.frontend.is_attended();
    let examine = move || {
        let links = links_over_folders(&paths);
        let places = if is_attended { BTreeMap::new() } else { disk.places(&paths) };
        let examine = |path: PathChange| {
            let mut examined = disk.examine(&path, &links);
            if let Ok(found) = &examined
                && !found.is_back
                && found.target != FileState::Absent
                && places.get(&path.root).is_some_and(|places| leads_to(places, &path.path))
            {
                examined = Err("git takes it for something that it runs or reads as configuration: it is given back at a \
                                terminal, where what it is is seen before"
                    .to_owned());
            }
            (path, examined)
        };
        paths.into_iter().map(examine).collect()
    };
    let mut paths: Vec<(PathChange, Result<Found, String>)> = on_disk(examine).await;
    for (_, examined) in &mut paths {
        let Ok(found) = examined else { continue };
        if found.is_back {
            continue;
        }
        if let Some(why) = not_kept(app, asker, found.target).await? {
            *examined = Err(why);
        }
    }
    Ok(paths)
}

/// Brings paths back and stores which of their changes do not stand any more. What stands there is kept before, as a
/// change of the owner's. Whoever dies in between finds paths that are what they were.
async fn bring_back(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    (paths, left): (Vec<(PathChange, Found)>, Vec<PathChange>),
    done: &mut FilesGivenBack,
) -> Result<(), CommandError> {
    let (disk, runtime) = (disk(app)?, app.runtime.clone());
    let tasks = tokio::runtime::Handle::current();
    if paths.len() >= MANY {
        app.frontend.note(&format!("bringing back {} paths: what stands there is kept first", paths.len()));
    }
    let paths = keep(app, asker, tree, paths, done).await?;
    let kept: BTreeMap<_, _> =
        paths.iter().map(|(path, _, kept)| ((path.root.clone(), path.path.clone()), *kept)).collect();
    let paths = paths.into_iter().map(|(path, found, _)| (path, found)).collect();
    let bring = move || {
        let blob = |blob: Digest| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
        disk.bring_back(paths, &left, &blob)
    };
    let (mut back, mut not_made) = (Vec::new(), Vec::new());
    for (path, found, brought) in on_disk(bring).await {
        let named = shown(app.workspace.folder.as_deref(), &path.root, &path.path);
        match brought {
            Ok(()) => {
                back.extend(found.ids(&path));
                done.given.push(named);
            }
            Err(why) => {
                not_made.extend(kept.get(&(path.root, path.path.clone())).copied().flatten());
                // It goes when what it holds has gone, and that is named.
                let is_told =
                    done.left.iter().any(|other| other.path != named && other.path.starts_with(&named));
                if !(found.goes_as_folder() && is_told) {
                    done.left.push(LeftFile::new(named, why));
                }
            }
        }
    }
    let store = &app.runtime.store;
    store.take_back_file_changes(&asker.principal, tree, back).await?;
    store.redo_file_changes(&asker.principal, tree, not_made).await?;
    Ok(())
}

/// Keeps what stands at paths that are about to be brought back, and writes that down. Whoever may not write it down
/// changes nothing.
async fn keep(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    paths: Vec<(PathChange, Found)>,
    done: &mut FilesGivenBack,
) -> Result<Vec<(PathChange, Found, Option<FileChangeId>)>, CommandError> {
    let (disk, runtime) = (disk(app)?, app.runtime.clone());
    let tasks = tokio::runtime::Handle::current();
    let keep = move || {
        let mut hold = None;
        let mut keep = |path: &PathChange, found: &Found| {
            if found.unkept.is_some() {
                return Ok(());
            }
            let Some(bytes) = disk.bytes(path, found)? else { return Ok(()) };
            let kept = tasks.block_on(runtime.keep_blobs(vec![bytes]));
            let kept = kept.map_err(|error| format!("what stands there could not be kept: {error}"))?;
            hold.get_or_insert(kept);
            Ok::<_, String>(())
        };
        let kept: Vec<_> = paths
            .into_iter()
            .map(|(path, found)| {
                let kept = keep(&path, &found);
                (path, found, kept)
            })
            .collect();
        (kept, hold)
    };
    let (all, _hold) = on_disk(keep).await;
    let (mut paths, mut changes) = (Vec::new(), Vec::new());
    for (path, found, kept) in all {
        if let Err(why) = kept {
            let path = shown(app.workspace.folder.as_deref(), &path.root, &path.path);
            done.left.push(LeftFile::new(path, why));
            continue;
        }
        // What cannot be brought back is no change that is taken again.
        if found.is_taken_again() {
            changes.push(NewFileChange {
                root: path.root.clone(),
                path: path.path.clone(),
                before: found.state,
                after: found.target,
                is_outside: false,
            });
        }
        paths.push((path, found));
    }
    let mut ids = app.runtime.store.keep_giving_back(&asker.principal, tree, changes).await?.into_iter();
    let mut id_of = |found: &Found| if found.is_taken_again() { ids.next() } else { None };
    Ok(paths
        .into_iter()
        .map(|(path, found)| {
            let id = id_of(&found);
            (path, found, id)
        })
        .collect())
}

fn disk(app: &App) -> Result<Disk, CommandError> {
    let locks = app.runtime.home.dir(HomeDir::Locks);
    let locks = locks.map_err(|error| CommandError::new("home", 6, error.to_string(), error.hint()))?;
    let records = agent::command_records(app.runtime.home.root());
    Ok(Disk { guard: app.guard.clone(), locks, records, umask: store::home::former_umask() })
}

/// Shows what is given back, and asks where somebody is there.
async fn confirm(
    app: &App,
    asker: &Asker,
    paths: &[(PathChange, Found)],
    question: &str,
) -> Result<(), CommandError> {
    if !app.frontend.is_attended() {
        return Ok(());
    }
    let files = differences(app, asker, paths.iter().map(|(path, _)| path)).await?;
    let lines = shown_lines(files.iter().flat_map(|file| file.diff.lines()));
    let confirmed = app.frontend.confirm_shown(&lines, question);
    confirmed.require("not_confirmed", "nothing was given back", "say yes to give it back")
}

/// Lines of differences as they stand before a question: the first of them, and how many follow.
fn shown_lines<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.map(|line| text::terminal::explicit(line).into_owned()).collect();
    let more = lines.len().saturating_sub(SHOWN_LINES);
    if more > 0 {
        lines.truncate(SHOWN_LINES);
        lines.push(format!("[{more} more lines.]"));
    }
    lines
}

/// What is said of the files that the newest turn of a view changed, where the turn is taken back or answered anew;
/// nothing where it changed none.
pub(crate) async fn staying(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    view: ViewName,
) -> Result<Option<&'static str>, CommandError> {
    let read = move |rows: &dyn TreeReader| {
        let newest = rows.timeline(&view)?.undo.map(|seq| rows.operation(seq)).transpose()?.flatten();
        Ok(newest.map(|record| record.turn()))
    };
    let Some(newest): Option<Seq> = app.read(asker, tree, read).await? else { return Ok(None) };
    let changes = standing(app, asker, tree).await?;
    let answers = changes.iter().map(|change| change.id.call.answer).collect();
    let turns = turns_of(app, asker, tree, answers).await?;
    let is_changed = turns.values().any(|turn| *turn == Some(newest));
    Ok(is_changed.then_some("the files it changed stay as they are: /undo --files gives them back"))
}
