//! `/redo --files`: the last giving-back taken again.

use std::path::PathBuf;

use loom::TreeId;
use store::{ChangeStanding, FileChange, SessionId};

use super::disk::{CHANGED_SINCE, Disk, Found};
use super::path_changes::{PathChange, by_path, is_same};
use super::{changes_that, confirm, disk, on_disk};
use crate::app::App;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::file_changes::{FilesGivenBack, LeftFile};
use crate::rights::Asker;

/// The last giving-back of a tree that was not taken again: all its changes.
async fn last(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<FileChange>, CommandError> {
    let mut changes = changes_that(app, asker, tree, ChangeStanding::GivingBack).await?;
    let at = changes.last().map(|change| change.at);
    changes.retain(|change| Some(change.at) == at);
    Ok(changes)
}

/// Paths that the last giving-back changed.
pub(super) async fn last_paths(app: &App, asker: &Asker, tree: TreeId) -> Result<Vec<PathBuf>, CommandError> {
    Ok(last(app, asker, tree).await?.into_iter().map(|change| change.path).collect())
}

/// Makes files what they were before the last giving-back, while nobody answers in the session.
pub(crate) async fn redo(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let session = app.runtime.store.tree(&asker.principal, tree).await?.session;
    let Some(session) = session.map(SessionId) else { return redo_alone(app, asker, tree).await };
    let redo = |_| Box::pin(redo_alone(app, asker, tree));
    app.runtime.between_turns(&asker.principal, &session, redo).await?
}

async fn redo_alone(app: &App, asker: &Asker, tree: TreeId) -> Result<CommandOutcome, CommandError> {
    let changes = last(app, asker, tree).await?;
    super::clear_away(app, &changes).await?;
    let paths: Vec<PathChange> = by_path(changes);
    let on = disk(app)?;
    let look = move || -> Vec<_> { paths.into_iter().map(|path| found(&on, path)).collect() };
    let (mut done, mut paths, mut redone) =
        (FilesGivenBack { is_redone: true, ..Default::default() }, Vec::new(), Vec::new());
    for (path, found) in on_disk(look).await {
        match found {
            Ok(found) if found.is_back => redone.extend(path.ids),
            Ok(found) => paths.push((path, found)),
            Err(why) => done.left.push(LeftFile { path: path.path, why }),
        }
    }
    if !paths.is_empty() {
        confirm(app, &paths, "Take these changes again?").await?;
    }
    let (on, runtime) = (disk(app)?, app.runtime.clone());
    let tasks = tokio::runtime::Handle::current();
    let bring = move || {
        let blob = |blob| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
        on.bring_back(paths, &[], &blob)
    };
    for (path, _, brought) in on_disk(bring).await {
        match brought {
            Ok(()) => {
                redone.extend(path.ids);
                done.given.push(path.path);
            }
            Err(why) => done.left.push(LeftFile { path: path.path, why }),
        }
    }
    app.runtime.store.redo_file_changes(&asker.principal, tree, redone).await?;
    Ok(CommandOutcome::FilesGivenBack(done))
}

/// What stands at a path that is what the giving-back left, or is redone already.
fn found(disk: &Disk, path: PathChange) -> (PathChange, Result<Found, String>) {
    let found = disk.stands(&path).and_then(|(state, ..)| {
        let is_back = state == path.before || (state.is_folder() && path.before.is_folder());
        if is_back || is_same(path.after, state) {
            Ok(Found { is_back, ..Found::of(state, path.before) })
        } else {
            Err(CHANGED_SINCE.to_owned())
        }
    });
    (path, found)
}
