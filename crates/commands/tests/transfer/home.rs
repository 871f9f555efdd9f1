//! Homes in temporary folders, with commands typed as on the command line.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use drawloom_commands::app::Models;
use drawloom_commands::frontend::{Confirmation, Frontend};
use drawloom_commands::settings::Settings;
use drawloom_commands::{App, Asker, Command, CommandError, CommandOutcome};
use model::script::{ScriptModel, ScriptOptions};
use model::{Cancel, Clock, Model};
use serde_json::Value;
use store::Store;
use store::home::{Home, HomeOptions};
use store::instance::InstanceId;
use text::mask::{Masker, Secret};
use workspace::{FileError, StoreGuard};

/// The secret every test home knows.
pub(crate) const SECRET: &str = "sk-very-secret-value-123";

/// A home on disk.
pub(crate) struct TestHome {
    pub(crate) app: App,
    pub(crate) talk: Arc<Recorder>,
    pub(crate) dir: tempfile::TempDir,
}

impl TestHome {
    /// An empty home whose clock begins at this day.
    pub(crate) fn new() -> Self {
        Self::at_time(1_760_000_000_000)
    }

    /// An empty home whose clock begins at this time, in ms since 1970.
    pub(crate) fn at_time(now: i64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home"), HomeOptions::default()).unwrap();
        let store = Arc::new(Store::open(&home.database()).unwrap());
        let talk = Arc::<Recorder>::default();
        let ticks = Arc::new(AtomicI64::new(now));
        let guard = StoreGuard::of(&home.database()).unwrap();
        let runtime = agent::Runtime::new(
            store,
            Arc::new(home),
            InstanceId::generate(1_760_000_000_000).unwrap(),
            Clock::new(move || ticks.fetch_add(1, Ordering::Relaxed)),
            Arc::new(Masker::new(&[Secret::new("KEY", SECRET).unwrap()]).unwrap()),
        );
        let app = App {
            runtime,
            sessions: agent::session::Sessions::default(),
            guard,
            models: Arc::new(Echo),
            workspace: drawloom_commands::app::Workspace::default(),
            settings: Settings::default(),
            servers: drawloom_commands::Servers::default(),
            frontend: Arc::clone(&talk) as Arc<dyn Frontend>,
            cancel: Cancel::never(),
        };
        Self { app, talk, dir }
    }

    /// A path in the folder of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) async fn run(&self, words: &[&str]) -> Result<CommandOutcome, CommandError> {
        self.app.run(&Asker::owner(), parsed(words)).await
    }

    /// The result of a command that is done, as JSON.
    pub(crate) async fn ok(&self, words: &[&str]) -> Value {
        match self.run(words).await {
            Ok(outcome) => serde_json::to_value(outcome).unwrap(),
            Err(error) => panic!("{words:?}: {error:?}"),
        }
    }

    /// The error of a command that is not done.
    pub(crate) async fn err(&self, words: &[&str]) -> CommandError {
        match self.run(words).await {
            Err(error) => {
                assert!(!error.message.is_empty() && !error.hint.is_empty(), "{words:?}: {error:?}");
                error
            }
            Ok(outcome) => panic!("{words:?} was done: {outcome:?}"),
        }
    }

    /// The id of a new document with a first text.
    pub(crate) async fn tree(&self, text: &str) -> String {
        field(&self.ok(&["tree", "new", "--title", "A walk", "--text", text]).await, "tree")
    }

    /// The text of a view.
    pub(crate) async fn text(&self, tree: &str, view: &str) -> String {
        field(&self.ok(&["tree", "text", tree, "--view", view]).await, "text")
    }

    /// The status `tree verify` gives.
    pub(crate) async fn verify(&self, tree: &str) -> String {
        let found = self.ok(&["tree", "verify", tree]).await;
        assert!(found["status"] == "valid" || found["problems"][0].is_object(), "{found}");
        field(&found, "status")
    }

    /// An export that goes to standard output.
    pub(crate) async fn exported(&self, words: &[&str]) -> Vec<u8> {
        let words = [&["tree", "export"], words].concat();
        match self.run(&words).await.unwrap() {
            CommandOutcome::Exported(exported) => exported.body.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Writes a file and imports it.
    pub(crate) async fn import(&self, bytes: &[u8], more: &[&str]) -> Result<Value, CommandError> {
        let path = self.write(bytes);
        let words = [&["import", path.to_str().unwrap()], more].concat();
        self.run(&words).await.map(|outcome| serde_json::to_value(outcome).unwrap())
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("file.jsonl");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// What was said to the person.
    pub(crate) fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.talk.notes.lock().unwrap())
    }

    /// A document with something of everything: an answer, versions, branches, marks, a second view.
    pub(crate) async fn rich(&self) -> String {
        let tree = self.tree("The rain fell. ").await;
        let made = self.ok(&["tree", "generate", &tree, "-n", "2"]).await;
        let answer = field(&made["nodes"][0], "id");
        self.ok(&["tree", "switch", &tree, &answer]).await;
        self.ok(&["tree", "append", &tree, "Then it stopped."]).await;
        self.ok(&["tree", "view", "new", &tree, "second"]).await;
        let edited =
            self.ok(&["tree", "edit", &tree, &answer, "--text", "It echoed. ", "--as", "version"]).await;
        assert!(edited.is_object());
        self.ok(&["tree", "bookmark", &tree, &answer, "here"]).await;
        self.ok(&["tree", "tag", &tree, &answer, "good"]).await;
        self.ok(&["tree", "annotate", &tree, &answer, "a remark"]).await;
        self.ok(&["tree", "note", &tree, "--text", "Keep it quiet."]).await;
        self.ok(&["tree", "append", &tree, " And then?"]).await;
        self.ok(&["tree", "undo", &tree]).await;
        self.ok(&["tree", "seal", &tree]).await;
        tree
    }
}

/// A field that holds text.
pub(crate) fn field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

/// The words of a path.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(subcommand)]
    command: Command,
}

fn parsed(words: &[&str]) -> Command {
    Typed::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}")).command
}

/// A person who says what the test told them to.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) yes: Mutex<bool>,
}

impl Frontend for Recorder {
    fn note(&self, line: &str) {
        self.notes.lock().unwrap().push(line.to_owned());
    }

    fn delta(&self, _: loom::NodeId, _: &str) {}

    fn confirm(&self, _: &str) -> Confirmation {
        if *self.yes.lock().unwrap() { Confirmation::Yes } else { Confirmation::Nobody }
    }

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}

struct Echo;

impl Models for Echo {
    fn find(&self, _: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        Ok(Arc::new(ScriptModel::echo(ScriptOptions::default())))
    }
}
