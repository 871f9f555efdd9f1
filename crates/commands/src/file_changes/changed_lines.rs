//! Files that the calls of a turn changed, with the lines that came and went (spec: cli §2).

use std::collections::BTreeSet;

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

/// What these calls made of files, all changes of one as one. Folders are left out.
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
        if path.before == path.after || path.before.is_folder() || path.after.is_folder() {
            continue;
        }
        let lines = lines(app, &path, &mut sum).await?;
        files.push(ChangedFile {
            path: shown(workspace, &path.root, &path.path),
            added: lines.map(|(added, _)| added),
            removed: lines.map(|(_, removed)| removed),
        });
    }
    Ok(files)
}

/// Lines that came and went; none of links and of what is no text.
async fn lines(
    app: &App,
    path: &PathChange,
    sum: &mut usize,
) -> Result<Option<(usize, usize)>, CommandError> {
    let mut sides = Vec::new();
    for state in [path.before, path.after] {
        let bytes = match state {
            FileState::Absent => Vec::new(),
            FileState::File { blob, .. } if *sum < COMPARED_BYTES => app.runtime.read_blob(blob).await?,
            _ => return Ok(None),
        };
        *sum += bytes.len();
        let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
            return Ok(None);
        };
        sides.push(text);
    }
    Ok(Some(::tools::lines_between(&sides[0], &sides[1])))
}
