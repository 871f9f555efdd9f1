//! Drafts meet by revision.

use loom::{Mode, Op, Slot, ViewName};
use store::{DraftEdit, DraftName, StaleRead, StoreError, read};

use super::both::each;
use super::home::{OWNER, Page};

fn buffer(page: &Page) -> DraftName {
    DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer }
}

fn set(text: &str) -> DraftEdit {
    DraftEdit::Set { base: None, text: text.to_owned() }
}

#[test]
fn a_draft_is_changed_by_revision_and_committed() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let store = &home.store;
        let draft = store.edit_draft(OWNER, buffer(&page), None, set("It rains")).await.unwrap();
        let splice = DraftEdit::Splice { at: 3, deleted: "rains".into(), inserted: "snows".into() };
        let next =
            store.edit_draft(OWNER, buffer(&page), Some(draft.revision), splice.clone()).await.unwrap();
        assert_eq!(next.text, "It snows");
        let stale = store.edit_draft(OWNER, buffer(&page), Some(draft.revision), splice.clone()).await;
        let Err(StoreError::Conflict(changed)) = stale else { panic!("{stale:?}") };
        assert!(
            matches!(&changed[..], [StaleRead::Draft { revision, .. }] if *revision == Some(next.revision))
        );
        let unfit = store.edit_draft(OWNER, buffer(&page), Some(next.revision), splice).await;
        assert!(matches!(unfit, Err(StoreError::Splice(_))));
        let again = store.edit_draft(OWNER, buffer(&page), None, set("x")).await;
        assert!(matches!(again, Err(StoreError::Conflict(_))));
        page.change(Op::Commit).await;
        assert_eq!(page.text().await, "It snows");
        let left = read(store, OWNER, page.tree, |rows| rows.drafts(&ViewName::default())).await.unwrap();
        assert!(left.is_empty());
        page.change(Op::Undo).await;
        let back = read(store, OWNER, page.tree, |rows| rows.draft(&ViewName::default(), Slot::Buffer)).await;
        assert_eq!(back.unwrap().unwrap().text, "It snows");
    });
}

#[test]
fn a_keystroke_ends_what_could_be_redone_and_counts() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        page.append("a").await;
        page.change(Op::Undo).await;
        let timeline = || read(&home.store, OWNER, page.tree, |rows| rows.timeline(&ViewName::default()));
        let before = timeline().await.unwrap();
        assert!(before.redo.is_some());
        home.store.edit_draft(OWNER, buffer(&page), None, set("typed")).await.unwrap();
        let after = timeline().await.unwrap();
        assert_eq!((after.redo, after.tick), (None, before.tick + 1));
    });
}

#[test]
fn a_pending_edit_starts_at_a_version_and_is_discarded_by_revision() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("old text").await;
        let slot = Slot::Edit(node.as_position());
        let name = DraftName { tree: page.tree, view: ViewName::default(), slot };
        let edit = DraftEdit::Set { base: Some(node), text: "new text".into() };
        let bare = home.store.edit_draft(OWNER, name.clone(), None, set("new text")).await;
        assert!(matches!(bare, Err(StoreError::Malformed(_))));
        let draft = home.store.edit_draft(OWNER, name.clone(), None, edit).await.unwrap();
        assert_eq!((draft.base, draft.base_text.as_str(), draft.splices.len()), (Some(node), "old text", 1));
        let stale = home.store.discard_draft(OWNER, name.clone(), draft.revision + 1).await;
        assert!(matches!(stale, Err(StoreError::Conflict(_))));
        home.store.discard_draft(OWNER, name, draft.revision).await.unwrap();
        page.change(Op::Commit).await;
        assert_eq!(page.text().await, "old text");
    });
}

#[test]
fn revisions_go_on_where_a_draft_was() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let edit = async |expected| home.store.edit_draft(OWNER, buffer(&page), expected, set("text")).await;
        let mut last = None;
        for round in 0..4 {
            let draft = edit(None).await.unwrap();
            assert!(Some(draft.revision) > last, "round {round}: {} after {last:?}", draft.revision);
            last = Some(draft.revision);
            match round {
                0 => drop(page.change(Op::Commit).await),
                1 => home.store.discard_draft(OWNER, buffer(&page), draft.revision).await.unwrap(),
                // What a commit took comes back as a draft of its own.
                2 => {
                    page.change(Op::Commit).await;
                    let back = page.change(Op::Undo).await.drafts[0].revision;
                    assert!(back > last);
                    last = back;
                    page.change(Op::Commit).await;
                }
                _ => {}
            }
        }
    });
}
