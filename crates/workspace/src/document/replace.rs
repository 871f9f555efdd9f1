//! The replacement itself, step by step.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

use loom::Digest;
use rustix::io::Errno;

use super::calls::unsupported;
use super::locate::{Current, Location};
use super::{
    DocumentError, Documents, Expected, Failure, Purpose, ReplaceOutcome, Replacement, Saved, WorkName, step,
};
use crate::path::RelativePath;

/// A replacement on its way: where, what, and what is expected.
pub(super) struct Job<'a> {
    pub(super) spot: &'a Location,
    pub(super) replacement: &'a Replacement<'a>,
    pub(super) ours: Digest,
}

/// Source of a new file's owner, mode and attributes.
#[derive(Clone, Copy)]
pub(super) enum Look<'a> {
    /// A first creation: ours, 0644 less the umask.
    New,
    /// A text kept beside: ours, 0600, as nothing says who may read it.
    Private,
    /// A first creation with these permission bits.
    Mode(u32),
    /// The old file, but for its permission bits where others are given.
    Like(&'a Current, Option<u32>),
}

impl Documents<'_> {
    /// Replaces a document if it holds what the caller last saw; otherwise keeps both texts.
    ///
    /// Mode, owner and extended attributes of the old file are kept, the mode where no other is given. A new file gets
    /// 0644 less the umask.
    ///
    /// # Errors
    /// Refusals (links out of the root, a second hard link, not a plain file, the store's files),
    /// and [`DocumentError::NotSaved`] for a step that failed: then the former text stands, or the
    /// error says what does.
    pub fn replace(
        &self,
        path: &RelativePath,
        replacement: &Replacement<'_>,
    ) -> Result<ReplaceOutcome, DocumentError> {
        let spot = self.locate(path).map_err(|problem| self.failed(path, None, problem.into()))?;
        let job = Job { spot: &spot, replacement, ours: Digest::of(replacement.text) };
        self.attempt(&job).map_err(|failure| self.failed(path, Some(&spot), failure))
    }

    fn attempt(&self, job: &Job<'_>) -> Result<ReplaceOutcome, Failure> {
        let now = self.current(job.spot, &job.spot.name)?;
        if let Some(now) = &now {
            now.refuse_further_names(self.names)?;
        }
        match (&now, job.replacement.expected) {
            (Some(now), Expected::Text(_)) if now.text.digest == job.ours => {
                Ok(ReplaceOutcome::Saved(Saved { digest: job.ours, changed: false }))
            }
            (Some(now), Expected::Text(seen)) if now.text.digest == seen => self.exchange(job, now, seen),
            (None, Expected::Absent) => self.create_new(job),
            _ => self.keep_ours(job, None, Vec::new()),
        }
    }

    /// First creation: nothing may have come to that name meanwhile.
    fn create_new(&self, job: &Job<'_>) -> Result<ReplaceOutcome, Failure> {
        let look = job.replacement.mode.map_or(Look::New, Look::Mode);
        let temp = self.write_beside(job.spot, &job.spot.name, job.replacement.text, look)?;
        match self.move_to_free(job.spot, &temp, &job.spot.name) {
            Ok(()) => self.confirm(job),
            Err(Errno::EXIST) => self.keep_ours(job, Some(&temp), Vec::new()),
            Err(errno) => {
                self.discard(job.spot, &temp);
                Err(Failure::Step("giving the new file its name", errno))
            }
        }
    }

    fn exchange(&self, job: &Job<'_>, now: &Current, seen: Digest) -> Result<ReplaceOutcome, Failure> {
        let spot = job.spot;
        let look = Look::Like(now, job.replacement.mode);
        let temp = self.write_beside(spot, &spot.name, job.replacement.text, look)?;
        match self.calls.exchange(spot.folder(), &temp, &spot.name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.keep_ours(job, Some(&temp), Vec::new()),
            Err(errno) if unsupported(errno) => return self.move_aside(job, &temp, seen),
            Err(errno) => {
                self.discard(spot, &temp);
                return Err(Failure::Step("exchanging the texts", errno));
            }
        }
        // `temp` now names what was displaced: somebody's text until it is known to be the old one.
        match self.current(spot, &temp) {
            Ok(Some(displaced)) if displaced.text.digest == seen => {
                self.discard(spot, &temp);
                self.confirm(job)
            }
            _ => self.exchange_back(job, &temp),
        }
    }

    /// Without exchange: the old file steps aside under a name only we know, whatever it is by
    /// then; ours takes the name only if it is still free. A save in the gap takes the name first
    /// and is found there; a crash in the gap is mended by [`Documents::recover`].
    fn move_aside(&self, job: &Job<'_>, temp: &OsStr, seen: Digest) -> Result<ReplaceOutcome, Failure> {
        let spot = job.spot;
        let aside = step("naming the old text", WorkName::fresh(&spot.name, seen, Purpose::Old))?;
        match self.calls.rename(spot.folder(), &spot.name, &aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.keep_ours(job, Some(temp), Vec::new()),
            Err(errno) => {
                self.discard(spot, temp);
                return Err(Failure::Step("moving the old text aside", errno));
            }
        }
        if self.digest_at(spot, &aside) != Some(seen) {
            return self.put_back(job, temp, &aside);
        }
        match self.move_to_free(spot, temp, &spot.name) {
            Ok(()) => {
                self.discard(spot, &aside);
                self.confirm(job)
            }
            Err(Errno::EXIST) => {
                self.discard(spot, &aside);
                self.keep_ours(job, Some(temp), Vec::new())
            }
            Err(errno) => {
                self.discard(spot, temp);
                step("putting the old text back", self.move_to_free(spot, &aside, &spot.name))?;
                Err(Failure::Step("giving the new file its name", errno))
            }
        }
    }

    /// Makes the new name durable, and looks once more: a save that came right after ours took the
    /// file, and then ours must not exist in memory alone.
    fn confirm(&self, job: &Job<'_>) -> Result<ReplaceOutcome, Failure> {
        step("syncing the folder", self.calls.sync(job.spot.folder()))?;
        if self.digest_at(job.spot, &job.spot.name) == Some(job.ours) {
            Ok(ReplaceOutcome::Saved(Saved { digest: job.ours, changed: true }))
        } else {
            self.keep_ours(job, None, Vec::new())
        }
    }

    /// Writes a text into a fresh file beside `of`, durable before anything else happens to it.
    /// On any failure the file is removed; after a failed sync or close it is never used.
    pub(super) fn write_beside(
        &self,
        spot: &Location,
        of: &OsStr,
        text: &[u8],
        look: Look<'_>,
    ) -> Result<OsString, Failure> {
        let name = step("naming the new file", WorkName::fresh(of, Digest::of(text), Purpose::New))?;
        let mode = match look {
            Look::New => 0o644,
            // Until it is dressed like the old file, which may be private, nobody else reads it.
            Look::Like(..) | Look::Mode(_) | Look::Private => 0o600,
        };
        let file = step("creating the new file", self.calls.create(spot.folder(), &name, mode))?;
        match self.fill(file, text, look) {
            Ok(()) => Ok(name),
            Err(failure) => {
                self.discard(spot, &name);
                Err(failure)
            }
        }
    }

    fn fill(&self, file: OwnedFd, text: &[u8], look: Look<'_>) -> Result<(), Failure> {
        let mut file = File::from(file);
        step("writing the text", self.calls.write(&mut file, text))?;
        if let Look::Like(like, _) = look {
            let dressed = self.calls.dress(file.as_fd(), &like.file, &like.stat);
            step("keeping owner, mode and attributes", dressed)?;
        }
        if let Look::Mode(mode) | Look::Like(_, Some(mode)) = look {
            step("setting the mode", self.calls.set_mode(file.as_fd(), mode))?;
        }
        step("syncing the text", self.calls.sync(file.as_fd()))?;
        step("closing the new file", self.calls.close(file.into()))
    }

    /// Renames to a name that must be free; by a second link where the file system has no such
    /// rename. `from` is a name only we know, so that its removal hits nobody else.
    pub(super) fn move_to_free(&self, spot: &Location, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        match self.calls.rename_to_free(spot.folder(), from, to) {
            Err(errno) if unsupported(errno) => {
                self.calls.link(spot.folder(), from, to)?;
                self.calls.unlink(spot.folder(), from)
            }
            other => other,
        }
    }

    /// Removes a file of ours that is no longer needed. If that fails it stays behind, harmless,
    /// until the next start recognises it.
    pub(super) fn discard(&self, spot: &Location, name: &OsStr) {
        if let Err(errno) = self.calls.unlink(spot.folder(), name) {
            tracing::warn!(file = %name.display(), %errno, "a working file could not be removed");
        }
    }
}
