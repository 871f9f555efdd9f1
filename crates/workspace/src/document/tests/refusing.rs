//! Conflicts, failures of single calls, planted targets, and what is kept of the old file.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

#[test]
fn s18_a_conflict_names_both_texts() {
    let desk = desk();
    fs::write(desk.file("HANDOFF.md"), THEIRS).unwrap();
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap();
    let found = Some(Digest::of(THEIRS.as_bytes()));
    assert_eq!(outcome, ReplaceOutcome::Conflict { found, ours: path(KEPT), others: Vec::new() });
    assert_eq!(desk.text(KEPT), OURS);
    // The name is taken now: the next one is numbered.
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &ours()).unwrap();
    assert!(matches!(outcome, ReplaceOutcome::Conflict { ours, .. } if ours == path(&format!("{KEPT}-2"))));
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
    assert!(matches!(outcome, ReplaceOutcome::Conflict { ours, .. } if ours == place));
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
                assert!(matches!(outcome, ReplaceOutcome::Saved(_)));
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
    assert!(matches!(replace(&desk, &seam, &ours()), Ok(ReplaceOutcome::Saved(_))));
    assert_eq!(desk.working_files(), 1);
    let stamp = Stamp::new("later").unwrap();
    let done = desk.documents().recover(&RelativePath::root(), &known(), &stamp).unwrap();
    assert!(matches!(done[..], [RecoveredDocument::Removed(_)]), "its text is known: {done:?}");
    assert_eq!(desk.texts(), [("HANDOFF.md".to_owned(), OURS.to_owned())]);
}

#[test]
fn the_same_text_is_not_written_again() {
    let desk = desk();
    let what = Replacement { text: OLD.as_bytes(), ..ours() };
    let inode = fs::metadata(desk.file("HANDOFF.md")).unwrap().ino();
    let outcome = desk.documents().replace(&path("HANDOFF.md"), &what).unwrap();
    assert!(matches!(outcome, ReplaceOutcome::Saved(Saved { changed: false, .. })));
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
    assert!(matches!(desk.documents().replace(&path("HANDOFF.md"), &ours()), Ok(ReplaceOutcome::Saved(_))));
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
    assert!(matches!(desk.documents().replace(&path("HANDOFF.md"), &ours()), Ok(ReplaceOutcome::Saved(_))));
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
        assert!(matches!(outcome, ReplaceOutcome::Conflict { found: None, .. }));
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
    let planted = WorkName::fresh(of, Digest::of(THEIRS.as_bytes()), Purpose::New).unwrap();
    fs::write(desk.file(planted.to_str().unwrap()), THEIRS).unwrap();
    let done = desk.documents().recover(&RelativePath::root(), &known(), &Stamp::new("T").unwrap()).unwrap();
    assert_eq!(done.len(), 3);
    assert!(desk.holds(THEIRS), "nothing is known of it, whatever its name says");
    assert!(done.contains(&RecoveredDocument::Removed(path(whole.to_str().unwrap()))));
    assert!(done.contains(&RecoveredDocument::Kept(path("HANDOFF.md.drawloom-T"))));
    assert!(desk.holds(&OURS[..3]));
    assert_eq!(desk.text(".HANDOFF.md.drawloom-notes.new"), "a person's");
    assert_eq!(desk.text("HANDOFF.md"), OLD);
    assert_eq!(desk.documents().recover(&path("absent"), &known(), &Stamp::new("T").unwrap()).unwrap(), []);
}

#[test]
fn only_a_known_text_goes_back_to_its_name() {
    let aside = |of: &str, text: &str| {
        WorkName::fresh(OsStr::new(of), Digest::of(text.as_bytes()), Purpose::Old).unwrap()
    };
    let recovered = |name: &OsStr, text: &str| {
        let desk = desk();
        fs::remove_file(desk.file("HANDOFF.md")).unwrap();
        fs::write(desk.file(name.to_str().unwrap()), text).unwrap();
        let done =
            desk.documents().recover(&RelativePath::root(), &known(), &Stamp::new("T").unwrap()).unwrap();
        (done, desk.texts(), desk.working_files())
    };
    let back = recovered(&aside("HANDOFF.md", OLD), OLD);
    assert_eq!(back.0, [RecoveredDocument::Restored(path("HANDOFF.md"))], "control: what was put aside");
    let planted = recovered(&aside("AGENTS.md", OLD), OLD);
    assert_eq!((planted.0, planted.2), (vec![], 1), "a name of which nothing is known");
    let kept = path("HANDOFF.md.drawloom-T");
    for (of, text) in [(aside("HANDOFF.md", THEIRS), THEIRS), (aside("HANDOFF.md", OLD), THEIRS)] {
        let (done, texts, _) = recovered(&of, text);
        assert_eq!(done, [RecoveredDocument::Kept(kept.clone())], "a text of which nothing is known");
        assert_eq!(texts, [("HANDOFF.md.drawloom-T".to_owned(), text.to_owned())]);
    }
    let desk = desk();
    fs::remove_file(desk.file("HANDOFF.md")).unwrap();
    let folder = desk.file(aside("HANDOFF.md", OLD).to_str().unwrap());
    fs::create_dir(&folder).unwrap();
    let done = desk.documents().recover(&RelativePath::root(), &known(), &Stamp::new("T").unwrap()).unwrap();
    assert_eq!(done, [], "a folder");
    assert!(folder.is_dir());
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
