//! Undo of a wrap: the session goes on where it was, with the handoff that it had.

use std::path::PathBuf;
use std::sync::Arc;

use loom::{Digest, TreeId};
use store::home::HomeDir;
use store::{Guard, Job, JobFilter, JobState, LIST_PAGE, Principal, SessionId, all_pages};
use ulid::Ulid;
use workspace::{Expected, RelativePath, ReplaceOutcome, Unmerged};

use super::files::{WrapFiles, WriteError, stamp};
use super::job::{KIND, WrapRecord, key_prefix};
use super::{WrapPlace, archive, handoff_path};
use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::runtime::{Runtime, command_records};

/// A wrap that was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneWrap {
    pub wrap: String,
    /// The tree that the session goes on in again.
    pub to: TreeId,
    /// The tree that it was in, which stays.
    pub from: TreeId,
    /// Path of the handoff below the workspace.
    pub path: PathBuf,
    pub file: UndoneFile,
}

/// What became of the handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoneFile {
    /// The text before stands there again.
    Restored,
    /// There was none before, and there is none again.
    Removed,
    /// A text that was changed since, or of which the one before is not kept, stays. The difference leads to the one before.
    Left { difference: String },
}

impl Runtime {
    /// Undoes the wrap that led to where a session is.
    ///
    /// # Errors
    /// [`AgentError::Answers`] with who runs a turn; [`AgentError::NoWrap`] where none led there;
    /// [`AgentError::Wrap`] where the handoff could not be written.
    pub async fn undo_wrap(&self, who: &Principal, place: &WrapPlace<'_>) -> Result<UndoneWrap, AgentError> {
        let undone =
            self.between_turns(
                who,
                place.session,
                |guard| async move { self.undo_held(who, place, guard).await },
            );
        undone.await?
    }

    async fn undo_held(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
        guard: Guard,
    ) -> Result<UndoneWrap, AgentError> {
        let tree = self.current_tree(who, place.session).await?.ok_or(AgentError::NoWrap)?;
        let record = self.wrap_that_led_to(who, place.session, tree).await?.ok_or(AgentError::NoWrap)?;
        let locks = self.home.dir(HomeDir::Locks).map_err(|error| AgentError::Home(error.to_string()))?;
        let files = WrapFiles {
            root: place.root.to_owned(),
            guard: place.guard.clone(),
            locks,
            records: command_records(self.home.root()),
            masker: Arc::clone(&self.masker),
        };
        let (undone, work, at) = (self.new_id::<Ulid>()?.to_string(), record.clone(), self.now());
        let file = on_disk(move || files.restore(&work, &undone, at)).await.map_err(|error| match error {
            WriteError::Failed(why) | WriteError::Ended(why) => AgentError::Wrap(why),
        })?;
        self.store.move_session(who, place.session, record.from, vec![guard]).await?;
        let path = PathBuf::from(handoff_path(&record.name));
        Ok(UndoneWrap { wrap: record.wrap, to: record.from, from: record.to, path, file })
    }

    /// The wrap by which a session came to a tree.
    pub(super) async fn wrap_that_led_to(
        &self,
        who: &Principal,
        session: &SessionId,
        tree: TreeId,
    ) -> Result<Option<WrapRecord>, AgentError> {
        let page = |after| self.store.jobs(who, JobFilter::All, after, LIST_PAGE);
        let prefix = key_prefix(session);
        let jobs = all_pages(|job: &Job| job.id, page).await?;
        let records = jobs.iter().rev().filter_map(|job| match &job.state {
            JobState::Done(result)
                if job.job.kind == KIND
                    && job.job.key.as_deref().is_some_and(|key| key.starts_with(&prefix)) =>
            {
                serde_json::from_str::<WrapRecord>(result).ok()
            }
            _ => None,
        });
        Ok(records.into_iter().find(|record| record.to == tree))
    }
}

impl WrapFiles {
    /// Brings the handoff before a wrap back. What stands there is archived under the id of the undo.
    fn restore(&self, record: &WrapRecord, undo: &str, at: loom::Millis) -> Result<UndoneFile, WriteError> {
        let failed = WriteError::Failed;
        let mut done = UndoneFile::Removed;
        self.within(|root, documents| {
            let path = handoff_path(&record.name);
            let path = RelativePath::parse(&path).map_err(|error| failed(error.to_string()))?;
            let read = |path: &RelativePath| archive::read(documents, path).map_err(failed);
            let (stands, stamp) = (read(&path)?, stamp(at));
            let before = read(&archive::path(&record.name, &record.wrap).map_err(failed)?)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let difference = |to: &str| {
                let stands = stands.as_ref().map(|stands| text(&stands.bytes));
                self.difference(path.as_path(), stands.as_deref(), to)
            };
            let before = before.map(|before| text(&before.bytes));
            let left = |before: Option<&str>| UndoneFile::Left {
                difference: before.map(difference).unwrap_or_default(),
            };
            let is_ours = |digest: Digest| record.is_written && digest == record.digest;
            let is_kept = before.is_some() || !record.had_text;
            let Some(ours) = stands.as_ref().filter(|stands| is_kept && is_ours(stands.digest)) else {
                done = left(before.as_deref());
                return Ok(());
            };
            archive::keep((root, documents), (&record.name, undo), &ours.bytes, &stamp).map_err(failed)?;
            match &before {
                Some(before) => {
                    let expected = Expected::Text(ours.digest);
                    let outcome = self.write_text(
                        (root, documents),
                        &path,
                        (before, expected),
                        (Unmerged::Beside, &stamp),
                    )?;
                    done = match outcome {
                        ReplaceOutcome::Saved(_) => UndoneFile::Restored,
                        ReplaceOutcome::Conflict { .. } => left(Some(before)),
                    };
                }
                None => {
                    let removed = documents.remove(&path, ours.digest, &stamp);
                    done = match removed.map_err(|error| failed(error.to_string()))? {
                        workspace::RemoveOutcome::Removed => UndoneFile::Removed,
                        workspace::RemoveOutcome::Conflict { .. } => left(None),
                    };
                }
            }
            Ok(())
        })?;
        Ok(done)
    }
}
