//! Lists, and names people use.

use loom::{Mode, NodeId, Op, PositionId};
use store::{StoreError, TreeFilter};

use super::both::each;
use super::home::OWNER;

#[test]
fn trees_are_listed_by_filter() {
    each(|home| async move {
        let kept = home.create(Mode::Dialogue, "kept").await;
        let gone = home.create(Mode::Buffer, "gone").await;
        gone.change(Op::Archive(true)).await;
        let list = |filter| {
            let store = home.store.clone();
            async move {
                let mut ids: Vec<_> = store
                    .trees(OWNER, filter, None, 9_999)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|entry| entry.id)
                    .collect();
                ids.sort_unstable();
                ids
            }
        };
        assert_eq!(list(TreeFilter::Current).await, [kept.tree]);
        assert_eq!(list(TreeFilter::Archived).await, [gone.tree]);
        assert_eq!(list(TreeFilter::All).await, [kept.tree, gone.tree]);
        let entry = home.store.tree(OWNER, gone.tree).await.unwrap();
        assert!(entry.archived && entry.mode == Mode::Buffer);
    });
}

#[test]
fn a_tree_is_named_by_id_short_id_or_exact_title() {
    each(|home| async move {
        let a = home.create(Mode::Buffer, "Rain: a story").await;
        let b = home.create(Mode::Buffer, "Snow").await;
        let c = home.create(Mode::Buffer, "Snow").await;
        let short = home.store.tree(OWNER, a.tree).await.unwrap().short_id;
        for name in [a.tree.to_string(), short.clone(), short.to_uppercase(), "Rain: a story".to_owned()] {
            assert_eq!(home.store.resolve(OWNER, &name).await.unwrap(), a.tree, "{name}");
        }
        for name in ["rain: a story", "Rain", ""] {
            assert!(
                matches!(home.store.resolve(OWNER, name).await, Err(StoreError::NotFound("tree"))),
                "{name}"
            );
        }
        let Err(StoreError::Ambiguous(found)) = home.store.resolve(OWNER, "Snow").await else { panic!() };
        assert_eq!(found.len(), 2);
        for tree in [b.tree, c.tree] {
            let short = home.store.tree(OWNER, tree).await.unwrap().short_id;
            assert!(found.iter().any(|candidate| candidate.starts_with(&short)));
        }
        b.change(Op::Rename("Sleet".into())).await;
        assert_eq!(home.store.resolve(OWNER, "Snow").await.unwrap(), c.tree);
        assert_eq!(home.store.resolve(OWNER, "Sleet").await.unwrap(), b.tree);
    });
}

#[test]
fn a_node_is_named_by_id_short_id_or_with_its_tree() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "A: title").await;
        let other = home.create(Mode::Buffer, "other").await;
        let applied = page.change(Op::Append(super::home::owner_text("x"))).await;
        let (node, short) = applied.nodes[0].clone();
        let version = page.edit(node.as_position(), "y").await;
        let tree = home.store.tree(OWNER, page.tree).await.unwrap().short_id;
        let names = [
            (None, node.to_string()),
            (Some(page.tree), short.clone()),
            (None, short.clone()),
            (Some(other.tree), format!("{tree}:{short}")),
            (None, format!("A: title:{}", short.to_uppercase())),
        ];
        for (tree, name) in names {
            let found = home.store.resolve_node(OWNER, tree, &name).await.unwrap();
            assert_eq!((found.tree, found.node, found.short_id.as_str()), (page.tree, node, short.as_str()));
        }
        let found = home.store.resolve_node(OWNER, None, &version.to_string()).await.unwrap();
        assert_eq!(found.position, PositionId::from_bytes(node.to_bytes()));
        let elsewhere = home.store.resolve_node(OWNER, Some(other.tree), &short).await;
        assert!(matches!(elsewhere, Err(StoreError::NotFound("node"))));
        let nowhere = NodeId::from_bytes([3; 16]).to_string();
        assert!(matches!(
            home.store.resolve_node(OWNER, None, &nowhere).await,
            Err(StoreError::NotFound("node"))
        ));
    });
}
