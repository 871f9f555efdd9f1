//! The files below a folder, in order, without links; what git ignores is passed over unless asked for.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use model::Cancel;
use workspace::{FileKind, LinkPolicy, ReadRules, RelativePath, RootedPath};

use super::failed;

/// Names that are looked at in one call.
const MOST: usize = 200_000;
/// Bytes of a `.gitignore` that is read.
const IGNORE_BYTES: u64 = 1 << 20;
/// Folders below each other that are gone into.
const DEPTH: usize = 64;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything was seen, or what was looked for was found.
    Whole,
    /// There was more than is looked at in one call.
    Limited,
    Stopped,
}

impl Ended {
    /// What stands below what was found.
    pub(super) const fn note(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Limited => "[Not all files were looked at: there are too many. Name a folder.]\n",
            Self::Stopped => "[Stopped: not all files were looked at.]\n",
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
    /// The folder itself cannot be listed; others that cannot are passed over.
    pub(super) fn files(&self, mut see: impl FnMut(&Found<'_>) -> bool) -> Result<Ended, String> {
        let start = self.place.path.as_path().to_owned();
        let root = self.place.root;
        let at_start = root.stat(&self.place.path, LinkPolicy::Refuse).map_err(|error| failed(&error))?;
        if at_start.kind == FileKind::Regular {
            let below = Path::new(start.file_name().unwrap_or_default());
            see(&Found { path: &self.place.path, below });
            return Ok(Ended::Whole);
        }
        let (mut seen, mut ignores) = (0, self.above(&start));
        // Folders that are to be listed, the next one last, with how many ignore files stand above each.
        let mut folders = vec![(start.clone(), ignores.len())];
        let mut is_first = true;
        while let Some((folder, above)) = folders.pop() {
            if self.cancel.is_cancelled() {
                return Ok(Ended::Stopped);
            }
            ignores.truncate(above);
            ignores.extend(self.ignore_file(&folder));
            let Ok(path) = RelativePath::parse(&shown(&folder)) else { continue };
            let listing = match root.list(&path, MOST) {
                Ok(listing) => listing,
                Err(error) if is_first => return Err(failed(&error)),
                Err(_) => continue,
            };
            is_first = false;
            let mut below = Vec::new();
            for entry in listing.entries {
                seen += 1;
                if seen > MOST {
                    return Ok(Ended::Limited);
                }
                let at = folder.join(&entry.name);
                let is_folder = entry.kind == FileKind::Folder;
                if entry.name == OsStr::new(".git") || self.is_ignored(&ignores, &at, is_folder) {
                    continue;
                }
                let depth = at.components().count().saturating_sub(start.components().count());
                match entry.kind {
                    FileKind::Folder if depth < DEPTH => below.push((at, ignores.len())),
                    FileKind::Regular => {
                        let Some(path) = at.to_str().and_then(|at| RelativePath::parse(at).ok()) else {
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
        Ok(Ended::Whole)
    }

    /// The ignore files of the folders above one.
    fn above(&self, folder: &Path) -> Vec<Gitignore> {
        let mut above: Vec<PathBuf> = folder.ancestors().skip(1).map(Path::to_owned).collect();
        above.reverse();
        above.iter().filter_map(|folder| self.ignore_file(folder)).collect()
    }

    fn ignore_file(&self, folder: &Path) -> Option<Gitignore> {
        if self.ignored {
            return None;
        }
        // Git's own file of a repository counts as far as its root does.
        let names: &[&str] = if folder.join(".git") == Path::new(".git") {
            &[".git/info/exclude", ".gitignore"]
        } else {
            &[".gitignore"]
        };
        let mut builder = GitignoreBuilder::new(folder);
        let mut is_there = false;
        for name in names {
            let Ok(path) = RelativePath::parse(&shown(&folder.join(name))) else { continue };
            let Ok(read) = self.place.root.read(&path, &ReadRules::at_most(IGNORE_BYTES)) else { continue };
            is_there = true;
            let text = String::from_utf8_lossy(&read.bytes);
            for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
                // A line that git would not understand says nothing.
                builder.add_line(None, &literal_braces(line)).ok();
            }
        }
        is_there.then(|| builder.build().ok()).flatten()
    }

    fn is_ignored(&self, ignores: &[Gitignore], path: &Path, is_folder: bool) -> bool {
        if self.ignored {
            return false;
        }
        // The nearest file that says something decides.
        let said =
            ignores.iter().rev().map(|file| file.matched(path, is_folder)).find(|said| !said.is_none());
        said.is_some_and(|said| said.is_ignore())
    }
}

/// A line in which braces are no alternatives: git knows none.
fn literal_braces(line: &str) -> String {
    let mut out = String::new();
    let mut is_escaped = false;
    for c in line.chars() {
        if matches!(c, '{' | '}') && !is_escaped {
            out.push('\\');
        }
        is_escaped = c == '\\' && !is_escaped;
        out.push(c);
    }
    out
}

/// A path as text; the root itself has a name too.
fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}
