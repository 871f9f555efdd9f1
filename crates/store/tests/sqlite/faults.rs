//! A fault at every write leaves all or nothing, and a full disk loses nothing.

use std::sync::Arc;

use loom::{Mode, Op, Seq, Slot, ViewName};
use store::{AttachedWrites, DraftEdit, DraftName, Faults, Forget, Options, Store, StoreError, read};

use crate::both::block_on;
use crate::home::{Home, OWNER, Page, owner_text};

/// All that can be read of a tree.
async fn dump(page: &Page) -> String {
    let rows = read(&page.home.store, OWNER, page.tree, |rows| {
        let main = ViewName::default();
        let key = loom::CellKey::Tip { view: main.clone() };
        Ok(format!(
            "{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            rows.nodes_in_order(None, usize::MAX)?,
            rows.operations(Seq(0), usize::MAX)?,
            rows.cell(&key)?,
            rows.timeline(&main)?,
            rows.drafts(&main)?
        ))
    });
    let found = page.home.store.search(OWNER, "word", store::SearchScope::All, 99).await.unwrap();
    let events = page.home.store.events_after(OWNER, store::Cursor(0), 9999).await.unwrap();
    format!("{}\n{found:?}\n{events:?}", rows.await.unwrap())
}

#[test]
fn a_fault_at_every_statement_leaves_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let options = Options { faults: faults.clone(), ..Options::default() };
    let store = Arc::new(Store::open_with(&folder.path().join("loom.db"), &options).unwrap());
    block_on(async {
        let page = Home::new(store).create(Mode::Buffer, "").await;
        let mut failed = 0;
        for at in 0.. {
            let name = DraftName { tree: page.tree, view: ViewName::default(), slot: Slot::Buffer };
            let edit = DraftEdit::Set { base: None, text: "a word typed. ".into() };
            if at == 0 || failed == 0 {
                page.home.store.edit_draft(OWNER, name, None, edit).await.unwrap();
            }
            let before = dump(&page).await;
            faults.fail_at(at);
            let done = page.change_as(OWNER, Op::Commit, AttachedWrites::nothing()).await;
            if faults.clear() {
                assert!(done.is_ok());
                assert_ne!(dump(&page).await, before);
                break;
            }
            assert!(matches!(done, Err(StoreError::Io { .. })), "{at}: {done:?}");
            assert_eq!(dump(&page).await, before, "statement {at}");
            failed += 1;
        }
        assert!(failed > 8, "{failed} statements were tried");
        assert_eq!(page.home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
        assert_eq!(page.text().await, "a word typed. ");
    });
}

