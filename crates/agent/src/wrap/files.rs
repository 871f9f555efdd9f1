//! Files of a wrap: the archive, the handoff, the file of the day.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use continuity::overflow::with_overflow;
use loom::{Digest, Millis};
use text::mask::Masker;
use tools::FileContent;
use workspace::protected::is_held;
use workspace::{
    DocumentText, Documents, Expected, RelativePath, ReplaceOutcome, Replacement, Root, Stamp, StoreGuard,
    Unmerged, WorkspaceLock,
};

use super::job::WrapJob;
use super::{Reached, WrapStep, archive, handoff_path};
use crate::accepted_changes::{accept, finish};

/// How long another process may write in the workspace before it is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the file of the day is read again where somebody saves it.
const TRIES: usize = 5;
/// Characters of a difference that is told.
const MOST_DIFFERENCE: usize = 4_000;

/// Files that a wrap writes, and what it writes them with.
pub(super) struct WrapFiles {
    pub(super) root: PathBuf,
    pub(super) guard: StoreGuard,
    /// The home's folder of locks.
    pub(super) locks: PathBuf,
    /// Where commands find which changes of protected paths are no commands'.
    pub(super) records: PathBuf,
    pub(super) masker: Arc<Masker>,
}

/// What a wrap wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenFiles {
    /// The text before, below the workspace; none where there was none.
    pub archived: Option<PathBuf>,
    /// Where the handoff was kept because another text stood in its place, which stays.
    pub unmerged: Option<UnmergedHandoff>,
    /// Where the rest is.
    pub overflow: Option<PathBuf>,
    /// Entries of the rest.
    pub overflowed: usize,
}

/// A handoff that stands beside the text it was to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmergedHandoff {
    /// Below the workspace.
    pub path: PathBuf,
    /// From the text that stands to this one, secrets masked.
    pub difference: String,
}

