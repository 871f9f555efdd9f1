//! Where a tool's path may lead: cases F1–F8 and X28 through the public face.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]
use std::fs;
use std::io;
use std::path::Path;

use drawloom_workspace::{AllowedRoots, PathProblem, ReadRules, Root, RootLookupError, StoreGuard};

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
    let reach = AllowedRoots::unrestricted(vec![root], &guard).unwrap();
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
