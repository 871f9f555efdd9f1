//! The walls of a workspace's commands, an agent's and those of `drawloom sandbox` (spec: security §1).

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ::tools::{
    ChangedPath, CheckpointRules, Checkpoints, CommandEgress, CommandNetwork, NetworkRequest, RootCheckpoints,
};
use egress::Gate;
use sandbox::{Level, Sandbox, Session, Walls, git_folders_serving};
use store::home::HomeDir;
use text::terminal::one_line;
use workspace::{AllowedRoots, FurtherRoot, GitIdentity, Root, StoreGuard, canonical};

use crate::error::CommandError;
use crate::package_caches::CacheSurroundings;
use crate::results::chat::ChangedFile;
use crate::settings::{ExecSettings, WebSettings};

/// Folders of toolchains below a person's home that hold programs and no credentials.
const TOOLCHAINS: [&str; 6] = [".cargo/bin", ".rustup", ".pyenv", ".nvm/versions", ".volta", ".deno/bin"];

/// Variables by which programs of a toolchain find the rest of it, with the folder each names below a person's home where it is
/// not set.
const VARIABLES: [(&str, Option<&str>); 5] = [
    ("RUSTUP_HOME", Some(".rustup")),
    ("PYENV_ROOT", Some(".pyenv")),
    ("VOLTA_HOME", Some(".volta")),
    ("JAVA_HOME", None),
    ("GOROOT", None),
];

/// Bytes that `/tmp` of a session holds at most.
pub(crate) const TEMP_BYTES: u64 = 1 << 30;

/// The walls around one workspace: it may be written, the system and toolchains be read, the home of Drawloom not be
/// seen.
///
/// # Errors
/// The home has no place for what its commands keep.
pub fn of_workspace(
    home: &Path,
    folder: &Path,
    key: &str,
    settings: &ExecSettings,
) -> Result<Walls, CommandError> {
    let name = workspace::file_name_of_key(key);
    let own = private_folder(&home.join("sandbox").join(&name))?;
    let mut walls = Walls::around(folder, &own);
    walls.git_folders = git_folders_serving(folder);
    walls.tracked_records = Some(agent::command_records(home));
    walls.private = vec![home.to_owned()];
    walls.dependency_folders.clone_from(&settings.dependency_folders);
    walls.limits.free_space = settings.free_space;
    // A command needs what it makes itself, whatever its owner took from their own.
    walls.umask = store::home::former_umask() & 0o077;
    let user_home = user_home();
    let identity = |home: &PathBuf| {
        let identity = GitIdentity::of_owner(home, folder);
        identity.write_to(&own, &identity.excludes(home))
    };
    if let Some(Err(error)) = user_home.as_ref().map(identity) {
        tracing::warn!(%error, "commands do not know who commits");
    }
    show_toolchains(&mut walls, home, settings)?;
    Ok(walls)
}

