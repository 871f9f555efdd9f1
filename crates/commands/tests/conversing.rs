//! Conversations and their slash commands, as every surface runs them, on every kind of store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, in its helpers too")]
#![allow(dead_code, reason = "the support is shared with other tests")]

#[path = "conversing/answering.rs"]
mod answering;
#[path = "support/home.rs"]
mod home;
#[path = "conversing/interleaving.rs"]
mod interleaving;
#[path = "conversing/settings.rs"]
mod settings;
#[path = "conversing/window.rs"]
mod window;

use async_trait::async_trait;
use drawloom_commands::args::chat::{ChatArgs, RequestArgs};
use drawloom_commands::args::think::Think;
use drawloom_commands::chat::Conversation;
use drawloom_commands::slash::SlashOutcome;
use drawloom_commands::{Asker, CommandError, CommandOutcome};
use home::{TestHome, field, homes};
use model::retry::RetryPolicy;
use model::script::ScriptOptions;
use model::{
    CallOrigin, EncodeError, EncodedRequest, Exchange, Model, ModelError, ModelInfo, ModelPlace, Params,
    Prompt, RawResponse, ScriptModel,
};
use serde_json::{Value, json};

/// A conversation in the session `main`, with an echo unless the test sets another model.
struct Talk<'a> {
    home: &'a TestHome,
    conversation: Conversation,
}

impl<'a> Talk<'a> {
    async fn new(home: &'a TestHome) -> Self {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        Self::as_set(home).await
    }

    async fn as_set(home: &'a TestHome) -> Self {
        let conversation =
            Conversation::open(&home.app, &Asker::owner(), &ChatArgs::default()).await.unwrap();
        Self { home, conversation }
    }

    async fn take(&mut self, line: &str) -> Result<SlashOutcome, CommandError> {
        self.conversation.take(&self.home.app, &Asker::owner(), line).await
    }

    /// What comes of a line, of a text its answer.
    async fn done(&mut self, line: &str) -> Result<SlashOutcome, CommandError> {
        match self.take(line).await? {
            SlashOutcome::Turn => {
                let done = self.conversation.answer(&self.home.app, &Asker::owner()).await?;
                Ok(SlashOutcome::Done(Box::new(CommandOutcome::Chatted(done))))
            }
            other => Ok(other),
        }
    }

    /// The result of a line, as JSON.
    async fn ok(&mut self, line: &str) -> Value {
        match self.done(line).await {
            Ok(SlashOutcome::Done(outcome)) => serde_json::to_value(outcome).unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    async fn err(&mut self, line: &str) -> CommandError {
        self.done(line).await.unwrap_err()
    }

    /// What was said and answered, as the conversation shows it.
    async fn texts(&mut self) -> Vec<String> {
        let status = self.ok("/status").await;
        let Some(tree) = status["tree"].as_str() else { return Vec::new() };
        let (_, fork) = self.conversation.name().split_once(':').map_or_else(
            || (String::new(), "main".to_owned()),
            |(session, fork)| (session.to_owned(), fork.to_owned()),
        );
        let nodes = self.home.nodes(tree, &["--view", &fork]).await;
        let texts = nodes.iter().map(|node| field(node, "text"));
        texts.filter(|text| !text.is_empty()).collect()
    }
}

#[tokio::test]
async fn undo_redo_and_edit_go_by_turns() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        talk.ok("two").await;
        assert_eq!(talk.texts().await, ["one", "one", "two", "two"]);
        let undone = talk.ok("/undo").await;
        assert_eq!(undone["text"], "one", "question and answer are one step: {undone}");
        assert_eq!(talk.texts().await, ["one", "one"]);
        talk.ok("/redo").await;
        assert_eq!(talk.texts().await, ["one", "one", "two", "two"]);

        let edited = talk.ok("/edit three").await;
        assert_eq!(edited["text"], "three", "it is answered anew");
        assert_eq!(talk.texts().await, ["one", "one", "three", "three"]);
        talk.ok("/undo").await;
        assert_eq!(talk.texts().await, ["one", "one", "two", "two"], "the edit was beside it");

        let tree = field(&talk.ok("/status").await, "tree");
        let first = home.nodes(&tree, &[]).await.into_iter().find(|node| node["text"] == "one").unwrap();
        talk.ok(&format!("/edit @{} zero", field(&first, "short_id"))).await;
        assert_eq!(talk.texts().await, ["zero", "zero"]);
        let answer = home.nodes(&tree, &[]).await.pop().unwrap();
        let wrong = talk.err(&format!("/edit @{} x", field(&answer, "short_id"))).await;
        assert_eq!(wrong.code, "not_found", "answers are the model's words");
        assert_eq!(talk.ok("/verify").await["status"], "valid");
    }
}

