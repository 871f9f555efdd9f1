//! Further roots: folders that a call opens to tools and commands beside its workspace (spec: agent §4 *Workspace*).

use std::path::{Path, PathBuf};

use sandbox::{RootAccess, WallRoot, Walls, git_folders_serving};
use text::terminal::one_line;
use workspace::discovery::{DiscoveryContext, DiscoveryStop, check_writable_root};
use workspace::{FurtherRoot, canonical};

use crate::args::allow::AllowedFolder;
use crate::error::CommandError;
use crate::shell::quoted;

/// Folders in which the kernel shows its own state, that of this process with its environment among it.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The folders that were named, by their canonical paths.
///
/// # Errors
/// One is not there or no folder, holds what no tool reaches, or lies in, holds or is another root.
pub fn further_roots(
    named: &[AllowedFolder],
    workspace: Option<&Path>,
    surroundings: &DiscoveryContext,
) -> Result<Vec<FurtherRoot>, CommandError> {
    let mut roots: Vec<FurtherRoot> = Vec::new();
    for AllowedFolder { folder, access } in named {
        let shown = one_line(&folder.to_string_lossy()).into_owned();
        let refused = |why: String, hint: &str| {
            Err(CommandError::usage(format!("--allow {shown}: {why}"), hint.to_owned()))
        };
        let path = folder
            .canonicalize()
            .map_err(|error| CommandError::file("cannot open the folder of --allow", folder, &error))?;
        if let Err((why, hint)) = check(&path, *access, surroundings) {
            return refused(why, hint);
        }
        let others = roots.iter().map(|root| (root.path.as_path(), "of another --allow"));
        for (other, whose) in
            workspace.map(|workspace| (workspace, "of the workspace")).into_iter().chain(others)
        {
            let told = one_line(&other.to_string_lossy()).into_owned();
            if path == other {
                return refused(format!("it is the folder {whose}"), "name each folder once");
            }
            if path.starts_with(other) {
                return refused(format!("it lies in {told}, the folder {whose}"), "leave it out");
            }
            if other.starts_with(&path) {
                return refused(
                    format!("it holds {told}, the folder {whose}"),
                    "name the folders in it that are needed",
                );
            }
        }
        roots.push(FurtherRoot { path, access: *access });
    }
    Ok(roots)
}

/// Refuses a folder that nobody but the owner is to reach, with a hint. Its path is canonical.
///
/// # Errors
/// Why it is refused, and what helps.
pub(crate) fn check(
    path: &Path,
    access: RootAccess,
    surroundings: &DiscoveryContext,
) -> Result<(), (String, &'static str)> {
    if !path.is_dir() {
        return Err(("it is not a folder".to_owned(), "attach a single file with --file"));
    }
    if path.to_str().is_none() {
        return Err(("its path is no text".to_owned(), "tools name files by text: rename the folder"));
    }
    if let Some(kernel) = OF_THE_KERNEL.iter().find(|kernel| path.starts_with(kernel)) {
        return Err((format!("{kernel} is closed to tools"), "name a folder of files"));
    }
    match check_writable_root(path, surroundings).map_err(|error| error.stop) {
        Ok(()) => Ok(()),
        Err(DiscoveryStop::OwnersSkills) if access == RootAccess::ReadOnly => Ok(()),
        Err(stop @ DiscoveryStop::OwnersSkills) => {
            Err((stop.to_string(), "leave out `:rw`, or name ~/.agents"))
        }
        Err(stop) => Err((
            format!(
                "no folder is opened that is, holds or lies in your home folder or Drawloom's, or `/`: {stop}"
            ),
            "name the folder in it that is needed",
        )),
    }
}

/// Whether everything is among some roots: the owner lifted the restriction.
pub(crate) fn hold_everything(roots: &[FurtherRoot]) -> bool {
    roots.iter().any(FurtherRoot::is_everything)
}

/// Folders that tools reach by none of their roots, whatever these hold: the home of Drawloom, and what the kernel shows.
pub(crate) fn closed(home: &Path) -> Vec<PathBuf> {
    OF_THE_KERNEL.iter().map(PathBuf::from).chain([canonical(home)]).collect()
}

