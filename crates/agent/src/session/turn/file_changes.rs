//! What a call is about to change in files, made durable with the bytes that stand there (spec: agent §3 *Checkpoints*).

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use loom::{Digest, TreeId, Trust};
use store::{
    CallId, Claim, FileChangeId, FileState, Guard, NewFileChange, NewFileChanges, Principal, StoreError,
};
use tools::{
    AcceptedChanges, BytesOrigin, ChangeRecorder, FileBefore, FileContent, OwnPaths, PlannedChange,
    SAYS_NOTHING, before_running_commands,
};
use workspace::protected::is_held;
use workspace::trust::is_instructions;

use crate::accepted_changes::{accept, finish};
use crate::accepted_texts::{ApprovedText, accepted};
use crate::error::AgentError;
use crate::runtime::{Runtime, command_records};

/// Whether a tool writes texts: all that it is asked to, or nothing.
pub(crate) fn writes_texts(tool: &str) -> bool {
    matches!(tool, "edit" | "patch" | "write")
}

/// Writes changes of one call down.
pub(crate) struct CallChanges {
    runtime: Runtime,
    tree: TreeId,
    call: CallId,
    claim: Option<Claim>,
    guards: Vec<Guard>,
    tasks: tokio::runtime::Handle,
    /// Whether the answer was given in sight of something from outside.
    is_tainted: bool,
    /// Whether a person said yes to the call.
    is_approved: bool,
    /// What was written down.
    recorded: Mutex<Vec<FileChangeId>>,
    /// The paths that it is about.
    paths: Mutex<OwnPaths>,
    /// What it changes of the protected set beside what its name says.
    protected: Mutex<Vec<PathBuf>>,
    /// What it changes of that, until it is made.
    being_made: Mutex<Vec<AcceptedChanges>>,
    /// Whether its tool writes texts, whose difference is shown.
    writes_texts: bool,
    /// The difference that it made, masked.
    difference: Mutex<String>,
    /// Why the last of them could not be written down.
    failed: Mutex<Option<AgentError>>,
    /// Why what its command changed could not be written down.
    left: Mutex<Option<AgentError>>,
}

impl CallChanges {
    /// Recorder of a call's changes, which writes them down while leases are held; `claim` is none of a call that has
    /// ended, and `trust` is that of the answer that calls.
    pub(crate) fn of(
        runtime: &Runtime,
        (tree, call): (TreeId, CallId),
        claim: Option<&Claim>,
        guards: &[Guard],
        trust: Trust,
    ) -> Self {
        Self {
            is_tainted: trust == Trust::Outside,
            is_approved: false,
            runtime: runtime.clone(),
            tree,
            call,
            claim: claim.cloned(),
            guards: guards.to_vec(),
            tasks: tokio::runtime::Handle::current(),
            recorded: Mutex::default(),
            paths: Mutex::default(),
            protected: Mutex::default(),
            being_made: Mutex::default(),
            writes_texts: false,
            difference: Mutex::default(),
            failed: Mutex::default(),
            left: Mutex::default(),
        }
    }

    /// The recorder of a call of this tool, whose difference is shown if it writes texts.
    pub(crate) fn by(self, tool: &str) -> Self {
        Self { writes_texts: writes_texts(tool), ..self }
    }

    /// The difference that was made.
    pub(crate) fn difference(&self) -> String {
        self.difference.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why the call has no result: what its command changed could not be written down.
    pub(crate) fn left(&self) -> Option<AgentError> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn add_difference(&self, change: &PlannedChange<'_>) {
        if !self.writes_texts {
            return;
        }
        let side = |content: FileContent<'_>| match content {
            FileContent::File { bytes, .. } => {
                let text = String::from_utf8_lossy(bytes);
                Some(self.runtime.masker.mask(&text).text.into_owned())
            }
            _ => None,
        };
        let (before, after) = (side(change.before), side(change.after));
        let path = change.path.as_path().display().to_string();
        self.show(&tools::unified_diff(&path, before.as_deref(), after.as_deref()));
    }

