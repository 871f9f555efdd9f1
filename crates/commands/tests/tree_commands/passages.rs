//! `tree merge` and `tree split`: text goes to the passage above or to an empty one below, and the path reads as before.

use model::ScriptModel;
use serde_json::Value;

use crate::home::{TestHome, field, homes};

/// A document of three passages, the second by a model, and the short ids of the passages that say something.
async fn document(home: &TestHome) -> (String, [String; 3]) {
    home.models.set(ScriptModel::echo(model::script::ScriptOptions::default()));
    let tree = home.tree("document", "It rained.").await;
    home.ok(&["tree", "generate", &tree]).await;
    home.append(&tree, " The end.").await;
    let ids = filled(home, &tree).await;
    (tree, ids.try_into().unwrap())
}

async fn filled(home: &TestHome, tree: &str) -> Vec<String> {
    let nodes = home.nodes(tree, &[]).await;
    let filled = nodes.iter().filter(|node| !field(node, "text").is_empty());
    filled.map(|node| field(node, "short_id")).collect()
}

/// Author and text of each stretch.
async fn authors(home: &TestHome, tree: &str) -> Vec<(String, String)> {
    let shown = home.ok(&["tree", "text", tree, "--spans"]).await;
    let text = field(&shown, "text");
    let clusters: Vec<&str> = text::grapheme::clusters(&text).map(|cluster| &text[cluster]).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for span in shown["spans"].as_array().unwrap() {
        let at = |name: &str| usize::try_from(span[name].as_u64().unwrap()).unwrap();
        let (author, text) = (field(span, "author"), clusters[at("start")..at("end")].concat());
        match found.last_mut() {
            Some(last) if last.0 == author => last.1 += &text,
            _ => found.push((author, text)),
        }
    }
    found
}

/// What the path shows: positions, nodes, texts, drift.
async fn state(home: &TestHome, tree: &str) -> Vec<[Value; 4]> {
    let nodes = home.nodes(tree, &[]).await;
    let names = ["position", "id", "text", "drifted"];
    nodes.iter().map(|node| names.map(|name| node[name].clone())).collect()
}

