//! Files that the calls of a turn changed, with the lines that came and went (spec: cli §2).

use std::collections::BTreeSet;
use std::path::PathBuf;

use loom::TreeId;
use store::{CallId, FileState};

use super::path_changes::{PathChange, by_path};
use super::{shown, standing};
use crate::app::App;
use crate::error::CommandError;
use crate::results::chat::ChangedFile;
use crate::rights::Asker;

/// Bytes of files that are compared; what lies behind them is only named.
const COMPARED_BYTES: usize = 16 << 20;

/// What these calls made of files, all changes of one as one. Folders are left out that were no file and became
/// none, unless they have another mode.
pub(crate) async fn changed_by(
    app: &App,
    asker: &Asker,
    tree: TreeId,
    calls: BTreeSet<CallId>,
) -> Result<Vec<ChangedFile>, CommandError> {
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let mut changes = standing(app, asker, tree).await?;
    changes.retain(|change| calls.contains(&change.id.call));
    let workspace = app.workspace.folder.as_deref();
    let (mut files, mut sum) = (Vec::new(), 0);
    for path in by_path(changes) {
        let is_file = |state| !matches!(state, FileState::Absent | FileState::Folder { .. });
        let is_named = is_file(path.before) || is_file(path.after) || path.is_folder_mode();
        if path.before == path.after || !is_named {
            continue;
        }
        let lines = lines(app, &path, &mut sum).await;
        files.push(ChangedFile {
            path: masked(app, shown(workspace, &path.root, &path.path)),
            added: lines.map(|(added, _)| added),
            removed: lines.map(|(_, removed)| removed),
        });
    }
    Ok(files)
}

/// A path without what looks like a secret in it, as a model is told of it.
fn masked(app: &App, path: PathBuf) -> PathBuf {
    let masked = path.to_str().map(|text| app.runtime.masker.mask(text).text.into_owned());
    masked.map_or(path, PathBuf::from)
}

/// Lines that came and went; none of links, of what is no text, of what is not kept, and of a file that became a folder.
pub(super) async fn lines(app: &App, path: &PathChange, sum: &mut usize) -> Option<(usize, usize)> {
    let mut sides = Vec::new();
    for state in [path.before, path.after] {
        let bytes = match state {
            FileState::Absent => Vec::new(),
            FileState::File { blob, .. } if *sum < COMPARED_BYTES => {
                let read = app.runtime.read_blob(blob).await;
                read.inspect_err(|error| tracing::debug!(%error, "lines of a change cannot be told")).ok()?
            }
            _ => return None,
        };
        *sum += bytes.len();
        sides.push(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?);
    }
    tokio::task::spawn_blocking(move || ::tools::lines_between(&sides[0], &sides[1])).await.ok()
}
