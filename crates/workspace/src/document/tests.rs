//! A hostile file system and a hostile editor around one replacement.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Stat;

use super::*;
use crate::guard::StoreGuard;

const OLD: &str = "the old text";
const OURS: &str = "our text";
const THEIRS: &str = "what a person saved";

struct Desk {
    temp: tempfile::TempDir,
    root: Root,
    lock: WorkspaceLock,
}

fn desk() -> Desk {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("w")).unwrap();
    let root = Root::open(&temp.path().join("w"), &StoreGuard::new()).unwrap();
    let lock = WorkspaceLock::acquire(&temp.path().join("locks"), root.id(), Duration::ZERO).unwrap();
    let desk = Desk { temp, root, lock };
    fs::write(desk.file("HANDOFF.md"), OLD).unwrap();
    desk
}

impl Desk {
    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join("w").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn documents(&self) -> Documents<'_> {
        Documents::new(&self.root, &self.lock).unwrap()
    }

    /// Every text in the workspace, with its name.
    fn texts(&self) -> Vec<(String, String)> {
        let mut texts: Vec<_> = fs::read_dir(self.temp.path().join("w"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(&path).unwrap())
            })
            .collect();
        texts.sort();
        texts
    }

    fn holds(&self, text: &str) -> bool {
        self.texts().iter().any(|(_, found)| found == text)
    }

    fn working_files(&self) -> usize {
        self.texts().iter().filter(|(name, _)| name.starts_with('.')).count()
    }
}

/// What a start knows of the file that is changed.
fn known() -> KnownTexts {
    let texts = [OLD, OURS].map(|text| Digest::of(text.as_bytes()));
    KnownTexts::from([("HANDOFF.md".into(), texts.to_vec())])
}

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

fn ours() -> Replacement<'static> {
    Replacement {
        text: OURS.as_bytes(),
        expected: Expected::Text(Digest::of(OLD.as_bytes())),
        stamp: Stamp::new("20261121T224200Z").unwrap(),
        unmerged: Unmerged::Beside,
        mode: None,
    }
}

const KEPT: &str = "HANDOFF.md.drawloom-20261121T224200Z";

/// What the file system can do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Abilities {
    All,
    NoExchange,
    PlainRenameOnly,
}

/// Stands between a replacement and the kernel.
struct Seam {
    abilities: Abilities,
    calls: RefCell<Vec<&'static str>>,
    saves: Vec<(usize, Box<dyn Fn()>)>,
    crash_before: Option<usize>,
    fail: RefCell<Vec<(&'static str, usize, Errno)>>,
}

impl Seam {
    fn new(abilities: Abilities) -> Self {
        Self {
            abilities,
            calls: RefCell::default(),
            saves: Vec::new(),
            crash_before: None,
            fail: RefCell::default(),
        }
    }

    fn failing(call: &'static str, nth: usize, errno: Errno) -> Self {
        Self { fail: RefCell::new(vec![(call, nth, errno)]), ..Self::new(Abilities::All) }
    }

    /// How many calls were made.
    fn made(&self) -> usize {
        self.calls.borrow().len()
    }

    fn last(&self) -> &'static str {
        self.calls.borrow().last().copied().unwrap_or("")
    }

    fn before(&self, call: &'static str) -> Result<(), Errno> {
        self.calls.borrow_mut().push(call);
        let made = self.made();
        for (_, save) in self.saves.iter().filter(|(at, _)| *at == made) {
            save();
        }
        if self.crash_before.is_some_and(|at| made >= at) {
            return Err(Errno::IO);
        }
        for (name, nth, errno) in self.fail.borrow_mut().iter_mut() {
            if *name == call && *nth > 0 {
                *nth -= 1;
                if *nth == 0 {
                    return Err(*errno);
                }
            }
        }
        Ok(())
    }
}

impl Calls for Seam {
    fn stat(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<Stat, Errno> {
        self.before("stat")?;
        Kernel.stat(folder, name)
    }
    fn find(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
        self.before("find")?;
        Kernel.find(folder, name)
    }
    fn load(&self, f: &OwnedFd, guard: &StoreGuard, max: u64) -> Result<(OwnedFd, Vec<u8>), FileProblem> {
        self.before("load")?;
        Kernel.load(f, guard, max)
    }
    fn create(&self, folder: BorrowedFd<'_>, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
        self.before("create")?;
        Kernel.create(folder, name, mode)
    }
    fn write(&self, file: &mut File, bytes: &[u8]) -> Result<(), Errno> {
        self.before("write")?;
        Kernel.write(file, bytes)
    }
    fn dress(&self, file: BorrowedFd<'_>, like: &OwnedFd, stat: &Stat) -> Result<(), Errno> {
        self.before("dress")?;
        Kernel.dress(file, like, stat)
    }
    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.before("sync")?;
        Kernel.sync(file)
    }
    fn close(&self, file: OwnedFd) -> Result<(), Errno> {
        self.before("close")?;
        Kernel.close(file)
    }
    fn exchange(&self, folder: BorrowedFd<'_>, one: &OsStr, other: &OsStr) -> Result<(), Errno> {
        self.before("exchange")?;
        if self.abilities != Abilities::All {
            return Err(Errno::INVAL);
        }
        Kernel.exchange(folder, one, other)
    }
    fn rename_to_free(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        self.before("rename_to_free")?;
        if self.abilities == Abilities::PlainRenameOnly {
            return Err(Errno::INVAL);
        }
        Kernel.rename_to_free(folder, from, to)
    }
    fn rename(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        self.before("rename")?;
        Kernel.rename(folder, from, to)
    }
    fn link(&self, folder: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        self.before("link")?;
        Kernel.link(folder, from, to)
    }
    fn unlink(&self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
        self.before("unlink")?;
        Kernel.unlink(folder, name)
    }
}

fn save(kind: &str, file: &Path) {
    match kind {
        "in place" => fs::write(file, THEIRS).unwrap(),
        "by rename" => {
            let temp = file.with_file_name("editor~");
            fs::write(&temp, THEIRS).unwrap();
            fs::rename(temp, file).unwrap();
        }
        _ => {
            let _ = fs::remove_file(file);
        }
    }
}

const ABILITIES: [Abilities; 3] = [Abilities::All, Abilities::NoExchange, Abilities::PlainRenameOnly];

fn replace(desk: &Desk, seam: &Seam, what: &Replacement<'_>) -> Result<ReplaceOutcome, DocumentError> {
    Documents::with_calls(&desk.root, &desk.lock, seam).unwrap().replace(&path("HANDOFF.md"), what)
}

mod racing;
mod refusing;
mod removing;
