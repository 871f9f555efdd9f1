//! Conflicts: the text that was found stays in the file, the new text is kept beside it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use rustix::io::Errno;

use super::locate::Location;
use super::replace::{Job, Look};
use super::{Documents, Failure, MAX_NAME, ReplaceOutcome, Stamp, Unmerged, step};
use crate::path::RelativePath;

/// Most saves that may race one exchange; after them the last one is kept beside the document.
const MAX_EXCHANGES: usize = 8;

/// Most kept texts of one time stamp.
const MAX_SAME_STAMP: u32 = 1000;

impl Documents<'_> {
    /// Brings a displaced text back to its name.
    ///
    /// A further save may hit the name before each exchange. After each one, what was displaced is
    /// compared with what we last put there: if they agree, the file holds the newest save and
    /// what is left over is ours or an older text; if not, a newer save was displaced, and it goes
    /// back in turn.
    pub(super) fn exchange_back(&self, job: &Job<'_>, temp: &OsStr) -> Result<ReplaceOutcome, Failure> {
        let spot = job.spot;
        let mut put_there = Some(job.ours);
        for _ in 0..MAX_EXCHANGES {
            let returning = self.digest_at(spot, temp);
            match self.calls.exchange(spot.folder(), temp, &spot.name) {
                Ok(()) => {}
                // The name was removed meanwhile: what we hold is the only text there is.
                Err(Errno::NOENT) => {
                    step("bringing their text back", self.move_to_free(spot, temp, &spot.name))?;
                    return self.keep_ours(job, None, Vec::new());
                }
                Err(errno) => return Err(Failure::Step("exchanging back", errno)),
            }
            let displaced = self.digest_at(spot, temp);
            if displaced.is_some() && displaced == put_there {
                break;
            }
            put_there = returning;
        }
        if self.digest_at(spot, temp) == Some(job.ours) {
            self.keep_ours(job, Some(temp), Vec::new())
        } else {
            let other = self.keep_beside(job, temp)?;
            self.keep_ours(job, None, vec![other])
        }
    }

    /// As [`exchange_back`](Self::exchange_back) where there is no exchange: the text that stepped
    /// aside returns if its name is still free, else it is kept beside.
    pub(super) fn put_back(
        &self,
        job: &Job<'_>,
        temp: &OsStr,
        aside: &OsStr,
    ) -> Result<ReplaceOutcome, Failure> {
        let spot = job.spot;
        let others = match self.move_to_free(spot, aside, &spot.name) {
            Ok(()) => Vec::new(),
            Err(Errno::EXIST) => vec![self.keep_beside(job, aside)?],
            Err(errno) => return Err(Failure::Step("putting their text back", errno)),
        };
        self.keep_ours(job, Some(temp), others)
    }

    /// Puts our text at the place for unmerged ones. `written` is a working file that holds it
    /// already; it goes only when the text stands elsewhere.
    pub(super) fn keep_ours(
        &self,
        job: &Job<'_>,
        written: Option<&OsStr>,
        others: Vec<RelativePath>,
    ) -> Result<ReplaceOutcome, Failure> {
        let ours = match (&job.replacement.unmerged, written) {
            (Unmerged::Beside, Some(written)) => self.keep_beside(job, written)?,
            (Unmerged::Beside, None) => {
                let temp =
                    self.write_beside(job.spot, &job.spot.name, job.replacement.text, Look::Private)?;
                self.keep_beside(job, &temp)?
            }
            (Unmerged::At(path), written) => {
                let (folder, _) = path.split()?;
                self.root.create_folder(&folder).map_err(|error| error.problem)?;
                let spot = self.spot(path)?;
                let temp = self.write_beside(&spot, &spot.name, job.replacement.text, Look::Private)?;
                let kept = self.keep_as(&spot, &temp, &spot.name)?;
                if let Some(written) = written {
                    self.discard(job.spot, written);
                }
                kept
            }
        };
        let found = self.digest_at(job.spot, &job.spot.name);
        Ok(ReplaceOutcome::Conflict { found, ours, others })
    }

    /// Gives a working file the name `NAME.drawloom-<time>`.
    fn keep_beside(&self, job: &Job<'_>, from: &OsStr) -> Result<RelativePath, Failure> {
        self.keep_as(job.spot, from, &kept_name(&job.spot.name, &job.replacement.stamp))
    }

    /// Gives a working file a lasting name, numbered if the first is taken.
    pub(super) fn keep_as(
        &self,
        spot: &Location,
        from: &OsStr,
        wanted: &OsStr,
    ) -> Result<RelativePath, Failure> {
        let mut name = wanted.to_os_string();
        for number in 2..MAX_SAME_STAMP {
            match self.move_to_free(spot, from, &name) {
                Ok(()) => {
                    step("syncing the folder", self.calls.sync(spot.folder()))?;
                    return Ok(spot.parent.join(&name)?);
                }
                Err(Errno::EXIST) => {
                    name = wanted.to_os_string();
                    name.push(format!("-{number}"));
                }
                Err(errno) => return Err(Failure::Step("keeping a text beside", errno)),
            }
        }
        Err(Failure::Step("keeping a text beside", Errno::EXIST))
    }
}

/// `NAME.drawloom-<time>`, of a long name its beginning.
pub(super) fn kept_name(of: &OsStr, stamp: &Stamp) -> OsString {
    let bytes = of.as_bytes();
    let is_within = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (0..=MAX_NAME.min(bytes.len())).rev().find(|at| !is_within(at)).unwrap_or(0);
    let mut name = OsStr::from_bytes(&bytes[..end]).to_os_string();
    name.push(format!(".drawloom-{stamp}"));
    name
}
