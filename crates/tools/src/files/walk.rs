//! The files below a folder, in order, without links; what git ignores is passed over unless asked for.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use model::Cancel;
use workspace::{FileKind, LinkPolicy, OpenFolder, RelativePath, RootedPath};

use super::failed;
use crate::ignores::{Ignores, shown};

/// Names that are looked at in one call.
const MOST: usize = 200_000;
/// Names between two looks at the time.
const LOOK: usize = 256;
/// Folders below each other that are gone into.
const DEPTH: usize = 64;

/// How a walk ended.
enum Ended {
    /// Everything was seen, or what was looked for was found.
    Whole,
    /// There was more than is looked at in one call.
    Limited,
    /// The walk took longer than one may.
    TimedOut,
    Stopped,
}

/// What is said of a walk that was stopped.
pub(super) const STOPPED: &str = "[Stopped: not all files were looked at.]\n";

/// What is said of a walk that took too long.
pub(super) const TIMED_OUT: &str =
    "[Not all files were looked at: it took longer than a search may (limits.glob). Name a folder.]\n";

/// What became of a walk.
pub(super) struct Walked {
    ended: Ended,
    /// Folders that cannot be listed or lie too deep, and names that are no text.
    passed_over: usize,
}

impl Walked {
    /// A walk that ended where enough had been found.
    pub(super) const fn enough(passed_over: usize) -> Self {
        Self { ended: Ended::Whole, passed_over }
    }

    /// What stands below what was found.
    pub(super) fn note(&self) -> String {
        let end = match self.ended {
            Ended::Whole => "",
            Ended::Limited => "[Not all files were looked at: there are too many. Name a folder.]\n",
            Ended::TimedOut => TIMED_OUT,
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
    /// When it ends with what was found.
    pub(super) until: Instant,
}

/// A file that was found.
pub(super) struct Found<'p> {
    pub(super) path: &'p RelativePath,
    /// Path below the folder that was walked.
    pub(super) below: &'p Path,
    /// The folder it was found in, and its place there; none of the file that was named itself.
    pub(super) entry: Option<(&'p Arc<OpenFolder>, usize)>,
    /// What was passed over before it.
    pub(super) passed_over: usize,
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
            see(&Found { path: &self.place.path, below, entry: None, passed_over: 0 });
            return Ok(Ended::Whole);
        }
        let mut ignores = if self.ignored { Ignores::none(root) } else { Ignores::above(root, &start) };
        let mut seen = 0;
        // Folders that are to be listed, the next one last, with how many ignore files stand above each; none of a
        // path that is no text.
        let mut folders = vec![(path_of(&start), ignores.len())];
        let (mut is_first, mut is_cut) = (true, false);
        while let Some((folder, above)) = folders.pop() {
            if self.cancel.is_cancelled() {
                return Ok(Ended::Stopped);
            }
            if Instant::now() >= self.until {
                return Ok(Ended::TimedOut);
            }
            ignores.truncate(above);
            let Some(folder) = folder else {
                *passed_over += 1;
                continue;
            };
            ignores.enter(folder.as_path());
            let opened = match root.open_folder(&folder, MOST) {
                Ok(opened) => Arc::new(opened),
                Err(error) if is_first => return Err(failed(&error)),
                Err(_) => {
                    *passed_over += 1;
                    continue;
                }
            };
            is_first = false;
            is_cut |= opened.listing().incomplete;
            let mut below = Vec::new();
            for (number, entry) in opened.listing().entries.iter().enumerate() {
                seen += 1;
                if seen % LOOK == 0 && Instant::now() >= self.until {
                    return Ok(Ended::TimedOut);
                }
                if seen > MOST {
                    return Ok(Ended::Limited);
                }
                let is_folder = entry.kind == FileKind::Folder;
                if !is_folder && entry.kind != FileKind::Regular || entry.name == OsStr::new(".git") {
                    continue;
                }
                let path = entry.name.to_str().and_then(|name| folder.join(name).ok());
                let at = match &path {
                    Some(path) => Cow::Borrowed(path.as_path()),
                    None => Cow::Owned(folder.as_path().join(&entry.name)),
                };
                if ignores.is_ignored(&at, is_folder) {
                    continue;
                }
                if is_folder {
                    let depth = at.components().count().saturating_sub(start.components().count());
                    if depth < DEPTH {
                        below.push((path, ignores.len()));
                    } else {
                        *passed_over += 1;
                    }
                    continue;
                }
                let Some(path) = &path else {
                    *passed_over += 1;
                    continue;
                };
                let below = path.as_path().strip_prefix(&start).unwrap_or(path.as_path());
                let entry = Some((&opened, number));
                if !see(&Found { path, below, entry, passed_over: *passed_over }) {
                    return Ok(Ended::Whole);
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
