//! Workspaces: what one would load, what the owner said about it, and the answer kept (spec: security §4).

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use loom::{Digest, Millis};
use store::home::HomeDir;
use store::{LIST_PAGE, Principal, Store, StoreError, WorkspaceRecord, all_pages};
use text::mask::Masker;
use workspace::discovery::{OnDisk, check_writable_root, discover};
use workspace::trust::{
    Accepted, Inventory, TrustAnswer, TrustDecision, TrustRecord, UntrustedReason, WorkspaceId,
    WorkspaceOrigin, decide,
};
use workspace::{Accept, FileError, FileId, Root, StoreGuard};

use crate::app::{App, Workspace};
use crate::args::workspace::{FolderArg, WorkspaceCommand};
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::workspace::{FileAccepted, FilesAccepted, TrustState, WorkspaceShown, Workspaces};
use crate::rights::Asker;

/// A folder that was looked at; nothing of it is loaded by that.
#[derive(Debug)]
pub struct InspectedFolder {
    pub root: Root,
    pub id: WorkspaceId,
    pub inventory: Inventory,
}

impl InspectedFolder {
    /// Looks at a folder; the files of `guard` are never read.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn at(folder: &Path, guard: &StoreGuard) -> Result<Self, FileError> {
        Ok(Self::of(Root::open(folder, guard)?))
    }

    /// Looks at a folder that is open: at up to 5,000 files.
    pub fn of(root: Root) -> Self {
        Self { id: WorkspaceId::of(&root), inventory: Inventory::take(&root), root }
    }
}

/// Opens a folder for its owner again that a command closed which was cut off, and says so.
pub fn open_closed(home: &Path, guard: &StoreGuard, folder: &Path) -> Option<String> {
    ::tools::open_closed_root(&home.join(HomeDir::CheckpointCache.name()), guard, folder)
}

/// What the owner said about a folder; else about the one that stood at its path, else about this very one elsewhere.
///
/// # Errors
/// As the store says.
pub async fn answered(
    store: &Store,
    who: &Principal,
    id: &WorkspaceId,
) -> Result<Option<TrustRecord>, StoreError> {
    let record = nearest_of(store, who, id).await?;
    record.map(|record| read(&record).map(|(record, _)| record)).transpose()
}

async fn nearest_of(
    store: &Store,
    who: &Principal,
    id: &WorkspaceId,
) -> Result<Option<WorkspaceRecord>, StoreError> {
    let WorkspaceId { path, file } = id;
    let records = store.workspaces_about(who, path.clone(), file.device, file.inode).await?;
    Ok(nearest(&records, id))
}

/// How a text of instructions or of a skill differs from the one the owner saw, as a unified diff with secrets masked; none where one of
/// them is not kept.
pub fn difference(
    looked: &InspectedFolder,
    record: &TrustRecord,
    path: &Path,
    masker: &Masker,
) -> Option<String> {
    let before = record.inventory.texts.get(path);
    let was_there = record.inventory.items.iter().any(|item| item.path == path);
    let after = looked.inventory.texts.get(path)?;
    let is_kept = before.is_some() || !was_there;
    is_kept.then(|| difference_of(path, before.map(String::as_str), after, masker))
}

/// How a text differs from the accepted one, in which secrets are masked, as a unified diff without any.
pub(crate) fn difference_of(path: &Path, accepted: Option<&str>, now: &str, masker: &Masker) -> String {
    let now = masker.mask_entering(now).text;
    ::tools::unified_diff(&path.to_string_lossy(), accepted, Some(&now))
}

/// What the owner said about the folder that stands at a path; nothing where another one stood there then.
///
/// # Errors
/// As the store says.
pub async fn answer_about(
    store: &Store,
    who: &Principal,
    path: &Path,
) -> Result<Option<TrustAnswer>, StoreError> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(None) };
    let id = WorkspaceId { path: path.to_owned(), file: FileId { device: found.dev(), inode: found.ino() } };
    Ok(nearest_of(store, who, &id)
        .await?
        .filter(|record| id_of(record) == id)
        .map(|record| answer_of(&record)))
}

