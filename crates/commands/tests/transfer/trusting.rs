//! Imported text counts as a stranger's until the owner says otherwise.

use super::home::{TestHome, field};

/// The trust of each text of a tree, by author kind.
async fn trusts(home: &TestHome, tree: &str) -> Vec<(String, String)> {
    let all = home.ok(&["tree", "show", tree, "--all"]).await;
    let nodes = all["nodes"].as_array().unwrap().iter().filter(|node| node["text"] != "");
    nodes.map(|node| (field(node, "author_kind"), field(node, "trust"))).collect()
}

#[tokio::test]
async fn imported_authors_are_trusted_when_the_owner_says_so() {
    let here = TestHome::new();
    let tree = here.rich().await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    assert!(trusts(&there, &tree).await.iter().all(|(_, trust)| trust == "outside"));
    there.ok(&["tree", "trust", &tree]).await;
    assert_eq!(trusts(&there, &tree).await, trusts(&here, &tree).await);
    assert_eq!(there.verify(&tree).await, "valid");
}

#[tokio::test]
async fn what_was_made_here_of_strange_text_stays_outside() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    there.ok(&["tree", "generate", &tree]).await;
    there.ok(&["tree", "trust", &tree]).await;
    let expected = [("human", "owner"), ("model", "outside")];
    assert_eq!(
        trusts(&there, &tree).await,
        expected.map(|(kind, trust)| (kind.to_owned(), trust.to_owned()))
    );
}

#[tokio::test]
async fn a_model_is_not_believed_where_it_is_not_known_what_was_sent() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    here.ok(&["tree", "generate", &tree]).await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree, "--share"]).await, &[]).await.unwrap();
    there.ok(&["tree", "trust", &tree]).await;
    let expected = [("human", "owner"), ("model", "outside")];
    assert_eq!(
        trusts(&there, &tree).await,
        expected.map(|(kind, trust)| (kind.to_owned(), trust.to_owned()))
    );
    assert!(there.notes().iter().any(|note| note.contains("keep the trust `outside`")));
}

#[tokio::test]
async fn a_tree_of_this_home_cannot_be_trusted_as_imported() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let error = here.err(&["tree", "trust", &tree]).await;
    assert_eq!((error.code.as_ref(), error.exit), ("not_imported", 4));
}

/// The authors of the texts of a tree, as `tree show` and as `tree text --spans` tell them.
async fn authors(home: &TestHome, tree: &str) -> (Vec<String>, Vec<String>) {
    let all = home.ok(&["tree", "show", tree]).await;
    let nodes = all["nodes"].as_array().unwrap().iter().filter(|node| node["text"] != "");
    let text = home.ok(&["tree", "text", tree, "--spans"]).await;
    let spans = text["spans"].as_array().unwrap().iter();
    (nodes.map(|node| field(node, "author")).collect(), spans.map(|span| field(span, "author")).collect())
}

#[tokio::test]
async fn s13_imported_authors_are_shown_as_the_files_until_they_are_trusted() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell.").await;
    let file = here.exported(&[&tree]).await;
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    // What the owner adds here, and keeps of the stranger's text in an edit, is told from it.
    there.ok(&["tree", "append", &tree, " It stopped."]).await;
    let shown = there.ok(&["tree", "show", &tree]).await;
    let node = field(&shown["nodes"][1], "id");
    there.ok(&["tree", "edit", &tree, &node, "--text", "The rain fell hard.", "--as", "version"]).await;
    let (nodes, spans) = authors(&there, &tree).await;
    let stranger = nodes.iter().chain(&spans).find(|name| name.starts_with("import:")).unwrap().clone();
    assert!(stranger.len() == "import:".len() + 16 + "/owner".len() && stranger.ends_with("/owner"));
    assert_eq!(nodes, ["owner", "owner"]);
    assert!(spans.contains(&stranger) && spans.contains(&"owner".to_owned()), "{spans:?}");
    let all = there.ok(&["tree", "show", &tree, "--all"]).await;
    assert!(all["nodes"].as_array().unwrap().iter().any(|node| node["author"] == *stranger), "{all}");
    for format in ["html", "annotations"] {
        let written = String::from_utf8(there.exported(&[&tree, "--format", format]).await).unwrap();
        let digest = stranger.split(['/', ':']).nth(1).unwrap();
        assert!(written.contains(digest), "{format}: {written}");
    }
    assert_eq!(there.verify(&tree).await, "valid");
    there.ok(&["tree", "trust", &tree]).await;
    let (nodes, spans) = authors(&there, &tree).await;
    assert!(nodes.iter().chain(&spans).all(|name| name == "owner"), "{nodes:?} {spans:?}");
}

#[tokio::test]
async fn s13_odd_times_are_kept_and_told() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell.").await;
    let file = String::from_utf8(here.exported(&[&tree]).await).unwrap();
    let there = TestHome::at_time(946_684_800_000 - 2 * 86_400_000);
    there.import(file.as_bytes(), &[]).await.unwrap();
    assert!(there.notes().iter().any(|note| note.contains("before 2000 or in the future")));
    let times = |shown: serde_json::Value| {
        let nodes = shown["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node["created"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let shown = times(there.ok(&["tree", "show", &tree]).await);
    assert_eq!(shown, times(here.ok(&["tree", "show", &tree]).await));
    // A clock of the same days finds nothing odd in it.
    let near = TestHome::new();
    near.import(file.as_bytes(), &[]).await.unwrap();
    assert!(!near.notes().iter().any(|note| note.contains("before 2000")));
}

#[tokio::test]
async fn one_node_is_trusted_and_is_from_outside_again_where_it_is_imported() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let there = TestHome::new();
    there.import(&here.exported(&[&tree]).await, &[]).await.unwrap();
    let all = there.ok(&["tree", "show", &tree, "--all"]).await;
    let node = field(&all["nodes"].as_array().unwrap()[1], "short_id");
    let trust = ["tree", "trust", &tree, &node, "--yes"];
    let done = there.ok(&trust).await;
    assert_eq!(
        (field(&done["changed"][0], "short_id"), done["taints"].as_array().unwrap().len()),
        (node.clone(), 0)
    );
    assert_eq!(trusts(&there, &tree).await, [("human".to_owned(), "workspace".to_owned())]);
    assert_eq!(there.err(&trust).await.code, "not_outside");
    assert_eq!(there.verify(&tree).await, "valid");

    let elsewhere = TestHome::new();
    elsewhere.import(&there.exported(&[&tree]).await, &[]).await.unwrap();
    assert_eq!(trusts(&elsewhere, &tree).await, [("human".to_owned(), "outside".to_owned())]);
    elsewhere.ok(&trust).await;
    assert_eq!(trusts(&elsewhere, &tree).await, [("human".to_owned(), "workspace".to_owned())]);
    elsewhere.ok(&["tree", "trust", &tree, &node, "--off"]).await;
    assert_eq!(trusts(&elsewhere, &tree).await, [("human".to_owned(), "outside".to_owned())]);
    assert_eq!(elsewhere.verify(&tree).await, "valid");
}
