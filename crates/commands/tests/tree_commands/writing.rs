//! Append, draft, edit, text.

use crate::home::{TestHome, field, homes};

#[tokio::test]
async fn text_is_kept_byte_for_byte() {
    for home in homes() {
        let tree = home.tree("buffer", "  One\r\n").await;
        home.append(&tree, "\ttwo 👩‍💻 ").await;
        assert_eq!(home.text(&tree).await, "  One\r\n\ttwo 👩‍💻 ");
        let error = home.err(&["tree", "append", &tree, ""]).await;
        assert_eq!(error.exit, 2);
        *home.talk.input.lock().unwrap() = b"piped".to_vec();
        home.append(&tree, "-").await;
        assert!(home.text(&tree).await.ends_with("piped"));
    }
}

#[tokio::test]
async fn a_document_longer_than_a_node_becomes_several() {
    let home = TestHome::on_disk();
    let tree = home.tree("buffer", "start ").await;
    *home.talk.input.lock().unwrap() = b"A sentence.\n\n".repeat(1_300_000);
    let node = home.append(&tree, "-").await;
    let nodes = home.ok(&["tree", "show", &tree, "--limit", "1"]).await["nodes"].clone();
    assert_eq!(field(&nodes[0], "id"), node, "the last of them is the tip");
    assert_eq!(nodes[0]["depth"], 3);
    assert!(field(&nodes[0], "text").starts_with("A sentence."), "cut at a paragraph");
}

#[tokio::test]
async fn append_in_a_dialogue_is_the_owners() {
    for home in homes() {
        let tree = home.tree("dialogue", "one").await;
        let node = home.append(&tree, "two").await;
        let shown = home.node(&tree, &node).await;
        assert_eq!((field(&shown, "role"), field(&shown, "author")), ("user".into(), "owner".into()));
    }
}

#[tokio::test]
async fn drafts_are_shown_and_committed_when_told() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let first = home.ok(&["tree", "draft", &tree, " tw"]).await;
        assert_eq!(first["draft"], "buffer");
        let second = home.ok(&["tree", "draft", &tree, " two"]).await;
        assert!(second["revision"].as_u64() > first["revision"].as_u64());
        assert_eq!(home.text(&tree).await, "one two");
        assert_eq!(field(&home.ok(&["tree", "text", &tree, "--committed"]).await, "text"), "one");
        let done = home.ok(&["tree", "draft", &tree, " two!", "--commit"]).await;
        assert_eq!(done["revision"], serde_json::Value::Null);
        assert_eq!(done["nodes"].as_array().unwrap().len(), 1);
        assert_eq!(field(&home.ok(&["tree", "text", &tree, "--committed"]).await, "text"), "one two!");
    }
}

#[tokio::test]
async fn a_pending_edit_stands_in_the_place_of_its_node() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let node = home.nodes(&tree, &[]).await[1].clone();
        home.append(&tree, " two").await;
        let at = field(&node, "id");
        let draft = home.ok(&["tree", "draft", &tree, "ONE", "--at", &at]).await;
        assert_eq!(draft["draft"], node["position"]);
        assert_eq!(home.text(&tree).await, "ONE two");
        for nodes in [home.nodes(&tree, &[]).await, home.nodes(&tree, &["--all"]).await] {
            assert_eq!((&nodes[1]["text"], &nodes[1]["pending"]), (&"ONE".into(), &true.into()));
            assert_eq!(nodes[2]["pending"], false);
        }
        let done = home.ok(&["tree", "draft", &tree, "", "--at", &at, "--commit"]).await;
        assert_eq!(done["nodes"].as_array().unwrap().len(), 1, "an empty version is allowed");
        assert_eq!(home.text(&tree).await, " two");
        let genesis = field(&home.nodes(&tree, &[]).await[0], "id");
        assert_eq!(home.err(&["tree", "draft", &tree, "x", "--at", &genesis]).await.exit, 2);
    }
}

#[tokio::test]
async fn an_edit_is_a_version_in_a_document_and_a_branch_in_a_dialogue() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let node = field(&home.nodes(&tree, &[]).await[1], "id");
        home.append(&tree, " two").await;
        let edited = home.ok(&["tree", "edit", &tree, &node, "--text", "ONE"]).await;
        assert_eq!((field(&edited, "position"), field(&edited, "edited_from")), (node.clone(), node.clone()));
        assert_eq!(home.text(&tree).await, "ONE two");
        let same = home.ok(&["tree", "edit", &tree, &node, "--text", "ONE"]).await;
        assert_eq!(same["node"], edited["node"], "the same text makes nothing new");
        let back = home.ok(&["tree", "edit", &tree, &node, "--text", "one"]).await;
        assert_eq!(field(&back, "node"), node, "another version with this text is shown again");

        let chat = home.tree("dialogue", "hello").await;
        let said = field(&home.nodes(&chat, &[]).await[1], "id");
        let edited = home.ok(&["tree", "edit", &chat, &said, "--text", "hi"]).await;
        assert_ne!(field(&edited, "position"), said);
        assert_eq!(field(&edited, "edited_from"), said);
        assert_eq!(home.node(&chat, &said).await["siblings"], 2);

        let branch = home.ok(&["tree", "edit", &tree, &node, "--text", "1", "--as", "branch"]).await;
        assert_ne!(field(&branch, "position"), node);
        assert_eq!(home.text(&tree).await, "1", "what was below stays on the old one");
        let unchanged = home.ok(&["tree", "edit", &chat, &said, "--text", "hello"]).await;
        assert_eq!(field(&unchanged, "node"), said);
        assert_eq!(home.err(&["tree", "edit", &chat, &said, "--text", ""]).await.exit, 2);
    }
}

#[tokio::test]
async fn spans_say_who_wrote_what_in_clusters() {
    for home in homes() {
        let tree = home.tree("buffer", "a👩‍💻").await;
        home.ok(&["tree", "draft", &tree, "bc"]).await;
        let spans = home.ok(&["tree", "text", &tree, "--spans"]).await["spans"].clone();
        assert_eq!((&spans[0]["start"], &spans[0]["end"]), (&0.into(), &2.into()));
        assert_eq!((&spans[1]["start"], &spans[1]["end"]), (&2.into(), &4.into()));
        assert_eq!((&spans[0]["author"], &spans[0]["kind"]), (&"owner".into(), &"human".into()));
        assert_eq!(spans[1]["node"], serde_json::Value::Null, "the working buffer");
    }
}
