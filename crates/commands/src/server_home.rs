//! Folders of the home that are a server's own: its `HOME`, and one to work in. What it keeps there is for no other program of
//! its name.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use store::home::HomeDir;
use workspace::{file_name_of_key, open_lock_file};

use crate::results::mcp::ServerHome;
use crate::walls;

/// Name of its `HOME` among them.
const HOME: &str = "home";

/// Own folders of a server that runs. Until they are dropped nobody removes them.
pub(crate) struct OwnFolders {
    pub(crate) home: PathBuf,
    pub(crate) work: PathBuf,
    _lock: File,
}

impl OwnFolders {
    /// Makes those that are missing. It waits for a removal.
    ///
    /// # Errors
    /// They cannot be made.
    pub(crate) fn open(home: &Path, server: &str) -> Result<Self, String> {
        let failed = |error: io::Error| format!("its own folders cannot be made: {error}");
        let lock = lock_file(home, server).map_err(failed)?;
        lock.lock_shared().map_err(failed)?;
        let own = place(home, server);
        let folder = |name: &str| walls::private_folder(&own.join(name)).map_err(|error| error.message);
        Ok(Self { home: folder(HOME)?, work: folder("work")?, _lock: lock })
    }
}

/// That what an earlier program of the name kept is there for the one that has it now, in words; none where nothing is kept.
pub fn kept(home: &Path, server: &str) -> Option<String> {
    let own = place(home, server).join(HOME);
    let is_kept = fs::read_dir(&own).is_ok_and(|mut entries| entries.next().is_some());
    is_kept.then(|| {
        format!(
            "it has what the program before it kept in its HOME ({}): `drawloom mcp remove {server}` takes both out, for one \
             that begins anew",
            own.display()
        )
    })
}

/// Folder of a server's own folders.
pub fn place(home: &Path, server: &str) -> PathBuf {
    home.join(HomeDir::Sandbox.name()).join("servers").join(file_name_of_key(server))
}

/// Removes what a server kept, unless it runs in any process. None where it kept nothing.
///
/// # Errors
/// They cannot be removed.
pub fn remove(home: &Path, server: &str) -> io::Result<Option<ServerHome>> {
    let own = place(home, server);
    if let Some(link) = own.ancestors().skip(1).take(2).find(|folder| folder.is_symlink()) {
        return Err(io::Error::other(format!("{} is a link", link.display())));
    }
    if own.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    let lock = lock_file(home, server)?;
    match lock.try_lock() {
        Ok(()) => sandbox::remove_folder(&own).map(|()| Some(ServerHome::Removed)),
        Err(TryLockError::WouldBlock) => Ok(Some(ServerHome::InUse)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock of the folders, which lies beside them: it outlasts their removal.
fn lock_file(home: &Path, server: &str) -> io::Result<File> {
    let locks = home.join(HomeDir::Locks.name());
    fs::create_dir_all(&locks)?;
    open_lock_file(&locks.join(format!("server-{}.lock", file_name_of_key(server))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_a_server_kept_is_removed_once_it_runs_nowhere() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(remove(home.path(), "notes").unwrap(), None);
        let open = OwnFolders::open(home.path(), "notes").unwrap();
        let other = OwnFolders::open(home.path(), "other").unwrap();
        let kept = open.home.join("cache/token");
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, "t").unwrap();
        // As a cache of modules is kept.
        fs::set_permissions(kept.parent().unwrap(), fs::Permissions::from_mode(0o500)).unwrap();
        assert_eq!(remove(home.path(), "notes").unwrap(), Some(ServerHome::InUse));
        assert!(kept.exists());
        drop(open);
        let (servers, aside) = (home.path().join("sandbox/servers"), home.path().join("aside"));
        fs::rename(&servers, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &servers).unwrap();
        assert!(remove(home.path(), "notes").is_err() && kept.exists(), "no link is followed");
        fs::remove_file(&servers).unwrap();
        fs::rename(&aside, &servers).unwrap();
        assert_eq!(remove(home.path(), "notes").unwrap(), Some(ServerHome::Removed));
        assert!(!place(home.path(), "notes").exists() && other.home.exists());
        assert_eq!(remove(home.path(), "notes").unwrap(), None);
    }
}
