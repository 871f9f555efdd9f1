//! Opening a home that cannot be written, for a command that only reads: nothing is made in it, no lock either.

use std::path::Path;

use commands::CommandError;
use store::home::{DATABASE, Home, HomeDir, HomeOptions, STORE_ID, Scratch};
use store::{Options, Principal, Store, StoreError, StoreLimits};
use workspace::trust::TrustAnswer;

use super::{Opened, connect, home_error, limits};
use crate::config::Config;
use crate::paths::InvocationPaths;
use crate::terminal::Terminal;

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
pub(crate) fn with_choice(paths: InvocationPaths) -> InvocationPaths {
    let Some(git_top) = paths.workspace().ok().and_then(|chosen| chosen.git_top) else { return paths };
    let database = paths.home.join(DATABASE);
    if !database.exists() {
        return paths;
    }
    let scratch = Scratch::default();
    let trusted = || {
        let store = of_file(&database, &scratch).ok()?;
        let trusts = commands::workspaces::answer_about(&store, &Principal::Owner, &git_top);
        crate::interrupt::runtime().ok()?.block_on(trusts).ok()?
    };
    if trusted() == Some(TrustAnswer::Trust) { paths.choosing(git_top) } else { paths }
}
