//! `/redo --files`: the last giving-back taken again.

use std::collections::BTreeSet;
use std::path::PathBuf;

use agent::file_states::{CHANGED_SINCE, is_same};
use agent::on_disk;
use loom::TreeId;
use store::{ChangeStanding, FileChange, SessionId};

use super::disk::{Disk, Found, is_back};
use super::path_changes::{PathChange, PathPlace, by_path, links_over_folders};
use super::{changes_that, confirm, disk, not_kept, shown};
use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::{FilesGivenBack, LeftFile};
use crate::rights::Asker;

/// The givings-back of a tree that were not taken again, the newest first.
async fn givings_back(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<Vec<FileChange>>, CommandError> {
    let changes = changes_that(app, asker, tree, |standing| standing == ChangeStanding::GivingBack).await?;
    let mut all: Vec<Vec<FileChange>> =
        changes.chunk_by(|one, next| one.at == next.at).map(<[_]>::to_vec).collect();
    all.reverse();
    Ok(all)
}

/// Paths that the last giving-back changed.
pub(super) async fn last_paths(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<PathBuf>, CommandError> {
    let last = givings_back(app, asker, tree).await?.into_iter().next().unwrap_or_default();
    let workspace = app.workspace.folder.as_deref();
    Ok(last.iter().map(|change| shown(workspace, &change.root, &change.path)).collect())
}

/// Makes files what they were before the last giving-back, while nobody answers in the session.
pub(crate) async fn redo(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else { return redo_alone(app, asker, tree).await };
    let redo = |_| Box::pin(redo_alone(app, asker, tree));
    app.runtime.between_turns(&asker.principal, &session, redo).await?
}

/// Takes the newest again of which something is left to take; what a person changed since stays as it is.
async fn redo_alone(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let mut done = FilesGivenBack { is_redone: true, ..FilesGivenBack::default() };
    for changes in givings_back(app, asker, tree).await? {
        if redo_one(app, asker, (tree, changes), &mut done).await? {
            break;
        }
    }
    Ok(CommandOutcome::FilesGivenBack(done))
}

/// Takes one giving-back again. Returns whether there was something to take.
async fn redo_one(
    app: &App,
    asker: &Asker,
    (tree, changes): (TreeId, Vec<FileChange>),
    done: &mut FilesGivenBack,
) -> Result<bool, CommandError> {
    super::clear_away(app, &changes).await?;
    let named = |path: &PathChange| shown(app.workspace.folder.as_deref(), &path.root, &path.path);
    let all: Vec<PathChange> = by_path(changes);
    let on = disk(app)?;
    let look = move || -> Vec<_> {
        let links = links_over_folders(&all);
        let found = |path| (found(&on, &path, &links), path);
        all.into_iter().map(found).collect()
    };
    let (mut paths, mut redone, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for (mut found, path) in on_disk(look).await {
        if let Ok(of) = &found
            && !of.is_back
            && let Some(why) = not_kept(app, asker, of.target).await?
        {
            found = Err(why);
        }
        match found {
            Ok(found) if found.is_back => redone.extend(path.ids),
            Ok(found) => paths.push((path, found)),
            Err(why) => {
                done.left.push(LeftFile::new(named(&path), why));
                left.push(path);
            }
        }
    }
    let is_something = !paths.is_empty();
    if is_something {
        confirm(app, asker, &paths, "Take these changes again?").await?;
    }
    let (on, runtime) = (disk(app)?, app.runtime.clone());
    let tasks = tokio::runtime::Handle::current();
    let bring = move || {
        let blob = |blob| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
        on.bring_back(paths, &left, &blob)
    };
    for (path, _, brought) in on_disk(bring).await {
        let name = named(&path);
        match brought {
            Ok(()) => {
                redone.extend(path.ids);
                done.given.push(name);
            }
            Err(why) => done.left.push(LeftFile::new(name, why)),
        }
    }
    app.runtime.store.redo_file_changes(&asker.principal, tree, redone).await?;
    Ok(is_something)
}

/// What stands at a path that is what the giving-back left, or is redone already.
pub(super) fn found(disk: &Disk, path: &PathChange, links: &BTreeSet<PathPlace>) -> Result<Found, String> {
    let (state, ..) = disk.stands(path, links)?;
    let is_back = is_back(path.before, state, &[path.after]);
    if is_back || is_same(path.after, state) {
        Ok(Found { is_back, ..Found::of(state, path.before) })
    } else {
        Err(CHANGED_SINCE.to_owned())
    }
}
