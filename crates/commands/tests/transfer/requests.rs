//! Requests that made no node: shown, counted, checked, forgotten, given out and taken in like those of answers.

use std::sync::Arc;

use agent::{Call, GenerationRequest, PromptRequest};
use context::{Kind, RequestPiece, Source};
use loom::{Purpose, TreeId, Trust};
use model::script::{ScriptModel, ScriptOptions};
use model::{Chat, ChatPart, Model, Params, PartId, Prompt, TextPart};
use serde_json::Value;
use store::{GenerationFilter, Principal};

use super::home::{TestHome, field};

/// Has an observer asked about a tree; the id of the request.
async fn observed(home: &TestHome, tree: &str, said: &str) -> String {
    let line = r#"{"for":"observe","text":"It rains.","usage":{"input":30,"output":5}}"#;
    let model = ScriptModel::from_text("observer", line, ScriptOptions::default()).unwrap();
    let model: Arc<dyn Model> = Arc::new(model);
    let part = PartId(0);
    let source = Source::Product { name: "what was said".to_owned() };
    let prompt = PromptRequest {
        prompt: Prompt::Chat(Chat {
            messages: vec![ChatPart::User(TextPart::new(part, said))],
            ..Chat::default()
        }),
        pieces: vec![RequestPiece::sent(vec![part], Kind::History, source, "to be observed", Trust::Owner)],
        at: None,
    };
    let ask = GenerationRequest {
        purpose: Purpose::Observe,
        tree: tree.parse::<TreeId>().unwrap(),
        source: prompt.into(),
        model,
        agent: "main".to_owned(),
        profile: None,
        params: Params::default(),
        part_of: None,
        guards: Vec::new(),
    };
    let outcome = ask.send(&home.app.runtime, &Call::owner(Arc::new(()))).await.unwrap();
    assert_eq!(outcome.reply.unwrap().text, "It rains.");
    let all = home
        .app
        .runtime
        .store
        .generations(&Principal::Owner, GenerationFilter::default(), None, 99)
        .await
        .unwrap();
    let found = all.into_iter().find(|one| one.row.manifest == outcome.manifest).unwrap();
    found.row.id.to_string()
}

fn segment(shown: &Value) -> &Value {
    let segments = shown["segments"].as_array().unwrap();
    segments.iter().find(|segment| segment["kind"] == "history").unwrap_or_else(|| panic!("{shown}"))
}

#[tokio::test]
async fn a_request_that_made_no_node_is_shown_compared_and_counted_by_its_id() {
    let home = TestHome::new();
    let tree = home.rich().await;
    let id = observed(&home, &tree, "The rain fell.").await;
    let shown = home.ok(&["context", "show", &id, "--text"]).await;
    assert_eq!((&shown["used"], &shown["estimated"]), (&30.into(), &false.into()));
    assert_eq!((field(segment(&shown), "text"), field(segment(&shown), "name")).0, "The rain fell.");
    let other = observed(&home, &tree, "The snow fell.").await;
    let diff = home.ok(&["context", "diff", &id, &other]).await;
    assert_eq!(diff["changed"].as_array().unwrap().len(), 1, "{diff}");
    let read = home.ok(&["context", "replay", &id, "--dry-run"]).await;
    assert_eq!(read["identical"], true);
    let refused = home.err(&["context", "replay", &id]).await;
    assert_eq!((refused.code.as_ref(), refused.exit), ("usage", 2), "{refused:?}");
    let costs = home.ok(&["cost", "all", "--by", "purpose"]).await;
    let row = costs["rows"].as_array().unwrap().iter().find(|row| row["key"] == "observe").unwrap();
    assert_eq!((&row["calls"], &row["output"]), (&2.into(), &10.into()));
    assert_eq!(home.verify(&tree).await, "valid");
    assert!(home.app.runtime.store.check(&Principal::Owner).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_request_that_made_no_node_goes_out_with_its_tree_and_comes_in_with_it() {
    let home = TestHome::new();
    let tree = home.rich().await;
    let id = observed(&home, &tree, "The rain fell.").await;
    let file = home.exported(&[&tree, "--with-context"]).await;
    let there = TestHome::new();
    there.import(&file, &[]).await.unwrap();
    assert_eq!(there.verify(&tree).await, "valid");
    let shown = there.ok(&["context", "show", &id, "--text"]).await;
    assert_eq!(field(segment(&shown), "text"), "The rain fell.");
    assert_eq!(shown["used"], 30, "as its response says");
    assert!(there.app.runtime.store.check(&Principal::Owner).await.unwrap().is_empty());
    assert!(file == there.exported(&[&tree, "--with-context"]).await);
    // One that says it makes nodes and does not say where is no request.
    let text = String::from_utf8(file).unwrap();
    let line = text.lines().find(|line| line.contains(&format!("\"id\":\"{id}\""))).unwrap();
    let forged =
        text.replace(line, &line.replace("\"reserved\":[]", "\"reserved\":[\"01ARZ3NDEKTSV4RRFFQ69G5FAV\"]"));
    assert_ne!(forged, text);
    let done = TestHome::new().import(forged.as_bytes(), &[]).await;
    assert!(done.is_err() || done.unwrap()["skipped"].as_array().is_some_and(|skipped| !skipped.is_empty()));
}

#[tokio::test]
async fn what_it_sent_and_was_answered_is_forgotten_with_the_text() {
    let home = TestHome::new();
    let tree = home.rich().await;
    let id = observed(&home, &tree, "The marzipan crocodile.").await;
    home.ok(&["forget", "--text", "marzipan crocodile", "--yes", "--yes"]).await;
    let left = home.ok(&["context", "show", &id, "--text"]).await;
    assert!(!left.to_string().contains("marzipan"), "{left}");
    let gone = home.err(&["context", "replay", &id, "--dry-run"]).await;
    assert_eq!(gone.code, "incomplete");
    assert_ne!(home.ok(&["tree", "verify", &tree]).await["status"], "invalid");
    assert!(home.app.runtime.store.check(&Principal::Owner).await.unwrap().is_empty());
}
