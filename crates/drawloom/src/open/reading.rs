//! Opening a home that cannot be written, for a command that only reads: nothing is made in it, no lock either.

use std::path::{Path, PathBuf};

use commands::CommandError;
use store::home::{DATABASE, Home, HomeDir, HomeOptions, STORE_ID, Scratch};
use store::{Options, Store, StoreError, StoreLimits};

use super::{Opened, connect, home_error, limits};
use crate::config::{Config, Layers};
use crate::paths::InvocationPaths;
use crate::terminal::Terminal;
use crate::workspaces;

/// Whether a home that could not be opened to be written may be read.
pub(super) fn may_help(why: &CommandError, paths: &InvocationPaths, config: &Config) -> bool {
    let is_about_writing = matches!(
        &*why.code,
        "read_only" | "disk_full" | "file_limit" | "home" | "store" | "migration_needed"
    );
    let store = if config.store.url.is_some() { STORE_ID } else { DATABASE };
    is_about_writing && paths.home.join(store).exists()
}

/// Opens the home to be read, and says so.
///
/// # Errors
/// Whatever keeps it from being read, too.
pub(super) fn open(
    paths: &InvocationPaths,
    config: &Config,
    person: &Terminal,
    why: &CommandError,
) -> Result<Opened, CommandError> {
    let options = HomeOptions { allow_network_fs: config.store.allow_network_fs };
    let home = Home::open_for_reading(&paths.home, options).map_err(|error| home_error(&error))?;
    let guard = paths.guard()?;
    let store = match (&config.store.url, home.scratch()) {
        (Some(url), _) => connect(url, &home, config, false)?,
        (None, Some(scratch)) => Store::open_for_reading(&home.database(), scratch, limits(config))?,
        (None, None) => return Err(StoreError::ReadOnly.into()),
    };
    let from = if store.is_copy() { ", from a private copy of its store" } else { "" };
    let spools = home.unstored_answers();
    let more = match spools {
        0 => String::new(),
        _ => {
            format!("; answers under way or cut off are not shown yet: {spools} in {}", HomeDir::Spool.name())
        }
    };
    person.notice(&format!("the home is only read{from}: {}{more}", why.message));
    Ok(Opened { home, guard, instance: None, store })
}

/// The store of a file, opened to be read. Where that would make a file beside it and cannot, as what only reads does.
pub(crate) fn of_file(path: &Path, scratch: &Scratch) -> Result<Store, StoreError> {
    let options = Options { read_only: true, readers: 1, ..Options::default() };
    match Store::open_with(path, &options) {
        Err(StoreError::Sqlite(_) | StoreError::Io { .. } | StoreError::ReadOnly | StoreError::DiskFull) => {
            Store::open_for_reading(path, scratch, StoreLimits::default())
        }
        opened => opened,
    }
}

/// Paths of a command that opens no store, with what its owner chose. Of a store that cannot be read, or lies on a
/// server, it is not known.
pub(crate) fn with_choice(paths: InvocationPaths, layers: &Layers) -> InvocationPaths {
    let Some(database) = file_of_store(&paths, layers) else { return paths };
    if paths.workspace().ok().and_then(|chosen| chosen.git_top).is_none() {
        return paths;
    }
    let scratch = Scratch::default();
    let with_choice = || {
        let store = of_file(&database, &scratch).ok()?;
        crate::interrupt::runtime().ok()?.block_on(workspaces::with_choice(&paths, &store)).ok()
    };
    with_choice().unwrap_or(paths)
}

/// The file of the home's store; none where there is none, or where the settings name a server: a file is left over then.
pub(crate) fn file_of_store(paths: &InvocationPaths, layers: &Layers) -> Option<PathBuf> {
    Some(paths.home.join(DATABASE)).filter(|database| !is_on_server(layers) && database.exists())
}

/// Whether the settings name a server as the place of the store.
pub(crate) fn is_on_server(layers: &Layers) -> bool {
    layers.get("store.url").0.is_some()
}
