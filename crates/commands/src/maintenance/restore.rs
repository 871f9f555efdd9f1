//! Restore: a home out of a backup (spec: scale §3, security §19).
//!
//! Everything is unpacked and verified in a folder of its own within the home, and only then gets its names; the
//! store gets its name last. So whatever ends the process, the home has no store or the whole one. What was
//! running when the backup was made is fenced: the store has a new id from then on.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use store::home::{CONFIG, DATABASE, Home, HomeDir, HomeError, HomeOptions, store_log, stray_log};
use store::{LIST_PAGE, Principal, Store, TreeEntry, TreeFilter, all_pages};
use text::terminal::one_line;
use workspace::{Accept, FileArgument, FileProblem, StoreGuard, check_output};

use super::archive::{self, ArchiveError, Contents};
use super::leftovers::{COPIES, Copying, restore_stage};
use crate::app::within_new_workspace;
use crate::args::maintenance::Restore;
use crate::error::CommandError;
use crate::frontend::Frontend;
use crate::results::CommandOutcome;
use crate::results::maintenance::Restored;

/// Where a backup may be restored to.
#[derive(Debug, Clone)]
pub struct RestoreTo {
    /// The home of this invocation, which need not exist: taken where none is named.
    pub home: PathBuf,
    pub options: HomeOptions,
    /// Files of a store this process may have open.
    pub guard: StoreGuard,
    /// Now, ms since 1970.
    pub now: i64,
}

/// Restores into the folder that is named, or into the home if nothing is stored there. Needs no store that is
/// open: opening one would make it.
///
/// # Errors
/// `not_empty` where a store is already; `backup` for a file that is none or is damaged; `restore` when what was
/// in it does not open. No store is there then.
pub fn restore<'a>(
    args: &'a Restore,
    into: RestoreTo,
    frontend: &'a dyn Frontend,
) -> BoxFuture<'a, Result<CommandOutcome, CommandError>> {
    Box::pin(async move {
        if args.file == Path::new("-") {
            let why = "a backup is not read from standard input, because it is read twice";
            return Err(CommandError::usage(why, "name a plain file"));
        }
        let to = args.to.as_ref().unwrap_or(&into.home);
        let to = std::path::absolute(to).map_err(|error| CommandError::file("cannot find", to, &error))?;
        if resolved(&to).ok() != resolved(&into.home).ok() {
            refuse_within(&to, &into.home)?;
        }
        if to.join(DATABASE).symlink_metadata().is_ok() {
            return Err(has_a_store(&to));
        }
        refuse_log(&to)?;
        let file = FileArgument::open(&args.file, &into.guard, Accept::Regular, Duration::ZERO);
        let file = file.map_err(|error| match &error.problem {
            // A backup is read twice, so that no pipe will do.
            FileProblem::NotRegular(_) => {
                CommandError { hint: "name a plain file".to_owned(), ..CommandError::file_argument(&error) }
            }
            _ => CommandError::file_argument(&error),
        });
        let mut file = file?.into_file();
        archive::check(&mut file).map_err(|error| unpacking(&args.file, &error))?;
        let is_new = to.symlink_metadata().is_err();
        // Made like any home, so that the names that lead to it survive power loss.
        let home = Home::open(&to, into.options).map_err(|error| match error {
            HomeError::NotAHome { .. } => not_empty(&to, "is not empty"),
            other => failed(&other),
        })?;
        let copying = Copying::begin(&home).map_err(|error| failed(&error))?;
        let run = home.dir(HomeDir::Run).map_err(|error| failed(&error))?;
        let stage = restore_stage(&run, into.now);
        let made = DirBuilder::new().mode(0o700).create(&stage);
        made.map_err(|error| CommandError::file("cannot make", &stage, &error))?;
        let restored = staged(args, file, &stage, home.root(), frontend).await;
        if let Err(error) = std::fs::remove_dir_all(&stage) {
            frontend.note(&format!("{} could not be removed: {error}", stage.display()));
        }
        let restored = match restored {
            Ok(restored) => restored,
            Err(error) => {
                if is_new && copying.is_alone() {
                    remove_home(&to);
                }
                return Err(error);
            }
        };
        frontend.note(&format!("trees restored: {}; use them with --home {}", restored.trees, to.display()));
        Ok(CommandOutcome::Restored(restored))
    })
}

