//! The file a backup is: a tar of the store's copy, blobs and configuration, compressed, with a manifest of
//! hashes first, so that a restore knows what must be there before it writes anything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use loom::Digest;
use serde::{Deserialize, Serialize};
use store::blobs::digest_of;
use store::home::{CONFIG, DATABASE};

/// The version of the archive written now.
pub(super) const VERSION: u32 = 1;

/// Longest end of a tar, in bytes: a record of 20 blocks.
const PADDING: u64 = 20 * 512;

/// The name of the manifest inside.
const MANIFEST: &str = "backup.json";

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) store: String,
    /// The newest event of the store.
    pub(super) seq: u64,
    /// When, ms since 1970.
    pub(super) at: i64,
    /// SHA-256 of every file, by its path in the home.
    pub(super) files: BTreeMap<String, Digest>,
}

/// SHA-256 of a file.
pub(super) fn digest(path: &Path) -> io::Result<Digest> {
    digest_of(&mut File::open(path)?)
}

/// Writes an archive of files, given as their names inside and where they lie.
pub(super) fn write(out: File, contents: &Contents, files: &[(String, PathBuf)]) -> io::Result<()> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(out, 3)?);
    let manifest = serde_json::to_vec_pretty(contents).map_err(io::Error::other)?;
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    header.set_mode(0o600);
    header.set_cksum();
    tar.append_data(&mut header, MANIFEST, manifest.as_slice())?;
    for (name, path) in files {
        let mut file = File::open(path)?;
        let mut header = tar::Header::new_gnu();
        header.set_size(file.metadata()?.len());
        header.set_mode(0o600);
        header.set_cksum();
        tar.append_data(&mut header, name, &mut file)?;
    }
    let out = tar.into_inner()?.finish()?;
    out.sync_all()
}

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArchiveError {
    #[error("it could not be read or written: {0}")]
    Io(#[from] io::Error),
    #[error("it is not a Drawloom backup")]
    Foreign,
    #[error("it is damaged or cut")]
    Cut,
    #[error("it was made by a newer Drawloom (format {0}); update this one")]
    Newer(u32),
    #[error("the backup is damaged: {0} in it does not fit its hash")]
    Damaged(String),
    #[error("the backup is damaged: something follows its end")]
    Trailing,
}

type Decoder = zstd::Decoder<'static, io::BufReader<File>>;

fn decoder(file: File) -> Result<Decoder, ArchiveError> {
    let decoder = zstd::Decoder::new(file).map_err(|_| ArchiveError::Foreign)?;
    Ok(decoder.single_frame())
}

/// An archive that ends too early or makes no sense; what the system refuses stays its error.
fn cut(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other => ArchiveError::Cut,
        _ => ArchiveError::Io(error),
    }
}

/// Refuses a file that is no backup, before anything is made for it. Reads its beginning, and goes back there.
pub(super) fn check(file: &mut File) -> Result<(), ArchiveError> {
    let mut tar = tar::Archive::new(decoder(file.try_clone()?)?);
    manifest(&mut tar.entries().map_err(cut)?)?;
    file.rewind()?;
    Ok(())
}

/// The manifest, which is the first file.
fn manifest(entries: &mut tar::Entries<'_, Decoder>) -> Result<Contents, ArchiveError> {
    let mut first = match entries.next() {
        None => return Err(ArchiveError::Foreign),
        // What was cut ends too early; what is no archive makes no sense from its first byte on.
        Some(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(ArchiveError::Cut),
        Some(first) => first.map_err(|_| ArchiveError::Foreign)?,
    };
    if first.path().map_err(cut)?.as_ref() != Path::new(MANIFEST) {
        return Err(ArchiveError::Foreign);
    }
    let mut manifest = String::new();
    first.by_ref().take(64 * 1024 * 1024).read_to_string(&mut manifest).map_err(cut)?;
    let contents: Contents = serde_json::from_str(&manifest).map_err(|_| ArchiveError::Foreign)?;
    if contents.format != "drawloom-backup" {
        return Err(ArchiveError::Foreign);
    }
    if contents.version > VERSION { Err(ArchiveError::Newer(contents.version)) } else { Ok(contents) }
}

/// Unpacks an archive into a folder that is empty, and compares every file with its hash.
pub(super) fn unpack(file: File, to: &Path) -> Result<Contents, ArchiveError> {
    let mut tar = tar::Archive::new(decoder(file)?);
    let mut entries = tar.entries().map_err(cut)?;
    let contents = manifest(&mut entries)?;
    let mut left = contents.files.clone();
    for entry in entries {
        let mut entry = entry.map_err(cut)?;
        let name = entry.path().map_err(cut)?.to_string_lossy().into_owned();
        // What a backup holds, and nothing that would be obeyed or believed: no keys, no locks.
        let ours = name == DATABASE || name == CONFIG || name.starts_with("blobs/");
        let plain = ours && Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
        // Only files the manifest names are written, and only below the new home.
        let Some(expected) = left.remove(&name).filter(|_| plain && entry.header().entry_type().is_file())
        else {
            return Err(ArchiveError::Damaged(text::terminal::one_line(&name).into_owned()));
        };
        let path = to.join(&name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut out = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        io::copy(&mut entry, &mut out).map_err(cut)?;
        out.sync_all()?;
        if digest(&path)? != expected {
            return Err(ArchiveError::Damaged(name));
        }
    }
    if let Some(missing) = left.into_keys().next() {
        return Err(ArchiveError::Damaged(missing));
    }
    refuse_trailing(tar.into_inner())?;
    keep_names(to)?;
    Ok(contents)
}

/// Refuses bytes behind the last file but the zeros a tar ends with, and bytes behind the compressed archive.
fn refuse_trailing(mut archive: Decoder) -> Result<(), ArchiveError> {
    let mut rest = Vec::new();
    archive.by_ref().take(PADDING + 1).read_to_end(&mut rest).map_err(cut)?;
    let padding = rest.len() as u64 <= PADDING && rest.iter().all(|byte| *byte == 0);
    if padding && archive.finish().read(&mut [0])? == 0 { Ok(()) } else { Err(ArchiveError::Trailing) }
}

/// Makes the names in a folder, and in those below it, survive power loss.
fn keep_names(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            keep_names(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}