    /// The recorder of a call that a person said yes to, or not.
    pub(crate) fn approved(self, is_approved: bool) -> Self {
        Self { is_approved, ..self }
    }

    /// Says of what the walls hold, and the call itself is about to change, that no command does.
    fn accept_beside_commands(&self, changes: &[PlannedChange<'_>]) {
        let protected = self.protected.lock().unwrap_or_else(PoisonError::into_inner);
        let held = changes.iter().filter_map(|change| {
            let path = change.root.join(change.path.as_path());
            let counts = is_held(change.path.as_path()) || protected.iter().any(|it| path.starts_with(it));
            counts.then_some((path, change.after))
        });
        let accepted = accept(&command_records(self.runtime.home.root()), held);
        self.being_made.lock().unwrap_or_else(PoisonError::into_inner).extend(accepted);
    }

    /// Whether the call itself changed anything.
    pub(crate) fn are_some(&self) -> bool {
        !self.recorded.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The text of instructions that a file tool makes, if the owner saw its difference.
    fn approved_text<'c>(&self, change: &PlannedChange<'c>) -> Option<ApprovedText<'c>> {
        let (workspace, path) = (change.root, change.path.as_path());
        let FileContent::File { bytes: after, .. } = change.after else { return None };
        let before = match change.before {
            FileContent::Absent => None,
            FileContent::File { bytes, .. } => Some(bytes),
            _ => return None,
        };
        // Of bytes that are no text a difference says the number and the digest.
        let is_shown = !before.into_iter().chain([after]).any(|bytes| bytes.contains(&0));
        let is_seen = self.is_approved && change.origin == BytesOrigin::Call && is_shown;
        (is_seen && is_instructions(path)).then_some(ApprovedText { workspace, path, before, after })
    }

    /// Writes changes down, with the texts among them whose difference the owner approved.
    fn keep(&self, changes: &[PlannedChange<'_>], approved: &[ApprovedText<'_>]) -> Result<(), String> {
        let before: Vec<Digest> = changes.iter().filter_map(|change| state(change.before).blob()).collect();
        // What is written may come from each file that it changes.
        let is_call_outside = self.is_tainted || (self.knows_outside() && !self.outside(before).is_empty());
        let is_outside = |change: &PlannedChange<'_>| {
            let is_from_there = match change.origin {
                BytesOrigin::Files => false,
                BytesOrigin::Call => is_call_outside,
                BytesOrigin::Outside => true,
            };
            is_from_there && bytes_of(change.after).is_some_and(|bytes| bytes.len() >= SAYS_NOTHING)
        };
        let contents = changes.iter().flat_map(|change| [change.before, change.after]);
        let bytes: Vec<Vec<u8>> = contents.filter_map(bytes_of).map(<[u8]>::to_vec).collect();
        let of = |change: &PlannedChange<'_>| NewFileChange {
            root: change.root.to_owned(),
            path: change.path.as_path().to_owned(),
            before: state(change.before),
            after: state(change.after),
            is_outside: is_outside(change),
        };
        let written = self.tasks.block_on(async {
            let kept = |error: AgentError| ("the old bytes could not be kept", error);
            let written =
                |error: StoreError| ("the change could not be written down", AgentError::from(error));
            let new = NewFileChanges {
                call: self.call,
                claim: self.claim.clone(),
                guards: self.guards.clone(),
                changes: changes.iter().map(of).collect(),
                accepted: accepted(&self.runtime, approved).await.map_err(written)?,
            };
            let _hold = self.runtime.keep_blobs(bytes).await.map_err(kept)?;
            let ids = self.runtime.store.keep_file_changes(&Principal::Owner, self.tree, new).await;
            let ids = ids.map_err(written)?;
            self.recorded.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
            let paths = changes.iter().map(|of| (of.root.to_owned(), of.path.as_path().to_owned()));
            self.paths.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
            changes.iter().for_each(|change| self.add_difference(change));
            Ok::<_, (&str, AgentError)>(())
        });
        written.map_err(|(what, error)| {
            let why = format!("{what}: {error}");
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            why
        })
    }
}

