//! Wrap: a session hands over to the next one (spec: continuity §4).
//!
//! A wrap is a job of the store, begun before anything is done. Its payload is all that the rest needs, so that whoever
//! takes the session next goes on with it:
//!
//! ```text
//! gather → job begun → present text archived → handoff replaced → overflow added → new tree, job ended
//! ```
//!
//! Every step is done once, however often it is come to, as it is known by the wrap's id or by what it leaves. The session's
//! lease is held meanwhile, so that no turn runs beside it. The last step is one transaction: until then the session goes on
//! in the tree it was in.

mod archive;
mod files;
mod gather;
mod job;
mod undo;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use continuity::deterministic::{DeterministicHandoff, deterministic_handoff};
use loom::plan::NewTree;
use loom::tree::{TreeOrigin, TreeOriginKind};
use loom::{Digest, Mode, Op, TreeId, ViewName};
use store::home::HomeDir;
use store::{
    AttachedWrites, Claim, EndedJob, Guard, Job, JobEnd, JobFilter, JobId, LIST_PAGE, LeaseOwner, NewJob,
    Principal, Session, SessionId, SessionKind, StoreError, all_pages,
};
use ulid::Ulid;
use workspace::StoreGuard;

use crate::accepted_texts::{ApprovedText, accepted};
use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::runtime::{Runtime, command_records};
use crate::session::Name;
use files::WrapFiles;
use job::{KIND, WrapJob, WrapRecord};

pub use archive::{ArchivedHandoff, archived_handoffs};
pub use files::{UnmergedHandoff, WrittenFiles};
pub use undo::{UndoneFile, UndoneWrap};

/// The session that wraps, and the workspace it hands over in.
#[derive(Debug, Clone, Copy)]
pub struct WrapPlace<'a> {
    /// Canonical path of the workspace, of which everything is loaded.
    pub root: &'a Path,
    /// Files of the store, which nothing here opens.
    pub guard: &'a StoreGuard,
    pub session: &'a SessionId,
    /// The view whose path is handed over.
    pub view: &'a ViewName,
}

/// A session that has handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapped {
    /// Id of the wrap.
    pub wrap: String,
    /// Path of the handoff below the workspace.
    pub path: PathBuf,
    /// Size of the handoff.
    pub bytes: usize,
    /// The tree that was handed over.
    pub from: TreeId,
    /// The tree that the session goes on in.
    pub to: TreeId,
    pub files: WrittenFiles,
}

/// Where a wrap is, told before the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WrapStep {
    Begun,
    Archived,
    Replaced,
    Overflowed,
}

/// Told of each step that is done; an error ends the wrap there, as the end of its process would.
type Reached = Arc<dyn Fn(WrapStep) -> Result<(), String> + Send + Sync>;

/// Path of a session's handoff below its workspace.
pub fn handoff_path(session: &str) -> String {
    if session == Name::default().as_str() { MAIN.to_owned() } else { format!("{NAMED}/{session}.md") }
}

/// Handoff of the session `main`.
const MAIN: &str = "HANDOFF.md";
/// Folder of the handoffs of other sessions.
const NAMED: &str = "handoffs";

impl Runtime {
    /// Hands a session over: a handoff is written and the session goes on in a new tree. None where nothing was said or
    /// noted since the last one. A wrap that another process left unfinished is finished instead.
    ///
    /// # Errors
    /// [`AgentError::Answers`] with who runs a turn; [`AgentError::NoHandoff`] for a session that hands nothing over;
    /// [`AgentError::Wrap`] where its files could not be written: the session then goes on where it was.
    pub async fn wrap(&self, who: &Principal, place: &WrapPlace<'_>) -> Result<Option<Wrapped>, AgentError> {
        self.wrap_told(who, place, Arc::new(|_| Ok(()))).await
    }