/// Refuses a new home within the home of this invocation, which would take it for a part of its own, also where that
/// one is not there yet.
///
/// # Errors
/// `in_home`, or what keeps its folder from being entered.
pub fn refuse_within(to: &Path, home: &Path) -> Result<(), CommandError> {
    if within_new_workspace(to, home).is_some() {
        return Ok(());
    }
    let there = to.ancestors().find(|folder| folder.is_dir()).unwrap_or(to);
    let checked = if home.exists() {
        check_output(&there.join(DATABASE), home).map_err(|error| error.problem)
    } else {
        check_new_home(to, home)
    };
    checked.map_err(|problem| match problem {
        FileProblem::InHome => CommandError::refused(
            "in_home",
            format!("{} would be in the home", one_line(&to.to_string_lossy())),
            "name a folder outside the home, or in its folder workspace",
        ),
        problem => CommandError::file("cannot write", to, &problem.into()),
    })
}

/// Refuses what would lie in a home that is not there yet, its folder `workspace` excepted.
fn check_new_home(to: &Path, home: &Path) -> Result<(), FileProblem> {
    let (to, home) = (resolved(to).map_err(FileProblem::Io)?, resolved(home).map_err(FileProblem::Io)?);
    match to.strip_prefix(home) {
        Ok(within) if !within.starts_with(HomeDir::DefaultWorkspace.name()) => Err(FileProblem::InHome),
        _ => Ok(()),
    }
}

/// A path whose last folders need not be there: those that are, as the system finds them, and the others as they are
/// written.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(&path);
    let mut found = there.canonicalize()?;
    for part in path.strip_prefix(there).into_iter().flat_map(Path::components) {
        match part {
            Component::ParentDir => drop(found.pop()),
            part => found.push(part),
        }
    }
    Ok(found)
}

/// Removes the folders of a home that was made for a backup which could not be restored. Whatever else came there
/// meanwhile stays.
fn remove_home(home: &Path) {
    let lock = home.join(HomeDir::Locks.name()).join(COPIES);
    let folders = [HomeDir::Run, HomeDir::Locks].map(|dir| home.join(dir.name()));
    let removed = std::fs::remove_file(lock).and_then(|()| {
        folders.iter().try_for_each(std::fs::remove_dir).and_then(|()| std::fs::remove_dir(home))
    });
    if let Err(error) = removed {
        tracing::debug!(%error, "the folder of a failed restore was not removed");
    }
}

async fn staged(
    args: &Restore,
    file: File,
    stage: &Path,
    home: &Path,
    frontend: &dyn Frontend,
) -> Result<Restored, CommandError> {
    let contents = archive::unpack(file, stage).map_err(|error| unpacking(&args.file, &error))?;
    let (trees, problems) = verified(&stage.join(DATABASE)).await?;
    if store_log(&stage.join(DATABASE)).metadata().is_ok_and(|log| log.len() > 0) {
        return Err(failed(&"its log was not written back"));
    }
    publish(&contents, stage, home, frontend)?;
    Ok(Restored { home: home.to_string_lossy().into_owned(), verified: problems.is_empty(), trees, problems })
}

/// Opens the store, gives it a new id, and looks at all that is in it.
async fn verified(path: &Path) -> Result<(u64, Vec<String>), CommandError> {
    let owner = Principal::Owner;
    // Nobody else knows of this copy.
    let options = store::Options { may_migrate: true, ..store::Options::default() };
    let store: Arc<Store> = Arc::new(Store::open_with(path, &options).map_err(|error| failed(&error))?);
    store.renew_identity(&owner).await?;
    let mut problems = store.check(&owner).await?;
    let blobs = path.with_file_name(HomeDir::Blobs.name());
    problems.extend(super::missing_blobs(blobs, super::shown_blobs(&store, &owner).await?).await?);
    let trees =
        all_pages(TreeEntry::place, |after| store.trees(&owner, TreeFilter::All, after, LIST_PAGE)).await?;
    for tree in &trees {
        let report = crate::verify::report(store.as_ref(), &owner, tree.id).await?;
        for problem in report.problems.iter().filter(|problem| problem.gap.is_none()) {
            problems.push(format!("tree {}: {}", tree.short_id, problem.why));
        }
    }
    Ok((trees.len() as u64, problems))
}

