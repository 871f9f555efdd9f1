//! Opening a home that cannot be written, for a command that only reads: nothing is made in it, no lock either.

use commands::CommandError;
use store::home::{DATABASE, Home, HomeDir, HomeOptions, STORE_ID};
use store::{Store, StoreError};

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