/// What a piece of work comes to, and its statements.
async fn counted<T>(home: &TestHome, work: impl Future<Output = T>) -> (T, u64) {
    let statements = || home.app.runtime.store.statement_counts().statements;
    let before = statements();
    (work.await, statements() - before)
}

#[tokio::test]
async fn a_call_reads_its_session_once_and_its_files_once() {
    for home in homes() {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        home.ok(&["chat", "-m", "one"]).await;
        // Its task gives the session back a moment later, which is a statement too.
        home.app.sessions.close_all().await;
        let (asker, args) = (Asker::owner(), ChatArgs::default());
        let chosen = agent::SessionChoice {
            workspace: home.app.workspace.key.clone(),
            name: agent::session::Name::default(),
            kind: store::SessionKind::Main,
        };
        // Names and identities are known from then on.
        drop(home.app.runtime.session(&asker.principal, &chosen).await.unwrap());
        let (found, once) = counted(&home, home.app.runtime.session(&asker.principal, &chosen)).await;
        assert!(found.unwrap().is_some() && once > 0);
        let (opened, statements) = counted(&home, Conversation::open(&home.app, &asker, &args)).await;
        assert_eq!(statements, once, "when it is opened");
        let opened = opened.unwrap();
        let (entered, statements) = counted(&home, opened.entered(&home.app, &asker)).await;
        assert!(entered.unwrap().is_some());
        assert_eq!(statements, 0, "and not again");
    }
}

#[tokio::test]
async fn a_fork_goes_on_beside_what_stays() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        assert_eq!(talk.err("/fork").await.exit, 2, "nothing was said yet");
        talk.ok("one").await;
        assert_eq!(talk.ok("/fork alt").await["session"], "main:alt");
        talk.ok("two").await;
        assert_eq!(talk.texts().await, ["one", "one", "two", "two"]);
        talk.ok("/undo").await;
        assert_eq!(talk.texts().await, ["one", "one"], "each line has its own timeline");
        talk.ok("/redo").await;
        talk.ok("/switch main").await;
        assert_eq!(talk.texts().await, ["one", "one"]);
        talk.ok("three").await;
        talk.ok("/switch main:alt").await;
        assert_eq!(talk.texts().await, ["one", "one", "two", "two"]);
        assert_eq!(talk.ok("/fork").await["session"], "main:fork-1");
        assert_eq!(talk.err("/fork alt").await.code, "exists");
        assert_eq!(talk.err("/fork a:b").await.exit, 2);
        assert_eq!(talk.err("/switch main:gone").await.code, "not_found");
        let listed = talk.ok("/sessions").await;
        assert_eq!(listed["sessions"][0]["forks"], json!(["alt", "fork-1"]));
    }
}

#[tokio::test]
async fn a_flag_holds_in_each_session_until_something_newer_is_chosen_there() {
    for home in homes() {
        drop(Talk::new(&home).await);
        home.ok(&["chat", "--session", "third", "-m", "before"]).await;
        let args = ChatArgs {
            request: RequestArgs { think: Some(Think::High), ..RequestArgs::default() },
            ..ChatArgs::default()
        };
        let conversation = Conversation::open(&home.app, &Asker::owner(), &args).await.unwrap();
        let mut talk = Talk { home: &home, conversation };
        talk.ok("one").await;
        talk.ok("/new other").await;
        talk.ok("two").await;
        assert_eq!(talk.ok("/think").await["thinking"], "high");
        talk.ok("/switch main").await;
        talk.ok("/think low").await;
        talk.ok("/switch third").await;
        assert_eq!(talk.ok("/think").await["thinking"], "high", "where nothing was chosen");
        talk.ok("/switch main").await;
        assert_eq!(talk.ok("/think").await["thinking"], "low", "where something was");
        talk.ok("/new fourth").await;
        talk.ok("four").await;
        let stored = async |session| home.ok(&["chat", "--session", session, "-m", "/think"]).await;
        assert_eq!(stored("fourth").await["thinking"], "low", "what was chosen goes along");
        assert_eq!(stored("other").await["thinking"], Value::Null, "a flag is of its call");
    }
}