    async fn wrap_told(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
        reached: Reached,
    ) -> Result<Option<Wrapped>, AgentError> {
        let wrapped = self.between_turns(who, place.session, |guard| async move {
            if let Some(resumed) = self.resume_held(who, place, &guard, &reached).await? {
                return Ok(Some(resumed));
            }
            let session = self.wrapping_session(who, place.session).await?;
            let Some(tree) = session.tree() else { return Ok(None) };
            // What is lost has its result, so that it is not asked for.
            self.end_calls_of(tree, guard.clone(), &|told| tracing::info!("{told}")).await?;
            let Some(job) = self.wrap_job(who, place, (&session, tree)).await? else { return Ok(None) };
            let payload = serde_json::to_string(&job).map_err(|error| AgentError::Wrap(error.to_string()))?;
            let new = NewJob {
                kind: KIND.to_owned(),
                key: Some(job.key()),
                tree: Some(tree),
                payload,
                due: self.now(),
            };
            let owner = LeaseOwner::new(self.instance.to_string());
            let (id, claim) = self.store.begin_job(who, new, &owner, vec![guard.clone()]).await?;
            self.perform(who, place, &guard, (id, claim, job), &reached).await.map(Some)
        });
        wrapped.await?
    }

    /// Finishes the wrap of a session that a process left unfinished, if there is one. Cheap where there is none.
    ///
    /// # Errors
    /// As [`Self::wrap`].
    pub async fn resume_wrap(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
    ) -> Result<Option<Wrapped>, AgentError> {
        if self.open_wraps(who, place.session).await?.is_empty() {
            return Ok(None);
        }
        let reached: Reached = Arc::new(|_| Ok(()));
        let resumed = self.between_turns(who, place.session, |guard| async move {
            self.resume_held(who, place, &guard, &reached).await
        });
        resumed.await?
    }

    async fn open_wraps(&self, who: &Principal, session: &SessionId) -> Result<Vec<Job>, AgentError> {
        let page = |after| self.store.jobs(who, JobFilter::Open, after, LIST_PAGE);
        let mut open = all_pages(|job: &Job| job.id, page).await?;
        let prefix = job::key_prefix(session);
        open.retain(|job| {
            let key = job.job.key.as_deref();
            // One whose texts were forgotten is nobody's, and is ended by whoever comes next.
            job.job.kind == KIND && key.is_none_or(|key| key.starts_with(&prefix))
        });
        Ok(open)
    }

