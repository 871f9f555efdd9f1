//! What a principal may not see does not exist for it.

use loom::{Mode, Op, TreeId, ViewName};
use store::{
    AttachedWrites, Cursor, DraftEdit, DraftName, Forget, GenerationFilter, JobFilter, LeaseOwner, NewJob,
    Principal, Scope, SearchScope, StoreError, TreeFilter, read,
};

use super::both::each;
use super::generations::{answer, start};
use super::home::{OWNER, owner_text};

fn token(scope: Scope) -> Principal {
    Principal::Token { name: "t".into(), scope }
}

fn reads(tree: TreeId, with_context: bool) -> Principal {
    token(Scope::ReadTree { tree, with_context })
}

#[test]
fn another_trees_rows_are_not_there() {
    each(|home| async move {
        let mine = home.create(Mode::Buffer, "mine").await;
        let theirs = home.create(Mode::Buffer, "theirs").await;
        mine.append("visible words").await;
        let generation = start(&theirs, "secret words").await;
        let node = answer(&theirs, &generation, "answered words").await;
        home.store
            .enqueue(
                OWNER,
                NewJob {
                    kind: "k".into(),
                    key: None,
                    tree: Some(theirs.tree),
                    payload: String::new(),
                    due: loom::Millis(0),
                },
            )
            .await
            .unwrap();
        let who = &reads(mine.tree, true);
        let store = &home.store;
        assert!(matches!(
            read(store, who, theirs.tree, |rows| rows.tree()).await,
            Err(StoreError::NotFound("tree"))
        ));
        assert!(matches!(store.tree(who, theirs.tree).await, Err(StoreError::NotFound("tree"))));
        assert!(matches!(store.resolve(who, "theirs").await, Err(StoreError::NotFound("tree"))));
        assert!(matches!(
            store.resolve_node(who, None, &node.to_string()).await,
            Err(StoreError::NotFound("node"))
        ));
        let listed = store.trees(who, TreeFilter::All, None, 9_999).await.unwrap();
        assert_eq!(listed.iter().map(|entry| entry.id).collect::<Vec<_>>(), [mine.tree]);
        let hits = store.search(who, "words", SearchScope::All, 10).await.unwrap();
        assert_eq!(hits.hits.iter().map(|hit| hit.tree).collect::<Vec<_>>(), [mine.tree]);
        let there = store.search(who, "words", SearchScope::Tree(theirs.tree), 10).await;
        assert!(matches!(there, Err(StoreError::NotFound("tree"))));
        assert!(matches!(store.response(who, node).await, Err(StoreError::NotFound(_))));
        assert!(matches!(store.manifest(who, generation.row.manifest).await, Err(StoreError::NotFound(_))));
        assert!(matches!(store.body(who, generation.bodies[0].digest).await, Err(StoreError::NotFound(_))));
        assert!(store.generations(who, GenerationFilter::default(), None, 999).await.unwrap().is_empty());
        assert!(store.spent(who, loom::Millis(0), None, 10).await.unwrap().is_empty());
        assert!(store.jobs(who, JobFilter::All, None, 99).await.unwrap().is_empty());
        let events = store.events_after(who, Cursor(0), 1000).await.unwrap();
        assert!(!events.events.is_empty() && events.events.iter().all(|event| event.tree == mine.tree));
        // The control: the owner sees all of it.
        assert_eq!(store.search(OWNER, "words", SearchScope::All, 10).await.unwrap().hits.len(), 2);
        store.response(OWNER, node).await.unwrap();
        store.manifest(OWNER, generation.row.manifest).await.unwrap();
        store.body(OWNER, generation.bodies[0].digest).await.unwrap();
    });
}

