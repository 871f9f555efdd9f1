//! A folder for what is measured, gone afterwards, and what syncing a file costs on its disk.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use commands::CommandError;
use tempfile::TempDir;

use super::metrics::timed;

/// A temporary folder of this run.
#[derive(Debug)]
pub(super) struct Scratch(TempDir);

impl Scratch {
    /// Makes it, where the system keeps temporary files (`TMPDIR`).
    pub(super) fn new() -> Result<Self, CommandError> {
        let made = tempfile::Builder::new().prefix("drawloom-bench-").tempdir();
        made.map(Self)
            .map_err(|error| CommandError::file("cannot make a folder in", &std::env::temp_dir(), &error))
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Removes a folder in it that is not needed any more: a large tree takes most of a gigabyte.
    pub(super) fn remove(&self, name: &str) -> Result<(), CommandError> {
        let path = self.at(name);
        std::fs::remove_dir_all(&path).map_err(|error| CommandError::file("cannot remove", &path, &error))
    }
}

/// A small file that grows and is synced, as the log of a store is by a commit.
#[derive(Debug)]
pub(super) struct Probe {
    file: File,
    path: PathBuf,
}

impl Probe {
    pub(super) fn new(path: &Path) -> Result<Self, CommandError> {
        let file = File::create_new(path).map_err(|error| CommandError::file("cannot make", path, &error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// How long it takes to append one page and have it on the disk.
    pub(super) fn sync(&mut self) -> Result<Duration, CommandError> {
        let written = timed(|| {
            self.file.write_all(&[0x5a; 4_096])?;
            self.file.sync_data()
        });
        let ((), time) = written.map_err(|error| CommandError::file("cannot write", &self.path, &error))?;
        Ok(time)
    }
}