    async fn resume_held(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
        guard: &Guard,
        reached: &Reached,
    ) -> Result<Option<Wrapped>, AgentError> {
        let mut resumed = None;
        for open in self.open_wraps(who, place.session).await? {
            let Some(claim) = open.claim() else { continue };
            let (id, owner) = (open.id, LeaseOwner::new(self.instance.to_string()));
            let fence = match self.store.take_over_job(who, id, &claim, &owner).await {
                Ok(fence) => fence,
                // Who takes another session ended it.
                Err(StoreError::Fenced { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let claim = Claim { owner, fence };
            let Ok(work) = serde_json::from_str::<WrapJob>(&open.job.payload) else {
                self.fail(who, (id, &claim), "what it was to write was forgotten").await?;
                continue;
            };
            if !self.stands(who, &work).await? {
                self.fail(who, (id, &claim), "its session went on").await?;
                continue;
            }
            resumed = Some(self.perform(who, place, guard, (id, claim, work), reached).await?);
        }
        Ok(resumed)
    }

    /// Whether the session still is where its wrap began.
    async fn stands(&self, who: &Principal, job: &WrapJob) -> Result<bool, AgentError> {
        let session = self.store.session(who, &job.session).await?;
        if session.and_then(|session| session.tree()) != Some(job.from) {
            return Ok(false);
        }
        let view = job.view.clone();
        let tip = self.read(who, job.from, move |rows| loom::render::tip(rows, &view)).await?;
        Ok(tip == job.tip)
    }

    async fn fail(&self, who: &Principal, (id, claim): (JobId, &Claim), why: &str) -> Result<(), AgentError> {
        Ok(self.store.finish(who, id, claim, JobEnd::Failed(why.to_owned())).await?)
    }

    async fn wrapping_session(&self, who: &Principal, id: &SessionId) -> Result<Session, AgentError> {
        let session = self.store.session(who, id).await?.ok_or(StoreError::NotFound("session"))?;
        match session.kind {
            SessionKind::Main => Ok(session),
            SessionKind::Temporary => Err(AgentError::NoHandoff("it is temporary")),
            SessionKind::Isolated => {
                Err(AgentError::NoHandoff("it is one of a subagent or a single request"))
            }
        }
    }

    /// What is to be done; none where there is nothing to hand over.
    async fn wrap_job(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
        (session, tree): (&Session, TreeId),
    ) -> Result<Option<WrapJob>, AgentError> {
        let root = place.root.to_owned();
        let Some(gathered) = self.gather(who, (session, tree), place.view, root).await? else {
            return Ok(None);
        };
        let DeterministicHandoff { handoff, sources, overflow } = deterministic_handoff(&gathered.session);
        let masker = self.masker_of_now().unwrap_or_else(|_| Arc::clone(&self.masker));
        let text = masker.mask_entering(&handoff.render()).text.into_owned();
        let expected = match gathered.seen {
            Some(seen) => Some(seen),
            None => self.written_by(who, &session.id, tree).await?,
        };
        Ok(Some(WrapJob {
            wrap: self.new_id::<Ulid>()?.to_string(),
            session: session.id.clone(),
            name: session.name.clone(),
            from: tree,
            view: place.view.clone(),
            tip: gathered.tip,
            tip_node: gathered.tip_node,
            to: self.new_id::<TreeId>()?,
            expected,
            text,
            is_outside: sources.iter().any(|source| source.is_outside),
            overflow: overflow.into_iter().map(Into::into).collect(),
            at: self.now(),
        }))
    }

    /// Digest of the handoff that the wrap wrote which led to this tree.
    async fn written_by(
        &self,
        who: &Principal,
        session: &SessionId,
        tree: TreeId,
    ) -> Result<Option<Digest>, AgentError> {
        let led = self.wrap_that_led_to(who, session, tree).await?;
        Ok(led.filter(|record| record.is_written).map(|record| record.digest))
    }

    /// Everything behind the beginning. What fails in a file ends the wrap; what fails in the store leaves it to whoever
    /// takes the session next.
    async fn perform(
        &self,
        who: &Principal,
        place: &WrapPlace<'_>,
        guard: &Guard,
        (id, claim, job): (JobId, Claim, WrapJob),
        reached: &Reached,
    ) -> Result<Wrapped, AgentError> {
        reached(WrapStep::Begun).map_err(AgentError::Wrap)?;
        let digest = Digest::of(job.text.as_bytes());
        if job.is_outside {
            self.store.keep_outside_files(who, vec![digest]).await?;
        }
        let locks = self.home.dir(HomeDir::Locks).map_err(|error| AgentError::Home(error.to_string()))?;
        let files = WrapFiles {
            root: place.root.to_owned(),
            guard: place.guard.clone(),
            locks,
            records: command_records(self.home.root()),
            masker: Arc::clone(&self.masker),
        };
        let (work, told) = (job.clone(), Arc::clone(reached));
        let files = match on_disk(move || files.write(&work, &told)).await {
            Ok(files) => files,
            Err(files::WriteError::Ended(why)) => return Err(AgentError::Wrap(why)),
            Err(files::WriteError::Failed(why)) => {
                self.fail(who, (id, &claim), &why).await?;
                return Err(AgentError::Wrap(why));
            }
        };
        let record = WrapRecord {
            wrap: job.wrap.clone(),
            session: job.session.clone(),
            name: job.name.clone(),
            from: job.from,
            to: job.to,
            digest,
            had_text: job.expected.is_some(),
            is_written: files.unmerged.is_none(),
        };
        let result = serde_json::to_string(&record).map_err(|error| AgentError::Wrap(error.to_string()))?;
        let path = PathBuf::from(handoff_path(&job.name));
        let text =
            ApprovedText { workspace: place.root, path: &path, before: None, after: job.text.as_bytes() };
        let texts = if record.is_written { vec![text] } else { Vec::new() };
        let with = AttachedWrites {
            session: Some(job.session.0.clone()),
            guards: vec![guard.clone()],
            jobs: vec![EndedJob { id, claim, end: JobEnd::Done(result) }],
            accepted: accepted(self, &texts).await?,
            ..AttachedWrites::nothing()
        };
        let origin = TreeOrigin { tree: job.from, node: Some(job.tip_node), kind: TreeOriginKind::Wrap };
        let op = Op::Create(NewTree { mode: Mode::Dialogue, title: String::new(), origin: Some(origin) });
        self.change(who, job.to, &ViewName::default(), op, with).await?;
        Ok(Wrapped { wrap: job.wrap, path, bytes: job.text.len(), from: job.from, to: job.to, files })
    }
}