const fn answer_of(record: &WorkspaceRecord) -> TrustAnswer {
    if record.trusted { TrustAnswer::Trust } else { TrustAnswer::Distrust }
}

/// Texts of the workspace that are loaded by now: also what was accepted since it was opened, and none where it is not
/// trusted any more.
pub(crate) async fn accepted(app: &App) -> Accepted {
    let Workspace { root, accepted, .. } = &app.workspace;
    accepted_by_now(&app.runtime.store, root.as_ref(), accepted).await
}

/// [`accepted`] of the workspace with this root, of which these texts were accepted when it was loaded.
pub(crate) async fn accepted_by_now(store: &Store, root: Option<&Root>, accepted: &Accepted) -> Accepted {
    let Some(root) = root else { return Accepted::default() };
    if *accepted == Accepted::All {
        return Accepted::All;
    }
    let id = WorkspaceId::of(root);
    match answered(store, &Principal::Owner, &id).await {
        Ok(Some(record)) if record.answer == TrustAnswer::Distrust => Accepted::default(),
        Ok(record) => accepted.with(&Accepted::of(&id, WorkspaceOrigin::Discovered, record.as_ref())),
        Err(error) => {
            tracing::warn!(%error, "what was accepted of the workspace since is not known");
            accepted.clone()
        }
    }
}

async fn all_records(store: &Store, who: &Principal) -> Result<Vec<WorkspaceRecord>, StoreError> {
    let place = |record: &WorkspaceRecord| record.path.clone();
    all_pages(place, |after| store.workspaces(who, after, LIST_PAGE)).await
}

fn nearest(records: &[WorkspaceRecord], id: &WorkspaceId) -> Option<WorkspaceRecord> {
    let rank = |record: &&WorkspaceRecord| {
        if id_of(record) == *id {
            0
        } else if record.path == id.path {
            1
        } else {
            2
        }
    };
    let record = records.iter().min_by_key(rank)?;
    Some(with_later_no(record, records))
}

/// A record as it counts among all: the owner may have said no about the same folder at another path since
/// ([`Store::distrusts_workspace`]).
fn with_later_no(record: &WorkspaceRecord, records: &[WorkspaceRecord]) -> WorkspaceRecord {
    let folder = |record: &WorkspaceRecord| (record.device, record.inode);
    let is_later_no =
        |other: &WorkspaceRecord| !other.trusted && folder(other) == folder(record) && other.at >= record.at;
    WorkspaceRecord { trusted: record.trusted && !records.iter().any(is_later_no), ..record.clone() }
}

fn id_of(record: &WorkspaceRecord) -> WorkspaceId {
    let file = FileId { device: record.device, inode: record.inode };
    WorkspaceId { path: record.path.clone(), file }
}

/// Keeps an answer about a folder as it was looked at.
///
/// # Errors
/// As the store says.
pub async fn keep(
    (store, masker): (&Store, &Masker),
    who: &Principal,
    (id, inventory): (&WorkspaceId, Inventory),
    answer: TrustAnswer,
    at: Millis,
) -> Result<(), StoreError> {
    let mask = |text: &str| masker.mask_entering(text).text.into_owned();
    let inventory = serde_json::to_string(&inventory.with_texts_masked(mask))
        .map_err(|error| StoreError::Malformed(format!("the list of a workspace: {error}")))?;
    let record = WorkspaceRecord {
        path: id.path.clone(),
        device: id.file.device,
        inode: id.file.inode,
        trusted: answer == TrustAnswer::Trust,
        inventory,
        at,
    };
    store.keep_workspace(who, record).await
}

fn read(record: &WorkspaceRecord) -> Result<(TrustRecord, Millis), StoreError> {
    let inventory = serde_json::from_str(&record.inventory)
        .map_err(|error| StoreError::Damaged(format!("the list of a workspace: {error}")))?;
    let answer = answer_of(record);
    Ok((TrustRecord { id: id_of(record), answer, inventory }, record.at))
}

