//! Changes of files that a lost call wrote down and did not make: they stand written down no longer. What a call promises
//! to make whole or not at all is given back where it was made in part.

use std::path::PathBuf;

use loom::{Digest, Millis};
use store::home::{DATABASE, HomeDir, former_umask};
use store::{FileChange, FileChangeId, FileState, LIST_PAGE, Principal, RunningCall, all_pages};
use workspace::{RelativePath, Root, StoreGuard};

use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::file_states::{ReadBlob, bring, is_same, state_at};
use crate::runtime::{Runtime, command_records};
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
    /// Paths that somebody made what they were before.
    taken_back: usize,
    /// Paths that could not be given back, each with the reason.
    stuck: Vec<String>,
}

impl MadeChanges {
    /// In words; none where nothing was written down.
    pub(crate) fn told(&self) -> Option<String> {
        let Self { planned, made, given_back, taken_back, .. } = self;
        match (planned, made, given_back) {
            (0, ..) => None,
            (_, 0, 0) if *taken_back > 0 => Some("Its files are what they were before it.".to_owned()),
            (_, 0, 0) => Some("It changed no file.".to_owned()),
            (_, 0, _) => Some(format!(
                "What it had changed, {given_back} of {planned} paths, was given back: it changed no file."
            )),
            _ => Some(format!("It changed {made} of {planned} paths.")),
        }
    }

