//! Search.

use crate::home::{field, homes};

#[tokio::test]
async fn a_hit_shows_where_and_why() {
    for home in homes() {
        let made =
            home.ok(&["tree", "new", "--title", "Birds", "--text", "A grey heron stood in the reeds."]).await;
        let tree = field(&made, "tree");
        let node = home.nodes(&tree, &[]).await[1].clone();
        let other = home.tree("buffer", "Herons elsewhere; a heron.").await;
        for words in [&["search", "HERON"][..], &["tree", "search", "heron"]] {
            let found = home.ok(words).await;
            assert_eq!(found["hits"].as_array().unwrap().len(), 2);
            assert_eq!((&found["ranked"], &found["partial"]), (&2.into(), &false.into()));
        }
        let found = home.ok(&["search", "\"grey heron\"", "--tree", "Birds"]).await;
        let hit = &found["hits"][0];
        assert_eq!((field(hit, "tree"), field(hit, "title")), (tree.clone(), "Birds".into()));
        assert_eq!((&hit["node"], &hit["short_id"]), (&node["id"], &node["short_id"]));
        assert_eq!((field(hit, "source"), field(hit, "snippet")), ("node".into(), field(&node, "text")));
        assert!(hit["score"].is_number());
        assert_eq!(home.ok(&["search", "heron", "--limit", "1"]).await["hits"].as_array().unwrap().len(), 1);
        assert!(home.ok(&["search", "osprey"]).await["hits"].as_array().unwrap().is_empty());
        assert!(home.ok(&["search", "grey", "--tree", &other]).await["hits"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_query_without_a_word_is_a_mistake_and_a_long_one_is_cut_and_says_so() {
    for home in homes() {
        assert_eq!(home.err(&["search", "***"]).await.code, "usage");
        assert_eq!(home.err(&["search", "word", "--limit", "0"]).await.code, "usage");
        home.ok(&["search", &"word ".repeat(100)]).await;
        assert!(home.talk.notes.lock().unwrap().iter().any(|note| note.contains("too long")));
    }
}

#[tokio::test]
async fn a_hit_says_what_is_tagged_remarked_and_out_of_date() {
    for home in homes() {
        let tree = home.tree("buffer", "A grey heron stood.").await;
        let old = field(&home.nodes(&tree, &[]).await[1], "id");
        home.ok(&["tree", "tag", &tree, &old, "bird"]).await;
        home.ok(&["tree", "annotate", &tree, &old, "Which egret?"]).await;
        home.ok(&["tree", "edit", &tree, &old, "--text", "A white heron stood."]).await;
        let found = home.ok(&["search", "heron"]).await;
        let hits = found["hits"].as_array().unwrap();
        let of = |text: &str| hits.iter().find(|hit| hit["snippet"] == text).unwrap();
        let (now, before) = (of("A white heron stood."), of("A grey heron stood."));
        assert_eq!((&now["old"], &before["old"]), (&false.into(), &true.into()));
        assert_eq!(now["tags"], serde_json::json!(["bird"]));
        assert_eq!(field(&now["annotations"][0], "text"), "Which egret?");
        let remark = &home.ok(&["search", "egret"]).await["hits"][0];
        assert_eq!(
            (field(remark, "kind"), field(remark, "snippet")),
            ("annotation".into(), "Which egret?".into())
        );
    }
}
