//! Programs of the owner that Drawloom starts: the editor, the pager.

use std::env;
use std::ffi::OsStr;
use std::process::Command;

/// What a shell adds to the signal that ended a program.
pub(crate) const BY_SIGNAL: i32 = 128;

/// A program of the owner: it has the owner's environment, but for the secrets that are Drawloom's alone, and is looked
/// for in absolute folders.
pub(crate) fn prepared(mut command: Command) -> Command {
    for (name, _) in env::vars_os().filter(|(name, _)| is_own_secret(name)) {
        command.env_remove(name);
    }
    if let Some(search_path) = env::var_os("PATH") {
        let absolute = env::split_paths(&search_path).filter(|folder| folder.is_absolute());
        command.env("PATH", env::join_paths(absolute).unwrap_or_default());
    }
    command
}

/// Whether a variable sets a secret of the configuration.
fn is_own_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("DRAWLOOM_") && ["KEY", "PASSWORD"].iter().any(|end| name.ends_with(end))
}
