//! A home in a temporary folder, with commands typed as on the command line and results read as `--json` has them.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use drawloom_commands::app::Models;
use drawloom_commands::frontend::{Confirmation, EditorError, Frontend};
use drawloom_commands::settings::Settings;
use drawloom_commands::{App, Asker, Command, CommandError, CommandOutcome};
use model::{Cancel, Clock, Model};
use serde_json::Value;
use store::Store;
use store::home::{Home, HomeOptions};
use store::instance::InstanceId;
use text::mask::{Masker, Secret};
use workspace::{FileError, StoreGuard};

/// The secret every test home knows.
pub(crate) const SECRET: &str = "sk-very-secret-value-123";

/// A home with its store, its person and its model.
pub(crate) struct TestHome {
    pub(crate) app: App,
    pub(crate) talk: Arc<Recorder>,
    pub(crate) models: Arc<OneModel>,
    pub(crate) dir: tempfile::TempDir,
}

/// A home on each kind of store: every rule holds on both.
pub(crate) fn homes() -> [TestHome; 2] {
    [TestHome::new(|_| Arc::new(Store::in_memory().unwrap())), TestHome::on_disk()]
}

impl TestHome {
    /// A home with its store in a file.
    pub(crate) fn on_disk() -> Self {
        Self::new(|home| Arc::new(Store::open(&home.database()).unwrap()))
    }

    /// The home in a folder, opened again.
    #[allow(dead_code, unreachable_pub, reason = "for tests of what is on disk")]
    pub fn again(dir: tempfile::TempDir) -> Self {
        Self::at(dir, |home| Arc::new(Store::open(&home.database()).unwrap()))
    }

    fn new(store: impl FnOnce(&Home) -> Arc<Store>) -> Self {
        Self::at(tempfile::tempdir().unwrap(), store)
    }

    fn at(dir: tempfile::TempDir, store: impl FnOnce(&Home) -> Arc<Store>) -> Self {
        let home = Home::open(&dir.path().join("home"), HomeOptions::default()).unwrap();
        let store = store(&home);
        let (talk, models) = (Arc::<Recorder>::default(), Arc::<OneModel>::default());
        let ticks = AtomicI64::new(1_760_000_000_000);
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
            models: Arc::clone(&models) as Arc<dyn Models>,
            workspace: drawloom_commands::app::Workspace::default(),
            settings: Settings::default(),
            servers: drawloom_commands::Servers::default(),
            frontend: Arc::clone(&talk) as Arc<dyn Frontend>,
            cancel: Cancel::never(),
        };
        Self { app, talk, models, dir }
    }

    /// Runs a command as `asker`.
    pub(crate) async fn run_as(&self, asker: &Asker, words: &[&str]) -> Result<CommandOutcome, CommandError> {
        self.app.run(asker, parsed(words)).await
    }

    /// The result of a command that is done, as JSON.
    pub(crate) async fn ok(&self, words: &[&str]) -> Value {
        match self.run_as(&Asker::owner(), words).await {
            Ok(outcome) => serde_json::to_value(outcome).unwrap(),
            Err(error) => panic!("{words:?}: {error:?}"),
        }
    }

    /// The error of a command that is not done. Every one says what and what to do.
    pub(crate) async fn err(&self, words: &[&str]) -> CommandError {
        match self.run_as(&Asker::owner(), words).await {
            Err(error) => {
                assert!(!error.message.is_empty() && !error.hint.is_empty(), "{words:?}: {error:?}");
                error
            }
            Ok(outcome) => panic!("{words:?} was done: {outcome:?}"),
        }
    }

    /// Makes a tree with a first text and returns its id.
    pub(crate) async fn tree(&self, mode: &str, text: &str) -> String {
        field(&self.ok(&["tree", "new", "--mode", mode, "--text", text]).await, "tree")
    }

    /// Appends a text and returns the node's id.
    pub(crate) async fn append(&self, tree: &str, text: &str) -> String {
        field(&self.ok(&["tree", "append", tree, text]).await, "node")
    }

    /// The text of `main`.
    pub(crate) async fn text(&self, tree: &str) -> String {
        field(&self.ok(&["tree", "text", tree]).await, "text")
    }

    /// Nodes as `tree show` lists them, with further arguments.
    pub(crate) async fn nodes(&self, tree: &str, more: &[&str]) -> Vec<Value> {
        let words = [&["tree", "show", tree], more].concat();
        self.ok(&words).await["nodes"].as_array().unwrap().clone()
    }

    /// One node as `tree show --all` lists it.
    pub(crate) async fn node(&self, tree: &str, id: &str) -> Value {
        let all = self.nodes(tree, &["--all"]).await;
        all.into_iter().find(|node| node["id"] == id).unwrap()
    }
}

/// A field that holds text.
pub(crate) fn field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Typed {
    #[command(subcommand)]
    command: Command,
}

/// A command as typed.
pub(crate) fn parsed(words: &[&str]) -> Command {
    Typed::try_parse_from(words).unwrap_or_else(|error| panic!("{words:?}: {error}")).command
}

/// The command line as clap has it.
pub(crate) fn command_line() -> clap::Command {
    <Typed as clap::CommandFactory>::command()
}

/// A person who says nothing by themselves: notices are kept, standard input is what the test put there.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) notes: Mutex<Vec<String>>,
    pub(crate) input: Mutex<Vec<u8>>,
    /// What an editor saves in the place of what it opened.
    pub(crate) editor: Mutex<Option<Editor>>,
    /// What a person answers, no without one.
    pub(crate) answer: Mutex<Option<Answer>>,
}

pub(crate) type Answer = Box<dyn FnMut() -> bool + Send>;

pub(crate) type Editor = Box<dyn FnMut(String) -> String + Send>;

impl Frontend for Recorder {
    fn note(&self, line: &str) {
        self.notes.lock().unwrap().push(line.to_owned());
    }

    fn delta(&self, _: loom::NodeId, _: &str) {}

    fn confirm(&self, _: &str) -> Confirmation {
        match self.answer.lock().unwrap().as_mut().map(|answer| answer()) {
            Some(true) => Confirmation::Yes,
            Some(false) => Confirmation::No,
            None => Confirmation::Nobody,
        }
    }

    fn edit(&self, file: &Path) -> Result<(), EditorError> {
        let mut editor = self.editor.lock().unwrap();
        let editor = editor.as_mut().ok_or(EditorError::Missing)?;
        let saved = editor(std::fs::read_to_string(file).unwrap());
        std::fs::write(file, saved).unwrap();
        Ok(())
    }

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::Cursor::new(std::mem::take(&mut *self.input.lock().unwrap()))))
    }
}

/// One model for every name, once a test has set it.
#[derive(Default)]
pub(crate) struct OneModel(Mutex<Option<Arc<dyn Model>>>);

impl OneModel {
    /// Sets it.
    pub(crate) fn set(&self, model: impl Model + 'static) {
        *self.0.lock().unwrap() = Some(Arc::new(model));
    }
}

impl Models for OneModel {
    fn find(&self, _: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let found = self.0.lock().unwrap().clone();
        found.ok_or_else(|| CommandError::new("no_model", 5, "there is no model", "set one"))
    }
}
