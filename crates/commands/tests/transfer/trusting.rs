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
    assert!(there.notes().iter().any(|note| note.contains("stay outside")));
}

#[tokio::test]
async fn a_tree_of_this_home_cannot_be_trusted_as_imported() {
    let here = TestHome::new();
    let tree = here.tree("The rain fell. ").await;
    let error = here.err(&["tree", "trust", &tree]).await;
    assert_eq!((error.code, error.exit), ("not_imported", 4));
}
