//! Paths as a model, a skill or a request writes them.
//!
//! Text is turned into components once, here; afterwards only components are used, so a sibling
//! with the same prefix (`docs/capabilities-evil`) can never pass as a child. Names that mean
//! something only elsewhere (`C:\x`, `%2e%2e`, `x.md:stream`) are ordinary names on this system
//! and stay beneath the root like any other.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use data_encoding::HEXLOWER;
use loom::Digest;

/// Longest path in bytes, longest name in bytes: Linux's own limits.
const MAX_PATH: usize = 4095;
const MAX_NAME: usize = 255;

/// Refusal of a path, before anything is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// Nothing, or white space alone.
    #[error("empty path")]
    Empty,
    #[error("invalid characters in the path")]
    InvalidCharacters,
    /// `..` climbs out, or an absolute path lies elsewhere.
    #[error("outside the allowed workspace")]
    Outside,
    /// `~` is a shell's word for a home folder; nothing expands it here.
    #[error("outside the allowed workspace: `~` is not expanded (write `./~name` for such a file)")]
    Home,
    /// A path over 4,095 bytes or a name over 255.
    #[error("the path is too long")]
    TooLong,
    /// The root itself where a name in it is wanted.
    #[error("the path names the folder itself, not something in it")]
    NoName,
}

/// A path below a root: plain names only, no `.`, no `..`, never absolute. The empty path is the
/// root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(PathBuf);

impl RelativePath {
    pub fn root() -> Self {
        Self(PathBuf::new())
    }

    /// Reads a relative path. `a/../b` is `b`: links are not followed on the way, so the words and
    /// the file system agree.
    ///
    /// # Errors
    /// The refusals F2–F5 and F8: outside, empty, invalid characters, `~`.
    pub fn parse(text: &str) -> Result<Self, PathProblem> {
        check_text(text)?;
        if text.starts_with('/') {
            return Err(PathProblem::Outside);
        }
        Self::from_components(Path::new(text))
    }

    /// As [`parse`](Self::parse), for a path that came from the file system and may not be UTF-8.
    ///
    /// # Errors
    /// As `parse`, without the rule on `~`.
    pub fn from_components(path: &Path) -> Result<Self, PathProblem> {
        let mut names = PathBuf::new();
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) if name.len() > MAX_NAME => return Err(PathProblem::TooLong),
                Component::Normal(name) => names.push(name),
                Component::ParentDir => {
                    if !names.pop() {
                        return Err(PathProblem::Outside);
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(PathProblem::Outside),
            }
        }
        if names.as_os_str().len() > MAX_PATH { Err(PathProblem::TooLong) } else { Ok(Self(names)) }
    }

    /// The path of `name`, an entry of this folder.
    ///
    /// # Errors
    /// If `name` is not one plain name.
    pub fn join(&self, name: impl AsRef<OsStr>) -> Result<Self, PathProblem> {
        let name = name.as_ref();
        if name.as_bytes().contains(&0) {
            return Err(PathProblem::InvalidCharacters);
        }
        let mut components = Path::new(name).components();
        match (components.next(), components.next()) {
            (Some(Component::Normal(only)), None) if only == name => {}
            _ => return Err(PathProblem::Outside),
        }
        // Both parts keep to the rules already, but for the length.
        let whole = self.0.join(name);
        if name.len() > MAX_NAME || whole.as_os_str().len() > MAX_PATH {
            return Err(PathProblem::TooLong);
        }
        Ok(Self(whole))
    }

    /// Folder and name.
    ///
    /// # Errors
    /// [`PathProblem::NoName`] for the root itself.
    pub fn split(&self) -> Result<(Self, OsString), PathProblem> {
        let name = self.0.file_name().ok_or(PathProblem::NoName)?.to_os_string();
        Ok((Self(self.0.parent().unwrap_or(Path::new("")).to_path_buf()), name))
    }

    /// As a path, empty for the root.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether this is the root itself.
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// Path for `openat`: `.` for the root.
    pub(crate) fn for_open(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.for_open().display().fmt(out)
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RelativePath({self})")
    }
}

impl AsRef<Path> for RelativePath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// The refusals that hold for every path a tool is given, absolute ones included.
pub(crate) fn check_text(text: &str) -> Result<(), PathProblem> {
    if text.contains('\0') {
        Err(PathProblem::InvalidCharacters)
    } else if text.trim().is_empty() {
        Err(PathProblem::Empty)
    } else if text.starts_with('~') {
        Err(PathProblem::Home)
    } else if text.len() > MAX_PATH {
        Err(PathProblem::TooLong)
    } else {
        Ok(())
    }
}

