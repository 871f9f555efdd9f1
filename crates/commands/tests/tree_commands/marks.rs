//! Flags, marks, remarks, head and note.

use crate::home::{command_line, field, homes};

#[tokio::test]
async fn what_is_excluded_is_not_rendered() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let b = home.append(&tree, "b").await;
        home.append(&tree, "c").await;
        home.ok(&["tree", "exclude", &tree, &b]).await;
        assert_eq!(home.text(&tree).await, "ac");
        for nodes in [home.nodes(&tree, &[]).await, home.nodes(&tree, &["--all"]).await] {
            assert_eq!((&nodes[2]["excluded"], &nodes[1]["excluded"]), (&true.into(), &false.into()));
        }
        home.ok(&["tree", "include", &tree, &b]).await;
        assert_eq!(home.text(&tree).await, "abc");
        home.ok(&["tree", "exclude", &tree, &b, "--version"]).await;
        assert_eq!(home.text(&tree).await, "ac");
        assert_eq!(home.node(&tree, &b).await["excluded"], true);
    }
}

#[tokio::test]
async fn the_genesis_takes_no_flags() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let genesis = field(&home.nodes(&tree, &[]).await[0], "id");
        for flag in ["prune", "restore", "exclude", "include", "keep"] {
            assert_eq!(home.err(&["tree", flag, &tree, &genesis]).await.exit, 2, "{flag}");
        }
    }
}

#[tokio::test]
async fn bookmarks_and_tags_are_set_and_taken_away() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let a = field(&home.nodes(&tree, &[]).await[1], "id");
        assert_eq!(field(&home.ok(&["tree", "bookmark", &tree, &a, "Start"]).await, "node"), a);
        assert_eq!(home.node(&tree, &a).await["bookmark"], "Start");
        home.ok(&["tree", "bookmark", &tree, &a, "--remove"]).await;
        assert_eq!(home.node(&tree, &a).await["bookmark"], serde_json::Value::Null);
        home.ok(&["tree", "bookmark", &tree, &a]).await;
        assert_eq!(home.node(&tree, &a).await["bookmark"], "", "one needs no title");
        home.ok(&["tree", "tag", &tree, &a, "draft"]).await;
        home.ok(&["tree", "tag", &tree, &a, "draft", "--remove"]).await;
        for words in [
            &["tree", "bookmark", &tree, &a, ""][..],
            &["tree", "bookmark", &tree, &a, "two\nlines"],
            &["tree", "annotate", &tree, &a, ""],
            &["tree", "tag", &tree, &a, &"x".repeat(1_001)],
        ] {
            assert_eq!(home.err(words).await.exit, 2, "{words:?}");
        }
    }
}

#[test]
fn marks_take_what_they_need_and_nothing_else() {
    let reads = |words: &[&str]| command_line().try_get_matches_from(words.iter().copied()).is_ok();
    for words in [
        &["tree", "bookmark", "t", "n", "x", "--remove"][..],
        &["tree", "tag", "t", "n", "--remove"],
        &["tree", "annotate", "t", "n", "--remove"],
        &["tree", "head", "t", "--text", "x", "--depth", "2"],
        &["tree", "note", "t", "--depth", "2"],
        &["tree", "draft", "t", "--commit"],
        &["tree", "delete", "t", "--view", "v"],
        &["tree", "seal", "t", "--view", "v"],
    ] {
        assert!(!reads(words), "{words:?}");
    }
    for words in [
        &["tree", "bookmark", "t", "n", "--remove"][..],
        &["tree", "bookmark", "t", "n"],
        &["tree", "tag", "t", "n", "x", "--remove"],
        &["tree", "note", "t", "--text", "x", "--depth", "2"],
    ] {
        assert!(reads(words), "the control: {words:?}");
    }
}

#[tokio::test]
async fn remarks_are_nodes_of_their_own_and_never_text() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let a = field(&home.nodes(&tree, &[]).await[1], "id");
        let remark = field(&home.ok(&["tree", "annotate", &tree, &a, "hm"]).await, "node");
        assert_ne!(remark, a);
        let shown = home.node(&tree, &remark).await;
        assert_eq!((field(&shown, "kind"), field(&shown, "text")), ("annotation".into(), "hm".into()));
        assert_eq!(shown["parent"], a);
        assert_eq!(home.text(&tree).await, "a");
    }
}

