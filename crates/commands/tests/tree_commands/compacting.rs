//! `tree compact`.

use model::ScriptModel;
use model::script::ScriptOptions;

use crate::home::{TestHome, field, homes};

async fn long_document(home: &TestHome) -> (String, Vec<String>) {
    let tree = home.tree("buffer", "First paragraph of it.\n\n").await;
    let mut nodes = vec![field(&home.nodes(&tree, &[]).await[1], "id")];
    for n in 2..=8 {
        nodes.push(home.append(&tree, &format!("Paragraph number {n}.\n\n")).await);
    }
    (tree, nodes)
}

#[tokio::test]
async fn the_window_starts_where_it_is_told() {
    for home in homes() {
        let (tree, nodes) = long_document(&home).await;
        let words = ["tree", "compact", &tree, "--to", &nodes[3]];
        let said = home.ok(&[&words[..], &["--dry-run"]].concat()).await;
        assert_eq!((&said["leaves"], field(&said, "start")), (&3.into(), nodes[3].clone()));
        assert_eq!(
            (&said["covered_by"], &said["chars"]),
            (&"nothing".into(), &66.into()),
            "nothing remembers"
        );
        assert!(home.talk.notes.lock().unwrap().is_empty(), "a dry run is its own answer");
        let newest = |home: &TestHome| {
            let tree = tree.clone();
            let run = home.app.runtime.store.clone();
            async move {
                let tree = tree.parse().unwrap();
                run.tree(&store::Principal::Owner, tree).await.unwrap().seq
            }
        };
        let before = newest(&home).await;
        assert_eq!(home.ok(&words).await, said, "what was said is done");
        let told = home.talk.notes.lock().unwrap().pop().unwrap();
        assert!(told.contains(": 3, 66 characters; covered by: nothing"), "said before it is done: {told}");
        assert_eq!(newest(&home).await.0, before.0 + 1, "a dry run does nothing");
        let further = home.ok(&["tree", "compact", &tree, "--to", &nodes[5]]).await;
        assert_eq!(further["leaves"], 2);
        home.ok(&["tree", "undo", &tree]).await;
        let again = home.ok(&["tree", "compact", &tree, "--to", &nodes[5], "--dry-run"]).await;
        assert_eq!(again["leaves"], 2, "undo moved it back");
        let genesis = field(&home.nodes(&tree, &[]).await[0], "id");
        let back = home.ok(&["tree", "compact", &tree, "--to", &genesis]).await;
        assert_eq!((&back["leaves"], &back["returns"], &back["chars"]), (&0.into(), &3.into(), &66.into()));
        let all = home.ok(&["tree", "compact", &tree, "--to", &nodes[5], "--dry-run"]).await;
        assert_eq!(all["leaves"], 5, "back at the top");
    }
}

#[tokio::test]
async fn what_moves_nothing_is_no_operation() {
    for home in homes() {
        let (tree, nodes) = long_document(&home).await;
        let count = async || {
            let log = home.ok(&["tree", "log", &tree]).await;
            (log["operations"].as_array().unwrap().len(), log["operations"][0]["kind"].clone())
        };
        let to = async |at: &str| home.ok(&["tree", "compact", &tree, "--to", at]).await;
        let before = count().await;
        let nothing = to(&nodes[0]).await;
        assert_eq!((&nothing["leaves"], &nothing["returns"]), (&0.into(), &0.into()));
        assert_eq!(count().await, before);
        to(&nodes[3]).await;
        let moved = count().await;
        assert_eq!(to(&nodes[3]).await["start"], nodes[3].as_str());
        assert_eq!(count().await, moved, "it starts there already");
        let back = to(&nodes[1]).await;
        assert_eq!((&back["leaves"], &back["returns"]), (&0.into(), &2.into()));
        assert_eq!(count().await, (moved.0 + 1, "compact".into()), "the control");
    }
}

