//! Calls of tools: started once, ended by whoever has them, taken over with a number that refuses the one before.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use loom::{Digest, Millis, Mode, Op, TreeReader};
use store::{
    AcceptedInventory, AttachedWrites, CallEnd, CallId, ChangeStanding, Claim, Fence, FileChangeId,
    FileState, Forget, KeptFiles, LeaseOwner, NewCall, NewFileChange, NewFileChanges, Principal, Scope,
    StoreError, WorkspaceRecord, read,
};

use super::both::each;
use super::home::{OWNER, owner_text};

#[test]
fn a_call_is_started_once_and_ended_by_its_owner_alone() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let applied =
            page.change_as(OWNER, Op::Append(owner_text("calls")), AttachedWrites::default()).await.unwrap();
        let answer = applied.nodes[0].0;
        let store = &page.home.store;
        let claim = Claim { owner: LeaseOwner::new("one"), fence: Fence(1) };
        let call =
            |number| NewCall { id: CallId { answer, number }, claim: claim.clone(), guards: Vec::new() };
        for number in [0, 2] {
            store.start_call(OWNER, page.tree, call(number)).await.unwrap();
        }
        let again = store.start_call(OWNER, page.tree, call(2)).await;
        assert!(matches!(again, Err(StoreError::Exists("call"))), "{again:?}");
        let started = read(store, OWNER, page.tree, move |rows: &dyn TreeReader| rows.started_calls(answer));
        assert_eq!(started.await.unwrap(), [0, 2]);
        let running = store.running_calls(OWNER, None, 9).await.unwrap();
        assert_eq!(running.iter().map(|call| call.id.number).collect::<Vec<_>>(), [0, 2]);
        let behind = store.running_calls(OWNER, Some(running[0].id), 9).await.unwrap();
        assert_eq!(behind, running[1..]);
        let taken = store.take_over_call(OWNER, running[0].clone(), &LeaseOwner::new("two")).await.unwrap();
        let end = |claim| AttachedWrites {
            calls: vec![CallEnd { id: running[0].id, claim }],
            ..AttachedWrites::default()
        };
        let refused = page.change_as(OWNER, Op::Append(owner_text("late")), end(claim.clone())).await;
        assert!(matches!(refused, Err(StoreError::Fenced { .. })), "{refused:?}");
        page.change_as(OWNER, Op::Append(owner_text("result")), end(taken)).await.unwrap();
        assert_eq!(store.running_calls(OWNER, None, 9).await.unwrap(), running[1..]);
    });
}

