//! Shape by which git takes any folder for its own (`is_git_directory` in its `setup.c`).

/// What the names in a folder are to git.
///
/// Git asks whether `objects` and `refs` may be entered, which a file that may be run passes, too, and asks it of the folder
/// that a `commondir` names. So an entry of any kind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitShape {
    Other,
    /// One name is missing, and there is a configuration: a git folder as soon as the name comes.
    Incomplete,
    Complete,
}

impl GitShape {
    /// Names that tell.
    pub const NAMES: [&str; 5] = ["HEAD", "objects", "refs", "commondir", "config"];

    /// `has` says whether a folder has a name, `has_file` whether it is that of no folder.
    pub fn of(has: impl Fn(&str) -> bool, has_file: impl Fn(&str) -> bool) -> Self {
        let (head, objects) = (has("HEAD"), has("objects"));
        // Most folders have neither.
        if !head && !objects {
            return Self::Other;
        }
        let refs = has("refs");
        if head && (objects && refs || has("commondir")) {
            return Self::Complete;
        }
        let two = [head, objects, refs].into_iter().filter(|there| *there).count() == 2;
        if two && has_file("config") { Self::Incomplete } else { Self::Other }
    }

    /// Whether a folder in that of submodules is one, and not one on the way to one: a submodule may be called anything,
    /// and lacks its head at times.
    pub fn is_submodule(has_file: impl Fn(&str) -> bool) -> bool {
        ["HEAD", "config", "commondir"].into_iter().any(has_file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_gits_by_its_names() {
        for (names, shape) in [
            (&["HEAD", "objects", "refs"][..], GitShape::Complete),
            (&["HEAD", "commondir"], GitShape::Complete),
            (&["HEAD", "objects", "config"], GitShape::Incomplete),
            (&["refs", "objects", "config"], GitShape::Incomplete),
            (&["HEAD", "refs", "config"], GitShape::Incomplete),
            (&["refs", "objects"], GitShape::Other),
            (&["HEAD", "config"], GitShape::Other),
            (&["commondir", "config"], GitShape::Other),
        ] {
            let has = |name: &str| names.contains(&name);
            assert_eq!(GitShape::of(has, has), shape, "{names:?}");
        }
    }
}