#[tokio::test]
async fn half_of_one_passage_leaves() {
    for home in homes() {
        let tree = home.tree("buffer", &"It rained on and on. ".repeat(50)).await;
        let half = home.ok(&["tree", "compact", &tree]).await;
        assert_eq!(half["leaves"], 1);
        assert!((400..700).contains(&half["chars"].as_u64().unwrap()), "{half}");
        let again = home.ok(&["tree", "compact", &tree, "--dry-run"]).await;
        assert!((150..400).contains(&again["chars"].as_u64().unwrap()), "of what was left: {again}");
        let genesis = field(&home.nodes(&tree, &[]).await[0], "id");
        let back = home.ok(&["tree", "compact", &tree, "--to", &genesis]).await;
        assert_eq!((&back["returns"], &back["chars"]), (&1.into(), &half["chars"]));
    }
}

#[tokio::test]
async fn half_leaves_at_the_beginning_of_a_paragraph() {
    for home in homes() {
        let (tree, nodes) = long_document(&home).await;
        let half = home.ok(&["tree", "compact", &tree]).await;
        assert_eq!((&half["leaves"], field(&half, "start")), (&4.into(), nodes[4].clone()));
        let half = home.ok(&["tree", "compact", &tree]).await;
        assert_eq!(
            (&half["leaves"], field(&half, "start")),
            (&2.into(), nodes[6].clone()),
            "of what was left"
        );
    }
}

#[tokio::test]
async fn half_is_of_what_the_model_would_be_sent() {
    for mut home in homes() {
        home.app.settings.model = Some("script:echo".to_owned());
        let options = ScriptOptions { window: 512, output_limit: 128, ..ScriptOptions::default() };
        home.models.set(ScriptModel::echo(options));
        let tree = home.tree("buffer", "Far above.\n\n").await;
        let mut nodes = Vec::new();
        for n in 0..200 {
            nodes.push(home.append(&tree, &format!("Paragraph {n} of a long text.\n\n")).await);
        }
        let half = home.ok(&["tree", "compact", &tree, "--dry-run"]).await;
        let start = home.node(&tree, &field(&half, "start")).await;
        assert!(start["depth"].as_u64().unwrap() > 150, "most of it is not sent anyway: {half}");
        assert!(half["leaves"].as_u64().unwrap() < 40, "{half}");
        // A start above what is sent is for models with more room.
        let moved = home.ok(&["tree", "compact", &tree, "--to", &nodes[3]]).await;
        assert_eq!((&moved["leaves"], &moved["start"]), (&0.into(), &nodes[3].as_str().into()));
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        let back = home.ok(&["tree", "compact", &tree, "--to", &nodes[0], "--dry-run"]).await;
        assert_eq!(back["returns"], 3);
    }
}

#[tokio::test]
async fn a_dialogue_is_cut_between_turns() {
    for home in homes() {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        let tree = home.tree("dialogue", "first question").await;
        for question in ["second question", "third question", "fourth question"] {
            home.ok(&["tree", "generate", &tree]).await;
            home.append(&tree, question).await;
        }
        let half = home.ok(&["tree", "compact", &tree]).await;
        let start = home.node(&tree, &field(&half, "start")).await;
        assert_eq!((field(&start, "role"), &half["leaves"]), ("user".into(), &4.into()), "{start}");
    }
}

#[tokio::test]
async fn what_cannot_be_a_start_is_refused() {
    for home in homes() {
        let (tree, nodes) = long_document(&home).await;
        let branch = ["tree", "edit", &tree, &nodes[3], "--text", "Other.", "--as", "branch"];
        home.ok(&branch).await;
        assert_eq!(home.err(&["tree", "compact", &tree, "--to", &nodes[5]]).await.exit, 2, "not on the path");
        let remark = field(&home.ok(&["tree", "annotate", &tree, &nodes[0], "hm"]).await, "node");
        assert_eq!(home.err(&["tree", "compact", &tree, "--to", &remark]).await.exit, 2);
        let empty = field(&home.ok(&["tree", "new"]).await, "tree");
        assert_eq!(home.err(&["tree", "compact", &empty]).await.code, "nothing_to_compact");
        let chat = home.tree("dialogue", "only one turn").await;
        assert_eq!(home.err(&["tree", "compact", &chat]).await.code, "nothing_to_compact");
    }
}
