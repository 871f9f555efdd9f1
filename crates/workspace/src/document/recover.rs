//! Recovery after a crash: tells temporary files of replacements from a person's texts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use loom::Digest;
use rustix::fs::readlinkat;
use rustix::io::Errno;

use super::conflict::kept_name;
use super::locate::Location;
use super::{DocumentError, Documents, Failure, Purpose, Stamp, WorkName, short, stamped, stem, step};
use crate::error::{FileError, FileProblem};
use crate::path::RelativePath;
use crate::root::FileStamp;

/// Names in a folder, each with the digests of what is known to have stood or been planned there; of a link that of where
/// it leads.
pub type KnownTexts = BTreeMap<OsString, Vec<Digest>>;

/// Longest folder that is searched for leftovers.
const MAX_ENTRIES: usize = 100_000;

/// Outcome for one temporary file left by a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveredDocument {
    /// Removed: the file held a text that is known.
    Removed(RelativePath),
    /// Kept under this name: the file held another text, which counts as a person's.
    Kept(RelativePath),
    /// Put back under this name: the document was missing, as the crash fell between moving the old text aside and
    /// naming the new one.
    Restored(RelativePath),
}

impl Documents<'_> {
    /// Looks through one folder for working files that a crash left beside these names, under the lock. A file that is
    /// called like one of another name is left: anybody may call a file so. One goes back to its name only if it holds
    /// what its name says and what is known; no text is removed but a known one.
    ///
    /// # Errors
    /// If the folder cannot be read (a missing folder has no leftovers) or a text cannot be given
    /// its lasting name.
    pub fn recover(
        &self,
        folder: &RelativePath,
        known: &KnownTexts,
        stamp: &Stamp,
    ) -> Result<Vec<RecoveredDocument>, DocumentError> {
        let mut left = self.leftovers(folder, known)?;
        left.retain(|(work, _)| work.purpose != Purpose::Stamped);
        // Old texts first: one that goes back to its name makes the new one beside it ours to drop.
        left.sort_by_key(|(work, name)| (work.purpose == Purpose::New, name.clone()));
        let mut done = Vec::new();
        for (work, name) in left {
            let path = folder.join(&name).map_err(|problem| FileError::new(folder, problem))?;
            let known = known.get(&work.of).map_or_else(Default::default, Vec::as_slice);
            let settled = self.settle((&path, &work), known, stamp);
            done.extend(settled.map_err(|failure| self.failed(&path, None, failure))?);
        }
        Ok(done)
    }

    /// Finishes removals of files by their stamps that a crash cut off in a folder, beside these names, under the lock: a
    /// file goes if it is the one that its name says and that is known by `digest`, the digest by which its stamp was given
    /// to [`Documents::remove_stamped`]. Another one is kept.
    ///
    /// # Errors
    /// As [`Documents::recover`].
    pub fn finish_removals(
        &self,
        folder: &RelativePath,
        known: &KnownTexts,
        stamp: &Stamp,
        digest: impl Fn(&FileStamp) -> Digest,
    ) -> Result<Vec<RecoveredDocument>, DocumentError> {
        let mut left = self.leftovers(folder, known)?;
        left.retain(|(work, _)| work.purpose == Purpose::Stamped);
        let mut done = Vec::new();
        for (work, name) in left {
            let path = folder.join(&name).map_err(|problem| FileError::new(folder, problem))?;
            let known = known.get(&work.of).map_or_else(Default::default, Vec::as_slice);
            let finished = self.finish((&path, &work), known, stamp, &digest);
            done.extend(finished.map_err(|failure| self.failed(&path, None, failure))?);
        }
        Ok(done)
    }

    fn finish(
        &self,
        (path, work): (&RelativePath, &WorkName),
        known: &[Digest],
        stamp: &Stamp,
        digest: &dyn Fn(&FileStamp) -> Digest,
    ) -> Result<Option<RecoveredDocument>, Failure> {
        let spot = self.spot(path)?;
        let Some(found) = self.stamp_at(&spot, &spot.name) else { return Ok(None) };
        let before = work.changed().map(|changed| digest(&FileStamp { changed, ..found }));
        let is_it = |digest: &Digest| known.contains(digest) && stamped_as(work, *digest);
        if before.as_ref().is_some_and(is_it) {
            step("removing the file", self.calls.unlink(spot.folder(), &spot.name))?;
            step("syncing the folder", self.calls.sync(spot.folder()))?;
            return Ok(Some(RecoveredDocument::Removed(path.clone())));
        }
        let kept = self.keep_as(&spot, &spot.name, &kept_name(&work.of, stamp))?;
        Ok(Some(RecoveredDocument::Kept(kept)))
    }

    /// Working files that a crash left in a folder beside these names.
    fn leftovers(
        &self,
        folder: &RelativePath,
        known: &KnownTexts,
    ) -> Result<Vec<(WorkName, OsString)>, DocumentError> {
        let listing = match self.root.list(folder, MAX_ENTRIES) {
            // It is gone, or something else by now.
            Err(FileError {
                problem: FileProblem::NotFound | FileProblem::NotAFolder | FileProblem::Symlink,
                ..
            }) => return Ok(Vec::new()),
            other => other?,
        };
        let names = listing.entries.into_iter().map(|entry| entry.name);
        let stems: BTreeMap<OsString, &OsString> = known.keys().map(|name| (stem(name), name)).collect();
        let ours = |name: OsString| {
            let work = WorkName::parse(&name)?;
            let of = (*stems.get(&work.of)?).clone();
            Some((WorkName { of, ..work }, name))
        };
        Ok(names.filter_map(ours).collect())
    }

    fn settle(
        &self,
        (path, work): (&RelativePath, &WorkName),
        known: &[Digest],
        stamp: &Stamp,
    ) -> Result<Option<RecoveredDocument>, Failure> {
        let spot = self.spot(path)?;
        // Neither a file nor a link, or it cannot be read.
        let Some(digest) = self.digest_of(&spot, &spot.name) else { return Ok(None) };
        let is_known = known.contains(&digest);
        if work.purpose == Purpose::Old && is_known && short(digest) == work.hash {
            match self.move_to_free(&spot, &spot.name, &work.of) {
                Ok(()) => return Ok(Some(RecoveredDocument::Restored(spot.parent.join(&work.of)?))),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(Failure::Step("putting an old text back", errno)),
            }
        }
        if is_known && work.purpose == Purpose::New {
            self.discard(&spot, &spot.name);
            return Ok(Some(RecoveredDocument::Removed(path.clone())));
        }
        let kept = self.keep_as(&spot, &spot.name, &kept_name(&work.of, stamp))?;
        Ok(Some(RecoveredDocument::Kept(kept)))
    }

    /// The digest of a file's bytes, or of where a link leads.
    fn digest_of(&self, spot: &Location, name: &OsStr) -> Option<Digest> {
        let link = readlinkat(spot.folder(), name, Vec::new()).ok();
        link.map(|target| Digest::of(target.as_bytes())).or_else(|| self.digest_at(spot, name))
    }
}

/// Whether the name of a file that is known by its stamp says this one.
fn stamped_as(work: &WorkName, digest: Digest) -> bool {
    work.changed().is_some_and(|changed| work.hash == stamped(changed, digest))
}