#[test]
fn what_a_call_changes_in_files_is_kept_while_it_runs_and_goes_with_its_answer() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let applied =
            page.change_as(OWNER, Op::Append(owner_text("calls")), AttachedWrites::default()).await.unwrap();
        let answer = applied.nodes[0].0;
        let store = &page.home.store;
        let claim = Claim { owner: LeaseOwner::new("one"), fence: Fence(1) };
        let call = CallId { answer, number: 3 };
        let change = |paths: &[&str], claim: &Claim| {
            let of = |path: &&str| NewFileChange {
                root: "/w".into(),
                path: OsStr::from_bytes(path.as_bytes()).into(),
                before: FileState::Absent,
                after: FileState::File { mode: Some(0o644), blob: Digest::of(path.as_bytes()) },
                is_outside: *path == "b",
            };
            let changes = paths.iter().map(of).collect();
            NewFileChanges {
                call,
                claim: Some(claim.clone()),
                guards: Vec::new(),
                changes,
                accepted: Vec::new(),
            }
        };
        let early = store.keep_file_changes(OWNER, page.tree, change(&["a"], &claim)).await;
        assert!(matches!(early, Err(StoreError::Fenced { .. })), "it is not started: {early:?}");
        let new = NewCall { id: call, claim: claim.clone(), guards: Vec::new() };
        store.start_call(OWNER, page.tree, new).await.unwrap();
        let other = Claim { fence: Fence(2), ..claim.clone() };
        let foreign = store.keep_file_changes(OWNER, page.tree, change(&["a"], &other)).await;
        assert!(matches!(foreign, Err(StoreError::Fenced { .. })), "{foreign:?}");
        let listed = |path: &str, trusted| WorkspaceRecord {
            path: path.into(),
            device: 1,
            inode: 2,
            trusted,
            inventory: "old".to_owned(),
            at: Millis(3),
        };
        let mut accepted = Vec::new();
        for (path, trusted) in [("/trusted", true), ("/untrusted", false)] {
            store.keep_workspace(OWNER, listed(path, trusted)).await.unwrap();
            let (before, after) = ("old".to_owned(), "new".to_owned());
            accepted.push(AcceptedInventory { workspace: path.into(), before, after });
        }
        let mut ids = Vec::new();
        for paths in [&["a", "b"][..], &["a"]] {
            let changes = NewFileChanges { accepted: accepted.clone(), ..change(paths, &claim) };
            ids.extend(store.keep_file_changes(OWNER, page.tree, changes).await.unwrap());
        }
        let listed = store.workspaces(OWNER, None, 9).await.unwrap();
        let listed: Vec<&str> = listed.iter().map(|record| record.inventory.as_str()).collect();
        assert_eq!(listed, ["new", "old"], "what is accepted counts where the workspace is trusted");
        assert_eq!(ids.iter().map(|id| id.number).collect::<Vec<_>>(), [0, 1, 2]);
        let kept = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();
        assert_eq!(kept.iter().map(|change| change.id).collect::<Vec<_>>(), ids);
        let [a, b] = ["a", "b"].map(|name| Digest::of(name.as_bytes()));
        assert!(store.knows_outside_files(OWNER).await.unwrap());
        assert_eq!(store.outside_files(OWNER, vec![a, b]).await.unwrap(), [b]);
        let many = (100..200u8).map(|number| Digest::of(&[number])).chain([b]).collect();
        assert_eq!(store.outside_files(OWNER, many).await.unwrap(), [b]);
        assert_eq!((kept[1].path.to_str(), kept[1].before), (Some("b"), FileState::Absent));
        assert_eq!(store.file_changes(OWNER, page.tree, Some(ids[0]), 1).await.unwrap(), kept[1..2]);
        let blobs = store.blobs(OWNER, None, 9).await.unwrap();
        assert!(blobs.contains(&Digest::of(b"a")) && blobs.contains(&Digest::of(b"b")), "{blobs:?}");
        store.take_back_file_changes(OWNER, page.tree, vec![ids[1]]).await.unwrap();
        let back: Vec<_> = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();
        let standings = |changes: &[store::FileChange]| -> Vec<_> {
            changes.iter().map(|change| change.standing).collect()
        };
        let (made, taken) = (ChangeStanding::Made, ChangeStanding::TakenBack);
        assert_eq!(standings(&back), [made, taken, made]);

        // A giving-back names what it gave back: that, and nothing else, stands again.
        let giving = change(&["a"], &claim).changes;
        let redone = store.keep_giving_back(OWNER, page.tree, giving).await.unwrap();
        assert_eq!(redone[0], FileChangeId { call, number: 3 });
        store.take_back_file_changes(OWNER, page.tree, vec![ids[2]]).await.unwrap();
        let changes = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();
        assert_eq!(standings(&changes), [made, taken, taken, ChangeStanding::GivingBack]);
        let [given] = store.givings_back(OWNER, page.tree, 9).await.unwrap().try_into().ok().unwrap();
        assert_eq!((given.at, given.redone, given.count), (changes[3].at, None, 1));
        assert_eq!(given.paths, [(changes[3].root.clone(), "a".into())]);
        assert_eq!(given.answers, [answer]);
        store.redo_file_changes(OWNER, page.tree, redone.clone()).await.unwrap();
        let changes = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();
        assert_eq!(standings(&changes), [made, taken, made, ChangeStanding::Redone]);

        // What cannot be given back stands, also once that was said.
        store.leave_file_changes(OWNER, page.tree, vec![ids[0], ids[1]]).await.unwrap();
        let changes = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();
        assert_eq!(standings(&changes)[..2], [ChangeStanding::Left, taken]);
        assert!(changes[0].standing.stands() && !changes[1].standing.stands());
        let given = store.givings_back(OWNER, page.tree, 9).await.unwrap();
        assert!(
            given[0].redone.is_some_and(|at| at >= given[0].at) && given[0].answers.is_empty(),
            "{given:?}"
        );
        assert!(store.redo_file_changes(OWNER, page.tree, redone).await.is_err(), "only once");
        let what = Forget::Node { tree: page.tree, node: answer };
        store.forget(OWNER, &what, Millis(1)).await.unwrap();
        assert_eq!(store.file_changes(OWNER, page.tree, None, 9).await.unwrap(), []);
        assert_eq!(store.blobs(OWNER, None, 9).await.unwrap(), []);
        assert_eq!(
            store.outside_files(OWNER, vec![a, b]).await.unwrap(),
            [b],
            "the file still is what it was"
        );
        let chat = Principal::Token { name: "chat".into(), scope: Scope::ChatSession("one".into()) };
        assert!(store.accept_files(&chat, vec![b]).await.is_err());
        assert!(store.outside_files(&chat, vec![b]).await.is_err());
        assert_eq!(store.accept_files(OWNER, vec![a, b]).await.unwrap(), 1);
        assert!(!store.knows_outside_files(OWNER).await.unwrap());
        assert!(store.keep_outside_files(&chat, vec![b]).await.is_err());
        store.keep_outside_files(OWNER, vec![b, b]).await.unwrap();
        assert_eq!(store.outside_files(OWNER, vec![a, b]).await.unwrap(), [b]);
    });
}

