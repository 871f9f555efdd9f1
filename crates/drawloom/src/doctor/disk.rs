//! The home as it lies on the disk: modes, file system, space, store.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use commands::CommandError;
use commands::results::maintenance::{Check, State};
use commands::workspaces::InspectedFolder;
use rustix::fs::Access;
use store::home::{
    DATABASE, FileSystems, HostFileSystems, STORE_ID, Scratch, Space, SpaceLimits, known_names,
    refuse_odd_store, store_log, stray_log,
};
use store::{
    LIST_PAGE, Principal, ServerError, ServerOptions, Store, StoreError, StoreId, TreeEntry, TreeFilter,
    all_pages,
};
use text::bytes::size;

use workspace::trust::TrustRecord;

use super::backup::{self, StoreState};
use super::{check, files, ok};
use crate::config::Config;
use crate::open::reading::of_file;
use crate::paths::InvocationPaths;

pub(super) fn checks(paths: &InvocationPaths, config: &Config, quick: bool) -> Vec<Check> {
    let home = &paths.home;
    match home.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why =
                format!("{} is not there yet: the first command that needs it makes it", home.display());
            vec![ok("home", why), space(home, config)]
        }
        Err(error) => {
            vec![check(
                "home",
                State::Fail,
                format!("{}: {error}", home.display()),
                "choose another with --home",
            )]
        }
        Ok(_) => {
            // Opening the store may write its log back.
            let mut checks =
                vec![modes(home), file_system(home, config), space(home, config), log(home, config)];
            let (opens, stored) = store(home, config, quick);
            checks.extend([opens, backup::age(home, stored)]);
            checks.extend(edits(home));
            checks.extend(files::checks(home));
            if !quick {
                checks.push(bulk(home, config));
            }
            checks
        }
    }
}

/// Texts that no document has yet.
fn edits(home: &Path) -> Option<Check> {
    let files: Vec<String> =
        commands::edit_files(home).iter().map(|file| file.display().to_string()).collect();
    let why = format!("an editor has them open, or they were not taken in: {}", files.join(", "));
    let fix = "`drawloom tree edit TREE --file FILE` takes one in, with NODE that of one passage; remove the others";
    (!files.is_empty()).then(|| check("edits", State::Warn, why, fix))
}

fn modes(home: &Path) -> Check {
    let us = rustix::process::geteuid().as_raw();
    let known = known_names().map(|name| home.join(name));
    let mut open = Vec::new();
    for path in std::iter::once(home.to_owned()).chain(known) {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.uid() != us {
            let why = format!("{} belongs to uid {}, not to uid {us}", path.display(), metadata.uid());
            return check("home", State::Fail, why, "run as its owner, or choose another with --home");
        }
        if !metadata.is_symlink() && metadata.mode() & 0o077 != 0 {
            open.push(path.display().to_string());
        }
    }
    if rustix::fs::access(home, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let why = format!("{} cannot be written", home.display());
        return check(
            "home",
            State::Fail,
            why,
            "`chmod u+rwx` lets you write it, or choose another with --home",
        );
    }
    if open.is_empty() {
        return ok("home", format!("{}, yours alone", home.display()));
    }
    let why = format!("open to others: {}", open.join(", "));
    check("home", State::Warn, why, "the next command that uses the home corrects it; chmod corrects it now")
}

fn file_system(home: &Path, config: &Config) -> Check {
    match HostFileSystems.network_kind(home) {
        Ok(None) => ok("file system", "local"),
        Ok(Some(kind)) if config.store.allow_network_fs => check(
            "file system",
            State::Warn,
            format!("a network file system ({kind}), allowed by store.allow_network_fs"),
            "locks there can lose saved work: a local disk is safer",
        ),
        Ok(Some(kind)) => check(
            "file system",
            State::Fail,
            format!("a network file system ({kind}), where locks can lose saved work"),
            "move the home to a local disk with --home",
        ),
        Err(error) => check("file system", State::Warn, format!("it does not say what it is: {error}"), ""),
    }
}

fn space(home: &Path, config: &Config) -> Check {
    let there = home.ancestors().find(|folder| folder.exists()).unwrap_or(home);
    let limits = SpaceLimits { minimum_free: config.limits.free_space.0, ..SpaceLimits::default() };
    let fix = "free some, or move the home with --home";
    match HostFileSystems.free_and_total(there).map(|(free, total)| limits.judge(free, total)) {
        Ok(Space::Enough { free }) => ok("space", format!("{} free", size(free))),
        Ok(Space::Low { free, total }) => {
            check("space", State::Warn, format!("{} free of {}", size(free), size(total)), fix)
        }
        Ok(Space::Short { free, minimum }) => {
            check("space", State::Fail, format!("{} free, {} are needed", size(free), size(minimum)), fix)
        }
        Err(error) => check("space", State::Warn, format!("not known: {error}"), ""),
    }
}

