//! What a command may reach.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
pub use workspace::RootAccess;

/// Walls of one command. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walls {
    pub roots: Vec<WallRoot>,
    /// Git folders that serve a root and lie outside of it (of a larger repository, a linked worktree, a submodule):
    /// writable, their hooks, configuration and other worktrees not.
    #[serde(with = "crate::path_form")]
    pub git_folders: Vec<PathBuf>,
    /// Folder that keeps what git had in working trees before any command ran, made when it is needed. No command may reach
    /// it: which entries of a larger repository around a root are seen is decided by it, and the index is the command's to
    /// write. Without one nothing of them is seen.
    #[serde(with = "crate::path_form")]
    pub tracked_records: Option<PathBuf>,
    /// Home folder of the machine's owner. A larger repository that is or holds it is not shown.
    #[serde(with = "crate::path_form")]
    pub owner_home: Option<PathBuf>,
    /// Folders and files that may be read and run: the system's and those of toolchains. Those that do not exist are
    /// passed over.
    #[serde(with = "crate::path_form")]
    pub readable: Vec<PathBuf>,
    /// Folders that no command sees, also where a root holds them: the home of Drawloom with its store and keys.
    #[serde(with = "crate::path_form")]
    pub private: Vec<PathBuf>,
    /// `HOME` of the command: `<home>/sandbox/<workspace>`. It must exist.
    #[serde(with = "crate::path_form")]
    pub home: PathBuf,
    /// Folder shown as `/tmp`; without one it is that of the [`Session`](crate::Session), or lasts as long as the command.
    #[serde(with = "crate::path_form")]
    pub temp: Option<PathBuf>,
    /// Protected paths that this command may write, as a person allowed: absolute, below a root, never in `.git` or
    /// `.drawloom`.
    #[serde(with = "crate::path_form")]
    pub touches: Vec<PathBuf>,
    /// Folders below which names that are protected anywhere are ordinary, beside those of
    /// [`workspace::protected::DEPENDENCY_FOLDERS`]; git folders are protected there, too.
    pub dependency_folders: Vec<String>,
    pub network: Network,
    pub limits: Limits,
    /// Permission bits that files of the command do not get.
    pub umask: u32,
    /// The whole environment of the command, beside `HOME` and `TMPDIR`.
    pub environment: BTreeMap<String, String>,
}

/// Folder that a command works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallRoot {
    #[serde(with = "crate::path_form")]
    pub path: PathBuf,
    pub access: RootAccess,
}

/// Network of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing but a loopback: the command's own, or that of its session.
    Off,
    /// That of the machine.
    Open,
}

/// Limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of all processes together, in bytes, counted every 50 ms.
    pub memory: u64,
    /// Processes at a time, counted every 50 ms.
    pub processes: u64,
    /// Bytes of one file that is written.
    pub file_size: u64,
    /// Free space that a command must leave on the file system of each writable root and of `HOME`, in bytes.
    pub free_space: u64,
    /// Files and folders that are looked at for protected ones before a command, of all that it may write; where there are
    /// more, it does not begin.
    pub entries: u64,
    /// Protected paths, and folders above them, each of which is a mount of its own at level *full*; where there are more, a
    /// command does not begin.
    pub protected: u64,
    /// Bytes that are kept of each output stream, head and tail together; the rest is read and counted.
    pub output: usize,
    pub time_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            processes: 512,
            file_size: 4 << 30,
            free_space: 256 << 20,
            entries: 4_000_000,
            protected: 20_000,
            output: 1 << 20,
            time_ms: 60_000,
        }
    }
}

/// Permission bits that files of a command do not get where nobody says others.
const UMASK: u32 = 0o022;

/// Folders of the system that programs are run from. `/etc` is among them: what not everybody may read there is hidden.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/nix/store", "/run/current-system"];

impl Walls {
    /// Walls around one writable root, with the folders of the system and the smallest environment.
    pub fn around(root: &Path, home: &Path) -> Self {
        let environment = [
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
        ];
        Self {
            roots: vec![WallRoot { path: root.to_owned(), access: RootAccess::ReadWrite }],
            git_folders: Vec::new(),
            tracked_records: None,
            owner_home: None,
            readable: SYSTEM.iter().map(PathBuf::from).collect(),
            private: Vec::new(),
            home: home.to_owned(),
            temp: None,
            touches: Vec::new(),
            dependency_folders: Vec::new(),
            network: Network::Off,
            limits: Limits::default(),
            umask: UMASK,
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        }
    }

    /// Lets a command read its folders and the git folders that serve them, and write none of them.
    pub fn close_for_writing(&mut self) {
        self.roots.iter_mut().for_each(|root| root.access = RootAccess::ReadOnly);
        self.readable.append(&mut self.git_folders);
    }

    /// What is mounted at its own path, by its place without links: of a larger repository around it nothing is laid over
    /// it.
    pub(crate) fn shown_on_purpose(&self) -> Vec<PathBuf> {
        let roots = self.roots.iter().map(|root| root.path.clone());
        let folders = self.git_folders.iter().chain(&self.private).chain([&self.home]).cloned();
        let readable = self.readable.iter().filter_map(|path| path.canonicalize().ok());
        roots.chain(folders).chain(readable).chain([PathBuf::from("/tmp")]).collect()
    }

    /// Folders that may be written beside the roots: `HOME` among them, unless a root that can only be read is that.
    pub(crate) fn writable_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let is_read_only = |path: &PathBuf| {
            self.roots.iter().any(|root| root.path == *path && root.access == RootAccess::ReadOnly)
        };
        self.git_folders.iter().chain(Some(&self.home).filter(|home| !is_read_only(home)))
    }

    /// Roots that may be written.
    pub fn writable_roots(&self) -> impl Iterator<Item = &Path> {
        let writable = self.roots.iter().filter(|root| root.access == RootAccess::ReadWrite);
        writable.map(|root| root.path.as_path())
    }
}
