//! Package caches of commands, each as a session of commands would have it.

use std::path::{Path, PathBuf};

use commands::package_caches::CacheSurroundings;
use commands::results::maintenance::{Check, State};
use sandbox::{CacheState, Level, PackageCache, Sandbox};
use text::terminal::one_line;

use super::{check, ok};
use crate::config::Config;
use crate::paths::InvocationPaths;

/// Bytes of `/tmp` of the session that is tried.
const TEMP_BYTES: u64 = 1 << 20;

/// One check for each cache that is configured.
pub(super) fn checks(paths: &InvocationPaths, config: &Config, level: Level) -> Vec<Check> {
    let user_home = commands::walls::user_home();
    let workspace = paths.workspace().ok().map(|chosen| chosen.folder);
    let surroundings = CacheSurroundings {
        user_home: user_home.as_deref(),
        home: &paths.home,
        workspace: workspace.as_deref(),
    };
    let looked = |written: &PathBuf| {
        let name = one_line(&written.to_string_lossy()).into_owned();
        match surroundings.cache(written) {
            Err(why) => {
                let why = one_line(&why).into_owned();
                check("cache", State::Fail, format!("{name}: {why}"), "correct exec.caches in config.toml")
            }
            Ok(None) => ok("cache", format!("{name}: missing, and passed over until it is there")),
            Ok(Some(cache)) => told(&name, &tried(&paths.home, level, cache)),
        }
    };
    config.exec.caches.iter().map(looked).chain(nested(&surroundings, config)).collect()
}

/// What is wrong with several caches that each alone may be shown.
fn nested(surroundings: &CacheSurroundings<'_>, config: &Config) -> Option<Check> {
    let caches = &config.exec.caches;
    let each = caches.iter().all(|cache| surroundings.cache(cache).is_ok());
    let why = surroundings.caches(caches).err().filter(|_| each)?;
    Some(check("cache", State::Fail, one_line(&why), "correct exec.caches in config.toml"))
}

fn told(name: &str, state: &CacheState) -> Check {
    match state {
        CacheState::Layered => {
            ok("cache", format!("{name}: commands read it, and what they write to it is their session's"))
        }
        CacheState::ReadOnly(why) => {
            let fix = "a kernel from 5.11 with overlays in user namespaces lets commands write beside it";
            check("cache", State::Warn, format!("{name}: commands read it and cannot write: {why}"), fix)
        }
        CacheState::Absent(why) => {
            let fix = "allow user namespaces on this machine, or take it out of exec.caches";
            check("cache", State::Warn, format!("{name}: commands do not have it: {why}"), fix)
        }
    }
}

/// How a session has a cache. It is opened where those of conversations are; before the first of them in a folder of the
/// system, which is removed.
fn tried(home: &Path, level: Level, cache: PackageCache) -> CacheState {
    let usual = home.join("sandbox").join("tmp");
    let own = std::env::temp_dir().join(format!("drawloom-doctor-{}", std::process::id()));
    let place = if usual.is_dir() { &usual } else { &own };
    let session = Sandbox::of_this_program().map_err(|error| error.to_string()).and_then(|sandbox| {
        sandbox.open_session(level, place, TEMP_BYTES, &[cache]).map_err(|error| error.to_string())
    });
    let state = match &session {
        Ok(session) => session.caches().first().cloned(),
        Err(problem) => Some(CacheState::Absent(problem.clone())),
    };
    drop(session);
    // Only if it was made, and is empty.
    let _ = std::fs::remove_dir(&own);
    state.unwrap_or_else(|| CacheState::Absent("the sandbox said nothing of it".into()))
}
