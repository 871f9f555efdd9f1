//! Folders of the home that are a server's own: its `HOME`, and one to work in. What it keeps there is for no other program of
//! its name.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use loom::Digest;
use store::home::HomeDir;
use workspace::{file_name_of_key, open_lock_file, read_small_file, replace_small_file_durably};

use crate::configured_server::ConfiguredServer;
use crate::results::mcp::ServerHome;
use crate::walls;

/// Names among them: of its `HOME`, of the folder that it works in, and of the file with the digest of the program that they
/// are of.
const HOME: &str = "home";
const WORK: &str = "work";
const PROGRAM: &str = "program";
/// Bytes of that file at most.
const LONGEST: u64 = 100;

/// Why no program is started, nor given what is kept.
const RUNS: &str = "it, or another program of its name, runs in another process: end that first";

/// How often the lock is tried, which processes that begin at once have for a moment.
const TRIES: usize = 5;

/// Own folders of a server that runs. Until they are dropped nobody removes them.
pub(crate) struct OwnFolders {
    pub(crate) home: PathBuf,
    pub(crate) work: PathBuf,
    _lock: File,
}

impl OwnFolders {
    /// Makes those that are missing, for the program of this digest. It waits for a removal.
    ///
    /// # Errors
    /// They cannot be made, a program before it kept something there, or still runs.
    pub(crate) fn open(home: &Path, server: &str, program: Digest) -> Result<Self, String> {
        let failed = |error: io::Error| format!("its own folders cannot be made: {error}");
        let (lock, own) = (lock_file(home, server).map_err(failed)?, place(home, server));
        // Shared with processes where this program runs, or alone.
        let mut is_locked = false;
        for _ in 0..TRIES {
            lock.lock_shared().map_err(failed)?;
            is_locked = is_of(&own, program);
            if !is_locked {
                lock.unlock().map_err(failed)?;
                is_locked = lock.try_lock().is_ok();
            }
            if is_locked {
                break;
            }
        }
        if !is_locked {
            return Err(RUNS.to_owned());
        }
        if let Some(kept) = kept(home, server, program) {
            return Err(format!("{kept}; `drawloom mcp accept {server}` asks about it"));
        }
        let folder = |name: &str| walls::private_folder(&own.join(name)).map_err(|error| error.message);
        let (home_folder, work) = (folder(HOME)?, folder(WORK)?);
        write_program(&own, program).map_err(failed)?;
        // It is let go before it is shared.
        lock.lock_shared().map_err(failed)?;
        if !is_of(&own, program) {
            return Err(RUNS.to_owned());
        }
        Ok(Self { home: home_folder, work, _lock: lock })
    }
}

impl ConfiguredServer {
    /// That its program would have what one before it kept, in words; none where nothing is kept, or it kept that itself.
    pub fn kept_before(&self, home: &Path, name: &str) -> Option<String> {
        if self.url.is_some() { None } else { kept(home, name, self.program_digest()) }
    }
}

fn kept(home: &Path, server: &str, program: Digest) -> Option<String> {
    let own = place(home, server);
    let is_filled = |name: &str| match fs::read_dir(own.join(name)) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    let is_kept = [HOME, WORK].into_iter().any(is_filled) && !is_of(&own, program);
    is_kept.then(|| {
        format!(
            "it would have what a program before it kept in its HOME ({}): `drawloom mcp remove {server}` takes that away, with \
             the entry",
            own.display()
        )
    })
}

/// Whether folders are of a program: those of an earlier version are of none.
fn is_of(own: &Path, program: Digest) -> bool {
    read_small_file(&own.join(PROGRAM), LONGEST).is_ok_and(|text| text == program.to_string().as_bytes())
}

/// Has what is kept be of the program of this digest.
///
/// # Errors
/// It cannot be written, or another program still runs there.
pub(crate) fn hand_over(home: &Path, server: &str, program: Digest) -> io::Result<()> {
    let lock = lock_file(home, server)?;
    match lock.try_lock() {
        Ok(()) => write_program(&place(home, server), program),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(ErrorKind::ResourceBusy, RUNS)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn write_program(own: &Path, program: Digest) -> io::Result<()> {
    if is_of(own, program) {
        return Ok(());
    }
    replace_small_file_durably(&own.join(PROGRAM), program.to_string().as_bytes())
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
    if own.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    if let Some(link) = own.ancestors().skip(1).take(2).find(|folder| folder.is_symlink()) {
        return Err(io::Error::other(format!("{} is a link", link.display())));
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
        let program = Digest::of(b"program");
        let open = OwnFolders::open(home.path(), "notes", program).unwrap();
        let other = OwnFolders::open(home.path(), "other", program).unwrap();
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
        assert_eq!(remove(home.path(), "nosuch").unwrap(), None);
        fs::remove_file(&servers).unwrap();
        fs::rename(&aside, &servers).unwrap();
        assert_eq!(remove(home.path(), "notes").unwrap(), Some(ServerHome::Removed));
        assert!(!place(home.path(), "notes").exists() && other.home.exists());
        assert_eq!(remove(home.path(), "notes").unwrap(), None);
    }

    #[test]
    fn what_a_program_kept_is_for_no_other_one_before_it_is_handed_over() {
        let home = tempfile::tempdir().unwrap();
        let [one, other] = [b"one".as_slice(), b"other"].map(Digest::of);
        let opens = |program| OwnFolders::open(home.path(), "notes", program);
        let own = place(home.path(), "notes");
        let runs = opens(one).unwrap();
        assert!(opens(one).is_ok(), "in another process, too");
        assert!(opens(other).is_err_and(|why| why == RUNS));
        assert_eq!(hand_over(home.path(), "notes", other).unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(runs);
        assert!(opens(other).is_ok(), "nothing is kept");
        for folder in [HOME, WORK] {
            let file = own.join(folder).join("token");
            fs::write(&file, "t").unwrap();
            assert!(opens(other).is_ok(), "it is its own");
            assert!(opens(one).is_err_and(|why| why.contains("`drawloom mcp accept notes`")), "{folder}");
            fs::remove_file(own.join(PROGRAM)).unwrap();
            assert!(opens(other).is_err(), "of a program that is not known");
            hand_over(home.path(), "notes", other).unwrap();
            assert!(opens(other).is_ok());
            fs::remove_file(file).unwrap();
        }
    }
}
