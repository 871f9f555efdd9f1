//! Accepted texts of skills of a workspace whose files changed since: kept in the home, and used in their place (spec: security
//! §25).

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use loom::Digest;
use skills::{AcceptedText, SkillText};
use store::home::HomeDir;
use workspace::replace_small_file;
use workspace::trust::Accepted;

use super::FILE;
use crate::app::App;

/// Digits of the digest of a workspace's key that name it.
const ID: usize = 16;

/// Folder of the accepted texts of a workspace, below what the home keeps of it.
const FOLDER: &str = "accepted";

/// The accepted text in place of one that is not accepted, written to its file; none where none is kept, or it cannot be
/// written.
pub(super) fn accepted_text(app: &App, accepted: &Accepted, text: SkillText<'_>) -> Option<AcceptedText> {
    if !text.is_of_workspace {
        return None;
    }
    let kept = accepted.before(text.path, text.digest)?;
    let folder = text.path.parent()?;
    let whole = format!(
        "{}\n\nThis text was accepted; {} has another one by now. Further files that it names are in {}.\n",
        kept.trim_end(),
        text.path.display(),
        folder.display()
    );
    match write(app, folder, &whole) {
        Ok(path) => Some(AcceptedText { path, text: whole }),
        Err(error) => {
            tracing::warn!(%error, skill = %text.path.display(), "an accepted text cannot be written");
            None
        }
    }
}

/// The file that the accepted text of a file of the workspace was written to, where it stands in for it no more.
pub(super) fn earlier_stand_in(app: &App, file: &Path) -> Option<PathBuf> {
    let path = place(app, file.parent()?).ok()?.canonicalize().ok()?.join(FILE);
    path.is_file().then_some(path)
}

fn place(app: &App, folder: &Path) -> io::Result<PathBuf> {
    let kept = app.runtime.home.dir(HomeDir::Workspaces).map_err(io::Error::other)?;
    // A model writes the path: it is a short one.
    let id = Digest::of(app.workspace.key.as_bytes()).to_string();
    Ok(kept.join(&id[..ID]).join(FOLDER).join(folder))
}

fn write(app: &App, folder: &Path, text: &str) -> io::Result<PathBuf> {
    let place = place(app, folder)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
    let path = place.canonicalize()?.join(FILE);
    if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(path);
    }
    replace_small_file(&path, text.as_bytes())?;
    Ok(path)
}
