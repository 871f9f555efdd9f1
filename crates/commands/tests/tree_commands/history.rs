//! Undo, redo, the log.

use crate::home::{field, homes};

#[tokio::test]
async fn undo_and_redo_go_along_one_timeline() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let one = field(&home.nodes(&tree, &[]).await[1], "id");
        home.ok(&["tree", "edit", &tree, &one, "--text", "ONE"]).await;
        home.ok(&["tree", "draft", &tree, " two"]).await;
        let stroke = home.ok(&["tree", "undo", &tree]).await;
        assert_eq!(stroke["operation"], serde_json::Value::Null, "a keystroke is no operation");
        assert_eq!(stroke["kind"], serde_json::Value::Null);
        assert_eq!(home.text(&tree).await, "ONE");
        let undone = home.ok(&["tree", "undo", &tree]).await;
        assert_eq!(home.text(&tree).await, "one");
        let newest = home.ok(&["tree", "log", &tree, "--limit", "1"]).await["operations"][0].clone();
        assert_eq!((&newest["seq"], &newest["kind"]), (&undone["operation"], &"undo".into()));
        assert!(undone["skipped"].as_array().unwrap().is_empty());
        assert_eq!(undone["kind"], "edit", "what was undone");
        assert_eq!(home.ok(&["tree", "redo", &tree]).await["kind"], "edit");
        assert_eq!(home.text(&tree).await, "ONE");
    }
}

#[tokio::test]
async fn nothing_to_undo_or_redo_is_said() {
    for home in homes() {
        let tree = field(&home.ok(&["tree", "new"]).await, "tree");
        for (step, code) in [("undo", "nothing_to_undo"), ("redo", "nothing_to_redo")] {
            let error = home.err(&["tree", step, &tree]).await;
            assert_eq!((error.code.as_ref(), error.exit), (code, 3));
        }
    }
}

#[tokio::test]
async fn cells_that_another_writer_set_are_left_alone_and_named_in_words() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let one = field(&home.nodes(&tree, &[]).await[1], "id");
        let short = field(&home.node(&tree, &one).await, "short_id");
        home.ok(&["tree", "view", "new", &tree, "other"]).await;
        home.ok(&["tree", "exclude", &tree, &one]).await;
        home.ok(&["tree", "include", &tree, &one, "--view", "other"]).await;
        let undone = home.ok(&["tree", "undo", &tree]).await;
        assert_eq!(undone["skipped"][0], format!("whether {short} is left out"));
    }
}

#[tokio::test]
async fn the_log_is_newest_first_and_paged_without_gap() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        for text in ["2", "3", "4", "5"] {
            home.append(&tree, text).await;
        }
        let mut seqs = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let mut words = vec!["tree", "log", tree.as_str(), "--limit", "4"];
            words.extend(before.iter().flat_map(|before| ["--before", before.as_str()]));
            let page = home.ok(&words).await;
            seqs.extend(page["operations"].as_array().unwrap().iter().map(|op| op["seq"].as_u64().unwrap()));
            match page["next"].as_u64() {
                Some(next) => before = Some(next.to_string()),
                None => break,
            }
        }
        assert_eq!(seqs, [6, 5, 4, 3, 2, 1]);
        let newest = home.ok(&["tree", "log", &tree]).await["operations"][0].clone();
        assert_eq!((field(&newest, "kind"), field(&newest, "view")), ("commit".into(), "main".into()));
        assert_eq!(field(&newest, "agent"), "owner");
        assert_eq!(newest["changes"][0], "the tip of main");
        assert_eq!(newest["nodes"].as_array().unwrap().len(), 1);
        let empty = home.ok(&["tree", "log", &tree, "--before", "0"]).await;
        assert!(empty["operations"].as_array().unwrap().is_empty() && empty["next"].is_null());
    }
}
