//! Recovery after a crash: tells temporary files of replacements from a person's texts.

use rustix::io::Errno;

use super::conflict::kept_name;
use super::{DocumentError, Documents, Failure, Purpose, Stamp, WorkName, short};
use crate::error::{FileError, FileProblem};
use crate::path::RelativePath;

/// Longest folder that is searched for leftovers.
const MAX_ENTRIES: usize = 100_000;

/// Outcome for one temporary file left by a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveredDocument {
    /// Removed: the file held exactly the text of its replacement.
    Removed(RelativePath),
    /// Kept under this name: the file held another text, which counts as a person's.
    Kept(RelativePath),
    /// Its document was missing: the crash fell between moving the old text aside and naming the
    /// new one. The old text is back under this name.
    Restored(RelativePath),
}

impl Documents<'_> {
    /// Looks through one folder for working files that a crash left behind. Called at start, under
    /// the lock, for each folder that holds documents.
    ///
    /// # Errors
    /// If the folder cannot be read (a missing folder has no leftovers) or a text cannot be given
    /// its lasting name. No text is removed but one whose hash was recorded in its name beforehand.
    pub fn recover(
        &self,
        folder: &RelativePath,
        stamp: &Stamp,
    ) -> Result<Vec<RecoveredDocument>, DocumentError> {
        let listing = match self.root.list(folder, MAX_ENTRIES) {
            Err(FileError { problem: FileProblem::NotFound, .. }) => return Ok(Vec::new()),
            other => other?,
        };
        let mut left: Vec<_> = listing
            .entries
            .into_iter()
            .filter_map(|entry| WorkName::parse(&entry.name).map(|work| (work, entry.name)))
            .collect();
        // Old texts first: one that goes back to its name makes the new one beside it ours to drop.
        left.sort_by_key(|(work, name)| (work.purpose == Purpose::New, name.clone()));
        let mut done = Vec::new();
        for (work, name) in left {
            let path = folder.join(&name).map_err(|problem| FileError::new(folder, problem))?;
            let settled = self.settle(&path, &work, stamp);
            done.push(settled.map_err(|failure| self.failed(&path, None, failure))?);
        }
        Ok(done)
    }

    fn settle(
        &self,
        path: &RelativePath,
        work: &WorkName,
        stamp: &Stamp,
    ) -> Result<RecoveredDocument, Failure> {
        let spot = self.spot(path)?;
        if work.purpose == Purpose::Old {
            match self.move_to_free(&spot, &spot.name, &work.of) {
                Ok(()) => return Ok(RecoveredDocument::Restored(spot.parent.join(&work.of)?)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Failure::Step("putting an old text back", errno)),
            }
        }
        let ours = self.digest_at(&spot, &spot.name).is_some_and(|digest| short(digest) == work.hash);
        if ours && work.purpose == Purpose::New {
            self.discard(&spot, &spot.name);
            return Ok(RecoveredDocument::Removed(path.clone()));
        }
        let kept = self.keep_as(&spot, &spot.name, &kept_name(&work.of, stamp))?;
        Ok(RecoveredDocument::Kept(kept))
    }
}