#[tokio::test]
async fn a_merged_passage_keeps_the_authors_and_everything_below() {
    for home in homes() {
        let (tree, [one, two, three]) = document(&home).await;
        let (text, before) = (home.text(&tree).await, state(&home, &tree).await);
        let wrote = authors(&home, &tree).await;
        assert!(wrote.len() == 3 && wrote[1].0 != wrote[0].0, "{wrote:?}");
        let merged = home.ok(&["tree", "merge", &tree, &two]).await;
        assert_eq!((&merged["position"], &merged["edited_from"]), (&before[1][0], &before[1][1]), "{merged}");
        assert_eq!((home.text(&tree).await, authors(&home, &tree).await), (text.clone(), wrote.clone()));
        let now = state(&home, &tree).await;
        assert_eq!((&now[1][1], &now[3]), (&merged["node"], &before[3]), "what is below is the same node");
        assert_eq!(now[2][2], "");
        // Over the empty passage, and back to where each was.
        home.ok(&["tree", "merge", &tree, &three]).await;
        assert_eq!((home.text(&tree).await, authors(&home, &tree).await), (text.clone(), wrote.clone()));
        let all = filled(&home, &tree).await;
        let [one_of_all] = &all[..] else { panic!("{all:?}") };
        let apart =
            home.ok(&["tree", "split", &tree, one_of_all, "--at", &(text.len() - 9).to_string()]).await;
        assert_eq!(field(&apart["tail"], "node"), before[3][1], "{apart}");
        assert_eq!(state(&home, &tree).await, now);
        home.ok(&["tree", "split", &tree, &field(&merged, "short_id"), "--after", "It rained."]).await;
        assert_eq!(state(&home, &tree).await, before, "texts, nodes and positions are what they were");
        assert_eq!(authors(&home, &tree).await, wrote);
        for _ in 0..4 {
            home.ok(&["tree", "undo", &tree]).await;
            assert_eq!((home.text(&tree).await, authors(&home, &tree).await), (text.clone(), wrote.clone()));
        }
        assert_eq!(state(&home, &tree).await, before, "a step each");
        let first = home.err(&["tree", "merge", &tree, &one]).await;
        assert!(
            first.exit == 2 && first.message.contains(&one) && first.message.contains("first"),
            "{first:?}"
        );
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn a_passage_parts_at_the_end_and_above_an_empty_one_only() {
    for home in homes() {
        let (tree, [one, two, three]) = document(&home).await;
        let text = home.text(&tree).await;
        let wrote = authors(&home, &tree).await;
        let refused = home.err(&["tree", "split", &tree, &one, "--after", "It"]).await;
        assert_eq!((refused.code.as_ref(), refused.exit), ("not_parted", 2), "{refused:?}");
        assert!(refused.message.contains(&two), "{refused:?}");
        assert!(refused.hint.contains("tree branch") && refused.hint.contains("tree edit"), "{refused:?}");
        let end = home.ok(&["tree", "split", &tree, &three, "--after", "The"]).await;
        let now = filled(&home, &tree).await;
        assert_eq!(now[..2], [one.clone(), two.clone()]);
        assert_eq!((&now[2], &now[3]), (&field(&end, "short_id"), &field(&end["tail"], "short_id")));
        let tail = home.nodes(&tree, &[]).await.pop().unwrap();
        assert_eq!(
            (field(&tail, "text"), &tail["active"]),
            (" end.".to_owned(), &true.into()),
            "the tip is there"
        );
        assert_eq!((home.text(&tree).await, authors(&home, &tree).await), (text.clone(), wrote.clone()));
        home.ok(&["tree", "undo", &tree]).await;
        assert_eq!(filled(&home, &tree).await, [one.clone(), two.clone(), three.clone()]);
        // A model's passage parts where an editor took out the one below it: both parts are the model's.
        home.ok(&["tree", "edit", &tree, &three, "--text", ""]).await;
        let wrote = authors(&home, &tree).await;
        home.ok(&["tree", "split", &tree, &two, "--at", "3"]).await;
        assert_eq!(authors(&home, &tree).await, wrote);
        assert_eq!(filled(&home, &tree).await.len(), 3);
        for (place, code) in [
            (["--at", "0"], "usage"),
            (["--at", "3"], "usage"),
            (["--at", "99"], "offset"),
            (["--after", "nowhere"], "not_found"),
            (["--after", ""], "usage"),
        ] {
            let named = filled(&home, &tree).await[1].clone();
            let refused = home.err(&[&["tree", "split", &tree, &named], &place[..]].concat()).await;
            assert!(refused.code == code && refused.exit != 0, "{place:?}: {refused:?}");
        }
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn words_that_stand_twice_and_what_is_not_on_the_path_are_refused() {
    let home = TestHome::on_disk();
    let tree = home.tree("document", "rain and rain").await;
    let first = filled(&home, &tree).await[0].clone();
    let twice = home.err(&["tree", "split", &tree, &first, "--after", "rain"]).await;
    assert!(twice.code == "ambiguous" && twice.message.contains("at 0 ") && twice.message.contains("at 9 "));
    let below = home.append(&tree, " more").await;
    home.ok(&["tree", "exclude", &tree, &first]).await;
    let left_out = home.err(&["tree", "merge", &tree, &below]).await;
    assert!(left_out.exit == 2 && left_out.hint.contains("tree include"), "{left_out:?}");
    home.ok(&["tree", "include", &tree, &first]).await;
    home.ok(&["tree", "go", &tree, &first]).await;
    let elsewhere = home.err(&["tree", "merge", &tree, &below]).await;
    assert!(elsewhere.message.contains("not on this view"), "{elsewhere:?}");
    let talk = home.tree("dialogue", "Hello.").await;
    let message = filled(&home, &talk).await[0].clone();
    for words in [vec!["tree", "merge", &talk, &message], vec!["tree", "split", &talk, &message, "--at", "2"]]
    {
        assert!(home.err(&words).await.message.contains("conversation"), "{words:?}");
    }
}

#[tokio::test]
async fn nothing_drifts_where_text_only_moves_and_what_had_drifted_stays_marked() {
    let home = TestHome::on_disk();
    home.models.set(ScriptModel::echo(model::script::ScriptOptions::default()));
    let tree = home.tree("document", "One is here. ").await;
    let two = home.append(&tree, "Two is there.").await;
    home.ok(&["tree", "generate", &tree]).await;
    let drifted = async || {
        let nodes = home.nodes(&tree, &[]).await;
        nodes.iter().any(|node| node["drifted"] == true)
    };
    home.ok(&["tree", "merge", &tree, &two]).await;
    assert!(!drifted().await, "the text of the path is what it was");
    let merged = filled(&home, &tree).await[0].clone();
    home.ok(&["tree", "split", &tree, &merged, "--after", "One "]).await;
    assert!(!drifted().await);
    home.ok(&["tree", "undo", &tree]).await;
    home.ok(&["tree", "undo", &tree]).await;
    assert!(!drifted().await);
    home.ok(&["tree", "edit", &tree, &two, "--text", "Two is gone."]).await;
    assert!(drifted().await, "control: text that changed is basis that changed");
    let two = filled(&home, &tree).await[1].clone();
    home.ok(&["tree", "merge", &tree, &two]).await;
    assert!(drifted().await, "a merge accepts nothing");
}

#[tokio::test]
async fn a_view_merges_for_itself_and_branches_are_named() {
    let home = TestHome::on_disk();
    let (tree, [_, two, _]) = document(&home).await;
    home.ok(&["tree", "view", "new", &tree, "mine"]).await;
    let before = state(&home, &tree).await;
    home.ok(&["tree", "merge", &tree, &two, "--view", "mine"]).await;
    assert_eq!(state(&home, &tree).await, before, "main shows what it showed");
    assert!(home.talk.notes.lock().unwrap().is_empty());
    let shown = home.ok(&["tree", "show", &tree, "--view", "mine"]).await;
    assert_eq!(shown["nodes"][2]["text"], "");
    // A second answer beside the one that is merged.
    home.ok(&["tree", "regenerate", &tree, &two]).await;
    home.ok(&["tree", "merge", &tree, &two]).await;
    let notes = home.talk.notes.lock().unwrap().clone();
    assert!(notes.iter().any(|note| note.starts_with("1 other branch goes on from")), "{notes:?}");
    let all = home.nodes(&tree, &["--all"]).await;
    assert!(before.iter().all(|old| all.iter().any(|node| node["id"] == old[1])), "every node is reached");
}
