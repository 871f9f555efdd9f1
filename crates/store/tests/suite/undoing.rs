//! Undo over what was forgotten ends, however far back the rest is.

use loom::{CellKey, Mode, NodeId, Op, ViewName};
use store::Forget;

use super::both::each;
use super::home::{OWNER, Page};

/// Undoes the last edit of a node, of which no version is shown instead.
async fn undo_shows_nothing_else(page: &Page, node: NodeId) {
    let text = page.text().await;
    let undone = page.change(Op::Undo).await;
    assert_eq!(
        undone.skipped,
        [CellKey::Selected { view: ViewName::default(), position: node.as_position() }]
    );
    assert_eq!(page.text().await, text);
}

#[test]
fn undo_over_a_forgotten_original_ends_however_much_was_appended_since() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("one").await;
        for number in 0..59 {
            page.append(&format!(" {number}")).await;
        }
        page.edit(node.as_position(), "zwei").await;
        let what = Forget::Node { tree: page.tree, node };
        home.store.forget(OWNER, &what, loom::Millis(1)).await.unwrap();
        undo_shows_nothing_else(&page, node).await;
        page.change(Op::Undo).await;
        assert!(page.text().await.ends_with(" 57"), "what was appended last is undone next");
    });
}

#[test]
fn undo_over_many_forgotten_versions_ends() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("one").await;
        for number in 0..30 {
            page.edit(node.as_position(), &format!("canary {number}")).await;
        }
        page.edit(node.as_position(), "clean").await;
        home.store.forget(OWNER, &Forget::Text("canary".into()), loom::Millis(1)).await.unwrap();
        undo_shows_nothing_else(&page, node).await;
    });
}
