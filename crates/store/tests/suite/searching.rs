//! Search is a set of hits: plain words, prefixes, phrases, CJK.

use std::collections::BTreeSet;

use loom::{Mode, NodeId, Op};
use store::SearchScope;

use super::both::each;
use super::home::OWNER;

#[test]
fn every_store_finds_the_same_nodes() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let other = home.create(Mode::Buffer, "").await;
        let texts = [
            "The quick brown fox; re-reading Čapek. ",
            "A brown quick dog departs. ",
            "新しい漢字検索、GPT模型 v2。",
            "漢文の検索。",
            "STRASSE und Straße, don't. ",
        ];
        let mut nodes = Vec::new();
        for text in texts {
            nodes.push(page.append(text).await);
        }
        let elsewhere = other.append("quick, elsewhere").await;
        let found = async |query: &str, scope| -> BTreeSet<NodeId> {
            let hits = home.store.search(OWNER, query, scope, 100).await.unwrap();
            hits.hits.into_iter().map(|hit| hit.node).collect()
        };
        let set = |which: &[usize]| which.iter().map(|index| nodes[*index]).collect::<BTreeSet<_>>();
        for (query, expected) in [
            ("brown quick", &[0, 1][..]),
            ("\"quick brown\"", &[0]),
            ("dep*", &[1]),
            ("dep", &[]),
            ("re-read*", &[0]),
            ("capek", &[0]),
            ("漢字", &[2]),
            ("漢", &[2, 3]),
            ("検索", &[2, 3]),
            ("索", &[2, 3]),
            ("字検索", &[2]),
            ("模型 v2", &[2]),
            ("strasse", &[4]),
            ("don't", &[4]),
            ("AND OR NOT", &[]),
            ("\"", &[]),
            ("", &[]),
        ] {
            assert_eq!(found(query, SearchScope::Tree(page.tree)).await, set(expected), "{query}");
        }
        let everywhere = found("quick", SearchScope::All).await;
        assert_eq!(everywhere, set(&[0, 1]).into_iter().chain([elsewhere]).collect());
    });
}

#[test]
fn old_versions_are_found_and_the_limit_holds() {
    each(|home| async move {
        let page = home.create(Mode::Buffer, "").await;
        let node = page.append("walrus").await;
        page.edit(node.as_position(), "carpenter").await;
        page.change(Op::Prune(loom::OpTarget::Version(node))).await;
        let hits = home.store.search(OWNER, "walrus", SearchScope::All, 10).await.unwrap();
        assert_eq!(hits.hits.iter().map(|hit| hit.node).collect::<Vec<_>>(), [node]);
        assert!(!hits.newest_only && !hits.partial && !hits.truncated);
        for _ in 0..3 {
            page.append("walrus again").await;
        }
        assert_eq!(home.store.search(OWNER, "walrus", SearchScope::All, 2).await.unwrap().hits.len(), 2);
    });
}
