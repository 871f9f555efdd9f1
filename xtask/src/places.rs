//! Where things lie in the repository, and the programs that work on it.

use std::path::PathBuf;
use std::process::Command;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Where builds go.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    as_from_outside(&mut command).current_dir(root());
    command
}

/// Takes away what cargo told this task about itself. Build scripts look at it, and what another cargo built would
/// be built again.
pub(crate) fn as_from_outside(command: &mut Command) -> &mut Command {
    let own = std::env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    }) {
        command.env_remove(name);
    }
    command
}
