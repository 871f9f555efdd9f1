//! The files below a folder, in order, without links; what git ignores is passed over unless asked for.

use std::ffi::OsStr;
use std::path::Path;

use model::Cancel;
use workspace::{FileKind, LinkPolicy, RelativePath, RootedPath};

use super::failed;
use crate::ignores::{Ignores, shown};

/// Names that are looked at in one call.
const MOST: usize = 200_000;
/// Folders below each other that are gone into.
const DEPTH: usize = 64;

/// How a walk ended.
enum Ended {
    /// Everything was seen, or what was looked for was found.
    Whole,
    /// There was more than is looked at in one call.
    Limited,
    Stopped,
}

/// What is said of a walk that was stopped.
pub(super) const STOPPED: &str = "[Stopped: not all files were looked at.]\n";

/// What became of a walk.
pub(super) struct Walked {
    ended: Ended,
    /// Folders that cannot be listed or lie too deep, and names that are no text.
    passed_over: usize,
}

impl Walked {
    /// What stands below what was found.
    pub(super) fn note(&self) -> String {
        let end = match self.ended {
            Ended::Whole => "",
            Ended::Limited => "[Not all files were looked at: there are too many. Name a folder.]\n",
            Ended::Stopped => STOPPED,
        };
        match self.passed_over {
            0 => end.to_owned(),
            number => format!(
                "[Passed over, as they cannot be listed, lie too deep or have a name that is no text: {number}.]\n{end}"
            ),
        }
    }
}

/// Files that are looked for.
pub(super) struct Walk<'s> {
    pub(super) place: RootedPath<'s>,
    /// Whether those that git ignores are looked at as well.
    pub(super) ignored: bool,
    pub(super) cancel: &'s Cancel,
}

/// A file that was found.
pub(super) struct Found<'p> {
    pub(super) path: &'p RelativePath,
    /// Its path below the folder that was walked.
    pub(super) below: &'p Path,
}

impl Walk<'_> {
    /// Shows every file to `see`, until that says that it is enough.
    ///
    /// # Errors
    /// The folder itself cannot be listed; others that cannot are passed over and counted.
    pub(super) fn files(&self, mut see: impl FnMut(&Found<'_>) -> bool) -> Result<Walked, String> {
        let mut passed_over = 0;
        let ended = self.walk(&mut see, &mut passed_over)?;
        Ok(Walked { ended, passed_over })
    }

    fn walk(
        &self,
        see: &mut dyn FnMut(&Found<'_>) -> bool,
        passed_over: &mut usize,
    ) -> Result<Ended, String> {
        let start = self.place.path.as_path().to_owned();
        let root = self.place.root;
        let at_start = root.stat(&self.place.path, LinkPolicy::Refuse).map_err(|error| failed(&error))?;
        if at_start.kind == FileKind::Regular {
            let below = Path::new(start.file_name().unwrap_or_default());
            see(&Found { path: &self.place.path, below });
            return Ok(Ended::Whole);
        }
        let mut ignores = if self.ignored { Ignores::none(root) } else { Ignores::above(root, &start) };
        let mut seen = 0;
        // Folders that are to be listed, the next one last, with how many ignore files stand above each.
        let mut folders = vec![(start.clone(), ignores.len())];
        let (mut is_first, mut is_cut) = (true, false);
        while let Some((folder, above)) = folders.pop() {
            if self.cancel.is_cancelled() {
                return Ok(Ended::Stopped);
            }
            ignores.truncate(above);
            ignores.enter(&folder);
            let listed = path_of(&folder).map(|path| root.list(&path, MOST));
            let listing = match listed {
                Some(Ok(listing)) => listing,
                Some(Err(error)) if is_first => return Err(failed(&error)),
                Some(Err(_)) | None => {
                    *passed_over += 1;
                    continue;
                }
            };
            is_first = false;
            is_cut |= listing.incomplete;
            let mut below = Vec::new();
            for entry in listing.entries {
                seen += 1;
                if seen > MOST {
                    return Ok(Ended::Limited);
                }
                let at = folder.join(&entry.name);
                let is_folder = entry.kind == FileKind::Folder;
                if entry.name == OsStr::new(".git") || ignores.is_ignored(&at, is_folder) {
                    continue;
                }
                let depth = at.components().count().saturating_sub(start.components().count());
                match entry.kind {
                    FileKind::Folder if depth < DEPTH => below.push((at, ignores.len())),
                    FileKind::Folder => *passed_over += 1,
                    FileKind::Regular => {
                        let Some(path) = path_of(&at) else {
                            *passed_over += 1;
                            continue;
                        };
                        let below = at.strip_prefix(&start).unwrap_or(&at);
                        if !see(&Found { path: &path, below }) {
                            return Ok(Ended::Whole);
                        }
                    }
                    _ => {}
                }
            }
            folders.extend(below.into_iter().rev());
        }
        Ok(if is_cut { Ended::Limited } else { Ended::Whole })
    }
}

/// A path beneath the root; none whose name is no text, as no tool could be told of it.
fn path_of(path: &Path) -> Option<RelativePath> {
    path.to_str()?;
    RelativePath::parse(&shown(path)).ok()
}
