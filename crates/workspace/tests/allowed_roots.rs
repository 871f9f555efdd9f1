//! Where a tool's path may lead: cases F1–F8 and X28 through the public face.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use drawloom_workspace::{
    AllowedRoots, Documents, Expected, FileError, FileProblem, FurtherRoot, PathProblem, ReadRules,
    RelativePath, Replacement, Root, RootAccess, RootLookupError, Stamp, StoreGuard, Unmerged, WorkspaceLock,
};
use loom::Digest;

fn workspace() -> (tempfile::TempDir, StoreGuard, Root) {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("w")).unwrap();
    fs::create_dir(temp.path().join("w-other")).unwrap();
    fs::write(temp.path().join("w/test.txt"), "inside").unwrap();
    fs::write(temp.path().join("w-other/secret"), "outside").unwrap();
    let guard = StoreGuard::new();
    let root = Root::open(&temp.path().join("w"), &guard).unwrap();
    (temp, guard, root)
}

fn refusal(reach: &AllowedRoots, path: &str) -> PathProblem {
    match reach.place(path) {
        Err(RootLookupError::Path(problem)) => problem,
        other => panic!("{path:?}: {other:?}"),
    }
}

#[test]
fn f1_a_name_resolves_in_the_workspace() {
    let (temp, _guard, root) = workspace();
    let reach = AllowedRoots::within(vec![root]);
    let absolute = temp.path().join("w/test.txt");
    for text in ["test.txt", "./test.txt", absolute.to_str().unwrap()] {
        let place = reach.place(text).unwrap();
        let read = place.root.read_text(&place.path, &ReadRules::at_most(100)).unwrap();
        assert_eq!(read, "inside");
    }
}

#[test]
fn f2_f3_f4_f5_f8_x28_are_refused_by_name() {
    let (temp, _guard, root) = workspace();
    let reach = AllowedRoots::within(vec![root]);
    let sibling = temp.path().join("w-other/secret");
    for text in ["../secret.txt", "/etc/passwd", "../w-other/secret", sibling.to_str().unwrap()] {
        assert_eq!(refusal(&reach, text), PathProblem::Outside);
    }
    assert_eq!(refusal(&reach, ""), PathProblem::Empty);
    assert_eq!(refusal(&reach, "   "), PathProblem::Empty);
    assert_eq!(refusal(&reach, "test\0.txt"), PathProblem::InvalidCharacters);
    assert_eq!(refusal(&reach, "~/secret.txt"), PathProblem::Home);
}

#[test]
fn f6_without_the_restriction_an_absolute_path_resolves() {
    let (temp, guard, root) = workspace();
    let reach = AllowedRoots::within(vec![root, FurtherRoot::everything().open(&guard, &[]).unwrap()]);
    let outside = temp.path().join("w-other/secret");
    let place = reach.place(outside.to_str().unwrap()).unwrap();
    assert_eq!(place.root.path(), Path::new("/"));
    assert_eq!(place.root.read_text(&place.path, &ReadRules::at_most(100)).unwrap(), "outside");
    // The store stays closed even then.
    guard.protect(&outside).unwrap();
    assert!(place.root.read_text(&place.path, &ReadRules::at_most(100)).is_err());
}

#[test]
fn f7_a_restriction_without_a_workspace_is_not_configured() {
    let reach = AllowedRoots::within(Vec::new());
    for text in ["test.txt", "/etc/passwd"] {
        let error = reach.place(text).unwrap_err();
        assert!(matches!(error, RootLookupError::NotConfigured));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
    }
}

#[test]
fn a_further_root_is_reached_by_its_absolute_path() {
    let (temp, guard, root) = workspace();
    let other = Root::open(&temp.path().join("w-other"), &guard).unwrap();
    let reach = AllowedRoots::within(vec![root, other]);
    let place = reach.place(temp.path().join("w-other/secret").to_str().unwrap()).unwrap();
    assert_eq!(place.root.read_text(&place.path, &ReadRules::at_most(100)).unwrap(), "outside");
}

/// What changes something in a root, beside documents.
type Change = fn(&Root, &Root) -> Result<(), FileError>;