#[tokio::test]
async fn a_fork_that_is_not_there_is_refused_before_anything_is_written() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        talk.ok("/fork alt").await;
        talk.ok("two").await;
        let before = (home.ok(&["sessions", "list"]).await, home.ok(&["tree", "list"]).await);
        for words in [
            &["chat", "--session", "brandnew:typo", "-m", "hello"][..],
            &["chat", "--session", "main:typo", "-m", "hello"],
            &["chat", "--session", "main:alt", "--new", "-m", "hello"],
            &["context", "show", "--next", "--session", "main:typo"],
            &["context", "show", "--next", "--view", "typo"],
        ] {
            let refused = home.err(words).await;
            assert_eq!((refused.code.as_ref(), refused.exit), ("not_found", 3), "{words:?}: {refused:?}");
            let after = (home.ok(&["sessions", "list"]).await, home.ok(&["tree", "list"]).await);
            assert_eq!(after, before, "{words:?}");
        }
        let said = home.ok(&["chat", "--session", "main:alt", "-m", "three"]).await;
        assert_eq!(said["session"], "main:alt", "the control");
    }
}

#[tokio::test]
async fn sessions_are_begun_switched_and_named() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        assert_eq!(talk.ok("/new").await["tree"], Value::Null);
        assert!(talk.texts().await.is_empty());
        talk.ok("two").await;
        assert_eq!(talk.texts().await, ["two", "two"]);
        talk.ok("/new plans").await;
        talk.ok("three").await;
        assert_eq!(talk.err("/new main").await.code, "exists");
        assert_eq!(talk.err("/rename main").await.code, "exists");
        assert_eq!(talk.ok("/rename ideas").await["session"], "ideas");
        talk.ok("/switch main").await;
        assert_eq!(talk.texts().await, ["two", "two"]);
        assert_eq!(talk.err("/switch plans").await.code, "not_found");
        talk.ok("/switch ideas").await;
        assert_eq!(talk.texts().await, ["three", "three"]);
        assert_eq!(talk.ok("/switch").await["sessions"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_command_asks_no_model() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("hello").await;
        let lines = [json!({"text": "one answer and no more"})];
        script(&home, &lines);
        let mut talk = Talk::as_set(&home).await;
        talk.ok("hi").await;
        for line in
            ["/help", "/status", "/context", "/context json", "/sessions", "/model", "/search hi", "/verify"]
        {
            talk.ok(line).await;
        }
        assert_eq!(
            talk.err("hello?").await.code,
            "script_exhausted",
            "the script's one line was for the text"
        );
    }
}

#[tokio::test]
async fn status_and_context_say_what_was_sent() {
    for home in homes() {
        let lines = [json!({"text": "a", "usage": {"input": 40_000, "cached": 1_000, "output": 100}})];
        script(&home, &lines);
        let mut talk = Talk::as_set(&home).await;
        let before = talk.ok("/status").await;
        assert_eq!((&before["tree"], &before["zone"]), (&Value::Null, &Value::Null));
        assert_eq!(talk.ok("/context").await, json!({"last": null, "next": null}));
        talk.ok("question").await;
        let after = talk.ok("/status").await;
        assert_eq!((&after["used"], &after["zone"]), (&json!(41_100), &json!("yellow")));
        assert_eq!(after["model"]["place"], "local");
        let context = talk.ok("/context").await;
        assert_eq!(context["last"]["used"], 41_100);
        let kinds = |name: &str| context[name]["segments"].as_array().unwrap().len();
        assert!(kinds("next") >= kinds("last") && context["next"]["manifest"].is_null());
        let next = home.ok(&["context", "show", "--next"]).await;
        assert_eq!(next["sha256"], context["next"]["sha256"], "main is the session that is meant");
        assert_eq!(home.ok(&["context", "show", "--next", "--session", "main", "--map"]).await, next);
        let unknown = home.err(&["context", "show", "--next", "--session", "other"]).await;
        assert_eq!((unknown.code.as_ref(), unknown.exit), ("not_found", 3));
    }
}

