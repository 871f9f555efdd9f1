//! What of a conversation is sent: what leaves the window, and what is read anew.

use loom::plan::NewText;
use loom::{Block, Op, Role, ToolStatus, TreeId, ViewName};
use model::ScriptModel;
use model::script::ScriptOptions;
use serde_json::{Value, json};
use store::{AttachedWrites, Principal};

use crate::Talk;
use crate::home::{TestHome, field, homes};

#[tokio::test]
async fn what_leaves_the_window_is_said_and_undo_brings_it_back() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        assert!(talk.err("/compact").await.hint.contains("/compact @NODE"));
        for text in ["two", "three", "four"] {
            talk.ok(text).await;
        }
        let sent = |context: &Value| context["next"]["segments"].to_string().contains("not covered");
        assert!(!sent(&talk.ok("/context").await));
        let done = talk.ok("/compact").await;
        assert_eq!((&done["leaves"], &done["covered_by"]), (&json!(4), &json!("nothing")));
        assert!(
            home.talk
                .notes
                .lock()
                .unwrap()
                .iter()
                .any(|note| note.contains("passages that leave the window: 4, "))
        );
        let context = talk.ok("/context").await;
        assert!(sent(&context), "the manifest says so as well: {context}");
        talk.ok("/undo").await;
        assert!(!sent(&talk.ok("/context").await), "back in the window");
        assert_eq!(talk.texts().await.len(), 8, "and no turn was taken back");
        let three = field(&home.nodes(&field(&talk.ok("/status").await, "tree"), &[]).await[5], "short_id");
        assert_eq!(talk.ok(&format!("/compact @{three}")).await["leaves"], 4);
        assert_eq!(talk.err("/compact three").await.exit, 2);
    }
}

#[tokio::test]
async fn reload_says_beforehand_what_it_costs_and_the_next_request_pays_it_once() {
    let mut home = homes().into_iter().next().unwrap();
    let folder = home.dir.path().join("ws");
    std::fs::create_dir(&folder).unwrap();
    let root = workspace::Root::open(&folder, &workspace::StoreGuard::new()).unwrap();
    home.app.workspace.root = Some(root);
    home.app.workspace.accepted = workspace::trust::Accepted::All;
    std::fs::write(folder.join("AGENTS.md"), "Be brief.\n".repeat(200)).unwrap();
    let mut talk = Talk::new(&home).await;
    assert_eq!(
        talk.ok("/reload").await,
        json!({"changed": [], "tokens": null, "reusable": null, "reusable_anew": null})
    );
    talk.ok("one").await;
    let same = talk.ok("/reload").await;
    assert_eq!(
        (&same["changed"], &same["reusable"]),
        (&json!([]), &same["reusable_anew"]),
        "nothing is lost"
    );
    std::fs::write(folder.join("AGENTS.md"), "Be very brief.\n".repeat(200)).unwrap();
    assert_eq!(home.err(&["chat", "-m", "/reload"]).await.exit, 2, "it would hold for nothing");
    let told = talk.ok("/reload").await;
    assert_eq!(told["changed"], json!(["AGENTS.md"]));
    let figures = |name: &str| told[name].as_u64().unwrap();
    assert!(figures("reusable") > 400 && figures("reusable_anew") < 100, "{told}");
    let answer = talk.ok("two").await;
    let shown = home.ok(&["context", "show", &field(&answer, "node"), "--text"]).await;
    assert!(shown["segments"].to_string().contains("Be very brief."), "{shown}");
    assert!(shown["reusable"].as_u64().unwrap() < 100, "as it was said: {shown}");
    let notes = std::mem::take(&mut *home.talk.notes.lock().unwrap()).join("\n");
    assert!(notes.contains("read again: AGENTS.md; that costs the cache about"), "{notes}");
    let answer = talk.ok("three").await;
    let shown = home.ok(&["context", "show", &field(&answer, "node")]).await;
    assert!(shown["reusable"].as_u64().unwrap() > 400, "once: {shown}");
    assert!(home.talk.notes.lock().unwrap().is_empty());
}

/// Adds what a turn of many calls leaves below its message: the calls, and a node for each result.
async fn add_results(home: &TestHome, tree: &str, count: usize) {
    let (tree, owner) = (tree.parse::<TreeId>().unwrap(), Principal::Owner);
    let call =
        |n| Block::ToolCall { id: format!("c{n}"), name: "read".to_owned(), arguments: json!({"n": n}) };
    let result = |n| Block::ToolResult {
        call_id: format!("c{n}"),
        status: ToolStatus::Ok,
        blocks: vec![Block::text(format!("line {n}"))],
    };
    let by = |role, content| NewText { role: Some(role), content, ..NewText::owner("", None) };
    let calls = by(Role::Assistant, (0..count).map(call).collect());
    let results = (0..count).map(|n| by(Role::Tool, vec![result(n)]));
    for text in std::iter::once(calls).chain(results) {
        let with = AttachedWrites::nothing();
        home.app.runtime.change(&owner, tree, &ViewName::default(), Op::Append(text), with).await.unwrap();
    }
}

#[tokio::test]
async fn a_turn_of_four_hundred_results_keeps_the_prefix_finds_its_message_and_warns_once() {
    for home in homes() {
        let script = "{\"text\":\"short\"}\n".repeat(5);
        let options = ScriptOptions { window: 50_000, ..ScriptOptions::default() };
        home.models.set(ScriptModel::from_text("s", &script, options).unwrap());
        let mut talk = Talk::as_set(&home).await;
        let first = talk.ok(&"word ".repeat(8_000)).await;
        let warnings = || {
            let notes = home.talk.notes.lock().unwrap();
            notes.iter().filter(|note| note.contains("of the window is in use")).count()
        };
        assert_eq!(warnings(), 1, "{:?}", home.talk.notes.lock().unwrap());
        let tree = field(&talk.ok("/status").await, "tree");
        add_results(&home, &tree, 400).await;

        assert_eq!(talk.ok("/zone").await["zone"], "orange", "the request before the results counts");
        let next = talk.ok("/context").await["next"].clone();
        assert!(next["reusable"].as_u64().unwrap() > 20_000, "goes on from the request before: {next}");
        let edited = talk.ok("/edit begin anew").await;
        let said = home.nodes(&tree, &[]).await;
        assert_eq!(said[said.len() - 2]["text"], "begin anew", "beside the message, not below the results");
        assert_ne!(edited["node"], first["node"]);
        talk.ok("/undo").await;
    }
}
