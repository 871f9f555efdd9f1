//! Requests once more: to the model that was asked and to others, on every kind of store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![allow(dead_code, reason = "the support is shared with other tests")]

#[path = "support/home.rs"]
mod home;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use drawloom_commands::app::Models;
use drawloom_commands::args::chat::ChatArgs;
use drawloom_commands::chat::Conversation;
use drawloom_commands::slash::SlashOutcome;
use drawloom_commands::{Asker, CommandError, CommandOutcome};
use home::{TestHome, field, homes};
use model::script::ScriptOptions;
use model::{
    CallOrigin, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, ModelPlace, Params,
    Prompt, RawResponse, ScriptModel,
};
use serde_json::Value;

/// An echo under another name, in another place: what it is asked is noted.
struct Other {
    info: ModelInfo,
    script: ScriptModel,
    asked: Arc<Mutex<Vec<Value>>>,
}

#[async_trait]
impl Model for Other {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.script.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.asked.lock().unwrap().push(serde_json::from_slice(request.body()).unwrap());
        self.script.send(request, call, exchange).await
    }
}

/// Models by name, and what all of them were asked.
#[derive(Default)]
struct Named {
    models: HashMap<String, Arc<dyn Model>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Named {
    fn with(mut self, name: &str, place: ModelPlace, window: u32) -> Self {
        let script = ScriptModel::echo(ScriptOptions::default());
        let (provider, model) = name.split_once('/').unwrap();
        let info = ModelInfo {
            provider: provider.to_owned(),
            name: model.to_owned(),
            place,
            window,
            output_limit: window / 8,
            host: Some(format!("{provider}.test")),
            ..script.info().clone()
        };
        let other = Other { info, script, asked: Arc::clone(&self.asked) };
        self.models.insert(name.to_owned(), Arc::new(other));
        self
    }
}

impl Models for Named {
    fn find(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let found = name.and_then(|name| self.models.get(name)).cloned();
        found.ok_or_else(|| CommandError::not_found("model", name.unwrap_or("default"), "none"))
    }
}

/// A home in which `here/a` is asked unless another one is named; returns what is asked.
fn furnish(home: &mut TestHome) -> Arc<Mutex<Vec<Value>>> {
    let models = Named::default()
        .with("here/a", ModelPlace::Local, 32_000)
        .with("here/b", ModelPlace::Local, 32_000)
        .with("here/small", ModelPlace::Local, 2_400)
        .with("far/m", ModelPlace::Remote, 200_000)
        .with("far/n", ModelPlace::Remote, 200_000)
        .with("other/m", ModelPlace::Remote, 200_000);
    let asked = Arc::clone(&models.asked);
    home.app.models = Arc::new(models);
    name(home, None);
    asked
}

/// Names a model on the command line; without, `here/a` is the one of the configuration.
fn name(home: &mut TestHome, named: Option<&str>) {
    home.app.settings.named = named.map(str::to_owned);
    home.app.settings.model = Some(named.unwrap_or("here/a").to_owned());
}

/// Says something in `main`; the node of the answer.
async fn say(home: &TestHome, text: &str) -> (String, String) {
    let mut talk = Conversation::open(&home.app, &Asker::owner(), &ChatArgs::default()).await.unwrap();
    let taken = talk.take(&home.app, &Asker::owner(), text).await.unwrap();
    assert_eq!(taken, SlashOutcome::Turn);
    let outcome = talk.answer(&home.app, &Asker::owner()).await.unwrap();
    talk.close(&home.app, &Asker::owner()).await.unwrap();
    let said = serde_json::to_value(outcome).unwrap();
    (field(&said, "node"), field(&said, "tree"))
}

fn messages(request: &Value) -> Vec<(String, String)> {
    let all = request["messages"].as_array().unwrap();
    all.iter().map(|one| (field(one, "role"), field(one, "content"))).collect()
}

fn notes(home: &TestHome) -> String {
    std::mem::take(&mut *home.talk.notes.lock().unwrap()).join("\n")
}

#[tokio::test]
async fn another_model_gets_the_same_sources_in_a_request_of_its_own() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        say(&home, "one").await;
        let (node, tree) = say(&home, "two").await;
        let (last, _) = say(&home, "three").await;
        let first = home.ok(&["context", "show", &node]).await;
        asked.lock().unwrap().clear();
        notes(&home);
        name(&mut home, Some("here/b"));
        let before = home.ok(&["tree", "log", &tree]).await["operations"].as_array().unwrap().len();