/// Whether the store opens, and what is in it. Only the store itself opens its file (spec: security §8), and here for
/// reading.
fn store(home: &Path, config: &Config, quick: bool) -> (Check, StoreState) {
    if let Some(url) = &config.store.url {
        return (server(home, config, url, quick), StoreState::OnServer);
    }
    let path = home.join(DATABASE);
    let Ok(metadata) = path.symlink_metadata() else {
        let lost = crate::open::refuse_lost_store(home);
        if let Some(log) = stray_log(&path) {
            let why = format!("{DATABASE} is missing, although {} is there", log.display());
            let anew = if lost.is_ok() { "; without the log, this one begins anew" } else { "" };
            let fix = format!("`drawloom restore FILE --to DIR` makes a home of a backup{anew}");
            return (check("store", State::Fail, why, fix), StoreState::Unreadable);
        }
        return match lost {
            Ok(()) => (ok("store", "empty: nothing was stored yet"), StoreState::Nothing),
            Err(error) => (check("store", State::Fail, error.message, error.hint), StoreState::Missing),
        };
    };
    if let Ok(target) = path.read_link()
        && !path.exists()
    {
        let why = format!("{DATABASE} leads to {}, which is not there", target.display());
        return (check("store", State::Fail, why, "bring back what it leads to"), StoreState::Unreadable);
    }
    if let Err(error) = refuse_odd_store(&path) {
        let error = crate::open::home_error(&error);
        return (check("store", State::Fail, error.message, error.hint), StoreState::Unreadable);
    }
    match look(&path) {
        Ok((version, trees)) => {
            let stored = if trees == 0 { StoreState::Nothing } else { StoreState::Trees };
            (ok("store", format!("opens, schema {version}, {}", size(metadata.len()))), stored)
        }
        Err(error) if error.code == "migration_needed" => {
            let why = "an older Drawloom wrote the store";
            let fix = "run any command: it updates the store";
            (check("store", State::Warn, why.to_owned(), fix), StoreState::Unreadable)
        }
        Err(error) => (check("store", State::Fail, error.message, error.hint), StoreState::Unreadable),
    }
}

/// Whether the database answers, and holds the store of this home. No table and no id is made.
fn server(home: &Path, config: &Config, url: &str, quick: bool) -> Check {
    let place = format!("in the database {url}");
    if quick {
        return ok("store", format!("{place}, which --quick does not ask"));
    }
    let has_id = home.join(STORE_ID).exists();
    let asked = || -> Result<u32, StoreError> {
        let store = if has_id { StoreId::of_home(home)? } else { StoreId([0; 16]) };
        let options = ServerOptions {
            password: config.store.known_password(),
            makes_tables: false,
            pool: 1,
            ..ServerOptions::new(url, store)
        };
        let store = Store::connect(&options)?;
        let runtime = crate::interrupt::runtime().map_err(|_| StoreError::Closed)?;
        Ok(runtime.block_on(store.identity(&Principal::Owner))?.version)
    };
    match asked() {
        Ok(version) => ok("store", format!("{place}, schema {version}")),
        Err(StoreError::Server(ServerError::NoTables { .. })) => {
            ok("store", format!("{place}: nothing was stored yet"))
        }
        Err(mut error) => {
            if let StoreError::Server(ServerError::OtherHome { own, .. }) = &mut error
                && !has_id
            {
                *own = "none yet".to_owned();
            }
            let error = CommandError::from(error);
            check("store", State::Fail, error.message, error.hint)
        }
    }
}

fn look(path: &Path) -> Result<(u32, usize), CommandError> {
    let scratch = Scratch::default();
    let store = of_file(path, &scratch)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CommandError::new("internal", 6, error.to_string(), ""))?;
    runtime.block_on(async {
        let version = store.identity(&Principal::Owner).await?.version;
        let page = |after| store.trees(&Principal::Owner, TreeFilter::All, after, LIST_PAGE);
        Ok((version, all_pages(TreeEntry::place, page).await?.len()))
    })
}

/// How long the store's log is: a read that does not end keeps it from being written back.
fn log(home: &Path, config: &Config) -> Check {
    let limit = config.limits.wal.0;
    let taken = store_log(&home.join(DATABASE)).symlink_metadata().map_or(0, |found| found.len());
    if taken > limit {
        let why = format!("the store's log takes {}, more than {} (limits.wal)", size(taken), size(limit));
        return check("log", State::Warn, why, "end what has the home open, and run any command once");
    }
    ok("log", format!("the store's log takes {}", size(taken)))
}

/// What the owner said about a workspace. Nothing is written, and no store is made.
///
/// # Errors
/// When the store cannot be read.
pub(super) fn answered(
    database: &Path,
    looked: &InspectedFolder,
) -> Result<Option<TrustRecord>, CommandError> {
    let scratch = Scratch::default();
    let store = of_file(database, &scratch)?;
    let answer = commands::workspaces::answered(&store, &Principal::Owner, &looked.id);
    Ok(crate::interrupt::runtime()?.block_on(answer)?)
}

fn bulk(home: &Path, config: &Config) -> Check {
    let limit = config.limits.home_warn.0;
    let total = weight(home);
    if total > limit {
        let why = format!("the home takes {}, more than {}", size(total), size(limit));
        return check("size", State::Warn, why, "raise limits.home_warn, or purge what is not needed");
    }
    ok("size", format!("the home takes {}", size(total)))
}

/// Bytes of the files below a folder; links are not followed.
fn weight(folder: &Path) -> u64 {
    let Ok(entries) = folder.read_dir() else { return 0 };
    let one = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => weight(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(one).sum()
}