#[tokio::test]
async fn what_is_no_command_is_not_sent() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        let error = talk.err("/stauts").await;
        assert_eq!(error.code, "unknown_command");
        assert!(error.hint.contains("/status"), "{}", error.hint);
        assert_eq!(talk.err("/context everything").await.exit, 2);
        assert!(talk.texts().await.is_empty());
        assert_eq!(talk.ok("//stauts").await["text"], "/stauts");
    }
}

#[tokio::test]
async fn s5_only_an_input_line_is_a_command() {
    for home in homes() {
        let said = |expect: &str| json!({"text": "as you say", "expect": expect});
        script(&home, &[said("/status"), said("//quit")]);
        for text in ["/status", "//quit"] {
            *home.talk.input.lock().unwrap() = text.as_bytes().to_vec();
            let done = home.ok(&["chat", "-m", "-"]).await;
            assert_eq!(done["text"], "as you say", "standard input is text for the model");
        }
        let status = home.ok(&["chat", "-m", "/status"]).await;
        assert!(status["text"].is_null() && status["session"] == "main", "the control: {status}");

        script(&home, &[said("/undo")]);
        let file = home.dir.path().join("note.txt");
        std::fs::write(&file, "/undo").unwrap();
        let done = home.ok(&["chat", "-m", "look", "--file", file.to_str().unwrap()]).await;
        assert_eq!(done["text"], "as you say");
    }
}

#[tokio::test]
async fn a_known_secret_is_masked_in_edits_and_queues() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        talk.ok("one").await;
        let edited = talk.ok(&format!("/edit the key is {}", home::SECRET)).await;
        assert!(!edited["text"].as_str().unwrap().contains(home::SECRET), "{edited}");
        let SlashOutcome::Queue(text) = talk.take(&format!("/queue {}", home::SECRET)).await.unwrap() else {
            panic!("queued")
        };
        assert!(!text.contains(home::SECRET));
    }
}

#[tokio::test]
async fn an_export_is_a_new_file_of_what_the_conversation_shows() {
    for home in homes() {
        let mut talk = Talk::new(&home).await;
        let file = |name: &str| home.dir.path().join(name);
        let to = |name: &str| format!("{}", file(name).display());
        assert_eq!(talk.err(&format!("/export {}", to("a.md"))).await.exit, 3, "nothing was said yet");
        talk.ok("one").await;
        talk.ok("/fork alt").await;
        talk.ok("two").await;
        talk.ok(&format!("/export {}", to("a.md"))).await;
        talk.ok("/switch main").await;
        let done = talk.ok(&format!("/export text {}", to("b.md"))).await;
        assert_eq!(done["file"], json!(to("b.md")));
        let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
        assert!(read("a.md").contains("two") && !read("b.md").contains("two"), "the fork it is in");
        for (name, begins) in [("c.html", "<!doctype html"), ("c.jsonl", "{")] {
            talk.ok(&format!("/export {}", to(name))).await;
            assert!(read(name).to_lowercase().starts_with(begins), "{name}");
        }
        let before = read("a.md");
        let refused = talk.err(&format!("/export html {}", to("a.md"))).await;
        assert_eq!((refused.code.as_ref(), refused.exit), ("exists", 2), "it was not even asked for");
        assert_eq!(read("a.md"), before);
        assert_eq!(talk.err("/export pdf").await.exit, 2);
    }
}

#[tokio::test]
async fn the_first_request_that_leaves_the_machine_is_said() {
    for home in homes() {
        let told = || {
            home.talk.notes.lock().unwrap().iter().filter(|note| note.contains("leaves this machine")).count()
        };
        let mut talk = Talk::new(&home).await;
        talk.ok("near").await;
        assert_eq!(told(), 0);
        home.models.set(Far::new());
        let model = talk.ok("/model far/away").await;
        assert!(model["notice"].as_str().unwrap().contains("leaves this machine"));
        talk.ok("far").await;
        talk.ok("far again").await;
        assert_eq!(told(), 1);
        let mut again = Talk::as_set(&home).await;
        again.ok("still far").await;
        assert_eq!(told(), 1, "the session's requests went there before");
        again.ok("/new").await;
        again.ok("anew").await;
        assert_eq!(told(), 1, "of the same session it was said");
    }
}

