//! Folders of the owner's MCP servers: where they are, and those that a server writes, as their changes are found (spec:
//! security §3).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::tools::{Checkpoints, OpenServerFolders, RootCheckpoints, ServerFolders};
use agent::Runtime;
use policy::SessionType;
use store::home::HomeDir;
use text::terminal::one_line;
use workspace::discovery::DiscoveryContext;
use workspace::{AllowedRoots, FurtherRoot, Root, RootAccess, StoreGuard, canonical, file_name_of_key};

use crate::app::App;
use crate::args::allow::AllowedFolder;
use crate::configured_server::{ConfiguredServer, WORKSPACE, root_of};
use crate::{further_roots, walls};

/// Where a root of an entry is, the workspace as any other.
///
/// # Errors
/// It is not there, or nobody but the owner is to reach it.
pub(crate) fn place(
    AllowedFolder { folder: named, access }: &AllowedFolder,
    workspace: Option<&Path>,
    surroundings: Option<&DiscoveryContext>,
) -> Result<PathBuf, String> {
    let folder = match (named.strip_prefix("~"), walls::user_home()) {
        _ if named == Path::new(WORKSPACE) => {
            let there = workspace.filter(|folder| folder.is_dir());
            there.map(Path::to_owned).ok_or("`.` is the workspace, and there is none here")?
        }
        (Ok(below), Some(home)) => home.join(below),
        _ => named.to_owned(),
    };
    let shown = |why: String| format!("{}: {why}", one_line(&folder.to_string_lossy()));
    let path = folder.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("there is no folder {}: make it first", one_line(&named.to_string_lossy()))
        }
        _ => shown(error.to_string()),
    })?;
    match surroundings.map(|surroundings| further_roots::check(&path, *access, surroundings)) {
        Some(Err((why, _))) => Err(shown(why)),
        None | Some(Ok(())) => Ok(path),
    }
}

/// The folders that a server writes. They are opened anew for each call.
pub(crate) fn written(app: &App, server: &ConfiguredServer) -> Arc<OpenServerFolders> {
    let workspace =
        app.workspace.folder.as_deref().map(|folder| (canonical(folder), app.workspace.key.clone()));
    let (roots, surroundings) = (server.roots.clone(), app.workspace.surroundings.clone());
    let (runtime, guard, exec) = (app.runtime.clone(), app.guard.clone(), app.settings.exec.clone());
    Arc::new(move |session| {
        let rules = walls::checkpoint_rules(runtime.home.root(), &exec);
        let (mut opened, mut records) = (Vec::new(), RootCheckpoints::default());
        for root in &roots {
            let root = root_of(root)?;
            if root.access != RootAccess::ReadWrite {
                continue;
            }
            let path =
                place(&root, workspace.as_ref().map(|(folder, _)| folder.as_path()), surroundings.as_ref())?;
            let key = workspace.as_ref().filter(|(folder, _)| *folder == path).map(|(_, key)| key.as_str());
            let folder = records_of(&runtime, session, (&path, key))?;
            records = records.with(path.clone(), Checkpoints::within(folder, rules.clone()));
            opened.push(open(path, key.is_some(), &guard)?);
        }
        Ok(ServerFolders { roots: AllowedRoots::within(opened), records })
    })
}

fn open(path: PathBuf, is_workspace: bool, guard: &StoreGuard) -> Result<Root, String> {
    let opened = match is_workspace {
        true => Root::open(&path, guard),
        false => FurtherRoot { path, access: RootAccess::ReadWrite }.open(guard, &[]),
    };
    opened.map_err(|error| error.to_string())
}

/// Where the records of a folder lie: those that commands have of it, too. `key` is that of the workspace, if it is the folder.
fn records_of(
    runtime: &Runtime,
    session: SessionType,
    (path, key): (&Path, Option<&str>),
) -> Result<PathBuf, String> {
    if session == SessionType::Private {
        let further = Some(path).filter(|_| key.is_none());
        return runtime.private_records(runtime.instance, further).map_err(|error| error.to_string());
    }
    let all = runtime.home.dir(HomeDir::CheckpointCache).map_err(|error| error.to_string())?;
    Ok(all.join(file_name_of_key(&key.map_or_else(|| path.to_string_lossy(), Into::into))))
}