        let looked = home.ok(&["context", "replay", &node, "--dry-run"]).await;
        assert!(asked.lock().unwrap().is_empty(), "a dry run sends nothing");
        assert_eq!((looked["identical"].as_bool(), looked["node"].as_str()), (Some(false), None));

        let done = home.ok(&["context", "replay", &node]).await;
        assert_eq!((done["identical"].as_bool(), &done["sha256"]), (Some(false), &looked["sha256"]));
        let told = notes(&home);
        assert!(told.contains("went to here/a; for here/b it is built again"), "{told}");
        let request = asked.lock().unwrap().pop().unwrap();
        let texts: Vec<_> = messages(&request).into_iter().map(|(_, text)| text).collect();
        assert!(texts.iter().any(|text| text.contains("a: one")), "the answer of another model: {texts:?}");
        assert!(texts.last().unwrap().ends_with("two"), "and nothing that came later: {texts:?}");

        let sibling = field(&done, "node");
        let shown = home.node(&tree, &sibling).await;
        assert_eq!(shown["parent"], home.node(&tree, &node).await["parent"], "a sibling");
        let second = home.ok(&["context", "show", &sibling]).await;
        assert_eq!((&second["model"], &second["sha256"]), (&"here/b".into(), &done["sha256"]));
        assert_ne!(first["manifest"], second["manifest"], "with a manifest of its own");
        let log = home.ok(&["tree", "log", &tree]).await["operations"].as_array().unwrap().len();
        assert_eq!(log, before + 1, "the answer, and nothing besides");
        assert!(home.text(&tree).await.contains("three"), "the view stays");
        assert_eq!(home.ok(&["tree", "verify", &tree]).await["status"], "valid");

        // The one that was asked still gets its own bytes, whoever is named by the configuration.
        name(&mut home, None);
        let same = home.ok(&["context", "replay", &last]).await;
        assert_eq!(same["identical"], true);
    }
}

#[tokio::test]
async fn the_window_is_that_of_then_and_what_does_not_fit_is_said() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let (first, tree) = say(&home, &"one ".repeat(500)).await;
        say(&home, &"two ".repeat(500)).await;
        let (node, _) = say(&home, "three").await;
        home.ok(&["tree", "compact", &tree, "--to", home.nodes(&tree, &[]).await[3]["id"].as_str().unwrap()])
            .await;
        asked.lock().unwrap().clear();
        name(&mut home, Some("here/b"));
        home.ok(&["context", "replay", &node]).await;
        let texts = messages(&asked.lock().unwrap().pop().unwrap());
        assert!(texts.iter().any(|(_, text)| text.contains("one one")), "it was in the window then");
        assert!(!notes(&home).contains("left out"), "control");

        name(&mut home, Some("here/small"));
        home.ok(&["context", "replay", &node]).await;
        let texts = messages(&asked.lock().unwrap().pop().unwrap());
        assert!(!texts.iter().any(|(_, text)| text.contains("one one")), "{texts:?}");
        assert!(notes(&home).contains("characters do not fit in the window and are left out"));
        assert_eq!(home.ok(&["context", "show", &first]).await["model"], "here/a");
    }
}

#[tokio::test]
async fn what_was_changed_since_cannot_be_put_together_as_it_was() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let (early, tree) = say(&home, "one").await;
        let (node, _) = say(&home, "two").await;
        home.ok(&["tree", "edit", &tree, &early, "--text", "another one", "--as", "version"]).await;
        asked.lock().unwrap().clear();
        name(&mut home, Some("here/b"));
        let refused = home.err(&["context", "replay", &node]).await;
        assert_eq!((refused.code.as_ref(), refused.exit), ("changed", 2), "{refused:?}");
        assert!(asked.lock().unwrap().is_empty());
        home.ok(&["tree", "undo", &tree]).await;
        home.ok(&["context", "replay", &node]).await;
        assert_eq!(asked.lock().unwrap().len(), 1, "control");
        // The command runs as it stands.
        let command = refused.hint.split('`').nth(1).unwrap_or_else(|| panic!("{refused:?}"));
        let words: Vec<String> = shlex::split(command).unwrap();
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        assert_eq!(words[..2], ["tree", "regenerate"], "{refused:?}");
        home.ok(&words).await;
    }
}

