//! Canonical form of paths that may lead to nothing.

use std::path::{Component, Path, PathBuf};

/// The canonical form of the part of an absolute path that exists, with the rest behind it. No `..` is left: behind a link it
/// is the folder above where that leads, behind what does not exist the one that would be above.
pub fn canonical(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                found.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                found.push(component);
                if let Ok(real) = found.canonicalize() {
                    found = real;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_and_what_is_gone_is_taken_as_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink(top.join("a/b"), top.join("link")).unwrap();
        for (written, expected) in [
            ("a", "a"),
            ("link", "a/b"),
            ("link/gone/far", "a/b/gone/far"),
            ("link/../gone", "a/gone"),
            ("gone/../link/./gone", "a/b/gone"),
            ("gone/far/../../a/gone/..", "a"),
        ] {
            assert_eq!(canonical(&top.join(written)), top.join(expected), "{written}");
        }
        assert_eq!(canonical(Path::new("/../..")), Path::new("/"));
    }
}
