//! Paths as they stand on the disk: examined, and brought back to what they were. All of it blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agent::file_states::{CHANGED_SINCE, ReadBlob, bring, is_same, state_at};
use loom::Digest;
use store::{FileChangeId, FileState};
use text::terminal::one_line;
use workspace::protected::{self, ProtectionMatch};
use workspace::{
    FileError, FileId, FileKind, FileProblem, FileStamp, LinkPolicy, OwnerAccess, ProtectedPlaces,
    RelativePath, Root, StoreGuard,
};

use super::never_kept;
use super::path_changes::{PathChange, PathPlace};

/// What an owner may do in a folder that is filled: its own bits come when it is full.
const FILLABLE: u32 = 0o700;

/// What files are reached with.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) guard: StoreGuard,
    pub(super) locks: PathBuf,
    /// Folder of what was there before commands.
    pub(super) records: PathBuf,
    pub(super) umask: u32,
}

/// What stands at a path that can be given back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Whether it is what it was already.
    pub(super) is_back: bool,
    pub(super) state: FileState,
    /// What it becomes.
    pub(super) target: FileState,
    /// Which of its changes are given back by that: those from this one on.
    pub(super) first: usize,
    /// The stamp of a file that is too large to be kept: it goes, and does not come back.
    pub(super) unkept: Option<FileStamp>,
}

impl Found {
    /// Something that is to become something else, with all its changes.
    pub(super) const fn of(state: FileState, target: FileState) -> Self {
        Self { is_back: false, state, target, first: 0, unkept: None }
    }

    /// Whether what stands there can be brought back once it went.
    pub(super) const fn is_taken_again(&self) -> bool {
        self.unkept.is_none() && !matches!(self.state, FileState::Special { .. })
    }

    const fn step(&self) -> Step {
        match (self.state, self.target) {
            (_, FileState::Absent) => Step::Go,
            (FileState::Absent, _) | (_, FileState::Folder { .. }) => Step::Come,
            (FileState::Folder { .. }, _) => Step::Go,
            _ => Step::Change,
        }
    }

    /// Whether it is a folder that goes.
    pub(super) const fn goes_as_folder(&self) -> bool {
        self.state.is_folder() && !self.target.is_folder()
    }

    /// The changes of its path that are given back.
    pub(super) fn ids(&self, change: &PathChange) -> Vec<FileChangeId> {
        change.ids[self.first..].to_vec()
    }
}

/// When a path is brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Nothing is there, or a file in the place of a folder.
    Come,
    Change,
    /// A path that goes, or a folder in the place of a file, whose content goes before.
    Go,
}

/// The blob that tools took from a path.
fn taken(change: &PathChange) -> Option<(Digest, PathBuf)> {
    let blob = change.before_last.blob().filter(|_| change.after == FileState::Absent)?;
    Some((blob, change.path.clone()))
}

/// Whether something leads to a path that runs, steers or remembers, and no name says so: what the walls took from there is
/// told from what a command changed by the name alone.
pub(super) fn leads_to(places: &ProtectedPlaces, path: &Path) -> bool {
    let Ok(path) = relative(path) else { return false };
    let is_protected = |found| matches!(found, ProtectionMatch::Protected(_));
    is_protected(places.protection(&path)) && !is_protected(protected::touches(&path))
}

impl Disk {
    /// What leads to something that runs or steers beneath the roots of some paths.
    pub(super) fn places(&self, paths: &[PathChange]) -> BTreeMap<PathBuf, ProtectedPlaces> {
        let roots: BTreeSet<&PathBuf> = paths.iter().map(|path| &path.root).collect();
        let places = roots.into_iter().filter_map(|root| {
            let coming = paths.iter().filter(|path| path.root == *root);
            let coming: Vec<RelativePath> = coming.filter_map(|path| relative(&path.path).ok()).collect();
            let opened = self.root(root).ok()?;
            // Folders that a command closed to their owner can be looked into all the same.
            let closed = paths.iter().filter(|path| path.root == *root && path.after.is_folder());
            let closed =
                closed.filter_map(|path| relative(&path.path).ok()).chain(relative(Path::new(".git")).ok());
            let _access: Vec<OwnerAccess> =
                closed.flat_map(|folder| opened.owner_access_within(&folder)).collect();
            let coming: Vec<&RelativePath> = coming.iter().collect();
            Some((root.clone(), ProtectedPlaces::beneath(&opened, &coming, &[])))
        });
        places.collect()
    }