/// Opens further roots to the commands behind some walls. Everything is none of them: behind walls there is no such root.
pub fn open_in(walls: &mut Walls, roots: &[FurtherRoot]) {
    for FurtherRoot { path, access } in roots.iter().filter(|root| !root.is_everything()) {
        walls.roots.push(WallRoot { path: path.clone(), access: *access });
        if *access == RootAccess::ReadWrite {
            let serving: Vec<PathBuf> = git_folders_serving(path);
            let new = serving.into_iter().filter(|folder| !walls.git_folders.contains(folder));
            walls.git_folders.extend(new.collect::<Vec<_>>());
        }
    }
}

/// The flag that opens a further root, as it is typed.
pub(crate) fn flag(root: &FurtherRoot) -> String {
    if root.is_everything() {
        return "--no-restrict".to_owned();
    }
    let path = root.path.to_string_lossy();
    let end = match root.access {
        RootAccess::ReadWrite => ":rw",
        RootAccess::ReadOnly if path.ends_with(":rw") => "/",
        RootAccess::ReadOnly => "",
    };
    format!("--allow {}", quoted(&format!("{path}{end}")))
}

/// A further root in words.
pub fn shown(root: &FurtherRoot) -> String {
    if root.is_everything() {
        return "every file but Drawloom's own; commands have no sandbox (--no-restrict)".to_owned();
    }
    let may = match root.access {
        RootAccess::ReadOnly => "read only",
        RootAccess::ReadWrite => "read and write",
    };
    format!("{} ({may})", one_line(&root.path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_that_holds_or_is_what_no_tool_reaches_is_refused_and_so_is_one_in_another_root() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        for folder in ["w/in", "home/.drawloom/blobs", "home/notes", "data/in", "a:b"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        fs::write(top.join("file"), "text").unwrap();
        symlink("data", top.join("link")).unwrap();
        let (home, workspace) = (top.join("home/.drawloom"), top.join("w"));
        let surroundings = DiscoveryContext { home, user_home: Some(top.join("home")), user: 0 };
        let allowed = |folder: &str| AllowedFolder { folder: top.join(folder), access: RootAccess::ReadOnly };
        let roots = |folders: &[&str]| {
            let named: Vec<_> = folders.iter().map(|folder| allowed(folder)).collect();
            further_roots(&named, Some(&workspace), &surroundings)
        };
        for (folders, why) in [
            (&["missing"][..], "no such"),
            (&["file"], "it is not a folder"),
            (&["/"], "root of the file system"),
            (&["/proc/self"], "/proc is closed to tools"),
            (&["/dev"], "/dev is closed to tools"),
            (&["home"], "home folder is never"),
            (&["home/.drawloom"], "belongs to Drawloom's home"),
            (&["home/.drawloom/blobs"], "belongs to Drawloom's home"),
            (&["w"], "it is the folder of the workspace"),
            (&["w/in"], "the folder of the workspace"),
            (&[""], "contains Drawloom's home"),
            (&["data", "data/in"], "the folder of another --allow"),
            (&["data/in", "data"], "it holds"),
            (&["data", "link"], "it is the folder of another --allow"),
        ] {
            let error = roots(folders).unwrap_err();
            assert!(
                error.message.to_lowercase().contains(&why.to_lowercase()),
                "{folders:?}: {}",
                error.message
            );
        }
        let found = roots(&["link", "home/notes", "a:b"]).unwrap();
        let paths: Vec<_> =
            found.iter().map(|root| root.path.strip_prefix(&top).unwrap().to_str().unwrap()).collect();
        assert_eq!(paths, ["data", "home/notes", "a:b"]);
    }

    #[test]
    fn the_flag_means_the_same_folder() {
        let flag = |path: &str, access| flag(&FurtherRoot { path: path.into(), access });
        assert_eq!(flag("/a", RootAccess::ReadOnly), "--allow /a");
        assert_eq!(flag("/a:rw", RootAccess::ReadOnly), "--allow /a:rw/");
        assert_eq!(flag("/a:rw", RootAccess::ReadWrite), "--allow /a:rw:rw");
        assert_eq!(flag("/a b", RootAccess::ReadWrite), "--allow '/a b:rw'");
    }
}
