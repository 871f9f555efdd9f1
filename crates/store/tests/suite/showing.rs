//! What was shown with nodes: kept with them, once, in the order of the tree, for those who see what was sent.

use loom::reader::Injection;
use loom::{Mode, NodeId, Trust};
use store::{AttachedWrites, Principal, Scope, StoreError, read};

use super::both::each;
use super::home::{OWNER, Page};

fn shown(node: NodeId, ordinal: u32, text: &str) -> Injection {
    Injection { node, ordinal, source: "zone#red".into(), trust: Trust::Owner, text: text.into() }
}

async fn keep(page: &Page, injections: Vec<Injection>) -> Result<(), StoreError> {
    let with = AttachedWrites { injections, ..AttachedWrites::default() };
    page.home.store.apply(OWNER, page.tree, loom::Plan::default(), with).await.map(drop)
}

/// Shows a text with a node.
pub(crate) async fn show(page: &Page, node: NodeId, text: &str) {
    keep(page, vec![shown(node, 0, text)]).await.unwrap();
}

async fn between(page: &Page, who: &Principal, from: NodeId, before: Option<NodeId>) -> Vec<String> {
    let found = read(&page.home.store, who, page.tree, move |rows| rows.injections(from, before));
    found.await.unwrap().into_iter().map(|shown| shown.text).collect()
}

#[test]
fn what_is_shown_with_nodes_comes_in_their_order_and_once() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let (first, second) = (page.append("one").await, page.append("two").await);
        let all = vec![shown(second, 1, "d"), shown(first, 0, "a"), shown(second, 0, "c")];
        keep(&page, all).await.unwrap();
        keep(&page, vec![shown(first, 0, "another")]).await.unwrap();
        assert_eq!(between(&page, OWNER, first, None).await, ["a", "c", "d"]);
        assert_eq!(between(&page, OWNER, first, Some(second)).await, ["a"]);
        assert_eq!(between(&page, OWNER, second, None).await, ["c", "d"]);
        let scope = Scope::ReadTree { tree: page.tree, with_context: false };
        let reader = Principal::Token { name: "reader".into(), scope };
        assert_eq!(between(&page, &reader, first, None).await, Vec::<String>::new());
    });
}

#[test]
fn nothing_is_shown_with_a_node_of_another_tree() {
    each(|home| async move {
        let (page, other) = (home.create(Mode::Buffer, "").await, home.create(Mode::Buffer, "").await);
        let node = other.append("elsewhere").await;
        let refused = keep(&page, vec![shown(node, 0, "a")]).await;
        assert!(matches!(refused, Err(StoreError::NotFound("node"))), "{refused:?}");
    });
}