#[tokio::test]
async fn head_and_note_are_written_and_taken_away() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let head = field(&home.ok(&["tree", "head", &tree, "--text", "A tale."]).await, "node");
        assert_eq!(field(&home.node(&tree, &head).await, "kind"), "head");
        let again = field(&home.ok(&["tree", "head", &tree, "--text", "A story."]).await, "node");
        assert_eq!(field(&home.node(&tree, &again).await, "edited_from"), head, "a version of it");
        let none = field(&home.ok(&["tree", "head", &tree, "--text", ""]).await, "node");
        assert_eq!(field(&home.node(&tree, &none).await, "text"), "");
        let note =
            field(&home.ok(&["tree", "note", &tree, "--text", "Slowly.", "--depth", "2"]).await, "node");
        assert_eq!(field(&home.node(&tree, &note).await, "kind"), "note");
        assert_eq!(home.text(&tree).await, "a");
        let other = home.tree("buffer", "b").await;
        assert_eq!(
            home.err(&["tree", "note", &other, "--text", ""]).await.exit,
            2,
            "there is none to take away"
        );
    }
}

#[tokio::test]
async fn marks_stand_at_their_passage_and_are_read_back() {
    for home in homes() {
        let tree = home.tree("buffer", "a").await;
        let b = home.append(&tree, "b").await;
        let a = field(&home.nodes(&tree, &[]).await[1], "id");
        for words in [
            &["tree", "tag", &tree, &b, "scene"][..],
            &["tree", "tag", &tree, &b, "draft"],
            &["tree", "annotate", &tree, &b, "Too short."],
            &["tree", "annotate", &tree, &b, "And why?"],
            &["tree", "annotate", &tree, &a, "First."],
            &["tree", "head", &tree, "--text", "A tale."],
            &["tree", "note", &tree, "--text", "Slowly."],
            &["tree", "draft", &tree, "c"],
        ] {
            home.ok(words).await;
        }
        let shown = home.ok(&["tree", "show", &tree]).await;
        let node = &shown["nodes"][2];
        assert_eq!(node["tags"], serde_json::json!(["draft", "scene"]));
        let remarks: Vec<_> =
            node["annotations"].as_array().unwrap().iter().map(|it| field(it, "text")).collect();
        assert_eq!(remarks, ["Too short.", "And why?"]);
        assert_eq!(
            (field(&shown["head"], "text"), field(&shown["note"], "text")),
            ("A tale.".into(), "Slowly.".into())
        );
        assert_eq!((&shown["note"]["depth"], field(&shown["draft"], "text")), (&3.into(), "c".into()));
        let above = home.ok(&["tree", "show", &tree, "--from", &a]).await;
        assert!(above["draft"].is_null(), "it stands at the end of the path: {above}");
        assert_eq!(home.node(&tree, &b).await["tags"], node["tags"], "and with --all");

        let ids = async |words: &[&str]| -> Vec<String> {
            let listed = home.ok(words).await;
            listed["nodes"].as_array().unwrap().iter().map(|node| field(node, "id")).collect()
        };
        assert_eq!(ids(&["tree", "tag", &tree]).await, [&*b]);
        assert_eq!(ids(&["tree", "annotate", &tree]).await, [a.clone(), b.clone()]);
        assert_eq!(ids(&["tree", "annotate", &tree, &b]).await, [&*b]);
        assert_eq!(home.ok(&["tree", "versions", &tree, &b]).await["nodes"][0]["tags"], node["tags"]);
        assert_eq!(field(&home.ok(&["tree", "head", &tree]).await, "text"), "A tale.");
        assert_eq!(home.ok(&["tree", "note", &tree]).await["depth"], 3);
        assert_eq!(field(&home.ok(&["tree", "draft", &tree]).await, "text"), "c");

        home.ok(&["tree", "tag", &tree, &b, "draft", "--remove"]).await;
        home.ok(&["tree", "tag", &tree, &b, "scene", "--remove"]).await;
        assert!(ids(&["tree", "tag", &tree]).await.is_empty());
        home.ok(&["tree", "head", &tree, "--text", ""]).await;
        assert!(home.ok(&["tree", "head", &tree]).await["text"].is_null());
        home.ok(&["tree", "draft", &tree, "edited", "--at", &a]).await;
        assert_eq!(field(&home.ok(&["tree", "draft", &tree, "--at", &a]).await, "text"), "edited");
    }
}