    /// What stands at a path, or why it is left.
    ///
    /// `links` are those of all changes that are given back at one time ([`links_over_folders`]).
    ///
    /// [`links_over_folders`]: super::path_changes::links_over_folders
    pub(super) fn examine(&self, change: &PathChange, links: &BTreeSet<PathPlace>) -> Result<Found, String> {
        let root = self.root(&change.root)?;
        if let Some(why) = never_kept(change.before) {
            return Err(why);
        }
        let (state, _) = state_below(&root, change, links)?;
        if change.after == FileState::Unknown && state != change.before {
            return Err(over_unkept(change, state).unwrap_or_else(|| {
                "what it became was not kept, or may be yours: /restore gives back what it was".to_owned()
            }));
        }
        let left = [change.after, change.before_last];
        let found = |is_back| Found { is_back, ..Found::of(state, change.before) };
        if is_back(change.before, state, &left) {
            return Ok(found(true));
        }
        if let Some(since) = change.interruption {
            // Where nothing is by now, what somebody left there comes back and covers nothing.
            let is_gone = (state, change.after) == (FileState::Absent, FileState::Absent);
            return if is_gone && since.before != FileState::Absent {
                Ok(Found { target: since.before, first: since.first, ..found(false) })
            } else {
                Err("somebody changed it between two changes of tools".to_owned())
            };
        }
        let is_ours = left.into_iter().any(|left| is_same(left, state));
        // Nothing is covered where what was large went.
        let is_gone = matches!((change.after, state), (FileState::Large { .. }, FileState::Absent));
        if is_ours || is_gone || is_same(change.before, state) {
            Ok(Found { unkept: self.unkept(change, state)?, ..found(false) })
        } else {
            Err(over_unkept(change, state).unwrap_or_else(|| CHANGED_SINCE.to_owned()))
        }
    }

    /// What stands at the path of a change, with its bytes, and whether tools left it there; `links` as in
    /// [`Self::examine`].
    pub(super) fn stands(
        &self,
        change: &PathChange,
        links: &BTreeSet<PathPlace>,
    ) -> Result<(FileState, Vec<u8>, bool), String> {
        let (state, bytes) = state_below(&self.root(&change.root)?, change, links)?;
        let is_ours = [change.after, change.before_last].into_iter().any(|left| is_same(left, state));
        Ok((state, bytes, is_ours && change.interruption.is_none()))
    }

    /// The stamp of what stands at the path of a change, where that is a file whose bytes are not kept.
    pub(super) fn unkept(&self, change: &PathChange, state: FileState) -> Result<Option<FileStamp>, String> {
        let FileState::Large { stamp: known, .. } = state else { return Ok(None) };
        let (root, path) = (self.root(&change.root)?, relative(&change.path)?);
        let (_, stamp) = root.stamp(&path).map_err(|error| error.to_string())?;
        if ::tools::unkept_digest(&stamp) == known { Ok(Some(stamp)) } else { Err(CHANGED_SINCE.to_owned()) }
    }

    /// The bytes of a file, or where a link leads, that stands at a path as it was found; none of anything else.
    pub(super) fn bytes(&self, change: &PathChange, found: &Found) -> Result<Option<Vec<u8>>, String> {
        if found.state.blob().is_none() {
            return Ok(None);
        }
        let (root, path) = (self.root(&change.root)?, relative(&change.path)?);
        let (state, bytes) = state_at(&root, &path).map_err(|error| error.to_string())?;
        if state == found.state { Ok(Some(bytes)) } else { Err(CHANGED_SINCE.to_owned()) }
    }

    /// Brings paths to their targets. What comes back where nothing is goes first, a folder before what it holds, so that
    /// nothing is gone in between; what goes is last, a folder after it. What was taken from a path that is left, or
    /// could not come back there, stays where it is by now.
    pub(super) fn bring_back(
        &self,
        paths: Vec<(PathChange, Found)>,
        left: &[PathChange],
        blob: ReadBlob<'_>,
    ) -> Vec<(PathChange, Found, Result<(), String>)> {
        let mut paths: Vec<_> =
            paths.into_iter().map(|(change, found)| (found.step(), change, found)).collect();
        paths.sort_by(|(step, change, _), (other_step, other, _)| {
            let by_path = (&change.root, &change.path).cmp(&(&other.root, &other.path));
            step.cmp(other_step).then(if *step == Step::Go { by_path.reverse() } else { by_path })
        });
        // A file whose names are all brought back is nobody else's.
        let mut names: BTreeMap<FileId, u64> = BTreeMap::new();
        for id in paths.iter().filter_map(|(_, change, _)| self.file_at(change)) {
            *names.entry(id).or_default() += 1;
        }
        let mut homeless: BTreeMap<Digest, PathBuf> = left.iter().filter_map(taken).collect();
        let (mut done, mut removed) = (Vec::new(), BTreeSet::new());
        for (_, change, found) in paths {
            let target = match found.target {
                FileState::Folder { mode: Some(mode) } => FileState::Folder { mode: Some(mode | FILLABLE) },
                other => other,
            };
            let of_file = self.file_at(&change).and_then(|id| names.get_mut(&id));
            let brought = match found.state.blob().and_then(|blob| homeless.get(&blob)) {
                Some(from) => Err(format!("it holds what stood at {}, which is left", from.display())),
                None => match found.unkept {
                    Some(stamp) => self.replace_unkept(&change, stamp, (target, blob), &mut removed),
                    None => {
                        // What goes is a name, and the file of others stays.
                        let goes = target == FileState::Absent;
                        let most = if goes { u64::MAX } else { of_file.as_deref().copied().unwrap_or(1) };
                        self.bring((&change, most), (found.state, target), blob)
                    }
                },
            };
            if let (Ok(()), Some(names)) = (&brought, of_file) {
                *names -= 1;
            }
            if brought.is_err() {
                homeless.extend(taken(&change));
            }
            done.push((change, found, brought));
        }
        for (change, found, brought) in &mut done {
            if let FileState::Folder { mode: Some(mode) } = found.target
                && mode & FILLABLE != FILLABLE
                && brought.is_ok()
            {
                let filled = FileState::Folder { mode: Some(mode | FILLABLE) };
                *brought = self.bring((change, 1), (filled, found.target), blob);
            }
        }
        done
    }