#[tokio::test]
async fn a_document_goes_to_another_model_as_it_was() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let tree = home.tree("buffer", "It was a dark night.").await;
        home.ok(&["tree", "head", &tree, "--text", "A story."]).await;
        let words =
            ["tree", "generate", &tree, "--temperature", "0.5", "--max-tokens", "40", "--stop", "END"];
        let made = field(&home.ok(&words).await["nodes"][0], "id");
        home.append(&tree, " More of it.").await;
        asked.lock().unwrap().clear();
        name(&mut home, Some("here/b"));
        let replayed = home.ok(&["context", "replay", &made]).await;
        let request = asked.lock().unwrap().pop().unwrap();
        assert_eq!(request["prompt"], "A story.\n\nIt was a dark night.");
        let sampling = [&request["temperature"], &request["max_tokens"], &request["stop"][0]];
        assert_eq!(sampling, [&0.5.into(), &40.into(), &Value::from("END")]);
        // What people read names the model that answered, and how it was asked.
        home.ok(&["tree", "switch", &tree, &field(&replayed, "node")]).await;
        let stretch = home.ok(&["tree", "text", &tree, "--spans"]).await["spans"][1].clone();
        assert_eq!((&stretch["model"], &stretch["settings"]["max_tokens"]), (&"here/b".into(), &40.into()));
        for format in ["html", "annotations"] {
            let words = ["tree", "export", &tree, "--format", format];
            let Ok(CommandOutcome::Exported(exported)) = home.run_as(&Asker::owner(), &words).await else {
                panic!("{format} was not written");
            };
            let written = String::from_utf8(exported.body.unwrap()).unwrap();
            let asked = ["here/b", "temperature 0.5 · to ", "END", " · at most 40 tokens"];
            let told = written.lines().any(|line| asked.iter().all(|asked| line.contains(asked)));
            assert!(told, "{format}: {written}");
        }
        home.ok(&["tree", "head", &tree, "--text", "Another story."]).await;
        assert_eq!(home.err(&["context", "replay", &made]).await.code, "changed");
    }
}

#[tokio::test]
async fn s10_an_old_request_goes_elsewhere_only_if_the_model_is_configured_by_name() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let (node, _) = say(&home, "a secret").await;
        name(&mut home, Some("far/m"));
        let (far, _) = say(&home, "no secret").await;
        asked.lock().unwrap().clear();
        for (node, to, refused) in [
            (&node, "far/m", true),
            (&far, "other/m", true),
            (&far, "far/n", false),
            (&far, "far/m", false),
            (&node, "here/b", false),
            (&far, "here/b", false),
        ] {
            name(&mut home, Some(to));
            if refused {
                let words = ["context", "replay", node, "--yes"];
                let error = home.err(&words).await;
                assert_eq!((error.code.as_ref(), error.exit), ("elsewhere", 4), "{to}: {error:?}");
                assert!(error.hint.contains("model.replay"), "{error:?}");
                assert!(asked.lock().unwrap().is_empty(), "nothing was sent");
                home.ok(&["context", "replay", node, "--dry-run"]).await;
                assert!(asked.lock().unwrap().is_empty(), "nothing was sent");
                home.app.settings.replay = vec![to.to_owned()];
            }
            home.ok(&["context", "replay", node]).await;
            assert!(asked.lock().unwrap().pop().is_some(), "{to}");
            home.app.settings.replay.clear();
        }
    }
}

#[tokio::test]
async fn s10_a_model_that_has_moved_elsewhere_does_not_get_what_was_said_here() {
    for mut home in homes() {
        furnish(&mut home);
        let (node, _) = say(&home, "a secret").await;
        let moved = Named::default().with("here/a", ModelPlace::Remote, 32_000);
        let asked = Arc::clone(&moved.asked);
        home.app.models = Arc::new(moved);
        let refused = home.err(&["context", "replay", &node]).await;
        assert_eq!((refused.code.as_ref(), asked.lock().unwrap().len()), ("elsewhere", 0), "{refused:?}");
        home.app.settings.replay = vec!["here/a".to_owned()];
        assert_eq!(home.ok(&["context", "replay", &node]).await["identical"], true, "control");
    }
}

#[tokio::test]
async fn many_tokens_are_estimated_before_they_go_elsewhere() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        name(&mut home, Some("far/m"));
        let long = "A word and another word. ".repeat(14_000);
        let (node, _) = say(&home, &long).await;
        asked.lock().unwrap().clear();
        name(&mut home, Some("far/n"));
        let refused = home.err(&["context", "replay", &node]).await;
        assert_eq!((refused.code.as_ref(), refused.exit), ("not_confirmed", 4), "{refused:?}");
        assert!(refused.message.contains(" tokens"), "{refused:?}");
        assert!(asked.lock().unwrap().is_empty());
        home.ok(&["context", "replay", &node, "--yes"]).await;
        assert_eq!(asked.lock().unwrap().len(), 1, "control");
    }
}