fn script(home: &TestHome, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let options = ScriptOptions { retry: RetryPolicy::never(), ..ScriptOptions::default() };
    home.models.set(ScriptModel::from_text("story.jsonl", &text, options).unwrap());
}

/// An echo on another machine.
struct Far {
    echo: ScriptModel,
    info: ModelInfo,
}

impl Far {
    fn new() -> Self {
        let echo = ScriptModel::echo(ScriptOptions::default());
        let info = ModelInfo { provider: "far".into(), place: ModelPlace::Remote, ..echo.info().clone() };
        Self { echo, info }
    }
}

#[async_trait]
impl Model for Far {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn encode(&self, prompt: &Prompt, params: &Params) -> Result<EncodedRequest, EncodeError> {
        self.echo.encode(prompt, params)
    }

    async fn send(
        &self,
        request: &EncodedRequest,
        call: &CallOrigin,
        exchange: Exchange<'_>,
    ) -> Result<RawResponse, ModelError> {
        self.echo.send(request, call, exchange).await
    }
}

#[tokio::test]
async fn what_would_be_sent_is_what_is_sent_and_looking_writes_nothing() {
    for home in homes() {
        let talk = Talk::new(&home).await;
        let look = async |more: &[&str]| home.ok(&[&["context", "show", "--next"], more].concat()).await;
        for text in ["hello", "and again, at some length"] {
            let trees = home.ok(&["tree", "list"]).await;
            let ahead = look(&["-m", text, "--text"]).await;
            assert_eq!(home.ok(&["tree", "list"]).await, trees, "no tree and no node is made");
            assert!(ahead["manifest"].is_null(), "{ahead}");
            let newest = ahead["segments"].as_array().unwrap().iter().rfind(|s| s["kind"] == "history");
            assert!(field(newest.unwrap(), "text").contains(text), "{ahead}");
            assert_eq!(newest.unwrap()["reason"], "the newest turn");
            let longer = look(&["-m", &format!("{text}{}", " and more".repeat(50))]).await;
            assert!(longer["used"].as_u64() > ahead["used"].as_u64(), "its tokens count");

            let mut talk = Talk::as_set(&home).await;
            let node = field(&talk.ok(text).await, "node");
            let sent = home.ok(&["context", "show", &node]).await;
            assert_eq!(sent["sha256"], ahead["sha256"], "byte for byte");
            let estimates = |shown: &Value| -> u64 {
                let segments = shown["segments"].as_array().unwrap();
                segments.iter().map(|segment| segment["tokens"].as_u64().unwrap()).sum()
            };
            assert_eq!(estimates(&sent), estimates(&ahead));
        }
        drop(talk);
        let masked = look(&["-m", &format!("my key is {}", home::SECRET), "--text"]).await;
        assert!(!masked.to_string().contains(home::SECRET), "masked as what is said is: {masked}");
        assert!(home.talk.notes.lock().unwrap().iter().any(|note| note.contains("masked")));
        let other = look(&["--session", "not-yet", "-m", "hi"]).await;
        assert!(other["used"].as_u64() < masked["used"].as_u64(), "the first request of another session");
        assert_eq!(home.err(&["context", "show", "--next", "--session", "not-yet"]).await.exit, 3);
        assert_eq!(home.err(&["context", "show", "--next", "-m", " "]).await.exit, 2);
    }
}

#[tokio::test]
async fn nothing_is_said_to_a_document() {
    for home in homes() {
        home.models.set(ScriptModel::echo(ScriptOptions::default()));
        let tree = home.tree("buffer", "Once.").await;
        assert_eq!(home.err(&["context", "show", "--next", &tree, "-m", "hi"]).await.code, "usage");
        let chat = home.tree("dialogue", "Once.").await;
        let ahead = home.ok(&["context", "show", "--next", &chat, "-m", "upon a time", "--text"]).await;
        assert!(ahead.to_string().contains("upon a time"), "{ahead}");
        assert!(!home.text(&chat).await.contains("upon"), "and nothing is there");
    }
}
