//! A hostile file system and a hostile editor around one replacement.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
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

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

fn ours() -> Replacement<'static> {
    Replacement {
        text: OURS.as_bytes(),
        expected: Expected::Text(Digest::of(OLD.as_bytes())),
        stamp: Stamp::new("20261121T224200Z").unwrap(),
        unmerged: Unmerged::Beside,
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

/// How an editor saves.
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

fn replace(desk: &Desk, seam: &Seam, what: &Replacement<'_>) -> Result<Outcome, DocumentError> {
    Documents::with_calls(&desk.root, &desk.lock, seam).unwrap().replace(&path("HANDOFF.md"), what)
}

#[test]
fn a_text_that_was_seen_is_replaced() {
    for abilities in ABILITIES {
        let desk = desk();
        let outcome = replace(&desk, &Seam::new(abilities), &ours()).unwrap();
        let saved = Saved { digest: Digest::of(OURS.as_bytes()), changed: true };
        assert_eq!(outcome, Outcome::Saved(saved));
        assert_eq!(desk.texts(), [("HANDOFF.md".into(), OURS.into())]);
    }
}

#[test]
fn s18_a_person_may_save_before_any_call_and_both_texts_remain() {
    for abilities in ABILITIES {
        for kind in ["in place", "by rename"] {
            for at in 1.. {
                let desk = desk();
                let file = desk.file("HANDOFF.md");
                let mut seam = Seam::new(abilities);
                seam.saves.push((at, Box::new(move || save(kind, &file))));
                let outcome = replace(&desk, &seam, &ours()).unwrap();
                if seam.made() < at {
                    break;
                }
                let place = format!("{abilities:?}, {kind}, before call {at} ({})", seam.last());
                assert!(desk.holds(THEIRS), "theirs is lost: {place}: {:?}", desk.texts());
                assert_eq!(desk.text("HANDOFF.md"), THEIRS, "{place}");
                // Between finding our file for the last look and reading it, a save by rename is
                // a save that came after ours.
                let after_the_end = seam.made() == at && seam.last() == "load";
                if !(after_the_end && matches!(outcome, Outcome::Saved(_))) {
                    assert!(desk.holds(OURS), "ours is lost: {place}: {:?}", desk.texts());
                    assert!(matches!(outcome, Outcome::Conflict { .. }), "{place}");
                }
                assert_eq!(desk.working_files(), 0, "{place}: {:?}", desk.texts());
            }
        }
    }
}

// The control: looking first and renaming afterwards, as tools commonly do, loses the save.
#[test]
fn s18_control_check_then_rename_loses_a_save() {
    let desk = desk();
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    fs::write(desk.file("new"), OURS).unwrap();
    save("by rename", &desk.file("HANDOFF.md"));
    fs::rename(desk.file("new"), desk.file("HANDOFF.md")).unwrap();
    assert!(!desk.holds(THEIRS));
}

#[test]
fn s18_two_saves_in_a_row_leave_the_newest_in_the_file() {
    const EXCHANGE: usize = 9;
    for later in 1.. {
        let desk = desk();
        let (file, other) = (desk.file("HANDOFF.md"), desk.file("HANDOFF.md"));
        let mut seam = Seam::new(Abilities::All);
        seam.saves.push((EXCHANGE, Box::new(move || save("by rename", &file))));
        let newest = move || fs::write(&other, "an even later save").unwrap();
        seam.saves.push((EXCHANGE + later, Box::new(newest)));
        let outcome = replace(&desk, &seam, &ours()).unwrap();
        if seam.made() < EXCHANGE + later {
            assert!(later > 5, "the second save never fell into the way back");
            break;
        }
        assert!(matches!(outcome, Outcome::Conflict { .. }));
        assert_eq!(desk.text("HANDOFF.md"), "an even later save", "{later}: {:?}", desk.texts());
        assert!(desk.holds(OURS), "{later}: {:?}", desk.texts());
        let exchanges = seam.calls.borrow().iter().filter(|call| **call == "exchange").count();
        assert!(exchanges <= 3, "{later}: it did not see that the newest save was in its place");
        assert_eq!(desk.working_files(), 0);
    }
}

#[test]
fn s18_a_document_removed_meanwhile_stays_removed_and_ours_is_kept() {
    for abilities in ABILITIES {
        for at in 1.. {
            let desk = desk();
            let file = desk.file("HANDOFF.md");
            let mut seam = Seam::new(abilities);
            seam.saves.push((at, Box::new(move || save("removed", &file))));
            let outcome = replace(&desk, &seam, &ours()).unwrap();
            if seam.made() < at {
                break;
            }
            if matches!(outcome, Outcome::Conflict { .. }) {
                assert!(desk.holds(OURS), "{abilities:?} {at}: {:?}", desk.texts());
            }
            assert_eq!(desk.working_files(), 0, "{abilities:?} {at}: {:?}", desk.texts());
        }
    }
}

#[test]
fn s18_killed_before_any_call_a_start_leaves_every_text_in_its_place() {
    for abilities in ABILITIES {
        for saving in [false, true] {
            for at in 1.. {
                let desk = desk();
                let file = desk.file("HANDOFF.md");
                let mut seam = Seam::new(abilities);
                seam.crash_before = Some(at);
                if saving {
                    seam.saves.push((at, Box::new(move || save("by rename", &file))));
                }
                let outcome = replace(&desk, &seam, &ours());
                if outcome.is_ok() && seam.made() < at {
                    break;
                }
                let place = format!("{abilities:?}, saving {saving}, before call {at}");
                let stamp = Stamp::new("later").unwrap();
                desk.documents().recover(&RelativePath::root(), &stamp).unwrap();
                let now = desk.text("HANDOFF.md");
                assert!([OLD, OURS, THEIRS].contains(&now.as_str()), "{place}");
                if saving {
                    assert!(desk.holds(THEIRS), "{place}: {:?}", desk.texts());
                }
                assert!(desk.holds(OLD) || desk.holds(OURS) || desk.holds(THEIRS), "{place}");
                assert_eq!(desk.working_files(), 0, "{place}: {:?}", desk.texts());
            }
        }
    }
}

#[test]
fn s18_a_conflict_names_both_texts() {
    let desk = desk();
    fs::write(desk.file("HANDOFF.md"), THEIRS).unwrap();
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap();
    let found = Some(Digest::of(THEIRS.as_bytes()));
    assert_eq!(outcome, Outcome::Conflict { found, ours: path(KEPT), others: Vec::new() });
    assert_eq!(desk.text(KEPT), OURS);
    // The name is taken now: the next one is numbered.
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap();
    assert!(matches!(outcome, Outcome::Conflict { ours, .. } if ours == path(&format!("{KEPT}-2"))));
}

#[test]
fn s18_a_handoff_draft_goes_where_the_caller_says() {
    let desk = desk();
    let place = path(".drawloom/handoffs/x-unmerged.md");
    let what = Replacement { unmerged: Unmerged::At(place.clone()), ..ours() };
    let file = desk.file("HANDOFF.md");
    let mut seam = Seam::new(Abilities::All);
    seam.saves.push((9, Box::new(move || save("by rename", &file))));
    let outcome = replace(&desk, &seam, &what).unwrap();
    assert!(matches!(outcome, Outcome::Conflict { ours, .. } if ours == place));
    assert_eq!(desk.text(".drawloom/handoffs/x-unmerged.md"), OURS);
    assert_eq!(desk.texts(), [("HANDOFF.md".into(), THEIRS.into())]);
}

#[test]
fn s18_a_first_creation_never_replaces() {
    for abilities in ABILITIES {
        for at in 1.. {
            let desk = desk();
            fs::remove_file(desk.file("HANDOFF.md")).unwrap();
            let file = desk.file("HANDOFF.md");
            let mut seam = Seam::new(abilities);
            seam.saves.push((at, Box::new(move || save("by rename", &file))));
            let what = Replacement { expected: Expected::Absent, ..ours() };
            let outcome = replace(&desk, &seam, &what).unwrap();
            if seam.made() < at {
                assert!(matches!(outcome, Outcome::Saved(_)));
                assert_eq!(desk.texts(), [("HANDOFF.md".into(), OURS.into())]);
                break;
            }
            assert_eq!(desk.text("HANDOFF.md"), THEIRS);
            let after_the_end = seam.made() == at && seam.last() == "load";
            assert!(after_the_end || desk.holds(OURS), "{abilities:?} {at}: {:?}", desk.texts());
        }
    }
}

#[test]
fn s18_an_error_of_sync_or_close_fails_for_good() {
    let steps = [
        ("sync", 1, Errno::IO, OLD),
        ("close", 1, Errno::IO, OLD),
        ("write", 1, Errno::NOSPC, OLD),
        ("write", 1, Errno::DQUOT, OLD),
        ("dress", 1, Errno::PERM, OLD),
        ("create", 1, Errno::ROFS, OLD),
        ("exchange", 1, Errno::IO, OLD),
        // The exchange is done by then; whether it is durable nobody knows, so it is not "saved".
        ("sync", 2, Errno::IO, OURS),
    ];
    for (call, nth, errno, stands) in steps {
        let desk = desk();
        let seam = Seam::failing(call, nth, errno);
        let failed = replace(&desk, &seam, &ours()).unwrap_err();
        let DocumentError::NotSaved { on_disk, source, .. } = &failed else { panic!("{failed}") };
        assert_eq!(*on_disk, Some(Digest::of(stands.as_bytes())), "{call}");
        assert_eq!(source.raw_os_error(), Some(errno.raw_os_error()));
        assert_eq!(desk.texts(), [("HANDOFF.md".into(), stands.into())], "{call}");
    }
}

#[test]
fn a_leftover_that_cannot_be_removed_does_not_undo_a_save() {
    let desk = desk();
    let seam = Seam::failing("unlink", 1, Errno::IO);
    assert!(matches!(replace(&desk, &seam, &ours()), Ok(Outcome::Saved(_))));
    assert_eq!(desk.working_files(), 1);
    let stamp = Stamp::new("later").unwrap();
    let done = desk.documents().recover(&RelativePath::root(), &stamp).unwrap();
    assert_eq!(done, [Recovered::Kept(path("HANDOFF.md.drawloom-later"))]);
    assert_eq!(desk.text("HANDOFF.md.drawloom-later"), OLD);
}

#[test]
fn the_same_text_is_not_written_again() {
    let desk = desk();
    let what = Replacement { text: OLD.as_bytes(), ..ours() };
    let inode = fs::metadata(desk.file("HANDOFF.md")).unwrap().ino();
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &what).unwrap();
    assert!(matches!(outcome, Outcome::Saved(Saved { changed: false, .. })));
    assert_eq!(fs::metadata(desk.file("HANDOFF.md")).unwrap().ino(), inode);
}

