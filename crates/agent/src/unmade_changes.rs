//! Changes of files that a lost call wrote down and did not make: they stand written down no longer. What a call promises
//! to make whole or not at all is given back where it was made in part.

use loom::Digest;
use store::home::{DATABASE, HomeDir, former_umask};
use store::{ChangeStanding, FileChange, FileChangeId, LIST_PAGE, Principal, RunningCall, all_pages};
use workspace::{RelativePath, Root, StoreGuard};

use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::file_states::{content, is_same, state_at};
use crate::runtime::Runtime;
use crate::session::writes_texts;

/// What became of the changes that a call wrote down.
#[derive(Debug, Default)]
pub(crate) struct MadeChanges {
    /// Paths that the call was to change.
    planned: usize,
    /// Paths that stand changed.
    made: usize,
    /// Paths that the call changed, and that are given back.
    given_back: usize,
    /// Paths that could not be given back, each with the reason.
    stuck: Vec<String>,
}

impl MadeChanges {
    /// In words; none where nothing was written down.
    pub(crate) fn told(&self) -> Option<String> {
        let Self { planned, made, given_back, .. } = self;
        match (planned, made, given_back) {
            (0, ..) => None,
            (_, 0, 0) => Some("It changed no file.".to_owned()),
            (_, 0, _) => Some(format!(
                "What it had changed, {given_back} of {planned} paths, was given back: it changed no file."
            )),
            _ => Some(format!("It changed {made} of {planned} paths.")),
        }
    }

    /// Whether no file is changed by it.
    pub(crate) const fn are_none(&self) -> bool {
        self.planned > 0 && self.made == 0
    }

    /// What a person is told of it.
    pub(crate) fn notices(&self, tool: &str) -> Vec<String> {
        let made = (self.given_back > 0).then(|| {
            format!(
                "a call of {tool} was cut off: what it had changed, {} of {} paths, was given back",
                self.given_back, self.planned
            )
        });
        made.into_iter().chain(self.stuck.iter().map(|why| format!("left as it is: {why}"))).collect()
    }
}

/// How a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Not,
    Wholly,
    /// Somebody changed it since.
    Otherwise,
}

impl Runtime {
    /// Looks at what a lost call was about to change, and gives back what was made in part.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) async fn end_changes(
        &self,
        who: &Principal,
        call: &RunningCall,
        tool: &str,
        changes: Vec<FileChange>,
    ) -> Result<MadeChanges, AgentError> {
        let database = self.home.root().join(DATABASE);
        let (runtime, locks) = (self.clone(), self.home.dir(HomeDir::Locks));
        let tasks = tokio::runtime::Handle::current();
        let is_whole = writes_texts(tool);
        let end = move || {
            let (Ok(guard), Ok(locks)) = (StoreGuard::of(&database), locks) else {
                return (MadeChanges::default(), Vec::new());
            };
            let stand: Vec<Made> = changes.iter().map(|change| standing(&guard, change)).collect();
            let mut of_call = MadeChanges { planned: changes.len(), ..MadeChanges::default() };
            let is_cut = stand.contains(&Made::Not);
            let mut unmade = Vec::new();
            // A file before the folder that was made for it.
            for (change, stands) in changes.iter().zip(stand).rev() {
                let blob =
                    |blob: Digest| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
                match stands {
                    Made::Not => unmade.push(change.id),
                    Made::Wholly if is_whole && is_cut => match give_back(&guard, &locks, change, &blob) {
                        Ok(()) => {
                            of_call.given_back += 1;
                            unmade.push(change.id);
                        }
                        Err(why) => {
                            of_call.made += 1;
                            of_call.stuck.push(format!("{}: {why}", change.path.display()));
                        }
                    },
                    Made::Wholly | Made::Otherwise => of_call.made += 1,
                }
            }
            (of_call, unmade)
        };
        let (of_call, unmade): (MadeChanges, Vec<FileChangeId>) = on_disk(end).await;
        if !unmade.is_empty() {
            self.store.take_back_file_changes(who, call.tree, unmade).await?;
        }
        Ok(of_call)
    }

    /// What a call wrote down of the files that it was about to change, and nobody gave back.
    pub(crate) async fn changes_of(
        &self,
        who: &Principal,
        call: &RunningCall,
    ) -> Result<Vec<FileChange>, AgentError> {
        let page = |after| self.store.file_changes(who, call.tree, after, LIST_PAGE);
        let mut changes = all_pages(|change: &FileChange| change.id, page).await?;
        changes.retain(|change| change.id.call == call.id && change.standing == ChangeStanding::Made);
        Ok(changes)
    }
}

/// Whether a change was made.
fn standing(guard: &StoreGuard, change: &FileChange) -> Made {
    let found = opened(guard, change).and_then(|(root, path)| {
        state_at(&root, &path).map(|(state, _)| state).map_err(|error| error.to_string())
    });
    match found {
        Ok(state) if is_same(change.after, state) => Made::Wholly,
        Ok(state) if is_same(change.before, state) => Made::Not,
        _ => Made::Otherwise,
    }
}

/// Gives back what a change made, if it stands so.
fn give_back(
    guard: &StoreGuard,
    locks: &std::path::Path,
    change: &FileChange,
    blob: &dyn Fn(Digest) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    let (root, path) = opened(guard, change)?;
    let (state, bytes) = state_at(&root, &path).map_err(|error| error.to_string())?;
    let before = change.before.blob().map(blob).transpose()?.unwrap_or_default();
    let states = (content(change.before, &before), content(state, &bytes));
    tools::give_back(locks, (&root, &path, 1), states, former_umask())
}

fn opened(guard: &StoreGuard, change: &FileChange) -> Result<(Root, RelativePath), String> {
    let root = Root::open_again(&change.root, guard).map_err(|error| error.to_string())?;
    let path = RelativePath::from_components(&change.path).map_err(|error| error.to_string())?;
    Ok((root, path))
}
