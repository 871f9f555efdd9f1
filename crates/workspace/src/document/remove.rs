//! Removing a document without losing a text that was saved meanwhile.

use std::ffi::OsStr;

use loom::Digest;
use rustix::fs::{FileType, readlinkat};
use rustix::io::Errno;

use super::conflict::kept_name;
use super::locate::Location;
use super::{DocumentError, Documents, Failure, Purpose, Stamp, WorkName, step};
use crate::path::RelativePath;
use crate::root::FileStamp;

/// Outcome of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum RemoveOutcome {
    /// The name is free, on the disk as far as the system says.
    Removed,
    /// The file did not hold the expected text. What it holds stays; a text that another writer saved in the very
    /// moment is kept beside if the name was taken again.
    Conflict {
        /// The text in the file now; `None` if there is none.
        found: Option<Digest>,
        others: Vec<RelativePath>,
    },
}

impl Documents<'_> {
    /// Removes a document if it holds what the caller last saw. It steps aside under a name only we know and is read
    /// there once more; a crash in between is mended by [`Documents::recover`], which brings it back.
    ///
    /// # Errors
    /// As [`Documents::replace`].
    pub fn remove(
        &self,
        path: &RelativePath,
        expected: Digest,
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, DocumentError> {
        let spot = self.locate(path).map_err(|problem| self.failed(path, None, problem.into()))?;
        let done = self.remove_at(path, &spot, expected, stamp);
        done.map_err(|failure| self.failed(path, Some(&spot), failure))
    }

    /// Removes a symbolic link if it leads where the caller last saw, in the same way.
    ///
    /// # Errors
    /// As [`Documents::replace`].
    pub fn remove_link(
        &self,
        path: &RelativePath,
        target: &[u8],
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, DocumentError> {
        let spot = self.spot(path).map_err(|problem| self.failed(path, None, problem.into()))?;
        let done = self.remove_link_at(&spot, target, stamp);
        done.map_err(|failure| self.failed(path, Some(&spot), failure))
    }

    /// Removes a file by its stamp, which is known by a digest, however large it is, in the same way; but that
    /// [`Documents::finish_removals`] mends a crash.
    ///
    /// # Errors
    /// As [`Documents::replace`].
    pub fn remove_stamped(
        &self,
        path: &RelativePath,
        expected: (FileStamp, Digest),
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, DocumentError> {
        let spot = self.spot(path).map_err(|problem| self.failed(path, None, problem.into()))?;
        let done = self.remove_stamped_at(&spot, expected, stamp);
        done.map_err(|failure| self.failed(path, Some(&spot), failure))
    }

    fn remove_stamped_at(
        &self,
        spot: &Location,
        (expected, digest): (FileStamp, Digest),
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, Failure> {
        if self.stamp_at(spot, &spot.name) != Some(expected) {
            return Ok(RemoveOutcome::Conflict { found: None, others: Vec::new() });
        }
        let fresh = WorkName::fresh_stamped(&spot.name, &expected, digest);
        let aside = step("naming the old file", fresh)?;
        step("moving the file aside", self.calls.rename(spot.folder(), &spot.name, &aside))?;
        // A new name is a change of metadata.
        let is_it = |found: FileStamp| FileStamp { changed: expected.changed, ..found } == expected;
        if self.stamp_at(spot, &aside).is_some_and(is_it) {
            step("removing the file", self.calls.unlink(spot.folder(), &aside))?;
            step("syncing the folder", self.calls.sync(spot.folder()))?;
            return Ok(RemoveOutcome::Removed);
        }
        self.put_aside_back(spot, &aside, stamp)
    }

    /// The stamp of a file; none of anything else.
    pub(super) fn stamp_at(&self, spot: &Location, name: &OsStr) -> Option<FileStamp> {
        let stat = self.calls.stat(spot.folder(), name).ok()?;
        FileType::from_raw_mode(stat.st_mode).is_file().then(|| FileStamp::of(&stat))
    }

    fn remove_link_at(
        &self,
        spot: &Location,
        target: &[u8],
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, Failure> {
        let leads_there = |name: &OsStr| {
            readlinkat(spot.folder(), name, Vec::new()).is_ok_and(|found| found.as_bytes() == target)
        };
        if !leads_there(&spot.name) {
            let found = self.digest_at(spot, &spot.name);
            return Ok(RemoveOutcome::Conflict { found, others: Vec::new() });
        }
        let fresh = WorkName::fresh(&spot.name, Digest::of(target), Purpose::Old);
        let aside = step("naming the old link", fresh)?;
        step("moving the link aside", self.calls.rename(spot.folder(), &spot.name, &aside))?;
        if leads_there(&aside) {
            step("removing the link", self.calls.unlink(spot.folder(), &aside))?;
            step("syncing the folder", self.calls.sync(spot.folder()))?;
            return Ok(RemoveOutcome::Removed);
        }
        self.put_aside_back(spot, &aside, stamp)
    }

    fn remove_at(
        &self,
        path: &RelativePath,
        spot: &Location,
        expected: Digest,
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, Failure> {
        let now = self.current(spot, &spot.name)?;
        if let Some(now) = &now {
            now.refuse_further_names(self.names)?;
        }
        if now.map(|now| now.text.digest) != Some(expected) {
            return Ok(RemoveOutcome::Conflict {
                found: self.digest_at(spot, &spot.name),
                others: Vec::new(),
            });
        }
        let aside = step("naming the old text", WorkName::fresh(&spot.name, expected, Purpose::Old))?;
        match self.calls.rename(spot.folder(), &spot.name, &aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => {
                return Ok(RemoveOutcome::Conflict { found: None, others: Vec::new() });
            }
            Err(errno) => return Err(Failure::Step("moving the text aside", errno)),
        }
        if self.digest_at(spot, &aside) == Some(expected) {
            step("removing the text", self.calls.unlink(spot.folder(), &aside))?;
            step("syncing the folder", self.calls.sync(spot.folder()))?;
            return Ok(RemoveOutcome::Removed);
        }
        tracing::warn!(path = %path.as_path().display(), "a text was saved while it was about to be removed");
        self.put_aside_back(spot, &aside, stamp)
    }

    /// Gives what stepped aside and is somebody's its name back; another one where that was taken again.
    fn put_aside_back(
        &self,
        spot: &Location,
        aside: &OsStr,
        stamp: &Stamp,
    ) -> Result<RemoveOutcome, Failure> {
        let others = match self.move_to_free(spot, aside, &spot.name) {
            Ok(()) => Vec::new(),
            Err(Errno::EXIST) => vec![self.keep_as(spot, aside, &kept_name(&spot.name, stamp))?],
            Err(errno) => return Err(Failure::Step("putting their text back", errno)),
        };
        Ok(RemoveOutcome::Conflict { found: self.digest_at(spot, &spot.name), others })
    }
}
