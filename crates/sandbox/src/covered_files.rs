//! Files of a package cache that no command sees: those that look like credentials, and sockets and pipes, by which it
//! would speak to a process of the owner.
//!
//! A cache holds what a registry hands to everybody, so there should be none. Whole packages lie unpacked in it, though, and a
//! file that one of them brings must stay: a certificate (`cacert.pem`), a source called `credentials.rs` or `id_map.go`. So
//! a name counts only where no package needs it, and a file that may be a private key only if it begins as one.

use std::collections::HashSet;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Entries of a cache that are looked at.
const MOST_ENTRIES: usize = 4_000_000;
/// Bytes at the beginning of a file in which a private key names itself.
const KEY_HEAD: u64 = 4096;

/// Names that hold credentials wherever they lie.
const NAMES: [&str; 11] = [
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".credentials.json",
    "credentials",
    "credentials.toml",
    "credentials.json",
    "credentials.ini",
];

/// Files below a cache that no command may see, relative to it; also under the further names of one.
///
/// # Errors
/// If the cache cannot be listed, or has too many entries.
pub(crate) fn covered_in(cache: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut linked = HashSet::new();
    each_file(cache, |path, _, kind| {
        if !kind.is_file() {
            found.push(path.to_owned());
        } else if is_credential(cache, path) {
            let metadata = cache.join(path).symlink_metadata()?;
            if metadata.nlink() > 1 {
                linked.insert(metadata.ino());
            }
            found.push(path.to_owned());
        }
        Ok(())
    })?;
    if !linked.is_empty() {
        each_file(cache, |path, number, _| {
            if linked.contains(&number) && !found.iter().any(|known| known == path) {
                found.push(path.to_owned());
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Tells each path below a folder that is no folder and no link, with its number in the file system. Links are not followed,
/// and what may not be listed is passed over: a command is the same user.
fn each_file(cache: &Path, mut tell: impl FnMut(&Path, u64, FileType) -> io::Result<()>) -> io::Result<()> {
    let mut folders = vec![PathBuf::new()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        let listed = match fs::read_dir(cache.join(&folder)) {
            Err(_) if folder != Path::new("") => continue,
            listed => listed?,
        };
        for entry in listed {
            let entry = entry?;
            entries += 1;
            if entries > MOST_ENTRIES {
                return Err(io::Error::other("it has too many files to look for credentials in it"));
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(folder.join(entry.file_name()));
            } else if !kind.is_symlink() {
                tell(&folder.join(entry.file_name()), entry.ino(), kind)?;
            }
        }
    }
    Ok(())
}

fn is_credential(cache: &Path, path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy();
    if NAMES.contains(&name.as_ref()) {
        return true;
    }
    if ["config", "config.toml"].contains(&name.as_ref()) {
        // The tool's own, not a package's.
        return path.parent().is_some_and(|folder| folder == Path::new("") || folder.ends_with(".cargo"));
    }
    let may_be_key = name.starts_with("id_") || name.ends_with(".pem") || name.ends_with(".key");
    may_be_key && begins_as_key(&cache.join(path))
}

/// Whether a file begins as a private key does. One that cannot be read is none that a command can read.
fn begins_as_key(file: &Path) -> bool {
    let options = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(file);
    let mut head = Vec::new();
    options.and_then(|file| file.take(KEY_HEAD).read_to_end(&mut head)).is_ok()
        && String::from_utf8_lossy(&head).contains("PRIVATE KEY-----")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_under_each_of_their_names_and_files_of_packages_are_none() {
        let cache = tempfile::tempdir().unwrap();
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
        for (name, text) in [
            ("credentials.toml", "token"),
            (".npmrc", "token"),
            ("config.toml", "token"),
            ("src/one/.cargo/config.toml", "token"),
            ("src/one/.netrc", "token"),
            ("src/one/id_rsa", key),
            ("src/one/server.pem", key),
            ("src/one/id_map.rs", "struct Id;"),
            ("src/one/cacert.pem", "-----BEGIN CERTIFICATE-----\n"),
            ("src/one/credentials.rs", "struct Credentials;"),
            ("src/one/config.toml", "[package]"),
        ] {
            fs::create_dir_all(cache.path().join(name).parent().unwrap()).unwrap();
            fs::write(cache.path().join(name), text).unwrap();
        }
        fs::hard_link(cache.path().join(".npmrc"), cache.path().join("src/readme")).unwrap();
        std::os::unix::fs::symlink("credentials.toml", cache.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(cache.path().join("src/socket")).unwrap();
        let mut found = covered_in(cache.path()).unwrap();
        found.sort();
        let expected = [
            ".npmrc",
            "config.toml",
            "credentials.toml",
            "src/one/.cargo/config.toml",
            "src/one/.netrc",
            "src/one/id_rsa",
            "src/one/server.pem",
            "src/readme",
            "src/socket",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
