//! Drift marks in `tree show`, and `tree keep`.

use model::ScriptModel;

use crate::home::{TestHome, field, homes};

/// A text, a model's continuation of it, and another: the tree, the first text, both continuations.
async fn story(home: &TestHome) -> (String, String, [String; 2]) {
    home.models.set(ScriptModel::echo(model::script::ScriptOptions::default()));
    let tree = home.tree("buffer", "one").await;
    let one = field(&home.nodes(&tree, &[]).await[1], "id");
    let mut made = Vec::new();
    for _ in 0..2 {
        made.push(field(&home.ok(&["tree", "generate", &tree]).await["nodes"][0], "id"));
    }
    (tree, one, made.try_into().unwrap())
}

async fn drifted(home: &TestHome, tree: &str, node: &str) -> bool {
    let path = home.nodes(tree, &[]).await;
    let on_path = path.iter().find(|shown| shown["id"] == node).unwrap()["drifted"].as_bool().unwrap();
    assert_eq!(home.node(tree, node).await["drifted"], on_path, "--all says the same");
    on_path
}

#[tokio::test]
async fn a_changed_basis_is_drift_until_it_is_kept() {
    for home in homes() {
        let (tree, one, [first, second]) = story(&home).await;
        assert!(!drifted(&home, &tree, &first).await);
        home.ok(&["tree", "edit", &tree, &one, "--text", "ONE  "]).await;
        assert!(!drifted(&home, &tree, &first).await, "case and white space do not count");
        home.ok(&["tree", "edit", &tree, &one, "--text", "two"]).await;
        assert!(drifted(&home, &tree, &first).await && drifted(&home, &tree, &second).await);
        home.ok(&["tree", "keep", &tree, &first]).await;
        assert!(!drifted(&home, &tree, &first).await && drifted(&home, &tree, &second).await);
        home.ok(&["tree", "keep", &tree, &first, "--below"]).await;
        assert!(!drifted(&home, &tree, &second).await);
        home.ok(&["tree", "edit", &tree, &one, "--text", "three"]).await;
        assert!(drifted(&home, &tree, &first).await, "a newer choice than the keep");
        home.ok(&["tree", "select", &tree, &one]).await;
        assert!(!drifted(&home, &tree, &first).await, "the basis is back");
    }
}

#[tokio::test]
async fn leaving_something_out_above_is_drift_too() {
    for home in homes() {
        let (tree, one, [first, _]) = story(&home).await;
        home.ok(&["tree", "exclude", &tree, &one]).await;
        assert!(drifted(&home, &tree, &first).await);
        home.ok(&["tree", "include", &tree, &one]).await;
        assert!(!drifted(&home, &tree, &first).await);
    }
}
