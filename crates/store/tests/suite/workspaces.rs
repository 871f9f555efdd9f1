//! Answers about workspaces: kept by path as bytes, replaced by later ones, the owner's alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use loom::Millis;
use store::{Principal, Scope, StoreError, WorkspaceRecord};

use super::both::each;
use super::home::OWNER;

fn record(path: &[u8], trusted: bool) -> WorkspaceRecord {
    WorkspaceRecord {
        path: PathBuf::from(OsStr::from_bytes(path)),
        device: u64::MAX,
        inode: 1 << 63,
        trusted,
        inventory: "{\"items\":[]}".to_owned(),
        at: Millis(7),
    }
}

#[test]
fn answers_are_kept_by_path_and_the_last_one_counts() {
    each(|home| async move {
        for answer in [record(b"/w/b", true), record(b"/w/\xff", false), record(b"/w/a", true)] {
            home.store.keep_workspace(OWNER, answer).await.unwrap();
        }
        let later = WorkspaceRecord { inode: 3, at: Millis(9), ..record(b"/w/b", false) };
        home.store.keep_workspace(OWNER, later.clone()).await.unwrap();
        let expected = [record(b"/w/a", true), later, record(b"/w/\xff", false)];
        assert_eq!(home.store.workspaces(OWNER, None, 99).await.unwrap(), expected);
    });
}

#[test]
fn an_answer_is_found_by_the_path_or_the_folder_it_is_about() {
    each(|home| async move {
        let at = |path: &[u8], inode| WorkspaceRecord { inode, ..record(path, true) };
        let all = [at(b"/a", 1), at(b"/b\xff", 2), at(b"/c", 1), at(b"/d", 3)];
        for answer in all.clone() {
            home.store.keep_workspace(OWNER, answer).await.unwrap();
        }
        let store = &home.store;
        assert_eq!(store.workspace(OWNER, all[1].path.clone()).await.unwrap().as_ref(), Some(&all[1]));
        assert_eq!(store.workspace(OWNER, "/b".into()).await.unwrap(), None);
        let about = |path: &str, device, inode| store.workspaces_about(OWNER, path.into(), device, inode);
        assert_eq!(about("/d", u64::MAX, 1).await.unwrap(), [all[0].clone(), all[2].clone(), all[3].clone()]);
        assert_eq!(about("/c", 1, 1).await.unwrap(), all[2..3]);
    });
}

#[test]
fn s4_a_workspace_is_distrusted_by_its_path_and_as_the_folder_that_stood_there() {
    let at = |path: &[u8], inode, trusted| WorkspaceRecord { inode, ..record(path, trusted) };
    each(move |home| async move {
        for (answers, name, expected) in [
            (vec![at(b"/a", 1, true)], "/a", false),
            (vec![at(b"/b", 2, false)], "/b", true),
            (vec![], "/c", false),
            (vec![at(b"/w\xe9s", 4, false)], "/w\u{fffd}s", true),
            (vec![at(b"/d", 5, true), at(b"/moved", 5, false)], "/d", true),
            (vec![at(b"/e", 6, true), at(b"/other", 7, false)], "/e", false),
        ] {
            for answer in answers {
                home.store.keep_workspace(OWNER, answer).await.unwrap();
            }
            assert_eq!(home.store.distrusts_workspace(OWNER, name).await.unwrap(), expected, "{name}");
        }
    });
}

#[test]
fn s4_of_two_answers_about_one_folder_the_later_counts_and_at_once_the_no() {
    let at = |path: &[u8], at, trusted| WorkspaceRecord { inode: 1, at: Millis(at), ..record(path, trusted) };
    for (no, yes, expected) in [(1, 2, false), (2, 1, true), (2, 2, true)] {
        each(move |home| async move {
            // An inode is given again, to what is made where another folder was removed.
            home.store.keep_workspace(OWNER, at(b"/old", no, false)).await.unwrap();
            home.store.keep_workspace(OWNER, at(b"/new", yes, true)).await.unwrap();
            assert_eq!(home.store.distrusts_workspace(OWNER, "/new").await.unwrap(), expected, "{no} {yes}");
            assert!(home.store.distrusts_workspace(OWNER, "/old").await.unwrap(), "{no} {yes}");
        });
    }
}

#[test]
fn s4_a_token_that_does_not_see_everything_neither_reads_nor_gives_an_answer() {
    each(|home| async move {
        let token = Principal::Token { name: "t".into(), scope: Scope::ChatSession("s".into()) };
        let kept = home.store.keep_workspace(&token, record(b"/w", true)).await;
        assert!(matches!(kept, Err(StoreError::Denied(_))));
        assert!(matches!(home.store.workspaces(&token, None, 99).await, Err(StoreError::Denied(_))));
        assert!(matches!(home.store.workspace(&token, "/w".into()).await, Err(StoreError::Denied(_))));
        let about = home.store.workspaces_about(&token, "/w".into(), 1, 1).await;
        assert!(matches!(about, Err(StoreError::Denied(_))));
        assert!(matches!(home.store.distrusts_workspace(&token, "/w").await, Err(StoreError::Denied(_))));
        assert!(home.store.workspaces(OWNER, None, 99).await.unwrap().is_empty());
    });
}