#[test]
fn a_reading_token_changes_nothing_and_sees_no_context_unless_made_so() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let generation = start(&page, "sent").await;
        let node = answer(&page, &generation, "answer").await;
        let who = &reads(page.tree, false);
        let store = &home.store;
        read(store, who, page.tree, |rows| rows.tree()).await.unwrap();
        assert!(matches!(store.response(who, node).await, Err(StoreError::NotFound(_))));
        assert!(matches!(store.manifest(who, generation.row.manifest).await, Err(StoreError::NotFound(_))));
        assert!(matches!(store.body(who, generation.bodies[0].digest).await, Err(StoreError::NotFound(_))));
        let with = &reads(page.tree, true);
        store.response(with, node).await.unwrap();
        store.manifest(with, generation.row.manifest).await.unwrap();
        let written = page.change_as(who, Op::Append(owner_text("x")), AttachedWrites::nothing()).await;
        assert!(matches!(written, Err(StoreError::Denied(_))));
        let name = DraftName { tree: page.tree, view: ViewName::default(), slot: loom::Slot::Buffer };
        let typed = store.edit_draft(who, name, None, DraftEdit::Set { base: None, text: "x".into() }).await;
        assert!(matches!(typed, Err(StoreError::Denied(_))));
        let forgotten = store.forget(who, &Forget::Text("sent".into()), loom::Millis(0)).await;
        assert!(matches!(forgotten, Err(StoreError::Denied(_))));
        assert!(matches!(store.purge(who, page.tree, loom::Millis(0)).await, Err(StoreError::Denied(_))));
        assert!(matches!(store.check(who).await, Err(StoreError::Denied(_))));
        assert!(matches!(store.renew_identity(who).await, Err(StoreError::Denied(_))));
    });
}

#[test]
fn a_chat_sessions_token_has_its_own_trees_and_its_own_lease() {
    each(|home| async move {
        let (one, two) = (&token(Scope::ChatSession("one".into())), &token(Scope::ChatSession("two".into())));
        let with = AttachedWrites { session: Some("two".into()), ..AttachedWrites::default() };
        // What it says about the session counts for nothing.
        let page = home.create_with(one, Mode::Buffer, "same title", with).await.unwrap();
        let other =
            home.create_with(two, Mode::Buffer, "same title", AttachedWrites::nothing()).await.unwrap();
        assert_eq!(home.store.resolve(one, "same title").await.unwrap(), page.tree);
        assert_eq!(home.store.resolve(two, "same title").await.unwrap(), other.tree);
        page.change_as(one, Op::Append(owner_text("words")), AttachedWrites::nothing()).await.unwrap();
        let foreign = page.change_as(two, Op::Append(owner_text("words")), AttachedWrites::nothing()).await;
        assert!(matches!(foreign, Err(StoreError::NotFound("tree"))));
        assert!(home.store.search(two, "words", SearchScope::All, 9).await.unwrap().hits.is_empty());
        let ttl = std::time::Duration::from_secs(9);
        let holder = LeaseOwner::new("x");
        home.store.acquire_lease(one, "session/one", &holder, ttl).await.unwrap();
        let foreign = home.store.acquire_lease(two, "session/one", &holder, ttl).await;
        assert!(matches!(foreign, Err(StoreError::NotFound("lease"))));
        assert!(home.store.lease(two, "session/one").await.unwrap().is_none());
        assert!(home.store.lease(OWNER, "session/one").await.unwrap().is_some());
        let job =
            NewJob { kind: "k".into(), key: None, tree: None, payload: String::new(), due: loom::Millis(0) };
        assert!(matches!(home.store.enqueue(one, job).await, Err(StoreError::Denied(_))));
        assert_eq!(home.store.tree(OWNER, page.tree).await.unwrap().session.as_deref(), Some("one"));
    });
}

#[test]
fn blobs_are_shown_through_nodes_one_may_read() {
    each(|home| async move {
        let page = home.create(Mode::Dialogue, "").await;
        let other = home.create(Mode::Dialogue, "").await;
        let blob = loom::Digest::of(b"picture");
        let mut text = loom::plan::NewText::owner("see", Some(loom::Role::User));
        text.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        page.change(Op::Append(text)).await;
        assert!(home.store.shows_blob(&reads(page.tree, false), blob).await.unwrap());
        assert!(!home.store.shows_blob(&reads(other.tree, true), blob).await.unwrap());
        assert!(!home.store.shows_blob(OWNER, loom::Digest::of(b"other")).await.unwrap());
    });
}