/// Lets what runs behind walls read the folders of toolchains, and find what is in them.
///
/// # Errors
/// They are none that commands may read.
pub(crate) fn show_toolchains(
    walls: &mut Walls,
    home: &Path,
    settings: &ExecSettings,
) -> Result<(), CommandError> {
    let user_home = user_home();
    walls.owner_home.clone_from(&user_home);
    let found = || user_home.iter().flat_map(|home| TOOLCHAINS.map(|folder| home.join(folder))).collect();
    let toolchains: Vec<PathBuf> = settings.toolchains.clone().unwrap_or_else(found);
    if let Some(why) = toolchains_problem(&toolchains, home) {
        return Err(CommandError::usage(why, "correct exec.toolchains in config.toml"));
    }
    // A folder that is a link is shown where it leads.
    let toolchains: Vec<PathBuf> = toolchains
        .iter()
        .map(|folder| placed(folder, user_home.as_deref()))
        .filter(|folder| {
            let is_there = folder.is_dir();
            if !is_there && settings.toolchains.is_some() {
                tracing::warn!(folder = %folder.display(), "a folder of exec.toolchains is not there");
            }
            is_there
        })
        .collect();
    let of_toolchains = search_path().map(|entry| canonical(&entry)).filter(|entry| {
        toolchains.iter().any(|toolchain| entry.starts_with(toolchain)) && !is_writable_by_others(entry)
    });
    let system = walls.environment.get("PATH").cloned().unwrap_or_default();
    let path = of_toolchains.map(|entry| entry.to_string_lossy().into_owned()).chain([system]);
    walls.environment.insert("PATH".to_owned(), path.collect::<Vec<_>>().join(":"));
    for (variable, usual) in VARIABLES {
        let named = std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let usual = || Some(user_home.as_ref()?.join(usual?));
        let folder = named.or_else(usual).map(|folder| canonical(&folder));
        let is_seen = |folder: &PathBuf| toolchains.iter().any(|toolchain| folder.starts_with(toolchain));
        if let Some(folder) = folder.filter(is_seen) {
            walls.environment.insert(variable.to_owned(), folder.to_string_lossy().into_owned());
        }
    }
    walls.readable.extend(toolchains);
    Ok(())
}

/// Where a folder of the configuration is, `~` the home of the person.
pub(crate) fn placed(folder: &Path, user_home: Option<&Path>) -> PathBuf {
    match (folder.strip_prefix("~"), user_home) {
        (Ok(below), Some(home)) => canonical(&home.join(below)),
        _ => canonical(folder),
    }
}

/// What is wrong with folders of toolchains, if anything is: every command reads them.
pub fn toolchains_problem(folders: &[PathBuf], home: &Path) -> Option<String> {
    let is_relative = |folder: &&PathBuf| !folder.is_absolute() && !folder.starts_with("~");
    if let Some(folder) = folders.iter().find(is_relative) {
        let folder = one_line(&folder.to_string_lossy()).into_owned();
        return Some(format!("exec.toolchains: {folder:?} names no folder: begin it with / or ~/"));
    }
    let user_home = user_home();
    let homes = [user_home.as_deref(), Some(home)].into_iter().flatten().map(canonical).collect::<Vec<_>>();
    let is_wide = |folder: &&PathBuf| {
        let place = placed(folder, user_home.as_deref());
        homes.iter().any(|home| home.starts_with(&place)) || place.starts_with(&homes[homes.len() - 1])
    };
    let folder = folders.iter().find(is_wide)?;
    Some(format!(
        "exec.toolchains: {} is or holds your home folder, or is of Drawloom's: commands would read keys there",
        one_line(&folder.to_string_lossy())
    ))
}

/// What a command of the owner may write.
#[derive(Debug)]
pub struct CommandRoots {
    /// Folder of the workspace.
    pub workspace: PathBuf,
    /// Key of the workspace in the store.
    pub key: String,
    pub further: Vec<FurtherRoot>,
}

/// Runs a command, and finds what it changed in files: by the records that an agent's commands have. It blocks.
///
/// # Errors
/// What stands there could not be recorded: nothing was run.
pub fn comparing<T>(
    (home, guard): (&Path, &StoreGuard),
    roots: &CommandRoots,
    settings: &ExecSettings,
    run: impl FnOnce() -> T,
) -> Result<(T, Result<Vec<ChangedFile>, String>), String> {
    let all = home.join(HomeDir::CheckpointCache.name());
    let rules = checkpoint_rules(home, settings);
    let records = |key: &str| Checkpoints::within(all.join(workspace::file_name_of_key(key)), rules.clone());
    let open = |path: &Path| Root::open(path, guard).map_err(|error| error.to_string());
    let mut opened = vec![open(&roots.workspace)?];
    let mut checkpoints = RootCheckpoints::default().with(opened[0].path().to_owned(), records(&roots.key));
    for FurtherRoot { path, access } in &roots.further {
        checkpoints = checkpoints.with(path.clone(), records(&path.to_string_lossy()));
        opened.push(open(path)?.as_further(*access));
    }
    let opened = AllowedRoots::within(opened);
    let (ran, changed) = ::tools::comparing(&checkpoints.of_roots(&opened), run)?;
    let file = |ChangedPath { path, lines }| ChangedFile {
        path,
        added: lines.map(|(added, _)| added),
        removed: lines.map(|(_, removed)| removed),
    };
    Ok((ran, changed.map(|changed| changed.into_iter().map(file).collect())))
}