    /// Brings something to the place of a file that is too large to be kept, and is as it was left. `removed` are those of
    /// which a name went before: that changes the stamp that each further name of the file has.
    fn replace_unkept(
        &self,
        change: &PathChange,
        mut stamp: FileStamp,
        (target, blob): (FileState, ReadBlob<'_>),
        removed: &mut BTreeSet<FileId>,
    ) -> Result<(), String> {
        // Nothing goes where nothing can come.
        target.blob().map(blob).transpose()?;
        let (root, path) = (self.root(&change.root)?, relative(&change.path)?);
        if removed.contains(&stamp.id) {
            let (_, now) = root.stamp(&path).map_err(|error| error.to_string())?;
            stamp.changed = now.changed;
        }
        ::tools::remove_unkept(&self.locks, &root, &path, stamp)?;
        removed.insert(stamp.id);
        match target {
            FileState::Absent => Ok(()),
            target => self.bring((change, 1), (FileState::Absent, target), blob),
        }
    }

    /// The file that has the name of a path.
    fn file_at(&self, change: &PathChange) -> Option<FileId> {
        let (root, path) = (self.root(&change.root).ok()?, relative(&change.path).ok()?);
        let (kind, stamp) = root.stamp(&path).ok()?;
        (kind == FileKind::Regular).then_some(stamp.id)
    }

    /// [`bring`] of the path of a change.
    fn bring(
        &self,
        (change, names): (&PathChange, u64),
        states: (FileState, FileState),
        blob: ReadBlob<'_>,
    ) -> Result<(), String> {
        let (root, path) = (self.root(&change.root)?, relative(&change.path)?);
        bring((&self.locks, &self.records, self.umask), (&root, &path, names), states, blob)
    }

    fn root(&self, path: &Path) -> Result<Root, String> {
        Root::open_again(path, &self.guard).map_err(|error| match error.problem {
            FileProblem::Symlink => format!("a link stands where {} was", one_line(&path.to_string_lossy())),
            _ => error.to_string(),
        })
    }
}

/// Why nothing comes back over what stands at the path of a change and is not known to be of tools; none where it can be kept.
pub(super) fn over_unkept(change: &PathChange, state: FileState) -> Option<String> {
    let FileState::Large { bytes, .. } = state else { return None };
    let size = text::bytes::size(bytes);
    Some(match change.before {
        FileState::Absent => {
            format!("a file of {size}, which is not kept and may be yours: remove it yourself")
        }
        _ => format!(
            "a file of {size} stands there, which is not kept and may be yours: move it away, then /restore gives \
             back what it was"
        ),
    })
}

fn relative(path: &Path) -> Result<RelativePath, String> {
    RelativePath::from_components(path).map_err(|error| error.to_string())
}

/// Whether a path is what it was, or a folder that somebody made anew, which has their bits: none of those that were
/// `left` there.
pub(super) fn is_back(before: FileState, state: FileState, left: &[FileState]) -> bool {
    match (before, state) {
        (FileState::Folder { mode }, FileState::Folder { .. }) => {
            mode.is_none() || state == before || !left.contains(&state)
        }
        (before, state) => before == state,
    }
}

/// What stands at the path of a change; nothing below a link that tools left where a folder was, as long as it stands, nor
/// below anybody's where tools left nothing of what they made, or where nothing was and the link leads to nothing.
fn state_below(
    root: &Root,
    change: &PathChange,
    links: &BTreeSet<PathPlace>,
) -> Result<(FileState, Vec<u8>), String> {
    let is_link = |above: &Path| links.contains(&(change.root.clone(), above.to_owned()));
    let path = relative(&change.path)?;
    let is_none = || {
        let leads_nowhere = || {
            let followed = root.stat(&path, LinkPolicy::Follow);
            followed.is_err_and(|error| matches!(error.problem, FileProblem::NotFound))
        };
        change.before == FileState::Absent && (change.after == FileState::Absent || leads_nowhere())
    };
    match state_at(root, &path) {
        Err(FileError { problem: FileProblem::Symlink, .. })
            if change.path.ancestors().skip(1).any(is_link) || is_none() =>
        {
            Ok((FileState::Absent, Vec::new()))
        }
        found => found.map_err(|error| error.to_string()),
    }
}
