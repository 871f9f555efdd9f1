//! Python environment: which Python is run, and which variables it sees.
//!
//! A search path may name folders that others write to: `.`, a shared scratch folder, the workspace that
//! was cloned from a stranger a minute ago. A `python3` from there is their program, so such entries do not
//! count, neither in the search nor in what the child inherits.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Variables that configure pip: index, certificates, proxies, and where its files lie.
const INHERITED: [&str; 27] = [
    "ALL_PROXY",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Environment of pip: folders that may hold Python, and the variables it inherits.
#[derive(Debug, Clone, Default)]
pub struct PythonEnvironment {
    folders: Vec<PathBuf>,
    variables: Vec<(OsString, OsString)>,
    closed: Vec<PathBuf>,
}

impl PythonEnvironment {
    /// Filters a search path and the variables of an environment. Nothing beneath `closed`, such as the workspace,
    /// is run.
    pub fn new(
        search_path: &OsStr,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        closed: &[PathBuf],
    ) -> Self {
        let closed: Vec<PathBuf> = closed.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        let folders = std::env::split_paths(search_path);
        let folders = folders.filter(|folder| folder.is_absolute() && is_safe(folder, &closed)).collect();
        let listed = |name: &OsStr| INHERITED.iter().any(|known| name == *known);
        let variables = variables.into_iter().filter(|(name, _)| listed(name)).collect();
        Self { folders, variables, closed }
    }

    /// Each `python3`, in the order of the search path, as an absolute path.
    pub(crate) fn pythons(&self) -> impl Iterator<Item = PathBuf> {
        let candidates = self.folders.iter().map(|folder| folder.join("python3"));
        candidates.filter(|python| {
            let executable = python
                .metadata()
                .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
            executable && is_safe(python, &self.closed)
        })
    }

    /// Variables of the child, all but those of its folder.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        // They were split, so none has the character that joins them.
        let path = std::env::join_paths(&self.folders).unwrap_or_default();
        let fixed = [("PATH".into(), path), ("LC_ALL".into(), "C.UTF-8".into())];
        self.variables.iter().cloned().chain(fixed).collect()
    }
}

/// Whether only trusted users can change what stands at a path: neither it nor the folder it really lies
/// in is open to all, no folder above lets all rename it, and it is beneath nothing closed.
fn is_safe(path: &Path, closed: &[PathBuf]) -> bool {
    let Ok(real) = path.canonicalize() else { return false };
    if closed.iter().any(|folder| real.starts_with(folder) || path.starts_with(folder)) {
        return false;
    }
    let mode = |path: &Path| path.metadata().map_or(0o777, |metadata| metadata.permissions().mode());
    let open = |path: &Path| mode(path) & 0o002 != 0;
    // A sticky folder keeps what others own in it from being renamed, so it may lie above.
    let lets_rename = |folder: &Path| open(folder) && mode(folder) & 0o1000 == 0;
    let folder = if real.is_dir() { real.as_path() } else { real.parent().unwrap_or(&real) };
    !open(&real) && !open(folder) && !folder.ancestors().any(lets_rename)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn python_in(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let python = folder.join("python3");
        fs::write(&python, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        python
    }

    fn found(path: &[&Path], closed: &[PathBuf]) -> Vec<PathBuf> {
        let path = std::env::join_paths(path).unwrap();
        PythonEnvironment::new(&path, [], closed).pythons().collect()
    }

    #[test]
    fn relative_shared_and_workspace_folders_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        let [good, shared, workspace] = ["good", "shared", "work"].map(|name| root.path().join(name));
        let python = python_in(&good);
        python_in(&shared);
        python_in(&workspace.join("bin"));
        let path: [&Path; 5] = [Path::new("."), Path::new(""), &shared, &workspace.join("bin"), &good];
        let closed = std::slice::from_ref(&workspace);
        // The control: while they are nobody else's, they count.
        assert_eq!(found(&path, &[]).len(), 3);
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found(&path, closed), [python]);
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(found(&path, closed).len(), 1, "a sticky folder is one to put programs in");
    }

    #[test]
    fn a_folder_below_one_that_all_may_write_to_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        python_in(&open.join("bin"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(found(&[&open.join("bin")], &[]), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_link_into_the_workspace_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let (bin, workspace) = (root.path().join("bin"), root.path().join("work"));
        let theirs = python_in(&workspace);
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(theirs, bin.join("python3")).unwrap();
        assert_eq!(found(&[&bin], &[]).len(), 1);
        assert_eq!(found(&[&bin], &[workspace]).len(), 0);
    }

    #[test]
    fn the_child_sees_what_is_listed_and_nothing_else() {
        let variables =
            [("PIP_INDEX_URL", "https://mirror"), ("PIP_NO_BINARY", ":all:"), ("OPENAI_API_KEY", "k")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let root = tempfile::tempdir().unwrap();
        let path = std::env::join_paths([Path::new("."), root.path()]).unwrap();
        let environment = PythonEnvironment::new(&path, variables, &[]).environment();
        let names: Vec<_> = environment.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PIP_INDEX_URL", "PATH", "LC_ALL"]);
        assert_eq!(environment[1].1, root.path().as_os_str());
    }
}