/// What records of a workspace's files pass over.
pub(crate) fn checkpoint_rules(home: &Path, settings: &ExecSettings) -> CheckpointRules {
    CheckpointRules {
        dependency_folders: settings.dependency_folders.clone(),
        private: vec![home.to_owned()],
        ..CheckpointRules::default()
    }
}

/// Opens a session of commands in such walls around the folder of a workspace, with the package caches that are configured.
/// Files of it lie in `place`.
///
/// # Errors
/// A cache may not be shown, or the session cannot be made.
pub fn open_session(
    sandbox: &Sandbox,
    level: Level,
    place: &Path,
    (home, folder): (&Path, &Path),
    settings: &ExecSettings,
) -> Result<Session, CommandError> {
    let user_home = user_home();
    let surroundings = CacheSurroundings { user_home: user_home.as_deref(), home, workspace: Some(folder) };
    let caches = surroundings.caches(&settings.caches);
    let caches = caches.map_err(|why| CommandError::usage(why, "correct exec.caches in config.toml"))?;
    sandbox.open_session(level, place, TEMP_BYTES, &caches).map_err(|error| {
        CommandError::new("no_sandbox", 6, error.to_string(), "`drawloom doctor` looks at the sandbox")
    })
}

/// Opens the network that the owner asks for by words: hosts, `open`, or none. It needs a runtime of this thread.
///
/// # Errors
/// A word is no host, or the machine has no such network.
pub fn open_network(
    words: &[String],
    (session, walls): (&Session, &mut Walls),
    web: &WebSettings,
) -> Result<CommandNetwork, CommandError> {
    let wrong = |why: String| CommandError::usage(why, "`--net HOST`, or `--net open` or `--net off` alone");
    let request = match words {
        [] => NetworkRequest::Off,
        [word] if word == "off" => NetworkRequest::Off,
        [word] if word == "open" => NetworkRequest::Open,
        hosts => {
            let listed = |word: &String| {
                word.strip_prefix("hosts=").unwrap_or(word).split(',').map(str::to_owned).collect()
            };
            let hosts: Vec<String> = hosts.iter().flat_map::<Vec<String>, _>(listed).collect();
            NetworkRequest::to(&hosts).map_err(wrong)?
        }
    };
    let egress = CommandEgress { gate: Gate::default(), private_hosts: web.private_hosts.clone() };
    request
        .open(session, &egress, walls)
        .map_err(|why| CommandError::refused("no_network", why, "`drawloom doctor` looks at the sandbox"))
}

/// Home of the owner.
pub fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// The file that the owner's own search path has for a program.
pub fn program_of_owner(name: &str) -> Option<PathBuf> {
    search_path().map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The owner's own search path, without folders in which others, or who works in a workspace, could leave a program (spec:
/// security §15).
pub(crate) fn safe_search_path(workspace: Option<&Path>) -> Vec<PathBuf> {
    let is_of_workspace = |folder: &Path| workspace.is_some_and(|root| canonical(folder).starts_with(root));
    search_path().filter(|folder| !is_writable_by_others(folder) && !is_of_workspace(folder)).collect()
}

/// Folders that the owner's programs are found in.
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|entry| entry.is_absolute()).collect::<Vec<_>>().into_iter()
}

fn is_writable_by_others(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o002 != 0)
}

/// A folder of the home, closed to others.
pub(crate) fn private_folder(path: &Path) -> Result<PathBuf, CommandError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| fs::canonicalize(path))
        .map_err(|error| CommandError::file("cannot make", path, &error))
}