#[test]
fn s18_mode_owner_and_attributes_stay() {
    let desk = desk();
    let file = desk.file("HANDOFF.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    // Only root may give files away; as anybody else the owner is ours before and after.
    let owner = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
        65534
    } else {
        rustix::process::getuid().as_raw()
    };
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&file, "user.origin", b"by hand", flags).unwrap();
    assert!(matches!(desk.documents().replace(&path("HANDOFF.md"), &ours()), Ok(Outcome::Saved(_))));
    let now = fs::metadata(&file).unwrap();
    assert_eq!((now.mode() & 0o7777, now.uid()), (0o640, owner));
    let mut value = [0_u8; 16];
    let size = rustix::fs::getxattr(&file, "user.origin", &mut value[..]).unwrap();
    assert_eq!(&value[..size], b"by hand");
}

#[test]
fn a_text_kept_beside_is_private() {
    let desk = desk();
    fs::write(desk.file("HANDOFF.md"), THEIRS).unwrap();
    let _ = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap();
    assert_eq!(fs::metadata(desk.file(KEPT)).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn s18_a_link_inside_the_root_is_followed_once() {
    let desk = desk();
    fs::create_dir(desk.file("dotfiles")).unwrap();
    fs::rename(desk.file("HANDOFF.md"), desk.file("dotfiles/real.md")).unwrap();
    symlink("dotfiles/real.md", desk.file("HANDOFF.md")).unwrap();
    assert!(matches!(desk.documents().replace(&path("HANDOFF.md"), &ours()), Ok(Outcome::Saved(_))));
    assert_eq!(desk.text("dotfiles/real.md"), OURS);
    assert!(fs::symlink_metadata(desk.file("HANDOFF.md")).unwrap().is_symlink());
    assert_eq!(desk.documents().read(&path("HANDOFF.md")).unwrap().unwrap().bytes, OURS.as_bytes());

    symlink("HANDOFF.md", desk.file("twice.md")).unwrap();
    symlink(desk.temp.path().join("outside.md"), desk.file("out.md")).unwrap();
    symlink("../outside.md", desk.file("up.md")).unwrap();
    symlink("absent.md", desk.file("dangling.md")).unwrap();
    fs::write(desk.temp.path().join("outside.md"), OLD).unwrap();
    for name in ["twice.md", "out.md", "up.md", "dangling.md"] {
        let refused = desk.documents().replace(&path(name), &ours());
        assert!(matches!(refused, Err(DocumentError::File(_))), "{name}: {refused:?}");
    }
    assert_eq!(fs::read_to_string(desk.temp.path().join("outside.md")).unwrap(), OLD);
}

#[test]
fn writes_4_a_planted_target_is_refused() {
    let desk = desk();
    fs::hard_link(desk.file("HANDOFF.md"), desk.file("second.md")).unwrap();
    let linked = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap_err();
    assert!(matches!(
        linked,
        DocumentError::File(FileError { problem: FileProblem::HardLinked { links: 2 }, .. })
    ));
    fs::create_dir(desk.file("folder.md")).unwrap();
    let fifo = desk.file("fifo.md");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    symlink("/tmp", desk.file(".openclaw_runtime")).unwrap();
    fs::write(desk.file("loom.db"), OLD).unwrap();
    desk.root.guard().protect(&desk.file("loom.db")).unwrap();
    for name in ["folder.md", "fifo.md", ".openclaw_runtime/CAPABILITIES.md", "loom.db"] {
        let refused = desk.documents().replace(&path(name), &ours());
        assert!(matches!(refused, Err(DocumentError::File(_))), "{name}: {refused:?}");
    }
    assert_eq!(desk.text("loom.db"), OLD);
}

#[test]
fn writes_4_a_folder_or_link_swapped_in_before_the_exchange_is_put_back() {
    for planted in ["folder", "link"] {
        let desk = desk();
        let file = desk.file("HANDOFF.md");
        let mut seam = Seam::new(Abilities::All);
        let plant = move || {
            fs::remove_file(&file).unwrap();
            if planted == "folder" { fs::create_dir(&file) } else { symlink("/etc/passwd", &file) }.unwrap();
        };
        seam.saves.push((9, Box::new(plant)));
        let outcome = replace(&desk, &seam, &ours()).unwrap();
        assert!(matches!(outcome, Outcome::Conflict { found: None, .. }));
        assert_eq!(desk.text(KEPT), OURS);
        let stands = fs::symlink_metadata(desk.file("HANDOFF.md")).unwrap();
        assert!(if planted == "folder" { stands.is_dir() } else { stands.is_symlink() });
    }
}

#[test]
fn a_start_removes_only_what_it_recognises() {
    let desk = desk();
    let of = OsStr::new("HANDOFF.md");
    let name = |purpose| WorkName::fresh(of, Digest::of(OURS.as_bytes()), purpose).unwrap();
    let (whole, torn) = (name(Purpose::New), name(Purpose::New));
    fs::write(desk.file(whole.to_str().unwrap()), OURS).unwrap();
    fs::write(desk.file(torn.to_str().unwrap()), &OURS[..3]).unwrap();
    fs::write(desk.file(".HANDOFF.md.drawloom-notes.new"), "a person's").unwrap();
    let done = desk.documents().recover(&RelativePath::root(), &Stamp::new("T").unwrap()).unwrap();
    assert_eq!(done.len(), 2);
    assert!(done.contains(&Recovered::Removed(path(whole.to_str().unwrap()))));
    assert!(done.contains(&Recovered::Kept(path("HANDOFF.md.drawloom-T"))));
    assert_eq!(desk.text("HANDOFF.md.drawloom-T"), &OURS[..3]);
    assert_eq!(desk.text(".HANDOFF.md.drawloom-notes.new"), "a person's");
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    assert_eq!(desk.documents().recover(&path("absent"), &Stamp::new("T").unwrap()).unwrap(), []);
}

#[test]
fn a_lock_of_another_workspace_opens_nothing() {
    let desk = desk();
    let other = Root::open(desk.temp.path(), &StoreGuard::new()).unwrap();
    assert!(matches!(Documents::new(&other, &desk.lock), Err(DocumentError::WrongLock)));
}

#[test]
fn a_stamp_is_fit_for_a_file_name() {
    assert!(Stamp::new("20261121T224200Z").is_some());
    for bad in ["", "../x", "a b", "10:00", &"x".repeat(41)] {
        assert_eq!(Stamp::new(bad), None);
    }
}
