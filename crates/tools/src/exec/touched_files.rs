//! Protected files that a command was let to write: their difference afterwards (spec: security §1).

use std::collections::BTreeMap;

use workspace::{FileKind, RelativePath, RootedPath};

use crate::changes::{FileEdit, FoundFile, difference, first_lines, found, paths_below};
use crate::tool::ToolScope;

/// Bytes of all files that are compared.
const COMPARED: usize = 16 << 20;

/// What stood at the paths that a command may touch, and below them.
pub(super) struct TouchedFiles<'s> {
    scope: &'s ToolScope,
    places: Vec<RootedPath<'s>>,
    /// By the place and the path.
    before: BTreeMap<(usize, RelativePath), FoundFile>,
}

impl<'s> TouchedFiles<'s> {
    /// Reads them, before the command runs. What cannot be read is not compared. It blocks.
    pub(super) fn read(scope: &'s ToolScope, touches: &[String]) -> Self {
        let places: Vec<_> = touches.iter().filter_map(|path| scope.roots.place(path).ok()).collect();
        let before = files(scope, &places);
        Self { scope, places, before }
    }

    /// What became of them, masked; none where nothing did. It blocks.
    pub(super) fn difference(mut self) -> Option<String> {
        let mut after = files(self.scope, &self.places);
        let mut paths: Vec<_> = self.before.keys().chain(after.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        let mut edits = Vec::new();
        for key in paths {
            let (before, after) = (self.before.remove(&key), after.remove(&key));
            let after = after.map(|file| file.bytes);
            let edit = FileEdit { root: self.places[key.0].root, path: key.1, before, after, mode: None };
            if edit.changes_something() {
                edits.push(edit);
            }
        }
        (!edits.is_empty()).then(|| first_lines(&difference(self.scope, &edits)))
    }
}

/// The files of some places that may be read.
fn files(scope: &ToolScope, places: &[RootedPath<'_>]) -> BTreeMap<(usize, RelativePath), FoundFile> {
    let mut sum = 0;
    let mut all: BTreeMap<(usize, RelativePath), FoundFile> = BTreeMap::new();
    for (number, place) in places.iter().enumerate() {
        for (path, kind) in paths_below(place).unwrap_or_default() {
            let is_again = places[..number].iter().any(|other| {
                other.root.id() == place.root.id() && path.as_path().starts_with(other.path.as_path())
            });
            if is_again || sum > COMPARED || matches!(kind, FileKind::Folder | FileKind::Symlink) {
                continue;
            }
            if scope.require_read(place.root, &path).is_ok()
                && let Ok(Some(file)) = found(place.root, &path)
            {
                sum += file.bytes.len();
                all.insert((number, path), file);
            }
        }
    }
    all
}
