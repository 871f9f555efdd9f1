//! Asking models and reading back what was sent, through the table, on every kind of store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![allow(dead_code, reason = "the support is shared with other tests")]

#[path = "support/home.rs"]
mod home;

use home::{TestHome, field, homes};
use model::ScriptModel;
use model::retry::RetryPolicy;
use model::script::ScriptOptions;
use serde_json::{Value, json};

/// A script of these lines, without patience.
fn script(home: &TestHome, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    home.models.set(ScriptModel::from_text("story.jsonl", &text, options).unwrap());
}

fn echo(home: &TestHome) {
    home.models.set(ScriptModel::echo(ScriptOptions::default()));
}

fn ids(generated: &Value) -> Vec<String> {
    generated["nodes"].as_array().unwrap().iter().map(|node| field(node, "id")).collect()
}

#[tokio::test]
async fn the_story_holds_from_first_words_to_replay() {
    for home in homes() {
        let tree = home.tree("buffer", "It was a dark night.").await;
        script(
            &home,
            &[json!({"text": " It rained."}), json!({"text": " It snowed."}), json!({"text": " Stars."})],
        );
        let generated = home.ok(&["tree", "generate", &tree, "-n", "3"]).await;
        let made = ids(&generated);
        assert_eq!(made.len(), 3);
        let text = home.text(&tree).await;
        let first = ["It rained.", "It snowed.", "Stars."].map(|said| format!("It was a dark night. {said}"));
        assert!(first.contains(&text), "the view follows whichever is there first: {text}");

        home.ok(&["tree", "switch", &tree, &made[1]]).await;
        home.append(&tree, " Nobody came.").await;
        let edited = home.ok(&["tree", "edit", &tree, &made[1], "--text", " It hailed."]).await;
        assert_eq!(home.text(&tree).await, "It was a dark night. It hailed. Nobody came.");
        assert_eq!(edited["edited_from"], made[1].as_str());

        let spans = home.ok(&["tree", "text", &tree, "--spans"]).await;
        let kinds: Vec<_> =
            spans["spans"].as_array().unwrap().iter().map(|span| field(span, "kind")).collect();
        assert!(kinds.contains(&"model".to_owned()) && kinds.contains(&"human".to_owned()), "{kinds:?}");

        let report = home.ok(&["tree", "verify", &tree]).await;
        assert_eq!(
            (report["status"].as_str(), report["problems"].as_array().map(Vec::len)),
            (Some("valid"), Some(0))
        );

        let shown = home.ok(&["context", "show", &made[0], "--text"]).await;
        let mut at = 0;
        for segment in shown["segments"].as_array().unwrap() {
            assert_eq!(segment["bytes"][0], at, "no gap and no overlap: {segment}");
            at = segment["bytes"][1].as_u64().unwrap();
        }
        let sent: String = shown["segments"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|s| s["kind"] == "document")
            .map(|s| field(s, "text"))
            .collect();
        assert_eq!(sent, "It was a dark night.");

        let replay = home.ok(&["context", "replay", &made[0], "--dry-run"]).await;
        assert_eq!(
            (replay["identical"].as_bool(), replay["sha256"].as_str()),
            (Some(true), shown["sha256"].as_str())
        );
        echo(&home);
        let refused = home.err(&["context", "replay", &made[0]]).await;
        assert_eq!(refused.code, "usage", "to another model only if it is named: {refused:?}");
        script(&home, &[json!({"text": " Again."})]);
        let again = home.ok(&["context", "replay", &made[0]]).await;
        let node = home.node(&tree, &field(&again, "node")).await;
        assert_eq!(node["text"], " Again.");
        assert_eq!(home.text(&tree).await, "It was a dark night. It hailed. Nobody came.", "the view stays");
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn each_sibling_has_a_seed_of_its_own() {
    for home in homes() {
        let tree = home.tree("buffer", "It was a dark night.").await;
        echo(&home);
        let made = ids(&home.ok(&["tree", "generate", &tree, "-n", "3", "--seed", "7"]).await);
        for (node, seed) in made.iter().zip(7..) {
            let shown = home.ok(&["context", "show", node, "--text"]).await;
            let segments = shown["segments"].as_array().unwrap();
            let body: String = segments.iter().map(|segment| field(segment, "text")).collect();
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["seed"], seed);
        }
    }
}

#[tokio::test]
async fn undo_of_a_generation_gives_back_what_was_typed_and_keeps_the_siblings() {
    for home in homes() {
        echo(&home);
        let tree = home.tree("buffer", "Once").await;
        home.ok(&["tree", "draft", &tree, " upon a time"]).await;
        let generated = home.ok(&["tree", "generate", &tree, "-n", "2"]).await;
        let after = home.text(&tree).await;
        assert!(after.starts_with("Once upon a time echo"), "{after}");
        home.ok(&["tree", "undo", &tree]).await;
        assert_eq!(home.text(&tree).await, "Once upon a time");
        assert_eq!(field(&home.ok(&["tree", "text", &tree, "--committed"]).await, "text"), "Once");
        for id in ids(&generated) {
            home.node(&tree, &id).await;
        }
        home.ok(&["tree", "redo", &tree]).await;
        assert_eq!(home.text(&tree).await, after);
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn white_space_at_the_end_stands_once_and_verifies() {
    for home in homes() {
        let tree = home.tree("buffer", "The rain. ").await;
        script(&home, &[json!({"text": " It fell.", "expect": "The rain."})]);
        home.ok(&["tree", "generate", &tree]).await;
        assert_eq!(home.text(&tree).await, "The rain. It fell.");
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_leaves_an_interrupted_node() {
    for home in homes() {
        let tree = home.tree("buffer", "The rain").await;
        script(&home, &[json!({"deltas": [" fell", " on", " the"], "fault": "cut"})]);
        let error = home.err(&["tree", "generate", &tree]).await;
        assert_eq!(error.exit, 5, "{error:?}");
        assert!(error.message.contains("the part received is kept as"), "{error:?}");
        assert!(home.text(&tree).await.starts_with("The rain fell"), "{}", home.text(&tree).await);
        let nodes = home.nodes(&tree, &[]).await;
        assert!(nodes.last().unwrap()["finish"]["interrupted"].is_string(), "{:?}", nodes.last());
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
        // Nothing is left to be recovered.
        assert_eq!(home.app.recover().await.unwrap(), 0);
    }
}

#[tokio::test]
async fn an_answer_with_nothing_in_it_makes_no_node() {
    for home in homes() {
        let tree = home.tree("buffer", "The rain").await;
        let before = home.nodes(&tree, &["--all"]).await.len();
        script(&home, &[json!({"text": ""})]);
        let error = home.err(&["tree", "generate", &tree]).await;
        assert_eq!((error.code.as_ref(), error.exit), ("empty_completion", 5));
        for fault in ["garbage", "429", "500", "context_too_long"] {
            script(&home, &[json!({"fault": fault})]);
            let error = home.err(&["tree", "generate", &tree]).await;
            assert_eq!(error.exit, 5, "{fault}: {error:?}");
        }
        script(&home, &[json!({"for": "wrap", "text": "x"})]);
        assert_eq!(home.err(&["tree", "generate", &tree]).await.code, "script_exhausted");
        assert_eq!(home.nodes(&tree, &["--all"]).await.len(), before);
        assert_eq!(home.text(&tree).await, "The rain", "the tip stays where it was");
    }
}

#[tokio::test]
async fn a_document_is_continued_by_a_passage_unless_more_is_asked_for() {
    for home in homes() {
        echo(&home);
        let document = home.tree("document", "It rained.").await;
        let most = async |tree: &str, more: &[&str]| {
            let words = [&["tree", "generate", tree, "--dry-run"], more].concat();
            home.ok(&words).await["output_tokens"].as_u64().unwrap()
        };
        assert_eq!(most(&document, &[]).await, 96);
        assert_eq!(most(&document, &["-n", "2"]).await, 192);
        assert_eq!(most(&document, &["--max-tokens", "200"]).await, 200);
        let dialogue = home.tree("dialogue", "Hello").await;
        assert!(most(&dialogue, &[]).await > 1_000, "an answer is as long as it is");
    }
}

#[tokio::test]
async fn a_dry_run_says_what_it_would_cost_and_sends_nothing() {
    for home in homes() {
        let tree = home.tree("buffer", "The rain").await;
        echo(&home);
        let estimate =
            home.ok(&["tree", "generate", &tree, "-n", "3", "--max-tokens", "10", "--dry-run"]).await;
        assert_eq!((estimate["requests"].as_u64(), estimate["output_tokens"].as_u64()), (Some(3), Some(30)));
        assert!(estimate["input_tokens"].as_u64().unwrap() > 0);
        let next = home.ok(&["context", "show", "--next", &tree]).await;
        assert_eq!((next["estimated"].as_bool(), next["manifest"].is_null()), (Some(true), true));
    }
}

#[tokio::test]
async fn a_dialogue_is_answered_in_its_role() {
    for home in homes() {
        let tree = home.tree("dialogue", "Does it rain?").await;
        script(&home, &[json!({"text": "It does.", "expect": "Does it rain?"}), json!({"text": "Still."})]);
        home.ok(&["tree", "generate", &tree]).await;
        let last = home.nodes(&tree, &[]).await.pop().unwrap();
        assert_eq!((last["role"].as_str(), last["text"].as_str()), (Some("assistant"), Some("It does.")));
        home.append(&tree, "And now?").await;
        let made = ids(&home.ok(&["tree", "generate", &tree]).await);
        let first = field(&last, "id");
        let diff = home.ok(&["context", "diff", &first, &made[0]]).await;
        let kinds: Vec<_> =
            diff["added"].as_array().unwrap().iter().chain(diff["changed"].as_array().unwrap()).collect();
        assert!(!kinds.is_empty(), "the second request holds more: {diff}");
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    }
}

#[tokio::test]
async fn a_known_secret_in_an_answer_is_masked_and_said() {
    for home in homes() {
        let tree = home.tree("buffer", "The key is").await;
        script(&home, &[json!({"text": format!(" {} indeed", home::SECRET)})]);
        home.ok(&["tree", "generate", &tree]).await;
        assert_eq!(home.text(&tree).await, "The key is ⟦secret:KEY⟧ indeed");
        let report = home.ok(&["tree", "verify", &tree]).await;
        assert_eq!(report["status"], "incomplete", "{report}");
        assert_eq!(report["problems"][0]["gap"], "masked");
    }
}

#[tokio::test]
async fn one_byte_of_the_store_changed_by_hand_is_found_and_named() {
    let home = TestHome::on_disk();
    echo(&home);
    let tree = home.tree("buffer", "A sentence nobody else would write.").await;
    home.ok(&["tree", "generate", &tree]).await;
    let node = field(&home.nodes(&tree, &[]).await[1], "id");
    assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");
    let path = home.app.runtime.home.database();
    let TestHome { app, dir, .. } = home;
    // The last connection folds the log into the file.
    drop(app);
    let mut bytes = std::fs::read(&path).unwrap();
    let needle = b"A sentence nobody";
    let places: Vec<_> = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, part)| part == needle)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let home = TestHome::again(dir);
    let report = home.ok(&["tree", "verify", &tree]).await;
    assert_eq!(report["status"], "invalid", "{report}");
    assert!(
        report["problems"].as_array().unwrap().iter().any(|problem| problem["node"] == node.as_str()),
        "{report}"
    );
}

#[tokio::test]
async fn a_seal_covers_the_log_until_it_grows() {
    for home in homes() {
        echo(&home);
        let tree = home.tree("buffer", "Signed").await;
        home.ok(&["tree", "generate", &tree]).await;
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["assurance"], "internal");
        let sealed = home.ok(&["tree", "seal", &tree]).await;
        let report = home.ok(&["tree", "verify", &tree]).await;
        assert_eq!((report["assurance"].as_str(), &report["head"]), (Some("sealed"), &sealed["head"]));
        home.append(&tree, " and more").await;
        let report = home.ok(&["tree", "verify", &tree]).await;
        assert_eq!(
            (report["status"].as_str(), report["assurance"].as_str()),
            (Some("valid"), Some("internal"))
        );
        home.ok(&["tree", "seal", &tree]).await;
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["assurance"], "sealed");
    }
}

#[tokio::test]
async fn nothing_is_asked_for_at_a_head_a_note_or_a_remark() {
    for home in homes() {
        let tree = home.tree("buffer", "It rained.").await;
        let passage = field(&home.nodes(&tree, &[]).await[1], "id");
        home.ok(&["tree", "annotate", &tree, &passage, "a remark"]).await;
        home.ok(&["tree", "head", &tree, "--text", "A story."]).await;
        echo(&home);
        let aside = home.nodes(&tree, &["--all"]).await;
        let aside: Vec<String> = aside
            .iter()
            .filter(|node| ["a remark", "A story."].contains(&node["text"].as_str().unwrap_or_default()))
            .map(|node| field(node, "id"))
            .collect();
        assert_eq!(aside.len(), 2);
        for node in aside {
            for words in [["regenerate", &tree, &node], ["generate", &tree, &format!("--from={node}")]] {
                let refused = home.err(&[&["tree"][..], &words].concat()).await;
                assert_eq!((refused.code.as_ref(), refused.exit), ("refused", 2), "{words:?}: {refused:?}");
            }
        }
        assert_eq!(home.text(&tree).await, "It rained.");
        assert_eq!(home.ok(&["cost"]).await["rows"], json!([]), "nothing was sent");
    }
}

/// What is pruned leaves the context, and with it what stands below: nothing goes on from there, as nobody goes there.
#[tokio::test]
async fn nothing_is_asked_for_below_what_is_pruned() {
    for home in homes() {
        let tree = home.tree("buffer", "It rained.").await;
        let [pruned, below, last] = [" PRUNED.", " It snowed.", " Stars."];
        let pruned = home.append(&tree, pruned).await;
        let below = home.append(&tree, below).await;
        let last = home.append(&tree, last).await;
        home.ok(&["tree", "prune", &tree, &pruned]).await;
        home.ok(&["tree", "draft", &tree, " Typed."]).await;
        echo(&home);
        for (at, words) in [
            (&pruned, ["regenerate", &tree, &below]),
            (&below, ["regenerate", &tree, &last]),
            (&below, ["generate", &tree, &format!("--from={below}")]),
            (&last, ["generate", &tree, &format!("--from={last}")]),
        ] {
            let told =
                |error: drawloom_commands::CommandError| (error.code, error.message, error.hint, error.exit);
            let go = told(home.err(&["tree", "go", &tree, at]).await);
            for more in [&[][..], &["--dry-run"]] {
                let refused = home.err(&[&["tree"][..], &words, more].concat()).await;
                assert_eq!(told(refused), go, "{words:?} {more:?}");
            }
            assert!(go.2.contains("drawloom tree restore TREE"), "{go:?}");
        }
        // Also where it is named.
        for flag in ["--context", "--instruction"] {
            let refused = home.err(&["tree", "regenerate", &tree, &pruned, flag, &below]).await;
            assert_eq!(refused.exit, 2, "{refused:?}");
            assert!(refused.message.contains("is pruned"), "{refused:?}");
        }
        assert_eq!(home.ok(&["cost"]).await["rows"], json!([]), "nothing was sent");
        let texts = home.nodes(&tree, &["--all"]).await;
        assert!(texts.iter().all(|node| node["text"] != " Typed."), "the draft stays one: {texts:?}");
        // The control: beside it there is nothing that is hidden.
        home.ok(&["tree", "regenerate", &tree, &pruned]).await;
    }
}
