//! Folders that a call opens beside its workspace.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};
use workspace::RootAccess;

/// Further roots.
#[derive(Debug, Clone, PartialEq, Default, Args, Serialize, Deserialize)]
pub struct AllowArgs {
    /// Open this folder as well, for reading; with `:rw` behind it for writing too. Can be repeated.
    #[arg(long = "allow", value_name = "DIR[:rw]", value_hint = ValueHint::DirPath, value_parser = OsStringValueParser::new().map(AllowedFolder::read))]
    #[serde(default, rename = "allow")]
    pub folders: Vec<AllowedFolder>,
}

/// A folder as it was named, and what may be done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedFolder {
    pub folder: PathBuf,
    pub access: RootAccess,
}

impl AllowedFolder {
    /// Reads `DIR` or `DIR:rw`. Any other colon is part of the name; a folder whose name ends in `:rw` is named with a
    /// `/` behind it.
    pub(crate) fn read(text: OsString) -> Self {
        match text.as_bytes().strip_suffix(b":rw") {
            Some(folder) => {
                let folder = OsString::from_vec(folder.to_vec()).into();
                Self { folder, access: RootAccess::ReadWrite }
            }
            None => Self { folder: text.into(), access: RootAccess::ReadOnly },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_rw_is_no_part_of_the_name() {
        for (text, folder, access) in [
            ("/a", "/a", RootAccess::ReadOnly),
            ("/a:rw", "/a", RootAccess::ReadWrite),
            ("/a:b", "/a:b", RootAccess::ReadOnly),
            ("/a:ro", "/a:ro", RootAccess::ReadOnly),
            ("/a:b:rw", "/a:b", RootAccess::ReadWrite),
            ("/a:rw:rw", "/a:rw", RootAccess::ReadWrite),
            ("/a:rw/", "/a:rw/", RootAccess::ReadOnly),
        ] {
            let read = AllowedFolder::read(text.into());
            assert_eq!(read, AllowedFolder { folder: folder.into(), access }, "{text}");
        }
    }
}