/// What was pruned since leaves the context of a request that is repeated, too.
#[tokio::test]
async fn nothing_is_asked_again_below_what_was_pruned_since() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let tree = home.tree("buffer", "It rained.").await;
        let pruned = home.append(&tree, " PRUNED.").await;
        let made = home.ok(&["tree", "generate", &tree]).await;
        let node = field(&made["nodes"][0], "id");
        home.ok(&["tree", "prune", &tree, &pruned]).await;
        let sent = asked.lock().unwrap().len();
        for named in [None, Some("here/b")] {
            name(&mut home, named);
            let refused = home.err(&["context", "replay", &node]).await;
            assert_eq!((refused.code.as_ref(), refused.exit), ("refused", 2), "{named:?}: {refused:?}");
            assert!(refused.hint.contains("drawloom tree restore TREE"), "{refused:?}");
            assert_eq!(asked.lock().unwrap().len(), sent, "{named:?}");
        }
        // The control: shown again, it is asked of both.
        home.ok(&["tree", "restore", &tree, &pruned]).await;
        for named in [None, Some("here/b")] {
            name(&mut home, named);
            home.ok(&["context", "replay", &node]).await;
        }
        assert_eq!(asked.lock().unwrap().len(), sent + 2);
    }
}

/// Of a passage with versions the one that was sent is pruned: neither its bytes go out again nor itself where it is named.
#[tokio::test]
async fn a_version_that_is_pruned_is_not_sent_again() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let tree = home.tree("buffer", "It rained.").await;
        let first = home.append(&tree, " KEPT.").await;
        home.append(&tree, " Stars.").await;
        let edited = home.ok(&["tree", "edit", &tree, &first, "--text", " PRUNED."]).await;
        let pruned = field(&edited, "node");
        let made = home.ok(&["tree", "generate", &tree]).await;
        let node = field(&made["nodes"][0], "id");
        home.ok(&["tree", "prune", &tree, &pruned, "--version"]).await;
        let sent = asked.lock().unwrap().len();
        for words in [
            &["context", "replay", &node][..],
            &["tree", "generate", &tree, "--context", &pruned],
            &["tree", "generate", &tree, "--instruction", &pruned],
        ] {
            let refused = home.err(words).await;
            assert_eq!((refused.code.as_ref(), refused.exit), ("refused", 2), "{words:?}: {refused:?}");
            assert!(refused.hint.contains("--version` shows it again"), "{words:?}: {refused:?}");
        }
        assert_eq!(asked.lock().unwrap().len(), sent);
        // The control: an old version that was not sent hides nothing.
        home.ok(&["tree", "restore", &tree, &pruned, "--version"]).await;
        home.ok(&["tree", "prune", &tree, &first, "--version"]).await;
        home.ok(&["context", "replay", &node]).await;
        home.ok(&["tree", "generate", &tree, "--context", &pruned]).await;
        assert_eq!(asked.lock().unwrap().len(), sent + 2);
    }
}

/// What was given beside the path is known of a request that is named by its own id, and of the answer of a replay.
#[tokio::test]
async fn a_replay_of_a_replay_knows_what_was_given_beside_the_path() {
    for mut home in homes() {
        let asked = furnish(&mut home);
        let tree = home.tree("buffer", "It rained.").await;
        let first = field(&home.nodes(&tree, &[]).await[1], "id");
        let input = home.append(&tree, " PRUNED.").await;
        home.ok(&["tree", "go", &tree, &first]).await;
        let made = home.ok(&["tree", "generate", &tree, "--context", &input]).await;
        let node = field(&made["nodes"][0], "id");
        let replayed = field(&home.ok(&["context", "replay", &node]).await, "node");
        let (of, id) = (tree.parse().unwrap(), node.parse().unwrap());
        let made = home.app.read(&Asker::owner(), of, move |rows| rows.node(id)).await.unwrap().unwrap();
        let generation = made.node.generation.unwrap().to_string();
        home.ok(&["tree", "prune", &tree, &input]).await;
        let sent = asked.lock().unwrap().len();
        for request in [&node, &replayed, &generation] {
            for named in [None, Some("here/b")] {
                name(&mut home, named);
                let refused = home.err(&["context", "replay", request]).await;
                assert_eq!(refused.exit, 2, "{request} {named:?}: {refused:?}");
                assert!(refused.message.contains("is pruned"), "{request} {named:?}: {refused:?}");
            }
        }
        assert_eq!(asked.lock().unwrap().len(), sent);
        // The control.
        home.ok(&["tree", "restore", &tree, &input]).await;
        home.ok(&["context", "replay", &generation]).await;
    }
}
