//! Switch and select.

use crate::home::{field, homes};

#[tokio::test]
async fn switch_goes_to_a_sibling_and_on_to_where_one_was() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let one = field(&home.nodes(&tree, &[]).await[1], "id");
        let end = home.append(&tree, " more").await;
        let other =
            field(&home.ok(&["tree", "edit", &tree, &one, "--text", "1", "--as", "branch"]).await, "node");
        let moved = home.ok(&["tree", "switch", &tree, &one]).await;
        assert_eq!(field(&moved, "tip"), end);
        assert_eq!(home.text(&tree).await, "one more");
        assert_eq!(field(&home.ok(&["tree", "switch", &tree, &other]).await, "tip"), other);
        home.ok(&["tree", "prune", &tree, &one]).await;
        let error = home.err(&["tree", "switch", &tree, &one]).await;
        assert!(error.message.contains("pruned") && error.hint.contains("restore"), "{error:?}");
    }
}

#[tokio::test]
async fn select_shows_a_version_and_leaves_the_tip() {
    for home in homes() {
        let tree = home.tree("buffer", "one").await;
        let one = field(&home.nodes(&tree, &[]).await[1], "id");
        let tip = home.append(&tree, " more").await;
        let version = field(&home.ok(&["tree", "edit", &tree, &one, "--text", "ONE"]).await, "node");
        assert_eq!(field(&home.ok(&["tree", "select", &tree, &one]).await, "tip"), tip);
        assert_eq!(home.text(&tree).await, "one more");
        home.ok(&["tree", "select", &tree, &version]).await;
        assert_eq!(home.text(&tree).await, "ONE more");
        home.ok(&["tree", "prune", &tree, &version, "--version"]).await;
        assert_eq!(home.text(&tree).await, "one more");
        assert_eq!(home.err(&["tree", "select", &tree, &version]).await.exit, 2);
        let last = home.err(&["tree", "prune", &tree, &one, "--version"]).await;
        assert!(last.hint.contains("prune the position"), "{last:?}");
    }
}