#[test]
fn a_conflict_among_writes_done_together_takes_back_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&folder.path().join("loom.db")).unwrap());
    block_on(async {
        let home = Home::new(store);
        let pages = [home.create(Mode::Buffer, "a").await, home.create(Mode::Buffer, "b").await];
        // The same plan twice: the second one conflicts. Between them another tree's writes.
        let request = home.request(pages[0].tree, Op::Append(owner_text("once")));
        let ids = home.ids.clone();
        let plan = read(&home.store, OWNER, pages[0].tree, move |rows| {
            let mut slice = loom::ReadSet::default();
            loop {
                match ids.with(|entropy| loom::plan::plan(&request, &slice, entropy)).unwrap() {
                    Ok(plan) => return Ok(plan),
                    Err(loom::PlanError::Needs(needs)) => slice.load(&needs, rows)?,
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
        let plan = plan.await.unwrap();
        let apply = || home.store.apply(OWNER, pages[0].tree, plan.clone(), AttachedWrites::nothing());
        let (first, _, second) = tokio::join!(apply(), pages[1].append("beside"), apply());
        assert!(first.is_ok());
        assert!(matches!(second, Err(StoreError::Conflict(_))), "{second:?}");
        assert_eq!((pages[0].text().await, pages[1].text().await), ("once".into(), "beside".into()));
    });
}

#[test]
fn a_full_disk_refuses_the_write_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loom.db");
    let tree = block_on(async {
        let page = Home::new(Arc::new(Store::open(&path).unwrap())).create(Mode::Buffer, "").await;
        page.append("before").await;
        page.tree
    });
    let options = Options { max_pages: 120, ..Options::default() };
    block_on(async {
        let home = Home::new(Arc::new(Store::open_with(&path, &options).unwrap()));
        let page = Page { home, tree };
        let large = "x ".repeat(400_000);
        // Small writes that share a transaction with one that does not fit are done all the same.
        let with = || AttachedWrites::nothing();
        let (big, small) = tokio::join!(
            page.change_as(OWNER, Op::Append(owner_text(&large)), with()),
            page.change_as(OWNER, Op::Tag { position: root(&page).await, tag: "t".into(), on: true }, with()),
        );
        assert!(matches!(big, Err(StoreError::DiskFull)), "{big:?}");
        small.unwrap();
        assert_eq!(page.text().await, "before");
        page.append(" and after").await;
        assert_eq!(page.text().await, "before and after");
        assert_eq!(page.home.store.check(OWNER).await.unwrap(), Vec::<String>::new());
    });
}

async fn root(page: &Page) -> loom::PositionId {
    read(&page.home.store, OWNER, page.tree, |rows| Ok(rows.tree()?.root)).await.unwrap()
}

#[test]
fn a_panicking_reader_ends_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { readers: 1, ..Options::default() };
    let store = Arc::new(Store::open_with(&folder.path().join("loom.db"), &options).unwrap());
    block_on(async {
        let page = Home::new(store).create(Mode::Buffer, "").await;
        let panicked: Result<(), _> =
            read(&page.home.store, OWNER, page.tree, |_| panic!("on purpose")).await;
        assert!(matches!(panicked, Err(StoreError::Closed)));
        page.append("still there").await;
        assert_eq!(page.text().await, "still there");
    });
}

/// What quotes a node is found by its text.
#[test]
fn a_forgetting_that_failed_at_any_statement_is_gone_on_with_when_asked_again() {
    const SAID: &str = "the spare key lies under the third stone";
    let blob = loom::Digest::of(b"picture");
    block_on(async {
        for at in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let faults = Faults::default();
            let options = Options { faults: faults.clone(), ..Options::default() };
            let store = Arc::new(Store::open_with(&folder.path().join("loom.db"), &options).unwrap());
            let page = Home::new(store).create(Mode::Buffer, "").await;
            let mut pictured = owner_text(SAID);
            pictured.content.push(loom::Block::Image { blob, mime: "image/png".into() });
            let with = AttachedWrites::nothing();
            let node = page.change_as(OWNER, Op::Append(pictured), with).await.unwrap().nodes[0].0;
            // So large that each goes in a transaction of its own.
            let edited =
                |begin: &str| format!("{begin} the spare key lies under the th{}", " or so".repeat(4_000));
            let version = page.edit(node.as_position(), &edited("once")).await;
            let of_it = page.edit(node.as_position(), &edited("then")).await;
            let copy = format!("he said: {SAID}{}", " and on".repeat(6_000));
            let in_session = AttachedWrites { session: Some("s".to_owned()), ..AttachedWrites::nothing() };
            let title = text::title::title(&copy);
            let copied = page.home.create_with(OWNER, Mode::Buffer, &title, in_session).await.unwrap();
            let other = copied.append(&copy).await;
            let what = Forget::Node { tree: page.tree, node };
            let store = &page.home.store;
            faults.fail_at(at);
            let failed = store.forget(OWNER, &what, loom::Millis(1)).await.is_err();
            let is_over = faults.clear();
            if failed {
                store.forget(OWNER, &what, loom::Millis(1)).await.unwrap();
            }
            store.end_forgetting().await.unwrap();
            let versions = [node, version, of_it].map(|version| (page.tree, version));
            for (tree, gone) in versions.into_iter().chain([(copied.tree, other)]) {
                let row = read(store, OWNER, tree, move |rows| rows.node(gone)).await.unwrap().unwrap();
                assert!(row.purged, "statement {at}: {gone}");
            }
            assert_eq!(store.tree(OWNER, copied.tree).await.unwrap().title, "", "statement {at}");
            let left = store.unfinished_removal(OWNER).await.unwrap();
            assert!(!left.has_to_scrub() && left.blobs[0].blob == blob, "statement {at}: {left:?}");
            if is_over {
                assert!(!failed && at > 10, "{at} statements were tried");
                break;
            }
        }
    });
}
