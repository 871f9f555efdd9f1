//! Instructions of folders: an AGENTS.md below the top of a workspace, told of once work enters its folder (spec: context §2).

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use context::FolderInstructions;
use loom::Trust;
use text::cut::head_tail;
use text::terminal::explicit;
use workspace::protected::{DEPENDENCY_FOLDERS, is_git_folder};
use workspace::{ReadRules, RelativePath, Root};

use crate::changes::ChangeRecorder;
use crate::tool::ToolScope;

/// Names of the file, of which the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Characters of one file that are told.
const OF_FILE: usize = 8_000;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// What was found in the folders that calls of a turn worked in, a folder before those in it. What
/// was told stands with the call behind which it was.
#[derive(Debug, Default)]
pub(crate) struct EnteredFolders(Mutex<Vec<(RelativePath, FolderInstructions)>>);

impl EnteredFolders {
    /// Looks into the folders on the way to some paths of the workspace. It blocks.
    pub(crate) fn enter(&self, scope: &ToolScope, changes: &dyn ChangeRecorder, paths: &[RelativePath]) {
        // What a workspace says that is not trusted instructs nobody.
        let workspace = scope.roots.all().find(|root| !root.is_further());
        let Some(root) = workspace.filter(|_| scope.trust > Trust::Outside) else { return };
        for path in paths {
            let is_folder = root.path().join(path.as_path()).is_dir();
            let mut folders: Vec<RelativePath> = path
                .as_path()
                .ancestors()
                .skip(usize::from(!is_folder))
                .filter_map(|folder| RelativePath::from_components(folder).ok())
                .filter(|folder| !folder.is_root() && may_instruct(scope, root, folder))
                .collect();
            folders.reverse();
            for folder in folders {
                let found = read(scope, root, changes, &folder);
                self.keep(folder, found);
            }
        }
    }

    fn keep(&self, folder: RelativePath, found: Option<FolderInstructions>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (all.iter_mut().find(|(known, _)| *known == folder), found) {
            (Some((_, known)), Some(found)) => *known = found,
            (None, Some(found)) => all.push((folder, found)),
            (_, None) => all.retain(|(known, _)| *known != folder),
        }
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn instructions(&self) -> Vec<FolderInstructions> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<_> = all.iter().collect();
        // Calls of an answer may run beside each other.
        found.sort_by(|(one, _), (other, _)| one.as_path().cmp(other.as_path()));
        found.into_iter().map(|(_, found)| found.clone()).collect()
    }
}

/// Whether a folder is none that packages or git bring, and in no repository of its own, which is another workspace.
fn may_instruct(scope: &ToolScope, root: &Root, folder: &RelativePath) -> bool {
    let further = scope.commands.as_ref().map_or(&[][..], |commands| &commands.walls.dependency_folders);
    let is_repository = |folder: &Path| {
        folder != Path::new("") && root.path().join(folder).join(".git").symlink_metadata().is_ok()
    };
    !folder.as_path().ancestors().any(is_repository)
        && folder.as_path().iter().all(|name| {
            let name = name.to_string_lossy();
            !DEPENDENCY_FOLDERS.contains(&&*name)
                && !is_git_folder(&name)
                && !further.iter().any(|other| *other == name)
        })
}

/// The file of a folder, if it says something that counts.
fn read(
    scope: &ToolScope,
    root: &Root,
    changes: &dyn ChangeRecorder,
    folder: &RelativePath,
) -> Option<FolderInstructions> {
    let rules = ReadRules::at_most(MAX_BYTES);
    let (path, content) = NAMES.iter().find_map(|name| {
        let path = folder.join(name).ok()?;
        let content = root.read(&path, &rules).ok()?;
        Some((path, content))
    })?;
    scope.require_read(root, &path).ok()?;
    let digest = content.digest();
    if changes.is_of_running_command(&root.path().join(path.as_path()), digest) {
        return None;
    }
    // A command may have ended, and what it changed been given back, since the file was read.
    if root.read(&path, &rules).ok()?.digest() != digest {
        return None;
    }
    let is_outside = changes.knows_outside() && !changes.outside(vec![digest]).is_empty();
    let text = String::from_utf8(content.bytes).ok()?;
    let text = scope.masker.mask_entering(text.trim_start_matches('\u{feff}').trim()).text;
    let text = head_tail(&text, OF_FILE, "instructions").text.into_owned();
    let trust = if is_outside { Trust::Outside } else { scope.trust };
    let shown = |path: &RelativePath| explicit(&path.as_path().to_string_lossy()).into_owned();
    let (path, folder) = (shown(&path), shown(folder));
    (!text.is_empty()).then_some(FolderInstructions { path, folder, digest, trust, text })
}
