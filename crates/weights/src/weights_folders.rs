//! Folders of weights in a home; no other place spells these names.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::WeightsError;
use crate::table::Weights;

/// The two folders of a home that weights use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsFolders {
    models: PathBuf,
    incoming: PathBuf,
}

impl WeightsFolders {
    /// Folders of the home at this path: `models`, and `cache/weights` for downloads under way.
    pub fn of_home(home: &Path) -> Self {
        Self { models: home.join("models"), incoming: home.join("cache/weights") }
    }

    /// Path of the installed file of these weights, whether it is there or not.
    pub fn converted(&self, weights: &Weights) -> PathBuf {
        self.models.join(weights.converted_name())
    }

    pub(crate) fn create(&self) -> Result<(), WeightsError> {
        for folder in [&self.models, &self.incoming] {
            make(folder)?;
        }
        Ok(())
    }

    pub(crate) fn models(&self) -> &Path {
        &self.models
    }

    pub(crate) fn incoming(&self) -> &Path {
        &self.incoming
    }

    pub(crate) fn register(&self) -> PathBuf {
        self.models.join("models.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.incoming.join("lock")
    }

    /// Path of the part file of a download.
    pub(crate) fn part(&self, weights: &Weights) -> PathBuf {
        self.incoming.join(format!("{}.part", weights.name))
    }

    /// All files of a download that is under way.
    pub(crate) fn part_files(&self, weights: &Weights) -> impl Iterator<Item = PathBuf> {
        let part = self.part(weights);
        [part.clone(), note_of(&part)].into_iter()
    }

    /// A verified file that was not converted yet.
    pub(crate) fn fetched(&self, weights: &Weights) -> PathBuf {
        self.incoming.join(format!("{}.gguf", weights.name))
    }

    /// Private folder of pip; never older than the lock.
    pub(crate) fn pip(&self) -> PathBuf {
        self.incoming.join("pip")
    }
}

/// Path of the note that belongs to a part file.
pub(crate) fn note_of(part: &Path) -> PathBuf {
    let mut note = part.as_os_str().to_owned();
    note.push(".json");
    PathBuf::from(note)
}

/// Creates a folder of mode 0700, and those above it.
pub(crate) fn make(folder: &Path) -> Result<(), WeightsError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(WeightsError::io("created", folder, 0))
}
