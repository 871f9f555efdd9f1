//! Canonical form of paths that may lead to nothing.

use std::path::{Component, Path, PathBuf};

/// Links that are followed at most, as a kernel does.
const MAX_LINKS: u32 = 40;

/// The canonical form of the part of a path that exists, with the rest behind it; a relative one is below the current folder. No `..` is left: behind a link it
/// is the folder above where that leads, behind what does not exist the one that would be above. A link that leads to nothing
/// stands for where it leads.
pub fn canonical(path: &Path) -> PathBuf {
    let mut links = MAX_LINKS;
    let mut found = PathBuf::new();
    let absolute = std::path::absolute(path);
    push(&mut found, absolute.as_deref().unwrap_or(path), &mut links);
    found
}

fn push(found: &mut PathBuf, path: &Path, links: &mut u32) {
    for component in path.components() {
        match component {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                found.push(component);
                if let Ok(real) = found.canonicalize() {
                    *found = real;
                } else if let Ok(target) = found.read_link()
                    && *links > 0
                {
                    *links -= 1;
                    found.pop();
                    push(found, &target, links);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_what_is_gone_is_taken_as_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, top.join(name)).unwrap();
        link(top.join("a/b").to_str().unwrap(), "link");
        link(top.join("a/gone").to_str().unwrap(), "dangling");
        link("../link/gone", "a/relative");
        link("around", "around");
        for (written, expected) in [
            ("a", "a"),
            ("link", "a/b"),
            ("link/gone/far", "a/b/gone/far"),
            ("dangling/far", "a/gone/far"),
            ("a/relative", "a/b/gone"),
            ("around/far", "around/far"),
            ("link/../gone", "a/gone"),
            ("gone/../link/./gone", "a/b/gone"),
            ("gone/far/../../a/gone/..", "a"),
        ] {
            assert_eq!(canonical(&top.join(written)), top.join(expected), "{written}");
        }
        assert_eq!(canonical(Path::new("/../..")), Path::new("/"));
    }
}
