//! `tree branch`, with and without a stored token.

use crate::home::{TestHome, field, homes};
use crate::probable::Probable;

#[tokio::test]
async fn a_branch_keeps_the_text_before_a_place_counted_in_clusters() {
    for home in homes() {
        let tree = home.tree("buffer", "a👩‍💻bc").await;
        let node = field(&home.nodes(&tree, &[]).await[1], "id");
        let made = home.ok(&["tree", "branch", &tree, &node, "--at", "2"]).await;
        assert_eq!(home.text(&tree).await, "a👩‍💻");
        assert_eq!(made["position"], made["tip"]);
        assert_ne!(field(&made, "node"), node);
        assert_eq!(home.node(&tree, &node).await["siblings"], 2);
    }
}

#[tokio::test]
async fn at_the_ends_nothing_is_copied() {
    for home in homes() {
        let tree = home.tree("buffer", "abc").await;
        let genesis = field(&home.nodes(&tree, &[]).await[0], "id");
        let node = field(&home.nodes(&tree, &[]).await[1], "id");
        home.append(&tree, "d").await;
        let end = home.ok(&["tree", "branch", &tree, &node, "--at", "3"]).await;
        assert_eq!((field(&end, "node"), home.text(&tree).await), (node.clone(), "abc".into()));
        let start = home.ok(&["tree", "branch", &tree, &node, "--at", "0"]).await;
        assert_eq!((field(&start, "tip"), home.text(&tree).await), (genesis.clone(), String::new()));
        let error = home.err(&["tree", "branch", &tree, &node, "--at", "4"]).await;
        assert_eq!((error.code.as_ref(), error.exit), ("offset", 2));
        assert!(error.hint.contains("0 to 3"), "{error:?}");
        assert_eq!(home.err(&["tree", "branch", &tree, &genesis, "--at", "0"]).await.exit, 2);
    }
}

async fn generated(home: &TestHome, logprobs: bool) -> (String, String) {
    home.models.set(Probable::default());
    let tree = home.tree("buffer", "It rained on").await;
    let mut words = vec!["tree", "generate", tree.as_str()];
    words.extend(logprobs.then_some(["--logprobs", "2"]).into_iter().flatten());
    let made = home.ok(&words).await;
    let node = field(&made["nodes"][0], "id");
    assert_eq!(home.text(&tree).await, "It rained on the sea");
    (tree, node)
}

#[tokio::test]
async fn a_token_the_model_did_not_take_follows_and_verifies() {
    let home = TestHome::on_disk();
    let (tree, node) = generated(&home, true).await;
    let made = home.ok(&["tree", "branch", &tree, &node, "--at", "4", "--token", "1"]).await;
    assert_eq!(home.text(&tree).await, "It rained on the hill");
    let token = home.node(&tree, &field(&made, "node")).await;
    assert_eq!((field(&token, "text"), field(&token, "author_kind")), (" hill".into(), "model".into()));
    assert_eq!(token["position"], made["tip"]);
    home.ok(&["tree", "branch", &tree, &node, "--at", "0", "--token", "1"]).await;
    assert_eq!(home.text(&tree).await, "It rained on a");
    let verified = home.ok(&["tree", "verify", &tree]).await;
    assert_eq!(verified["status"], "valid", "{verified}");
}

#[tokio::test]
async fn a_token_is_named_by_a_place_where_one_begins_and_a_rank_that_is_stored() {
    let home = TestHome::on_disk();
    let (tree, node) = generated(&home, true).await;
    let inside = home.err(&["tree", "branch", &tree, &node, "--at", "2", "--token", "0"]).await;
    assert_eq!((inside.code.as_ref(), inside.hint.as_str()), ("no_token", "tokens begin at 0 and 4"));
    let rank = home.err(&["tree", "branch", &tree, &node, "--at", "4", "--token", "2"]).await;
    assert_eq!((rank.code.as_ref(), rank.hint.as_str()), ("rank", "give --token a rank from 0 to 1"));
}

#[tokio::test]
async fn without_stored_probabilities_it_says_why() {
    let home = TestHome::on_disk();
    let (tree, node) = generated(&home, true).await;
    let typed = field(&home.nodes(&tree, &[]).await[1], "id");
    let by_hand = home.err(&["tree", "branch", &tree, &typed, "--at", "1", "--token", "0"]).await;
    assert_eq!((by_hand.code.as_ref(), by_hand.exit), ("no_probabilities", 3));
    let made = home.ok(&["tree", "branch", &tree, &node, "--at", "4", "--token", "1"]).await;
    let token = field(&made, "node");
    let chosen = home.err(&["tree", "branch", &tree, &token, "--at", "0", "--token", "0"]).await;
    assert_eq!(chosen.code, "no_probabilities");
    let edited = home.ok(&["tree", "edit", &tree, &node, "--text", " a lake"]).await;
    let edited =
        home.err(&["tree", "branch", &tree, &field(&edited, "node"), "--at", "0", "--token", "0"]).await;
    assert_eq!(edited.code, "no_probabilities");
}

#[tokio::test]
async fn the_tokens_of_an_answer_are_listed_with_what_could_have_stood_there() {
    let home = TestHome::on_disk();
    let (tree, node) = generated(&home, true).await;
    for words in [&["tree", "tokens", &tree, &node][..], &["tree", "tokens", &tree]] {
        let found = home.ok(words).await;
        assert_eq!(found["node"], node.as_str());
        assert_eq!(
            found["tokens"],
            serde_json::json!([
                {"index": 0, "at": 0, "text": " the", "logprob": -0.25, "alternatives": [
                    {"rank": 0, "text": " the", "logprob": -0.25}, {"rank": 1, "text": " a", "logprob": -1.5}]},
                {"index": 1, "at": 4, "text": " sea", "logprob": -0.9, "alternatives": [
                    {"rank": 0, "text": " sea", "logprob": -0.9}, {"rank": 1, "text": " hill", "logprob": -1.1}]},
            ])
        );
    }
    let tree = home.tree("buffer", "By hand.").await;
    let refused = home.err(&["tree", "tokens", &tree]).await;
    assert_eq!((refused.code.as_ref(), refused.exit), ("no_probabilities", 3));
    assert!(refused.hint.contains("--logprobs"), "{refused:?}");
}
