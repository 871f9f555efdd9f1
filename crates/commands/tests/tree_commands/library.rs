//! Making, listing, archiving.

use crate::home::{SECRET, field, homes};

#[tokio::test]
async fn a_new_tree_is_empty_or_begins_with_a_text() {
    for home in homes() {
        let empty = home.ok(&["tree", "new", "--title", "Notes"]).await;
        let tree = field(&empty, "tree");
        assert_eq!(home.text(&tree).await, "");
        assert!(field(&empty, "short_id").len() >= 4);
        assert_eq!(home.nodes(&tree, &[]).await[0]["position"], empty["tip"], "the tip is the genesis");

        let file = home.dir.path().join("first.txt");
        std::fs::write(&file, "From a file.\n").unwrap();
        let made = home.ok(&["tree", "new", "--file", file.to_str().unwrap()]).await;
        assert_eq!(home.text(&field(&made, "tree")).await, "From a file.\n");

        *home.talk.input.lock().unwrap() = b"From a pipe.".to_vec();
        let made = home.ok(&["tree", "new", "--text", "-"]).await;
        assert_eq!(home.text(&field(&made, "tree")).await, "From a pipe.");
    }
}

#[tokio::test]
async fn a_dialogue_begins_with_the_owners_turn() {
    for home in homes() {
        let tree = home.tree("dialogue", "Hello?").await;
        let nodes = home.nodes(&tree, &[]).await;
        assert_eq!(nodes[1]["role"], "user");
        let document = home.tree("document", "Once").await;
        assert_eq!(home.nodes(&document, &[]).await[1]["role"], serde_json::Value::Null);
    }
}

#[tokio::test]
async fn a_refused_first_text_leaves_no_tree() {
    for home in homes() {
        assert_eq!(home.err(&["tree", "new", "--text", ""]).await.exit, 2);
        assert_eq!(home.err(&["tree", "new", "--file", "/nowhere/at/all"]).await.code, "not_found");
        let bytes = home.dir.path().join("bytes");
        std::fs::write(&bytes, [b'a', 0xff]).unwrap();
        assert_eq!(home.err(&["tree", "new", "--file", bytes.to_str().unwrap()]).await.code, "invalid_utf8");
        let long = home.dir.path().join("long");
        std::fs::write(&long, "a".repeat(16 * 1024 * 1024 + 1)).unwrap();
        let words = ["tree", "new", "--mode", "dialogue", "--file", long.to_str().unwrap()];
        assert_eq!(home.err(&words).await.code, "too_large");
        assert_eq!(home.err(&["tree", "new", "--title", "two\nlines"]).await.code, "usage");
        assert!(home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().is_empty());
    }
}

#[tokio::test]
async fn known_secrets_are_masked_wherever_a_text_comes_in() {
    for home in homes() {
        let tree = field(&home.ok(&["tree", "new", "--title", SECRET, "--text", SECRET]).await, "tree");
        home.append(&tree, SECRET).await;
        let node = home.append(&tree, "end").await;
        home.ok(&["tree", "edit", &tree, &node, "--text", SECRET]).await;
        home.ok(&["tree", "draft", &tree, SECRET]).await;
        for mark in ["bookmark", "tag", "annotate"] {
            home.ok(&["tree", mark, &tree, &node, SECRET]).await;
        }
        home.ok(&["tree", "head", &tree, "--text", SECRET]).await;
        home.ok(&["tree", "view", "new", &tree, SECRET]).await;
        let mut seen = String::new();
        for words in [
            &["tree", "show", &tree, "--all"][..],
            &["tree", "text", &tree],
            &["tree", "list"],
            &["tree", "log", &tree],
            &["tree", "view", "list", &tree],
        ] {
            seen.push_str(&home.ok(words).await.to_string());
        }
        assert!(!seen.contains(SECRET), "{seen}");
        assert!(seen.contains("secret:KEY"), "the mask is there: {seen}");
        assert!(!home.talk.notes.lock().unwrap().is_empty(), "it is said");
    }
}

#[tokio::test]
async fn a_list_has_what_was_changed_last_first_and_no_archived_trees() {
    for home in homes() {
        let a = home.tree("buffer", "a").await;
        let b = home.tree("dialogue", "b").await;
        home.append(&a, " more").await;
        let trees = home.ok(&["tree", "list"]).await["trees"].clone();
        assert_eq!((&trees[0]["tree"], &trees[1]["tree"]), (&a.clone().into(), &b.clone().into()));
        assert_eq!(trees[0]["nodes"], 3, "genesis included");
        assert_eq!(trees[1]["mode"], "dialogue");

        assert_eq!(field(&home.ok(&["tree", "delete", &b]).await, "tree"), b);
        assert_eq!(home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().len(), 1);
        let archived = home.ok(&["tree", "list", "--archived"]).await["trees"].clone();
        assert_eq!((&archived[0]["tree"], &archived[0]["archived"]), (&b.clone().into(), &true.into()));
        assert_eq!(home.text(&b).await, "b", "archived is not gone");
        home.ok(&["tree", "undelete", &b]).await;
        assert_eq!(home.ok(&["tree", "list"]).await["trees"].as_array().unwrap().len(), 2);
    }
}