/// Why files of a wrap are not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteError {
    Failed(String),
    /// The process ended, as far as a test goes.
    Ended(String),
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` takes")]
fn failed(error: impl ToString) -> WriteError {
    WriteError::Failed(error.to_string())
}

/// A moment as a name of a file has it, by UTC.
pub(super) fn stamp(at: Millis) -> Stamp {
    let text = moment(at, "%Y%m%dT%H%M%SZ");
    Stamp::new(&text).unwrap_or_else(|| unreachable!("digits are fit for a name"))
}

fn moment(at: Millis, form: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    at.strftime(form).to_string()
}

impl WrapFiles {
    /// Writes what is not written yet. It blocks.
    ///
    /// # Errors
    /// What could not be written. The text before stands in its place or in the archive.
    pub(super) fn write(&self, job: &WrapJob, reached: &Reached) -> Result<WrittenFiles, WriteError> {
        let told = |step| reached(step).map_err(WriteError::Ended);
        let mut written = WrittenFiles::default();
        self.within(|root, documents| {
            let path = RelativePath::parse(&handoff_path(&job.name)).map_err(failed)?;
            let (stamp, ours) = (stamp(job.at), Digest::of(job.text.as_bytes()));
            clear_leftovers(documents, &path, &[job.expected, Some(ours)], &stamp)?;
            let found = archive::read(documents, &path).map_err(failed)?;
            let archived = archive::path(&job.name, &job.wrap).map_err(failed)?;
            if let Some(before) = found.as_ref().filter(|found| Some(found.digest) == job.expected)
                && before.digest != ours
            {
                archive::keep((root, documents), (&job.name, &job.wrap), &before.bytes, &stamp)
                    .map_err(failed)?;
            }
            if archive::read(documents, &archived).map_err(failed)?.is_some() {
                written.archived = Some(archived.as_path().to_owned());
            }
            told(WrapStep::Archived)?;
            written.unmerged = self.replace((root, documents), job, (&path, found.as_ref()), &stamp)?;
            archive::remove_oldest((root, documents), &job.name, &stamp);
            told(WrapStep::Replaced)?;
            let overflow = job.overflow();
            if !overflow.is_empty() {
                written.overflowed = overflow.len();
                let day = format!("memory/{}.md", moment(job.at, "%Y-%m-%d"));
                let add = |text: &str| with_overflow(text, &job.wrap, &overflow);
                let added = self.add((root, documents), &day, &add, &stamp).or_else(|error| {
                    tracing::warn!(?error, "what did not fit in a handoff is kept beside it");
                    let beside = format!("{}/{stamp}-overflow.md", archive::FOLDER);
                    self.add((root, documents), &beside, &add, &stamp)
                });
                written.overflow = Some(added?);
            }
            told(WrapStep::Overflowed)
        })?;
        Ok(written)
    }

    /// Does something with the documents of the workspace, under its lock.
    pub(super) fn within(
        &self,
        work: impl FnOnce(&Root, &Documents<'_>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let root = Root::open_again(&self.root, &self.guard).map_err(failed)?;
        let lock = WorkspaceLock::acquire(&self.locks, root.id(), PATIENCE).map_err(failed)?;
        work(&root, &Documents::new(&root, &lock).map_err(failed)?)
    }

    fn replace(
        &self,
        (root, documents): (&Root, &Documents<'_>),
        job: &WrapJob,
        (path, found): (&RelativePath, Option<&DocumentText>),
        stamp: &Stamp,
    ) -> Result<Option<UnmergedHandoff>, WriteError> {
        let ours = Digest::of(job.text.as_bytes());
        if found.is_some_and(|found| found.digest == ours) {
            return Ok(None);
        }
        archive::make_folder(root).map_err(failed)?;
        let unmerged =
            RelativePath::parse(&format!("{}/{stamp}-unmerged.md", archive::FOLDER)).map_err(failed)?;
        let expected = job.expected.map_or(Expected::Absent, Expected::Text);
        let is_other = found.map(|found| found.digest) != job.expected;
        let there = archive::read(documents, &unmerged).map_err(failed)?;
        let kept = if is_other && there.is_some_and(|there| there.digest == ours) {
            // A process that died kept it.
            unmerged
        } else {
            let outcome = self.write_text(
                (root, documents),
                path,
                (&job.text, expected),
                (Unmerged::At(unmerged), stamp),
            )?;
            match outcome {
                ReplaceOutcome::Saved(_) => return Ok(None),
                ReplaceOutcome::Conflict { ours, .. } => ours,
            }
        };
        let stands = archive::read(documents, path).ok().flatten();
        let stands = stands.map(|text| String::from_utf8_lossy(&text.bytes).into_owned());
        let difference = self.difference(path.as_path(), stands.as_deref(), &job.text);
        Ok(Some(UnmergedHandoff { path: kept.as_path().to_owned(), difference }))
    }

    /// Replaces a protected text as its owner does: no command did it that runs meanwhile.
    pub(super) fn write_text(
        &self,
        (root, documents): (&Root, &Documents<'_>),
        path: &RelativePath,
        (text, expected): (&str, Expected),
        (unmerged, stamp): (Unmerged, &Stamp),
    ) -> Result<ReplaceOutcome, WriteError> {
        let (folder, _) = path.split().map_err(failed)?;
        if !folder.is_root() {
            root.create_folder(&folder).map_err(failed)?;
        }
        let content = FileContent::File { mode: None, bytes: text.as_bytes() };
        let held = is_held(path.as_path()).then(|| (root.path().join(path.as_path()), content));
        let accepted = accept(&self.records, held);
        let replacement =
            Replacement { text: text.as_bytes(), expected, stamp: stamp.clone(), unmerged, mode: None };
        let outcome = documents.replace(path, &replacement).map_err(failed)?;
        finish(accepted);
        Ok(outcome)
    }

    /// Adds to a text. Returns where.
    fn add(
        &self,
        (root, documents): (&Root, &Documents<'_>),
        path: &str,
        add: &dyn Fn(&str) -> String,
        stamp: &Stamp,
    ) -> Result<PathBuf, WriteError> {
        let path = RelativePath::parse(path).map_err(failed)?;
        for _ in 0..TRIES {
            let before = archive::read(documents, &path).map_err(failed)?;
            let text = before.as_ref().map_or(Ok(""), |before| std::str::from_utf8(&before.bytes));
            let text = text.map_err(|_| failed(format!("{path} is not UTF-8 text")))?;
            let after = add(text);
            if after == text {
                return Ok(path.as_path().to_owned());
            }
            let expected = before.as_ref().map_or(Expected::Absent, |before| Expected::Text(before.digest));
            let written =
                self.write_text((root, documents), &path, (&after, expected), (Unmerged::Beside, stamp))?;
            match written {
                ReplaceOutcome::Saved(_) => return Ok(path.as_path().to_owned()),
                ReplaceOutcome::Conflict { ours, .. } => {
                    let digest = Digest::of(after.as_bytes());
                    let _ = documents.remove(&ours, digest, stamp).map_err(failed)?;
                }
            }
        }
        Err(failed(format!("{path} is saved by somebody again and again")))
    }

    /// The difference from one text to another, secrets masked.
    pub(super) fn difference(&self, path: &Path, before: Option<&str>, after: &str) -> String {
        let mask = |text: &str| self.masker.mask_entering(text).text.into_owned();
        let before = before.map(mask);
        let shown = tools::unified_diff(&path.display().to_string(), before.as_deref(), Some(&mask(after)));
        let end = shown.char_indices().nth(MOST_DIFFERENCE).map(|(at, _)| at);
        end.map_or(shown.clone(), |end| format!("{}\n…", &shown[..end]))
    }
}

/// Removes what a process that died left beside a document, or brings it back.
fn clear_leftovers(
    documents: &Documents<'_>,
    path: &RelativePath,
    known: &[Option<Digest>],
    stamp: &Stamp,
) -> Result<(), WriteError> {
    let (folder, name) = path.split().map_err(failed)?;
    let known = [(name, known.iter().flatten().copied().collect())].into_iter().collect();
    documents.recover(&folder, &known, stamp).map(drop).map_err(failed)
}