/// Gives everything its name in the home, the store last.
fn publish(
    contents: &Contents,
    stage: &Path,
    home: &Path,
    frontend: &dyn Frontend,
) -> Result<(), CommandError> {
    for name in contents.files.keys().filter(|name| *name != DATABASE) {
        let there = place(&stage.join(name), &home.join(name))
            .map_err(|error| CommandError::file("cannot write", &home.join(name), &error))?;
        // A blob is named by its content, so the one that is there is the same.
        if there && name == CONFIG {
            frontend
                .note("the home has a config.toml already: it is kept, and that of the backup was left out");
        }
    }
    keep_folders(contents, home).map_err(|error| CommandError::file("cannot write", home, &error))?;
    refuse_log(home)?;
    let store = home.join(DATABASE);
    let placed = place(&stage.join(DATABASE), &store);
    match placed.and_then(|there| File::open(home)?.sync_all().map(|()| there)) {
        Ok(false) => Ok(()),
        Ok(true) => Err(has_a_store(home)),
        Err(error) => Err(CommandError::file("cannot write", &store, &error)),
    }
}

/// Makes the names in every folder of the backup survive power loss.
fn keep_folders(contents: &Contents, home: &Path) -> io::Result<()> {
    let files = contents.files.keys().map(Path::new);
    let folders: BTreeSet<&Path> = files.flat_map(|file| file.ancestors().skip(1)).collect();
    // The deepest first: a folder is kept before the name that leads to it.
    folders.iter().rev().try_for_each(|folder| File::open(home.join(folder))?.sync_all())
}

/// Gives a file its name in a folder that is made if need be, unless something has the name: whether that is so.
fn place(from: &Path, to: &Path) -> io::Result<bool> {
    if let Some(folder) = to.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    store::home::rename_new(from, to).map(|renamed| !renamed)
}

fn unpacking(file: &Path, error: &ArchiveError) -> CommandError {
    if let ArchiveError::Io(error) = error
        && error.kind() == io::ErrorKind::StorageFull
    {
        return CommandError::file("cannot restore", file, error);
    }
    let exit = if matches!(error, ArchiveError::Damaged(_) | ArchiveError::Trailing | ArchiveError::Cut) {
        6
    } else {
        2
    };
    let name = one_line(&file.to_string_lossy()).into_owned();
    CommandError::new("backup", exit, format!("{name} was not restored: {error}"), "use another backup")
}

fn failed(error: &dyn std::fmt::Display) -> CommandError {
    let message = format!("the restored home cannot be opened: {error}");
    CommandError::new("restore", 6, message, "use another backup, or another place with --to DIR")
}

/// Refuses a home with the log of a store that is gone: it would be read as that of the store that is restored.
fn refuse_log(home: &Path) -> Result<(), CommandError> {
    let Some(log) = stray_log(&home.join(DATABASE)) else { return Ok(()) };
    let log = log.file_name().unwrap_or_default().to_string_lossy();
    Err(not_empty(home, &format!("holds {log}, which belongs to the store that was there")))
}

fn has_a_store(home: &Path) -> CommandError {
    not_empty(home, "has a store already")
}

fn not_empty(home: &Path, why: &str) -> CommandError {
    let home = one_line(&home.to_string_lossy()).into_owned();
    let hint = "restore into an empty or missing folder with --to DIR, then use it with --home DIR";
    CommandError::new("not_empty", 2, format!("{home} {why}; nothing was restored"), hint)
}
