//! Links by which paths are protected.

use std::path::{Path, PathBuf};

use workspace::{protected, reached, reached_by_links};

use super::ProtectedPaths;
use crate::walls::Walls;

impl ProtectedPaths {
    /// What a link of a git folder's name, or of one on the way to protected ones, leads to in the roots: it is read by that
    /// name.
    pub(super) fn link(&mut self, root: &Path, path: &Path, walls: &Walls) {
        let link = root.join(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if protected::is_git_folder(&name) {
            if let Some(target) = self.target(&link, walls).filter(|target| target.is_dir()) {
                self.add_link(&target, &link, self.git_folders.contains(&target));
                self.git_folder(&target, walls);
            }
        } else if !protected::is_mounted(path)
            && protected::is_on_the_way(path)
            && let Some(target) = self.target(&link, walls)
        {
            for entry in self.entries_of(&target) {
                if protected::is_mounted(&path.join(&entry.name)) {
                    self.protect_behind(&target.join(entry.name), &link);
                }
            }
        }
    }

    /// Protects what links that are protected lead to, and those in protected folders: it is read by their names.
    pub(super) fn look_behind_links(&mut self, walls: &Walls) {
        let mut rest: Vec<PathBuf> = self.paths.iter().cloned().collect();
        while let Some(path) = rest.pop() {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_dir() {
                let entries = self.entries_of(&path).into_iter();
                rest.extend(entries.filter(|entry| !entry.is_file).map(|entry| path.join(entry.name)));
                continue;
            }
            if !metadata.is_symlink() {
                continue;
            }
            // Who changes a link on the way has it lead elsewhere.
            let on_the_way = reached_by_links(&path).1.into_iter();
            self.paths
                .extend(on_the_way.filter(|link| walls.writable_roots().any(|root| link.starts_with(root))));
            if let Some(target) = self.target(&path, walls)
                // The parts of one that run are protected.
                && !self.git_folders.contains(&target)
                && self.protect_behind(&target, &path)
            {
                rest.push(target);
            }
        }
    }

    /// What a link leads to in the roots, if it is there.
    fn target(&mut self, link: &Path, walls: &Walls) -> Option<PathBuf> {
        let target = reached(link);
        // One that holds a root, or is one, would close the root.
        let holds_root = walls.roots.iter().any(|root| root.path.starts_with(&target));
        let mut tops = walls.writable_roots().chain(walls.git_folders.iter().map(PathBuf::as_path));
        if holds_root || !tops.any(|top| target.starts_with(top)) {
            return None;
        }
        // Also of one that leads to nothing yet, so that what comes there is new, and not the link.
        self.links.insert(link.to_owned(), target.clone());
        target.symlink_metadata().is_ok().then_some(target)
    }

    /// Protects what a link leads to, and says whether it was not.
    pub(super) fn protect_behind(&mut self, path: &Path, link: &Path) -> bool {
        // What is protected as a part of a folder needs no place of its own.
        if path.ancestors().skip(1).any(|above| self.paths.contains(above)) {
            return false;
        }
        let is_known = !self.paths.insert(path.to_owned());
        self.add_link(path, link, is_known);
        !is_known
    }

    /// Notes a link by which a path is protected, unless it is by its own name.
    fn add_link(&mut self, path: &Path, link: &Path, is_known: bool) {
        let has = |path: &Path| self.by_links.contains_key(path);
        if !is_known || has(path) || self.owners.get(path).is_some_and(|owner| has(owner)) {
            self.by_links.entry(path.to_owned()).or_default().insert(link.to_owned());
        }
    }

    /// Links by which alone a path is protected, if none of them was found by another look, or each leads elsewhere since.
    pub(crate) fn new_links(&self, path: &Path, before: &Self) -> Option<Vec<&Path>> {
        let of_owner = match self.owners.get(path).map(|owner| self.by_links.get(owner)) {
            // Of a git folder by its own name.
            Some(None) => return None,
            other => other.flatten(),
        };
        let links: Vec<&Path> =
            self.by_links.get(path).into_iter().chain(of_owner).flatten().map(PathBuf::as_path).collect();
        let is_new = |link: &&Path| self.links.get(*link) != before.links.get(*link);
        (!links.is_empty() && links.iter().all(is_new)).then_some(links)
    }
}