#[test]
fn bytes_that_only_expired_changes_keep_are_dropped_and_the_changes_stay() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let store = &page.home.store;
        let mut changed = Vec::new();
        // What each answer changed: beneath which root, from what to what.
        for (root, before, after) in [("/w", "a", "b"), ("/w", "b", "c"), ("/v", "c", "d")] {
            let op = Op::Append(owner_text("calls"));
            let applied = page.change_as(OWNER, op, AttachedWrites::default()).await.unwrap();
            let call = CallId { answer: applied.nodes[0].0, number: 0 };
            let claim = Claim { owner: LeaseOwner::new("one"), fence: Fence(1) };
            let new = NewCall { id: call, claim: claim.clone(), guards: Vec::new() };
            store.start_call(OWNER, page.tree, new).await.unwrap();
            let file = |text: &str| FileState::File { mode: None, blob: Digest::of(text.as_bytes()) };
            let change = NewFileChange {
                root: root.into(),
                path: "f".into(),
                before: file(before),
                after: file(after),
                is_outside: false,
            };
            let changes = vec![change];
            let new = NewFileChanges {
                call,
                claim: Some(claim),
                guards: Vec::new(),
                changes,
                accepted: Vec::new(),
            };
            store.keep_file_changes(OWNER, page.tree, new).await.unwrap();
            changed.push(call);
            store.advance_clock(Duration::from_secs(60));
        }
        let kept = store.kept_files(OWNER).await.unwrap();
        let names = |kept: &KeptFiles| -> Vec<(String, Digest)> {
            kept.files.iter().map(|file| (kept.roots[file.root].display().to_string(), file.blob)).collect()
        };
        let of = |root: &str, text: &str| (root.to_owned(), Digest::of(text.as_bytes()));
        let all = [of("/v", "c"), of("/v", "d"), of("/w", "b"), of("/w", "c"), of("/w", "a")];
        assert_eq!(names(&kept), all);
        let before = store.file_changes(OWNER, page.tree, None, 9).await.unwrap();

        // The oldest change of one root goes: what the next one keeps stays.
        let oldest = kept.files.last().unwrap().at;
        let until = BTreeMap::from([("/w".into(), oldest)]);
        assert_eq!(store.expire_files(OWNER, until, None).await.unwrap(), None);
        let shown = async |text: &str| store.shows_blob(OWNER, Digest::of(text.as_bytes())).await.unwrap();
        assert_eq!([shown("a").await, shown("b").await, shown("c").await], [false, true, true]);
        let dropped = store.unfinished_removal(OWNER).await.unwrap();
        assert!(!dropped.has_to_scrub());
        // Each that some answer no longer keeps; whether another one does is asked when its file is removed.
        let mut blobs: Vec<_> = dropped.blobs.iter().map(|dropped| dropped.blob).collect();
        let mut expected = vec![Digest::of(b"a"), Digest::of(b"b")];
        blobs.sort();
        expected.sort();
        assert_eq!(blobs, expected);
        assert_eq!(store.file_changes(OWNER, page.tree, None, 9).await.unwrap(), before);

        // Whatever a root has is dropped; the same bytes beneath another root stay.
        let until = BTreeMap::from([("/w".into(), kept.now)]);
        store.expire_files(OWNER, until, None).await.unwrap();
        assert_eq!([shown("b").await, shown("c").await, shown("d").await], [false, true, true]);
        assert_eq!(names(&store.kept_files(OWNER).await.unwrap()), all[..2]);
    });
}

#[test]
fn who_looks_for_expired_files_does_so_once_a_day() {
    each(|home| async move {
        let store = &home.store;
        let day = Millis(24 * 60 * 60 * 1_000);
        let due = async || store.begin_file_expiry(OWNER, day).await.unwrap();
        assert!(due().await);
        assert!(!due().await);
        store.advance_clock(Duration::from_secs(23 * 60 * 60));
        assert!(!due().await);
        store.advance_clock(Duration::from_secs(60 * 60));
        assert!(due().await);
    });
}
