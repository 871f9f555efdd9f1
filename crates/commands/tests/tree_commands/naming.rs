//! Names of trees, nodes and views (spec: cli §1 *Addressing*).

use crate::home::{field, homes};

#[tokio::test]
async fn trees_and_nodes_go_by_id_short_id_and_title() {
    for home in homes() {
        let made = home.ok(&["tree", "new", "--title", "My: story", "--text", "Once"]).await;
        let (id, short) = (field(&made, "tree"), field(&made, "short_id"));
        let node = home.nodes(&id, &[]).await[1].clone();
        let (node_id, node_short) = (field(&node, "id"), field(&node, "short_id"));
        for tree in [&id, &short, "My: story"] {
            assert_eq!(home.text(tree).await, "Once");
        }
        let upper = node_short.to_uppercase();
        let full = format!("{short}:{node_short}");
        for name in [&node_id, &node_short, &upper, &full] {
            assert_eq!(field(&home.ok(&["tree", "keep", &id, name]).await, "node"), node_id, "{name}");
        }
    }
}

#[tokio::test]
async fn a_wrong_name_is_not_found_and_an_ambiguous_one_names_the_candidates() {
    for home in homes() {
        let a = field(&home.ok(&["tree", "new", "--title", "Same", "--text", "a"]).await, "tree");
        let b = field(&home.ok(&["tree", "new", "--title", "Same", "--text", "b"]).await, "tree");
        let both = home.err(&["tree", "text", "Same"]).await;
        assert_eq!((both.code.as_ref(), both.exit), ("ambiguous", 2));
        for tree in [&a, &b] {
            let line = home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().clone();
            let short = field(line.iter().find(|line| line["tree"] == **tree).unwrap(), "short_id");
            assert!(both.message.contains(&short), "{both:?}");
        }
        for words in [
            &["tree", "text", "nothing"][..],
            &["tree", "show", &a, "--from", "zzzz"],
            &["tree", "edit", &a, "zzzz", "--text", "x"],
            &["tree", "compare", &a, "zzzz", "zzzz"],
            &["tree", "view", "list", "nothing"],
            &["tree", "log", "nothing"],
            &["tree", "search", "word", "--tree", "nothing"],
        ] {
            let error = home.err(words).await;
            assert_eq!((error.code.as_ref(), error.exit), ("not_found", 3), "{words:?}");
        }
    }
}

#[tokio::test]
async fn a_node_of_another_tree_is_not_found_in_this_one() {
    for home in homes() {
        let (a, b) = (home.tree("buffer", "a").await, home.tree("buffer", "b").await);
        let there = home.append(&b, " there").await;
        let short = field(&home.node(&b, &there).await, "short_id");
        let tree = field(&home.ok(&["tree", "list"]).await["trees"][0], "short_id");
        for name in [there.clone(), format!("{tree}:{short}")] {
            for words in [
                &["tree", "keep", &a, &name][..],
                &["tree", "show", &a, "--from", &name],
                &["tree", "branch", &a, &name, "--at", "0"],
                &["tree", "draft", &a, "x", "--at", &name],
                &["tree", "compact", &a, "--to", &name],
            ] {
                assert_eq!(home.err(words).await.code, "not_found", "{words:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_view_that_is_not_there_is_not_found() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        for words in [
            &["tree", "show", &tree, "--view", "no"][..],
            &["tree", "text", &tree, "--view", "no"],
            &["tree", "append", &tree, "x", "--view", "no"],
            &["tree", "draft", &tree, "x", "--view", "no"],
            &["tree", "undo", &tree, "--view", "no"],
            &["tree", "view", "new", &tree, "other", "--view", "no"],
            &["tree", "view", "delete", &tree, "no"],
        ] {
            let error = home.err(words).await;
            assert_eq!((error.code.as_ref(), error.exit), ("not_found", 3), "{words:?}: {error:?}");
        }
        assert_eq!(home.err(&["tree", "text", &tree, "--view", ""]).await.code, "usage");
    }
}

#[tokio::test]
async fn views_have_their_own_tip_and_selections() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let made = home.ok(&["tree", "view", "new", &tree, "reading"]).await;
        let names: Vec<_> =
            made["views"].as_array().unwrap().iter().map(|view| field(view, "name")).collect();
        assert_eq!(names, ["main", "reading"]);
        home.append(&tree, " two").await;
        assert_eq!(field(&home.ok(&["tree", "text", &tree, "--view", "reading"]).await, "text"), "one");
        assert_eq!(home.text(&tree).await, "one two");
        assert_eq!(home.err(&["tree", "view", "new", &tree, "reading"]).await.exit, 2);
        assert_eq!(home.err(&["tree", "view", "delete", &tree, "main"]).await.exit, 2);
        let left = home.ok(&["tree", "view", "delete", &tree, "reading"]).await;
        assert_eq!(left["views"].as_array().unwrap().len(), 1);
    }
}