impl ChangeRecorder for CallChanges {
    fn begin(&self, protected: Vec<PathBuf>) {
        *self.protected.lock().unwrap_or_else(PoisonError::into_inner) = protected;
    }

    fn finish(&self) {
        finish(std::mem::take(&mut *self.being_made.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    fn record(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        let approved: Vec<ApprovedText<'_>> =
            changes.iter().filter_map(|change| self.approved_text(change)).collect();
        self.keep(changes, &approved)?;
        self.accept_beside_commands(changes);
        Ok(())
    }

    // What a command or a hook of an approved call makes, nobody saw.
    fn record_found(&self, changes: &[PlannedChange<'_>]) -> Result<(), String> {
        self.keep(changes, &[])
    }

    fn leave(&self, why: &str) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let error = failed.unwrap_or_else(|| AgentError::Recovery(why.to_owned()));
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn is_left(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn is_approved(&self) -> bool {
        self.is_approved
    }

    fn name(&self) -> String {
        self.call.to_string()
    }

    fn take_back(&self) {
        self.difference.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let ids = std::mem::take(&mut *self.recorded.lock().unwrap_or_else(PoisonError::into_inner));
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.being_made.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let store = &self.runtime.store;
        let done = self.tasks.block_on(store.take_back_file_changes(&Principal::Owner, self.tree, ids));
        if let Err(error) = done {
            tracing::warn!(%error, "a change that was not made is still written down");
        }
    }

    fn beside(&self, work: &mut dyn FnMut()) {
        fn taken<T: Default>(of: &Mutex<T>) -> T {
            std::mem::take(&mut *of.lock().unwrap_or_else(PoisonError::into_inner))
        }
        let own = (taken(&self.recorded), taken(&self.paths), taken(&self.difference));
        work();
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = own.0;
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = own.1;
        *self.difference.lock().unwrap_or_else(PoisonError::into_inner) = own.2;
    }

    fn show(&self, difference: &str) {
        self.difference.lock().unwrap_or_else(PoisonError::into_inner).push_str(difference);
    }

    fn own_paths(&self) -> OwnPaths {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_tainted(&self) -> bool {
        self.is_tainted
    }

    fn knows_outside(&self) -> bool {
        // What cannot be looked up is believed least.
        let known = self.tasks.block_on(self.runtime.store.knows_outside_files(&Principal::Owner));
        known.unwrap_or_else(|error| {
            tracing::warn!(%error, "where files come from is not known");
            true
        })
    }

    fn is_of_running_command(&self, path: &Path, digest: Digest) -> bool {
        match before_running_commands(&command_records(self.runtime.home.root()), path) {
            Ok(FileBefore::AsItStands) => false,
            Ok(FileBefore::Was(bytes)) => Digest::of(&bytes) != digest,
            Ok(FileBefore::New) | Err(_) => true,
        }
    }

    fn outside(&self, digests: Vec<Digest>) -> Vec<Digest> {
        let found = self.runtime.store.outside_files(&Principal::Owner, digests.clone());
        self.tasks.block_on(found).unwrap_or_else(|error| {
            tracing::warn!(%error, "where files come from is not known");
            digests
        })
    }
}

/// The bytes of a file, or where a link leads.
const fn bytes_of(content: FileContent<'_>) -> Option<&[u8]> {
    match content {
        FileContent::File { bytes, .. } | FileContent::Link { target: bytes } => Some(bytes),
        FileContent::Absent
        | FileContent::Folder { .. }
        | FileContent::Unknown
        | FileContent::Large { .. }
        | FileContent::Special(_) => None,
    }
}

fn state(content: FileContent<'_>) -> FileState {
    match content {
        FileContent::Absent => FileState::Absent,
        FileContent::File { mode, bytes } => FileState::File { mode, blob: Digest::of(bytes) },
        FileContent::Folder { mode } => FileState::Folder { mode },
        FileContent::Link { target } => FileState::Link { target: Digest::of(target) },
        FileContent::Unknown => FileState::Unknown,
        FileContent::Large { bytes, stamp } => FileState::Large { bytes, stamp },
        FileContent::Special(id) => FileState::Special { device: id.device, inode: id.inode },
    }
}