/// A file name for any key (a session's name, a chat's id), different for different keys, also on
/// file systems that fold case.
///
/// Lower-case letters, digits, `-` and `_` stand for themselves, every other byte is `%xx`. A name
/// over 200 bytes is cut and ends in `%%` and its digest; `%%` occurs in no other name.
pub fn file_name_of_key(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => {
                name.push('%');
                name.push_str(&HEXLOWER.encode(&[other]));
            }
        }
    }
    if name.is_empty() {
        name.push('%');
    }
    if name.len() > 200 {
        name.truncate(160);
        name.push_str("%%");
        name.push_str(&HEXLOWER.encode(&Digest::of(key.as_bytes()).0[..16]));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<String, PathProblem> {
        RelativePath::parse(text).map(|path| path.to_string())
    }

    #[test]
    fn f1_a_plain_name_stays() {
        assert_eq!(parsed("test.txt"), Ok("test.txt".into()));
    }

    #[test]
    fn f2_f3_a_path_that_leaves_is_outside() {
        assert_eq!(parsed("../secret.txt"), Err(PathProblem::Outside));
        assert_eq!(parsed("a/../../secret.txt"), Err(PathProblem::Outside));
        assert_eq!(parsed("/etc/passwd"), Err(PathProblem::Outside));
        assert!(PathProblem::Outside.to_string().contains("outside the allowed workspace"));
    }

    #[test]
    fn f4_nothing_is_an_empty_path() {
        assert_eq!(parsed(""), Err(PathProblem::Empty));
        assert_eq!(parsed("   "), Err(PathProblem::Empty));
    }

    #[test]
    fn f5_nul_is_an_invalid_character() {
        assert_eq!(parsed("test\0.txt"), Err(PathProblem::InvalidCharacters));
    }

    #[test]
    fn f8_a_tilde_is_not_expanded() {
        assert_eq!(parsed("~/secret.txt"), Err(PathProblem::Home));
        assert_eq!(parsed("~root/x"), Err(PathProblem::Home));
        assert_eq!(parsed("./~draft"), Ok("~draft".into()));
    }

    #[test]
    fn files_3_dots_and_slashes_fold_and_foreign_spellings_are_plain_names() {
        assert_eq!(parsed("./a//b/./c/"), Ok("a/b/c".into()));
        assert_eq!(parsed("a/../b"), Ok("b".into()));
        assert_eq!(parsed("."), Ok(".".into()));
        for name in ["%2e%2e%2fx", "C:\\x", "\\\\?\\C:\\x", "x.md:stream", "CON", "PROGRA~1", "x. "] {
            assert_eq!(parsed(name), Ok(name.into()));
        }
        assert_eq!(parsed(&"x".repeat(256)), Err(PathProblem::TooLong));
        assert_eq!(parsed(&"x/".repeat(2100)), Err(PathProblem::TooLong));
    }

    #[test]
    fn join_takes_one_plain_name() {
        let folder = RelativePath::parse("a").unwrap();
        assert_eq!(folder.join("b").unwrap().to_string(), "a/b");
        for bad in ["..", ".", "", "b/c", "/b", "b/"] {
            assert!(folder.join(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn x12_keys_that_look_alike_have_different_files() {
        assert_ne!(file_name_of_key("telegram:1_2"), file_name_of_key("telegram_1:2"));
        assert_ne!(file_name_of_key("Main"), file_name_of_key("main"));
        assert_ne!(file_name_of_key(&"x".repeat(300)), file_name_of_key(&"x".repeat(301)));
        assert_eq!(file_name_of_key("main"), "main");
        assert_eq!(file_name_of_key(".."), "%2e%2e");
    }

    proptest! {
        #[test]
        fn keys_and_names_are_one_to_one(a in ".{0,80}", b in ".{0,80}") {
            prop_assert_eq!(a == b, file_name_of_key(&a) == file_name_of_key(&b));
            let name = file_name_of_key(&a);
            prop_assert_eq!(&name, &name.to_lowercase());
            prop_assert!(name.len() <= 200 && RelativePath::root().join(&name).is_ok());
        }

        #[test]
        fn a_parsed_path_never_climbs(text in "[a./~]{0,24}") {
            if let Ok(path) = RelativePath::parse(&text) {
                prop_assert!(path.as_path().components().all(|c| matches!(c, Component::Normal(_))));
            }
        }
    }
}
