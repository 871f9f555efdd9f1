//! Where an export or a backup goes: a file that is whole or not there, or standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use loom::Digest;
use sha2::{Digest as _, Sha256};
use store::home::rename_new;
use tools::SAYS_NOTHING;

use crate::app::App;
use crate::error::CommandError;

/// The largest export that goes to standard output, in bytes: it is held in memory. A file has no bound.
const MAX_STANDARD_OUTPUT: usize = 256 * 1024 * 1024;

/// Where an export goes: a file beside the one named, which gets its name at the end, or standard output. Held where
/// the command waits, so that one that is dropped leaves nothing while a thread still writes.
pub(super) struct Target(Option<TemporaryFile>);

/// What an export is written into, with the digest of what was written.
pub(super) struct Sink {
    place: SinkPlace,
    hasher: Sha256,
    length: usize,
}

enum SinkPlace {
    /// Held until it is whole.
    Standard(Vec<u8>),
    File(BufWriter<File>),
}

impl Sink {
    /// The digest of what was written; none where that is too short to say anything.
    pub(super) fn digest(&self) -> Option<Digest> {
        (self.length >= SAYS_NOTHING).then(|| Digest(self.hasher.clone().finalize().into()))
    }
}

impl Target {
    /// Opens what was asked for. Nothing is replaced unless the person says so.
    pub(super) fn open(app: &App, output: Option<&Path>) -> Result<Self, CommandError> {
        let Some(path) = output.filter(|path| *path != Path::new("-")) else { return Ok(Self(None)) };
        let ask = |shown: &str| app.frontend.confirm(&format!("{shown} exists. Replace it?")).is_yes();
        TemporaryFile::open(app, path, ask).map(|part| Self(Some(part)))
    }

    /// What is to be written into it.
    ///
    /// # Errors
    /// As [`File::try_clone`].
    pub(super) fn sink(&self) -> io::Result<Sink> {
        let place = match &self.0 {
            None => SinkPlace::Standard(Vec::new()),
            Some(part) => SinkPlace::File(BufWriter::new(part.descriptor()?)),
        };
        Ok(Sink { place, hasher: Sha256::new(), length: 0 })
    }

    /// Brings what was written and flushed to its place. Returns the file's name and what goes to standard output.
    pub(super) async fn finish(
        self,
        written: Sink,
    ) -> Result<(Option<String>, Option<Vec<u8>>), CommandError> {
        let body = match written.place {
            SinkPlace::Standard(body) => Some(body),
            SinkPlace::File(_) => None,
        };
        let Some(part) = self.0 else { return Ok((None, body)) };
        let name = part.path.to_string_lossy().into_owned();
        part.finish().await?;
        Ok((Some(name), body))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.place {
            SinkPlace::Standard(body) if body.len() + bytes.len() > MAX_STANDARD_OUTPUT => {
                Err(io::Error::other("it is too large for standard output; name a file with -o"))
            }
            SinkPlace::Standard(body) => body.write(bytes),
            SinkPlace::File(file) => file.write(bytes),
        }?;
        self.hasher.update(&bytes[..written]);
        self.length += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            SinkPlace::Standard(_) => Ok(()),
            SinkPlace::File(file) => file.flush(),
        }
    }
}

/// A file under another name until it is whole; removed if it never is.
pub(crate) struct TemporaryFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    replaces: bool,
}

impl TemporaryFile {
    /// Opens a file that gets its name at the end. `replace` is asked about a plain file that has it already.
    ///
    /// # Errors
    /// `exists`; what [`App::check_output`] or the system says.
    pub(crate) fn open(
        app: &App,
        path: &Path,
        replace: impl FnOnce(&str) -> bool,
    ) -> Result<Self, CommandError> {
        app.check_output(path)?;
        let failed = |error: io::Error| CommandError::file("cannot write", path, &error);
        let there = match path.symlink_metadata() {
            Ok(there) => Some(there),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let shown = text::terminal::one_line(&path.to_string_lossy()).into_owned();
        let replaces = there.is_some();
        if let Some(there) = there
            && !(there.is_file() && replace(&shown))
        {
            return Err(exists(&shown));
        }
        let name = path.file_name().ok_or_else(|| {
            CommandError::usage(format!("{shown} names no file"), "name the file to write with -o")
        })?;
        let part = format!(".{}.{}.part", name.to_string_lossy(), app.runtime.new_id::<loom::NodeId>()?);
        let part = path.with_file_name(part);
        app.make_workspace(path)?;
        let file = File::options().write(true).create_new(true).mode(0o600).open(&part).map_err(failed)?;
        Ok(Self { path: path.to_owned(), part, file, replaces })
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// As [`File::try_clone`].
    pub(crate) fn descriptor(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives it its name. Dropped before that, it leaves nothing.
    ///
    /// # Errors
    /// `exists` where another file got the name meanwhile; what the system says.
    pub(crate) async fn finish(self) -> Result<(), CommandError> {
        let done = self.publish().await;
        done.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&text::terminal::one_line(&self.path.to_string_lossy())),
            _ => CommandError::file("cannot write", &self.path, &error),
        })
    }

    async fn publish(&self) -> io::Result<()> {
        sync(self.descriptor()?).await?;
        if self.replaces {
            std::fs::rename(&self.part, &self.path)?;
        } else if !rename_new(&self.part, &self.path)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync(File::open(folder.unwrap_or(Path::new(".")))?).await
    }
}

/// Brings a file or folder to the device, on a thread of its own: it may take long.
async fn sync(file: File) -> io::Result<()> {
    tokio::task::spawn_blocking(move || file.sync_all()).await.map_err(io::Error::other)?
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(file = %self.part.display(), %error, "an unfinished file could not be removed");
            }
            _ => {}
        }
    }
}

fn exists(shown: &str) -> CommandError {
    CommandError::new(
        "exists",
        2,
        format!("{shown} exists"),
        "name another file with -o, remove it first, or print with `-o -`",
    )
}
