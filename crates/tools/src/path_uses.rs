//! Paths of a call, as a decision on it needs them: below which root each lies, and what protects it.

use std::path::PathBuf;

use policy::{PathAccess, PathPlace, PathUse};
use workspace::protected::ProtectionMatch;
use workspace::{
    AllowedRoots, FileKind, FileProblem, LinkPolicy, ProtectedPlaces, RelativePath, Root, RootAccess,
};

/// A path below a root, for a decision on the call.
pub(crate) fn path_use(root: &Root, path: RelativePath, access: PathAccess) -> PathUse {
    let place = match root.access() {
        _ if root.is_closed(&path) => PathPlace::Private,
        RootAccess::ReadOnly => PathPlace::ReadOnlyRoot,
        RootAccess::ReadWrite => PathPlace::WritableRoot,
    };
    PathUse { path, further_root: further_root(root), access, place }
}

/// A path that is read, and the one below a root that links on its way lead to, if that is another. It blocks.
pub(crate) fn read_paths(roots: &AllowedRoots, named: PathUse) -> Vec<PathUse> {
    let root = roots.all().find(|root| further_root(root) == named.further_root);
    let resolved = root.and_then(|root| root.path().join(named.path.as_path()).canonicalize().ok());
    let place = resolved.as_ref().and_then(|path| roots.place(path.to_str()?).ok());
    let resolved = place.map(|place| path_use(place.root, place.path, PathAccess::Read));
    let other = resolved.filter(|resolved| *resolved != named);
    [named].into_iter().chain(other).collect()
}

/// Whether what is written to a path by its name comes to that path: no link stands on the way, as with file tools, and what
/// is there is a file without another name. It blocks.
pub(crate) fn is_direct(roots: &AllowedRoots, path: &PathUse) -> bool {
    let root = roots.all().find(|root| further_root(root) == path.further_root);
    root.is_some_and(|root| match root.stat(&path.path, LinkPolicy::Refuse) {
        Ok(found) => found.kind == FileKind::Regular && found.links == 1,
        Err(error) => matches!(error.problem, FileProblem::NotFound),
    })
}

/// Whether a folder stands at a path, and no link on the way. It blocks.
pub(crate) fn is_direct_folder(root: &Root, path: &RelativePath) -> bool {
    root.stat(path, LinkPolicy::Refuse).is_ok_and(|found| found.kind == FileKind::Folder)
}

/// Canonical path of a further root; none of the workspace.
pub(crate) fn further_root(root: &Root) -> Option<PathBuf> {
    root.is_further().then(|| root.path().to_owned())
}

/// Finds out which of some paths are protected by what leads to them, from whichever root. It blocks.
pub(crate) fn judge_places(roots: &AllowedRoots, paths: &mut [PathUse]) {
    if !paths.iter().any(is_changed) {
        return;
    }
    let writable: Vec<&Root> = roots.all().filter(|root| root.access() == RootAccess::ReadWrite).collect();
    for root in &writable {
        let others: Vec<&Root> = writable.iter().filter(|other| other.id() != root.id()).copied().collect();
        judge_places_from(root, &others, paths);
    }
}

fn is_changed(path: &PathUse) -> bool {
    path.access != PathAccess::Read
}

/// Judges paths by what leads to them from one root.
fn judge_places_from(root: &Root, others: &[&Root], paths: &mut [PathUse]) {
    let is_of = |root: &Root, path: &PathUse| path.further_root == further_root(root);
    let comes =
        |path: &&PathUse| matches!(path.access, PathAccess::Write | PathAccess::Link) && is_of(root, path);
    let coming: Vec<RelativePath> = paths.iter().filter(comes).map(|path| path.path.clone()).collect();
    let places = ProtectedPlaces::beneath(root, &coming.iter().collect::<Vec<_>>(), others);
    for path in paths.iter_mut().filter(|path| is_changed(path)) {
        let found = if is_of(root, path) {
            places.protection(&path.path)
        } else if let Some(other) = others.iter().find(|other| is_of(other, path)) {
            places.protection_elsewhere(&other.path().join(path.path.as_path()))
        } else {
            continue;
        };
        // A folder on the way may be made; to move it moves what it holds.
        let ((ProtectionMatch::Protected(protection), _)
        | (ProtectionMatch::OnTheWay(protection), PathAccess::Link | PathAccess::Remove)) =
            (found, path.access)
        else {
            continue;
        };
        path.place = match path.place {
            PathPlace::Protected(before) => PathPlace::Protected(before.max(protection)),
            _ => PathPlace::Protected(protection),
        };
    }
}
