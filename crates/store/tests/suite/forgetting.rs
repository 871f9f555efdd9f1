//! Forget and purge: the text is gone from every place, the hashes stay.

use loom::{CellKey, Mode, NodeId, Op, Slot, ViewName};
use store::{DraftEdit, DraftName, Forget, NewJob, Place, SearchScope, StoreError, TreeFilter, read};

use super::both::each;
use super::generations::{answer, start};
use super::home::{OWNER, Page};
use super::showing::show;

const CANARY: &str = "canary sentence nobody else writes";

/// A tree with the canary in every place there is; returns the node that says it.
async fn with_canary(page: &Page) -> NodeId {
    let node = page.append(CANARY).await;
    let generation = start(page, CANARY).await;
    answer(page, &generation, &format!("answering {CANARY}")).await;
    show(page, node, &format!("shown {CANARY}")).await;
    page.change(Op::Bookmark { position: node.as_position(), title: Some(format!("about {CANARY}")) }).await;
    page.change(Op::Tag { position: node.as_position(), tag: CANARY.into(), on: true }).await;
    page.change(Op::Rename(format!("Title {CANARY}"))).await;
    let name = DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer };
    let text = format!("typing {CANARY} here");
    page.home.store.edit_draft(OWNER, name, None, DraftEdit::Set { base: None, text }).await.unwrap();
    let job = NewJob {
        kind: "k".into(),
        key: None,
        tree: Some(page.tree),
        payload: format!("{{\"text\":\"{CANARY}\"}}"),
        due: loom::Millis(0),
    };
    page.home.store.enqueue(OWNER, job).await.unwrap();
    node
}

#[test]
fn a_forgotten_text_is_in_no_row() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let kept = page.append("kept words").await;
        let node = with_canary(&page).await;
        let before = read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        let preview = home.store.forget_preview(OWNER, &Forget::Text(CANARY.into())).await.unwrap();
        assert!(
            read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap()
                == before
        );
        let done = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(77)).await.unwrap();
        assert_eq!(preview, done.places);
        for wanted in ["Node", "Draft", "Label", "Operation", "Response", "Manifest", "Body", "Job", "Shown"]
        {
            assert!(done.places.iter().any(|place| format!("{place:?}").starts_with(wanted)), "{wanted}");
        }
        let after = read(&home.store, OWNER, page.tree, move |rows| rows.node(node)).await.unwrap().unwrap();
        assert!(after.purged && after.node.content.is_empty());
        assert_eq!(
            (after.node.content_hash, after.node.chain_hash),
            (before.node.content_hash, before.node.chain_hash)
        );
        assert_eq!((after.node.counts, after.node.term), (before.node.counts, before.node.term));
        let position =
            read(&home.store, OWNER, page.tree, move |rows| rows.position(node.as_position())).await;
        assert_eq!(position.unwrap().unwrap().own.counts, before.node.counts);
        let dump = read(&home.store, OWNER, page.tree, |rows| {
            let mut all = format!("{:?}", rows.operations(loom::Seq(0), 1000)?);
            all += &format!("{:?}", rows.nodes_in_order(None, 1000)?);
            all += &format!("{:?}", rows.drafts(&ViewName::default())?);
            all += &format!("{:?}", rows.cells(&loom::cell::CellScope::AllTags)?);
            all += &format!("{:?}", rows.cells(&loom::cell::CellScope::Bookmarks)?);
            all += &format!("{:?}", rows.cell(&CellKey::Title)?);
            all += &format!("{:?}", rows.injections(rows.tree()?.root.original(), None)?);
            Ok(all)
        });
        let dump = dump.await.unwrap();
        assert!(!dump.contains(CANARY), "{dump}");
        assert!(dump.contains("kept words") && dump.contains("typing  here"));
        assert_eq!(home.store.search(OWNER, "canary", SearchScope::All, 9).await.unwrap().hits, []);
        assert_eq!(home.store.search(OWNER, "kept", SearchScope::All, 9).await.unwrap().hits[0].node, kept);
        let records =
            read(&home.store, OWNER, page.tree, |rows| rows.operations(loom::Seq(0), 1000)).await.unwrap();
        let purged = records.iter().filter(|record| record.purged).count();
        assert_eq!(purged, 3, "bookmark, tag and title");
        assert!(records.windows(2).all(|pair| pair[1].prev == pair[0].hash));
        assert_eq!(records.last().unwrap().op.kind, loom::OpKind::Forget);
        let again = home.store.forget(OWNER, &Forget::Text(CANARY.into()), loom::Millis(78)).await.unwrap();
        assert_eq!(again.places, []);
    });
}

