//! Changes of files that a lost call wrote down and did not make: they stand written down no longer. What a call promises
//! to make whole or not at all is given back where it was made in part.

use std::path::PathBuf;

use loom::Digest;
use store::home::{DATABASE, HomeDir, former_umask};
use store::{
    ChangeStanding, FileChange, FileChangeId, FileState, LIST_PAGE, Principal, RunningCall, all_pages,
};
use workspace::{RelativePath, Root, StoreGuard};

use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::file_states::{ReadBlob, bring, is_same, state_at};
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
    /// As the change made it.
    Wholly(FileState),
    /// Somebody changed it since.
    Otherwise,
}

/// What files are reached with.
struct Reach {
    guard: StoreGuard,
    /// The home's folder of locks.
    locks: PathBuf,
}

impl Reach {
    fn opened(&self, change: &FileChange) -> Result<(Root, RelativePath), String> {
        let root = Root::open_again(&change.root, &self.guard).map_err(|error| error.to_string())?;
        let path = RelativePath::from_components(&change.path).map_err(|error| error.to_string())?;
        Ok((root, path))
    }

    /// Whether a change was made.
    fn standing(&self, change: &FileChange) -> Made {
        let found = self.opened(change).and_then(|(root, path)| {
            state_at(&root, &path).map(|(state, _)| state).map_err(|error| error.to_string())
        });
        match found {
            Ok(state) if is_same(change.after, state) => Made::Wholly(state),
            Ok(state) if is_same(change.before, state) => Made::Not,
            _ => Made::Otherwise,
        }
    }

    /// Gives back what stands as a change made it, where others of its call were not made and it `is_whole`: made whole or
    /// not at all. Returns the changes that are not made with it.
    fn end(
        &self,
        changes: Vec<(FileChange, Made)>,
        is_whole: bool,
        blob: ReadBlob<'_>,
    ) -> (MadeChanges, Vec<FileChangeId>) {
        let mut of_call = MadeChanges { planned: changes.len(), ..MadeChanges::default() };
        let is_cut = changes.iter().any(|(_, stands)| *stands == Made::Not);
        let mut unmade = Vec::new();
        // A file before the folder that was made for it.
        for (change, stands) in changes.into_iter().rev() {
            match stands {
                Made::Not => unmade.push(change.id),
                Made::Wholly(state) if is_whole && is_cut => match self.give_back(&change, state, blob) {
                    Ok(()) => {
                        of_call.given_back += 1;
                        unmade.push(change.id);
                    }
                    Err(why) => {
                        of_call.made += 1;
                        of_call.stuck.push(format!("{}: {why}", change.path.display()));
                    }
                },
                Made::Wholly(_) | Made::Otherwise => of_call.made += 1,
            }
        }
        (of_call, unmade)
    }

    /// Gives back what a change made, if it still stands as it was found.
    fn give_back(&self, change: &FileChange, found: FileState, blob: ReadBlob<'_>) -> Result<(), String> {
        let (root, path) = self.opened(change)?;
        bring((&self.locks, former_umask()), (&root, &path, 1), (found, change.before), blob)
    }
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
            let reach = Reach { guard, locks };
            let stand: Vec<Made> = changes.iter().map(|change| reach.standing(change)).collect();
            let changes = changes.into_iter().zip(stand).collect();
            let blob =
                |blob: Digest| tasks.block_on(runtime.read_blob(blob)).map_err(|error| error.to_string());
            reach.end(changes, is_whole, &blob)
        };
        let (of_call, unmade) = on_disk(end).await;
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

#[cfg(test)]
mod tests {
    use std::fs;

    use loom::{Millis, NodeId};
    use store::CallId;

    use super::*;

    #[test]
    fn what_a_person_saves_after_a_path_was_looked_at_stays_and_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let (project, locks) = (temp.path().join("project"), temp.path().join("locks"));
        fs::create_dir(&project).unwrap();
        fs::create_dir(&locks).unwrap();
        let reach = Reach { guard: StoreGuard::new(), locks };
        let root = Root::open(&project, &reach.guard).unwrap().path().to_owned();
        let text = |text: &[u8]| FileState::File { mode: None, blob: Digest::of(text) };
        let change = |number: u32, path: &str| FileChange {
            id: FileChangeId { call: CallId { answer: NodeId::from_bytes([1; 16]), number: 0 }, number },
            root: root.clone(),
            path: path.into(),
            before: text(b"old\n"),
            after: text(b"new\n"),
            at: Millis(0),
            standing: ChangeStanding::Made,
        };
        let changes: Vec<FileChange> = ["saved", "made", "unmade"]
            .into_iter()
            .zip(0..)
            .map(|(path, number)| change(number, path))
            .collect();
        for (path, text) in [("saved", "new\n"), ("made", "new\n"), ("unmade", "old\n")] {
            fs::write(project.join(path), text).unwrap();
        }
        let looked_at = changes.into_iter().map(|change| {
            let stands = reach.standing(&change);
            (change, stands)
        });
        let looked_at: Vec<_> = looked_at.collect();

        fs::write(project.join("saved"), "a person's\n").unwrap();
        let (of_call, unmade) = reach.end(looked_at, true, &|_| Ok(b"old\n".to_vec()));
        let stand = ["saved", "made", "unmade"].map(|path| fs::read_to_string(project.join(path)).unwrap());
        assert_eq!(stand, ["a person's\n", "old\n", "old\n"]);
        assert_eq!(unmade.iter().map(|id| id.number).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(of_call.told().unwrap(), "It changed 1 of 3 paths.");
        assert_eq!(
            of_call.notices("patch"),
            [
                "a call of patch was cut off: what it had changed, 1 of 3 paths, was given back",
                "left as it is: saved: somebody changed it since"
            ]
        );
    }
}