/// `workspace`.
pub(crate) async fn workspaces(
    app: &App,
    asker: &Asker,
    command: WorkspaceCommand,
) -> Result<CommandOutcome, CommandError> {
    let workspaces = match command {
        WorkspaceCommand::Accept(files) => return accept(app, asker, &files.files).await,
        WorkspaceCommand::List => list(app, asker).await?,
        WorkspaceCommand::Trust(folder) => vec![answer(app, asker, &folder, TrustAnswer::Trust).await?],
        WorkspaceCommand::Untrust(folder) => vec![answer(app, asker, &folder, TrustAnswer::Distrust).await?],
    };
    Ok(CommandOutcome::Workspaces(Workspaces { workspaces }))
}

async fn list(app: &App, asker: &Asker) -> Result<Vec<WorkspaceShown>, CommandError> {
    let mut records = all_records(&app.runtime.store, &asker.principal).await?;
    // By components, as paths compare, not by bytes.
    records.sort_by(|a, b| a.path.cmp(&b.path));
    let mut found = Vec::new();
    for record in &records {
        let (record, at) = read(&with_later_no(record, &records))?;
        found.push(match InspectedFolder::at(&record.id.path, &app.guard) {
            Ok(looked) => shown(app, looked, Some((record, at))),
            Err(error) => missing(app, &record, at, &error.problem.to_string()),
        });
    }
    let current = app.workspace.folder.as_deref();
    if let Some(folder) = current
        && !found.iter().any(|shown| shown.current)
        && let Ok(looked) = InspectedFolder::at(folder, &app.guard)
    {
        let elsewhere = answered(app.runtime.store.as_ref(), &asker.principal, &looked.id).await?;
        found.push(shown(app, looked, elsewhere.map(|record| (record, Millis(0)))));
        found.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(found)
}

async fn accept(app: &App, asker: &Asker, files: &[PathBuf]) -> Result<CommandOutcome, CommandError> {
    let (mut digests, mut accepted) = (Vec::new(), Vec::new());
    for file in files {
        // A link is marked by where it leads, which may lead nowhere.
        let link = std::fs::read_link(file).ok().map(|target| Digest::of(target.as_os_str().as_bytes()));
        let bytes = match app.file_bytes(file, Accept::Regular) {
            Ok(bytes) => Some(Digest::of(&bytes)),
            Err(error) if link.is_none() => return Err(error),
            Err(_) => None,
        };
        let of_file: Vec<Digest> = link.into_iter().chain(bytes).collect();
        let outside = app.runtime.store.outside_files(&asker.principal, of_file.clone()).await?;
        digests.extend(of_file);
        accepted.push(FileAccepted { path: file.display().to_string(), was_outside: !outside.is_empty() });
    }
    app.runtime.store.accept_files(&asker.principal, digests).await?;
    Ok(CommandOutcome::FilesAccepted(FilesAccepted { files: accepted }))
}

async fn answer(
    app: &App,
    asker: &Asker,
    folder: &FolderArg,
    answer: TrustAnswer,
) -> Result<WorkspaceShown, CommandError> {
    let folder = folder.folder.as_deref().or(app.workspace.folder.as_deref());
    let folder = folder.ok_or_else(|| CommandError::usage("no folder is named", "name a folder"))?;
    let is_homes_own = app.workspace.arrival == Some(WorkspaceOrigin::HomesOwn);
    if is_homes_own && app.workspace.folder.as_deref() == Some(folder) && !folder.exists() {
        return Err(CommandError::usage("the home's own workspace is always loaded", "name another folder"));
    }
    let canonical = match folder.canonicalize() {
        Ok(canonical) if answer == TrustAnswer::Distrust && !canonical.is_dir() => {
            let error = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            return distrust_gone(app, asker, &canonical, &error).await;
        }
        Ok(canonical) => canonical,
        Err(error) => {
            let written = std::path::absolute(folder).ok().filter(|_| answer == TrustAnswer::Distrust);
            let gone = written.map(|path| workspace::canonical(&path)).filter(|path| !path.exists());
            return match gone {
                Some(path) => distrust_gone(app, asker, &path, &error).await,
                None => Err(CommandError::file("cannot open", folder, &error)),
            };
        }
    };
    if let Some(surroundings) = &app.workspace.surroundings
        && let Err(refused) = check_writable_root(&canonical, surroundings)
    {
        return Err(CommandError::refused(
            "bad_workspace",
            format!("{} cannot be a workspace: {}", line(&canonical), refused.stop),
            "name a folder of its own",
        ));
    }
    let looked = InspectedFolder::at(&canonical, &app.guard)
        .map_err(|error| CommandError::new("workspace", 2, error.to_string(), "check the folder"))?;
    let now = app.now();
    let keeping = (app.runtime.store.as_ref(), app.runtime.masker.as_ref());
    keep(keeping, &asker.principal, (&looked.id, looked.inventory.clone()), answer, now).await?;
    if let Some(surroundings) = &app.workspace.surroundings
        && answer == TrustAnswer::Trust
    {
        let found = discover(&canonical, surroundings, &OnDisk);
        if found.folder != canonical && found.git_top.as_deref() != Some(&*canonical) {
            let named = line(&canonical);
            app.frontend.note(&format!(
                "no call works in {named} by itself, as it is no git repository and holds no AGENTS.md: `--workspace {named}` \
                 works there"
            ));
        }
    }
    let record = TrustRecord { id: looked.id.clone(), answer, inventory: looked.inventory.clone() };
    Ok(shown(app, looked, Some((record, now))))
}

/// The answer about a folder that is not there any more: its sessions go on.
async fn distrust_gone(
    app: &App,
    asker: &Asker,
    path: &Path,
    error: &std::io::Error,
) -> Result<WorkspaceShown, CommandError> {
    let store = &app.runtime.store;
    let found = store.workspace(&asker.principal, path.to_owned()).await?;
    let record = found.ok_or_else(|| CommandError::file("cannot open", path, error))?;
    let record = WorkspaceRecord { trusted: false, at: app.now(), ..record };
    store.keep_workspace(&asker.principal, record.clone()).await?;
    let (record, at) = read(&record)?;
    Ok(missing(app, &record, at, &error.to_string()))
}

fn shown(app: &App, looked: InspectedFolder, record: Option<(TrustRecord, Millis)>) -> WorkspaceShown {
    let InspectedFolder { id, inventory, .. } = looked;
    let current = app.workspace.folder.as_deref() == Some(&id.path);
    let arrival = app.workspace.arrival.filter(|arrival| current && *arrival == WorkspaceOrigin::HomesOwn);
    let earlier = record.as_ref().map(|(record, _)| record);
    let decision = decide(&id, &inventory, arrival.unwrap_or(WorkspaceOrigin::Discovered), earlier);
    let exact = record.filter(|(record, _)| record.id == id);
    let changes = exact.as_ref().map(|(record, _)| inventory.changes_since(&record.inventory));
    let (state, why) = match decision {
        TrustDecision::Trusted if arrival.is_some() => {
            (TrustState::Trusted, "the home's own workspace".to_owned())
        }
        TrustDecision::Trusted | TrustDecision::NamedForThisCall => {
            let changed = changes.as_ref().is_some_and(|changes| !changes.is_empty());
            let why = if changed {
                "you trusted it; what came or changed since is left out"
            } else {
                "you trusted it"
            };
            (TrustState::Trusted, why.to_owned())
        }
        TrustDecision::Untrusted(reason) => (TrustState::Untrusted, reason.to_string()),
        TrustDecision::NothingToLoad => (TrustState::NothingToLoad, decision.to_string()),
    };
    WorkspaceShown {
        path: id.path.to_string_lossy().into_owned(),
        state,
        why,
        current,
        answered: exact.map(|(_, at)| at),
        items: inventory.items,
        unread: inventory.unread,
        incomplete: inventory.incomplete,
        changes: changes.unwrap_or_default(),
    }
}

/// An answer about a folder that cannot be opened any more.
fn missing(app: &App, record: &TrustRecord, at: Millis, error: &str) -> WorkspaceShown {
    let said = match record.answer {
        TrustAnswer::Trust => "you trusted it".to_owned(),
        TrustAnswer::Distrust => UntrustedReason::Distrusted.to_string(),
    };
    WorkspaceShown {
        current: app.workspace.folder.as_deref() == Some(&record.id.path),
        path: record.id.path.to_string_lossy().into_owned(),
        state: TrustState::Missing,
        why: format!("{said}; {error}"),
        answered: Some(at),
        items: Vec::new(),
        unread: Vec::new(),
        incomplete: false,
        changes: Vec::new(),
    }
}

fn line(path: &Path) -> String {
    text::terminal::one_line(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str, inode: u64) -> WorkspaceRecord {
        let inventory = serde_json::to_string(&Inventory::default()).unwrap();
        WorkspaceRecord { path: path.into(), device: 1, inode, trusted: true, inventory, at: Millis(1) }
    }

    #[test]
    fn the_answer_about_this_very_folder_counts_before_those_about_its_path_and_its_inode() {
        let here = id_of(&record("/w", 1));
        let (exact, path, inode) = (record("/w", 1), record("/w", 2), record("/v", 1));
        let of = |records: &[&WorkspaceRecord]| {
            nearest(&records.iter().map(|record| (*record).clone()).collect::<Vec<_>>(), &here)
        };
        assert_eq!(of(&[&inode, &path, &exact]), Some(exact));
        assert_eq!(of(&[&inode, &path]), Some(path));
        assert_eq!(of(&[&inode]), Some(inode));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn s4_a_no_about_the_same_folder_elsewhere_counts_if_it_is_not_older() {
        let here = record("/w", 1);
        for (at, trusted) in [(0, true), (1, false), (2, false)] {
            let no = WorkspaceRecord { trusted: false, at: Millis(at), ..record("/v", 1) };
            let found = nearest(&[no, here.clone()], &id_of(&here));
            assert_eq!(found, Some(WorkspaceRecord { trusted, ..here.clone() }), "{at}");
        }
        let other = WorkspaceRecord { trusted: false, at: Millis(9), ..record("/v", 2) };
        assert_eq!(with_later_no(&here, &[other]), here);
    }

    #[tokio::test]
    async fn s4_a_folder_that_was_chosen_and_refused_elsewhere_since_is_not_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let found = std::fs::metadata(folder.path()).unwrap();
        let (device, inode) = (found.dev(), found.ino());
        let yes = WorkspaceRecord { device, path: folder.path().to_owned(), ..record("/w", inode) };
        let store = Store::in_memory().unwrap();
        let answer = async || answer_about(&store, &Principal::Owner, folder.path()).await.unwrap();
        store.keep_workspace(&Principal::Owner, yes.clone()).await.unwrap();
        assert_eq!(answer().await, Some(TrustAnswer::Trust), "control");
        let no = WorkspaceRecord { path: "/moved".into(), trusted: false, at: Millis(2), ..yes.clone() };
        store.keep_workspace(&Principal::Owner, no).await.unwrap();
        assert_eq!(answer().await, Some(TrustAnswer::Distrust));
        store
            .keep_workspace(&Principal::Owner, WorkspaceRecord { at: Millis(3), ..yes.clone() })
            .await
            .unwrap();
        assert_eq!(answer().await, Some(TrustAnswer::Trust), "the later one");
        let another = WorkspaceRecord { inode: inode + 1, at: Millis(4), ..yes };
        store.keep_workspace(&Principal::Owner, another).await.unwrap();
        assert_eq!(answer().await, None, "another folder stood there");
    }

    #[tokio::test]
    async fn what_was_said_of_a_folder_is_found_without_reading_what_was_said_of_others() {
        let store = Store::in_memory().unwrap();
        let damaged = WorkspaceRecord { inventory: "{".to_owned(), ..record("/other", 2) };
        for record in [record("/w", 1), damaged.clone()] {
            store.keep_workspace(&Principal::Owner, record).await.unwrap();
        }
        let found = answered(&store, &Principal::Owner, &id_of(&record("/w", 1))).await.unwrap();
        assert_eq!(found.unwrap().answer, TrustAnswer::Trust);
        assert!(
            answered(&store, &Principal::Owner, &id_of(&damaged)).await.is_err(),
            "control: it is damaged"
        );
    }
}
