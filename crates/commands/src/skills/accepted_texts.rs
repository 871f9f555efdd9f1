//! Accepted texts of skills of a workspace whose files changed since: kept in the home, and used in their place (spec: security
//! §25).

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use loom::Digest;
use skills::{AcceptedText, SkillText};
use store::home::HomeDir;
use workspace::trust::Accepted;
use workspace::{read_small_file, replace_small_file};

use super::FILE;
use super::finder::SkillFinder;

/// Digits of the digest of a workspace's key that name it.
const ID: usize = 16;

/// Folder of the accepted texts of a workspace, below what the home keeps of it.
const FOLDER: &str = "accepted";

/// The accepted text of a skill of a workspace in place of one that is not accepted, as a model reads it; none where none
/// is kept.
pub fn text_in_place(accepted: &Accepted, text: SkillText<'_>) -> Option<String> {
    let kept = accepted.before(text.path, text.digest).filter(|_| text.is_of_workspace)?;
    Some(format!(
        "{}\n\nThis text was accepted; {} has another one by now. Further files that it names are in {}.\n",
        kept.trim_end(),
        text.path.display(),
        text.path.parent()?.display()
    ))
}

/// The accepted text in place of one that is not accepted, written to its file; none where none is kept, or it cannot be
/// written.
pub(super) fn accepted_text(
    finder: &SkillFinder,
    accepted: &Accepted,
    text: SkillText<'_>,
) -> Option<AcceptedText> {
    let whole = text_in_place(accepted, text)?;
    match write(finder, text.path.parent()?, &whole) {
        Ok(path) => Some(AcceptedText { path, text: whole }),
        Err(error) => {
            tracing::warn!(%error, skill = %text.path.display(), "an accepted text cannot be written");
            None
        }
    }
}

/// The file that the accepted text of a file of the workspace is written to where it stands in for it.
pub(super) fn stand_in(finder: &SkillFinder, file: &Path) -> Option<PathBuf> {
    Some(top(finder).ok()?.join(file.parent()?).join(FILE))
}

/// Removes the accepted texts that stand in for no file of the workspace any more: all but those of these files.
pub(super) fn remove_unused(finder: &SkillFinder, used: &[&Path]) {
    let removed = top(finder).and_then(|top| remove_below(&top, used));
    if let Err(error) = removed
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(%error, "accepted texts that are not used cannot be removed");
    }
}

fn remove_below(folder: &Path, used: &[&Path]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_below(&path, used)?;
        } else if entry.file_name() == FILE && !used.contains(&&*path) {
            fs::remove_file(&path)?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

/// Folder of the accepted texts of the workspace.
fn top(finder: &SkillFinder) -> io::Result<PathBuf> {
    let kept = finder.runtime.home.dir(HomeDir::Workspaces).map_err(io::Error::other)?.canonicalize()?;
    // A model writes the path: it is a short one.
    let id = Digest::of(finder.workspace_key.as_bytes()).to_string();
    Ok(kept.join(&id[..ID]).join(FOLDER))
}

fn write(finder: &SkillFinder, folder: &Path, text: &str) -> io::Result<PathBuf> {
    let place = top(finder)?.join(folder);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&place)?;
    let path = place.join(FILE);
    if read_small_file(&path, text.len() as u64).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(path);
    }
    replace_small_file(&path, text.as_bytes())?;
    Ok(path)
}
