//! Part files: the bytes of a download that have arrived, and the note of the file they belong to.
//!
//! Beside `NAME.part` lies `NAME.part.json`: the address, the pinned file and the server's validator. Only
//! if all of them fit is the download continued; else it starts from zero. The note is written
//! before the first byte. Even a wrong beginning costs no more than time: the whole is hashed at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use loom::digest::Digest;
use serde::{Deserialize, Serialize};

use crate::error::WeightsError;
use crate::files;
use crate::table::Fingerprint;
use crate::weights_folders::note_of;

const MAX_NOTE_BYTES: u64 = 16 * 1024;

/// Part file of a download.
#[derive(Debug)]
pub(crate) struct PartFile {
    path: PathBuf,
    note: PathBuf,
    url: String,
    file: Fingerprint,
}

#[derive(Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Note {
    url: String,
    bytes: u64,
    sha256: Digest,
    etag: Option<String>,
}

/// Part file that a download can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartialFile {
    /// Bytes that have arrived, at most all.
    pub(crate) bytes: u64,
    /// Strong validator of the server's file. A part file without it is continued only if it is complete.
    pub(crate) etag: Option<String>,
}

impl PartFile {
    pub(crate) fn new(path: PathBuf, url: String, file: Fingerprint) -> Self {
        Self { note: note_of(&path), path, url, file }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What has arrived of this very download.
    pub(crate) fn beginning(&self) -> Option<PartialFile> {
        let bytes = std::fs::metadata(&self.path).ok().filter(std::fs::Metadata::is_file)?.len();
        let mut text = Vec::new();
        files::open(&self.note).ok()?.take(MAX_NOTE_BYTES).read_to_end(&mut text).ok()?;
        let note: Note = serde_json::from_slice(&text).ok()?;
        let ours = note.url == self.url && note.bytes == self.file.bytes && note.sha256 == self.file.sha256;
        let usable = bytes == self.file.bytes || (bytes < self.file.bytes && note.etag.is_some());
        (ours && bytes > 0 && usable).then_some(PartialFile { bytes, etag: note.etag })
    }

    /// Opens it empty and notes the server's validator.
    pub(crate) fn start(&self, etag: Option<String>) -> Result<File, WeightsError> {
        self.discard()?;
        let note = Note { url: self.url.clone(), bytes: self.file.bytes, sha256: self.file.sha256, etag };
        let note = serde_json::to_vec(&note).map_err(io::Error::from);
        files::replace(&self.note, &note.map_err(WeightsError::io("written", &self.note, 0))?)?;
        files::create(&self.path)
    }

    /// Opens it at its end.
    pub(crate) fn open_at_end(&self) -> Result<File, WeightsError> {
        let opened = OpenOptions::new().append(true).open(&self.path);
        opened.map_err(WeightsError::io("opened", &self.path, 0))
    }

    pub(crate) fn write(&self, file: &mut File, bytes: &[u8]) -> Result<(), WeightsError> {
        file.write_all(bytes).map_err(WeightsError::io("written", &self.path, self.file.bytes))
    }

    pub(crate) fn discard(&self) -> Result<(), WeightsError> {
        files::remove(&self.path)?;
        files::remove(&self.note)
    }
}