    /// Whether no file is changed by it.
    pub(crate) const fn are_none(&self) -> bool {
        self.planned > 0 && self.made == 0 && self.taken_back == 0
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

/// How far the time of a file may be behind the clock, in ms.
const CLOCK_RESOLUTION: i64 = 50;

/// How a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Not,
    /// As it was before the change, and touched since that was written down: somebody made it so.
    TakenBack,
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
    /// When what was cut off began to be looked at.
    since: Millis,
    /// Folder of what was there before commands.
    records: PathBuf,
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
            Ok(state) if is_same(change.before, state) && self.is_touched(change) => Made::TakenBack,
            Ok(state) if is_same(change.before, state) => Made::Not,
            _ => Made::Otherwise,
        }
    }

    /// Whether what stands at the path of a change was touched after the change was written down. What was cut off is cleared
    /// away before it is looked at, and counts for nothing.
    fn is_touched(&self, change: &FileChange) -> bool {
        let since = self.since.0 - CLOCK_RESOLUTION;
        let stamp = self.opened(change).and_then(|(root, path)| {
            root.stamp(&path).map(|(_, stamp)| stamp).map_err(|error| error.to_string())
        });
        stamp.is_ok_and(|stamp| (change.at.0 + 1..since).contains(&(stamp.changed / 1_000_000)))
    }

    /// Gives back what stands as a change made it, where its call was cut off among its changes and `is_whole`: made whole
    /// or not at all. They are made in order: where the last one stands, all were made, and somebody took back what does not.
    /// Returns the changes that are not made with it.
    fn end(
        &self,
        changes: Vec<(FileChange, Made)>,
        is_whole: bool,
        blob: ReadBlob<'_>,
    ) -> (MadeChanges, Vec<FileChangeId>) {
        let mut of_call = MadeChanges { planned: changes.len(), ..MadeChanges::default() };
        let mut stand = changes.iter().rev().map(|(_, stands)| stands);
        let is_cut = stand.find(|stands| matches!(stands, Made::Not | Made::Wholly(_))) == Some(&Made::Not);
        let mut unmade = Vec::new();
        // A file before the folder that was made for it.
        for (change, stands) in changes.into_iter().rev() {
            match stands {
                Made::Not => unmade.push(change.id),
                Made::TakenBack => {
                    of_call.taken_back += 1;
                    unmade.push(change.id);
                }
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
        bring((&self.locks, &self.records, former_umask()), (&root, &path, 1), (found, change.before), blob)
    }
}

impl Runtime {
    /// Looks at what a lost call was about to change, and gives back what was made in part. What it left beside files was
    /// cleared away `since` a time.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) async fn end_changes(
        &self,
        who: &Principal,
        call: &RunningCall,
        tool: &str,
        (changes, since): (Vec<FileChange>, Millis),
    ) -> Result<MadeChanges, AgentError> {
        let database = self.home.root().join(DATABASE);
        let (runtime, locks) = (self.clone(), self.home.dir(HomeDir::Locks));
        let records = command_records(self.home.root());
        let tasks = tokio::runtime::Handle::current();
        let is_whole = writes_texts(tool);
        let end = move || {
            let (Ok(guard), Ok(locks)) = (StoreGuard::of(&database), locks) else {
                return (MadeChanges::default(), Vec::new());
            };
            let reach = Reach { guard, locks, records, since };
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
        changes.retain(|change| change.id.call == call.id && change.standing.stands());
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use loom::NodeId;
    use store::{CallId, ChangeStanding};
    use tempfile::TempDir;

    use super::*;

    const OLD: &[u8] = b"old\n";
    const NEW: &[u8] = b"new\n";

    /// Changes of one call from [`OLD`] to [`NEW`], in their order, each with when it was written down.
    struct Fixture {
        temp: TempDir,
        reach: Reach,
        changes: Vec<FileChange>,
    }

    impl Fixture {
        fn new(paths: &[(&str, Millis)]) -> Self {
            let temp = tempfile::tempdir().unwrap();
            for folder in ["project", "locks"] {
                fs::create_dir(temp.path().join(folder)).unwrap();
            }
            let (guard, locks) = (StoreGuard::new(), temp.path().join("locks"));
            let root = Root::open(&temp.path().join("project"), &guard).unwrap().path().to_owned();
            let text = |text: &[u8]| FileState::File { mode: None, blob: Digest::of(text) };
            let change = |((path, at), number): (&(&str, Millis), u32)| FileChange {
                id: FileChangeId { call: CallId { answer: NodeId::from_bytes([1; 16]), number: 0 }, number },
                root: root.clone(),
                path: path.into(),
                before: text(OLD),
                after: text(NEW),
                at: *at,
                standing: ChangeStanding::Made,
            };
            let changes = paths.iter().zip(0..).map(change).collect();
            Self {
                reach: Reach { guard, locks, records: temp.path().join("records"), since: Millis(i64::MAX) },
                temp,
                changes,
            }
        }

        fn put(&self, path: &str, text: &[u8]) {
            fs::write(self.temp.path().join("project").join(path), text).unwrap();
        }

        fn texts(&self) -> Vec<String> {
            let read = |change: &FileChange| {
                fs::read_to_string(self.temp.path().join("project").join(&change.path)).unwrap()
            };
            self.changes.iter().map(read).collect()
        }

        fn looked_at(&self) -> Vec<(FileChange, Made)> {
            self.changes.iter().map(|change| (change.clone(), self.reach.standing(change))).collect()
        }

        /// What became of the changes, and the numbers of those that are not made.
        fn end(&self, looked_at: Vec<(FileChange, Made)>) -> (MadeChanges, Vec<u32>) {
            let (of_call, unmade) = self.reach.end(looked_at, true, &|_| Ok(OLD.to_vec()));
            (of_call, unmade.iter().map(|id| id.number).collect())
        }
    }

    /// Before any file was touched, and after.
    const EARLY: Millis = Millis(0);
    const LATE: Millis = Millis(i64::MAX - 1);

    #[test]
    fn what_a_person_saves_after_a_path_was_looked_at_stays_and_is_named() {
        let at = Fixture::new(&[("saved", EARLY), ("made", EARLY), ("unmade", LATE)]);
        for (path, text) in [("saved", NEW), ("made", NEW), ("unmade", OLD)] {
            at.put(path, text);
        }
        let looked_at = at.looked_at();
        at.put("saved", b"a person's\n");
        let (of_call, unmade) = at.end(looked_at);
        assert_eq!(at.texts(), ["a person's\n", "old\n", "old\n"]);
        assert_eq!(unmade, [2, 1]);
        assert_eq!(of_call.told().unwrap(), "It changed 1 of 3 paths.");
        assert_eq!(
            of_call.notices("patch"),
            [
                "a call of patch was cut off: what it had changed, 1 of 3 paths, was given back",
                "left as it is: saved: somebody changed it since"
            ]
        );
    }

    #[test]
    fn what_a_person_took_back_of_changes_that_were_all_made_takes_no_others_with_it() {
        // In the middle, where the order tells, and at the end, where the time of the file does.
        for (stand, last) in [([NEW, OLD, NEW], LATE), ([NEW, NEW, OLD], EARLY), ([OLD, NEW, OLD], EARLY)] {
            let at = Fixture::new(&[("a", LATE), ("b", LATE), ("c", last)]);
            ["a", "b", "c"].iter().zip(stand).for_each(|(path, text)| at.put(path, text));
            let (before, expected) =
                (at.texts(), [2, 1, 0].into_iter().filter(|number| stand[*number] == OLD));
            let expected: Vec<u32> = expected.map(|number| u32::try_from(number).unwrap()).collect();
            let (of_call, unmade) = at.end(at.looked_at());
            assert_eq!((at.texts(), unmade), (before, expected.clone()), "{last:?}");
            let told = format!("It changed {} of 3 paths.", 3 - expected.len());
            assert_eq!((of_call.told(), of_call.notices("patch").len()), (Some(told), 0));
        }
        // The control: nobody touched what is not made.
        let at = Fixture::new(&[("a", LATE), ("b", LATE), ("c", LATE)]);
        [("a", NEW), ("b", OLD), ("c", OLD)].iter().for_each(|(path, text)| at.put(path, text));
        let (of_call, unmade) = at.end(at.looked_at());
        assert_eq!((at.texts(), unmade), (vec!["old\n".to_owned(); 3], vec![2, 1, 0]));
        assert!(of_call.are_none());
        let at = Fixture::new(&[("a", EARLY)]);
        at.put("a", OLD);
        let (of_call, _) = at.end(at.looked_at());
        assert_eq!(of_call.told().unwrap(), "Its files are what they were before it.");
        assert!(!of_call.are_none());
    }
}