#[test]
fn a_forgotten_node_takes_its_response_and_what_names_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let first = page.append("yes").await;
        page.append("yes").await;
        let generation = start(&page, &first.to_string()).await;
        let node = answer(&page, &generation, "an answer of some length").await;
        let done = home
            .store
            .forget(OWNER, &Forget::Node { tree: page.tree, node: first }, loom::Millis(1))
            .await
            .unwrap();
        let manifest = generation.row.manifest;
        assert!(done.places.contains(&Place::Manifest { digest: manifest }), "it names the node");
        assert!(done.places.contains(&Place::Node { tree: page.tree, node: first }));
        assert_eq!(
            page.text().await,
            "yesan answer of some length",
            "the other node that says the same stays"
        );
        assert!(!home.store.response(OWNER, node).await.unwrap().purged);
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(2)).await.unwrap();
        let response = home.store.response(OWNER, node).await.unwrap();
        assert!(response.purged && response.bytes.is_empty() && response.metadata.is_empty());
        let nowhere = Forget::Node { tree: page.tree, node: NodeId::from_bytes([1; 16]) };
        let missing = home.store.forget(OWNER, &nowhere, loom::Millis(3)).await;
        assert!(matches!(missing, Err(StoreError::NotFound("node"))));
        assert!(home.store.forget(OWNER, &Forget::Text(String::new()), loom::Millis(3)).await.is_err());
    });
}

#[test]
fn a_pending_edit_of_a_forgotten_node_goes_with_it() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("first words").await;
        let slot = Slot::Edit(node.as_position());
        let name = DraftName { tree: page.tree, view: ViewName::default(), slot };
        let edit = DraftEdit::Set { base: Some(node), text: "other words".into() };
        home.store.edit_draft(OWNER, name, None, edit).await.unwrap();
        home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
        let left =
            read(&home.store, OWNER, page.tree, |rows| rows.drafts(&ViewName::default())).await.unwrap();
        assert!(left.is_empty());
    });
}

#[test]
fn what_names_the_picture_of_a_forgotten_node_goes_too() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let blob = loom::Digest::of(b"picture");
        let mut pictured = super::home::owner_text("see");
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        let applied = page.change_as(OWNER, Op::Append(pictured), store::With::nothing()).await.unwrap();
        let node = applied.nodes[0].0;
        let other = home.create(Mode::Buffer, "other").await;
        other.append("words that stay").await;
        let named = start(&other, &format!("[picture {}, made]", loom::content::blob_name(blob))).await;
        let plain = start(&other, "no picture at all").await;
        let done =
            home.store.forget(OWNER, &Forget::Node { tree: page.tree, node }, loom::Millis(1)).await.unwrap();
        assert_eq!(done.blobs, [blob]);
        let gone = |digest| done.places.contains(&Place::Manifest { digest });
        assert!(gone(named.row.manifest) && !gone(plain.row.manifest));
    });
}

#[test]
fn a_purged_tree_leaves_tombstones_and_nothing_else() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let other = home.create(Mode::Buffer, "other title").await;
        let node = with_canary(&page).await;
        page.change(Op::Commit).await;
        let blob = loom::Digest::of(b"picture");
        let mut pictured = super::home::owner_text("a picture");
        pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
        page.change_as(OWNER, Op::Append(pictured), store::With::nothing()).await.unwrap();
        other.append("words that stay").await;
        let mixed = start(&other, &format!("quoting {CANARY}")).await;
        assert_eq!(home.store.blobs(OWNER).await.unwrap(), [blob]);
        let done = home.store.purge(OWNER, page.tree, loom::Millis(9)).await.unwrap();
        assert_eq!(done.blobs, [blob]);
        assert!(home.store.blobs(OWNER).await.unwrap().is_empty());
        assert!(
            done.places.contains(&Place::Manifest { digest: mixed.row.manifest }),
            "a manifest of another tree"
        );
        let rows = read(&home.store, OWNER, page.tree, |rows| rows.nodes_in_order(None, 100)).await.unwrap();
        assert!(rows.len() > 3 && rows.iter().all(|row| row.node.content.is_empty()));
        assert!(rows.iter().any(|row| row.node.id == node && row.purged));
        let entry = home.store.tree(OWNER, page.tree).await.unwrap();
        assert!(entry.purged && entry.title.is_empty());
        let listed = async |filter| {
            let trees = home.store.trees(OWNER, filter).await.unwrap();
            trees.into_iter().filter(|entry| entry.id == page.tree).count()
        };
        assert_eq!((listed(TreeFilter::Current).await, listed(TreeFilter::All).await), (0, 1));
        assert!(home.store.search(OWNER, "canary", SearchScope::All, 9).await.unwrap().hits.is_empty());
        assert!(home.store.search(OWNER, "typing", SearchScope::All, 9).await.unwrap().hits.is_empty());
        assert_eq!(other.text().await, "words that stay");
        assert_eq!(home.store.tree(OWNER, other.tree).await.unwrap().title, "other title");
        page.append("begun again").await;
        assert_eq!(listed(TreeFilter::Current).await, 1, "what is written there later is found");
    });
}