#[test]
fn nothing_changes_in_a_root_that_is_open_for_reading_alone() {
    let at = |path: &str| RelativePath::parse(path).unwrap();
    let open = |access| {
        let (temp, guard, workspace) = workspace();
        let further = Root::open(&temp.path().join("w-other"), &guard).unwrap().as_further(access);
        fs::create_dir(temp.path().join("w-other/empty")).unwrap();
        (temp, workspace, further)
    };
    let changes: [(&str, Change); 7] = [
        ("new", |further, _| further.create_file(&RelativePath::parse("new").unwrap()).map(drop)),
        ("d", |further, _| further.create_folder(&RelativePath::parse("d").unwrap())),
        ("empty", |further, _| further.remove_folder(&RelativePath::parse("empty").unwrap())),
        ("secret", |further, _| further.set_mode(&RelativePath::parse("secret").unwrap(), 0o600)),
        ("link", |further, _| further.create_link(&RelativePath::parse("link").unwrap(), b"secret")),
        ("secret", |further, workspace| {
            let (from, to) = (RelativePath::parse("secret").unwrap(), RelativePath::parse("taken").unwrap());
            further.rename(&from, workspace, &to)
        }),
        ("brought", |further, workspace| {
            let (from, to) =
                (RelativePath::parse("test.txt").unwrap(), RelativePath::parse("brought").unwrap());
            workspace.rename(&from, further, &to)
        }),
    ];
    for (name, change) in changes {
        let (temp, workspace, further) = open(RootAccess::ReadOnly);
        let error = change(&further, &workspace).unwrap_err();
        assert!(matches!(error.problem, FileProblem::ReadOnlyRoot), "{name}: {error}");
        // It says which root.
        assert_eq!(error.path, temp.path().canonicalize().unwrap().join("w-other").join(name));
        assert!(temp.path().join("w/test.txt").exists() && temp.path().join("w-other/secret").exists());
        // The control: the same where it may be written.
        let (_temp, workspace, further) = open(RootAccess::ReadWrite);
        change(&further, &workspace).unwrap();
    }
    for (access, is_refused) in [(RootAccess::ReadOnly, true), (RootAccess::ReadWrite, false)] {
        let (temp, _workspace, further) = open(access);
        let lock = WorkspaceLock::acquire(&temp.path().join("locks"), further.id(), Duration::ZERO).unwrap();
        let documents = Documents::new(&further, &lock).unwrap();
        let stamp = || Stamp::new("1").unwrap();
        let replacement = Replacement {
            text: b"other",
            expected: Expected::Absent,
            stamp: stamp(),
            unmerged: Unmerged::Beside,
            mode: None,
        };
        let replaced = documents.replace(&at("new"), &replacement);
        assert_eq!(replaced.is_err(), is_refused, "{replaced:?}");
        let removed = documents.remove(&at("secret"), Digest::of(b"outside"), &stamp());
        assert_eq!(removed.is_err(), is_refused, "{removed:?}");
        assert_eq!(temp.path().join("w-other/secret").exists(), is_refused);
    }
}

#[test]
fn no_link_leads_from_one_root_into_another() {
    let (temp, guard, root) = workspace();
    let other = Root::open(&temp.path().join("w-other"), &guard).unwrap().as_further(RootAccess::ReadOnly);
    let outside = temp.path().canonicalize().unwrap().join("w-other/secret");
    symlink(&outside, temp.path().join("w/absolute")).unwrap();
    symlink("../w-other/secret", temp.path().join("w/relative")).unwrap();
    let reach = AllowedRoots::within(vec![root, other]);
    for link in ["absolute", "relative"] {
        let place = reach.place(link).unwrap();
        let read = place.root.read(&place.path, &ReadRules::at_most(100).follow_links());
        assert!(matches!(read.unwrap_err().problem, FileProblem::Outside), "{link}");
    }
    // The control: the file itself is read by its own name.
    let place = reach.place(outside.to_str().unwrap()).unwrap();
    assert!(place.root.read(&place.path, &ReadRules::at_most(100)).is_ok());
}
