//! A home with nothing but a store, and commands run in it as any surface runs them.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use commands::app::Models;
use commands::args::tree::{ShowArgs, TreeCommand, Verify};
use commands::args::{TreeArg, ViewArg};
use commands::frontend::Frontend;
use commands::results::tree::{TreeShown, Verified};
use commands::settings::Settings;
use commands::{App, Asker, Command, CommandError, CommandOutcome};
use loom::plan::NewTree;
use loom::{Mode, NodeId, Op, RowError, TreeId, TreeReader, ViewName};
use model::{Cancel, Clock, Model};
use store::home::{Home, HomeOptions};
use store::instance::InstanceId;
use store::{Applied, Store};
use text::mask::Masker;
use workspace::{FileError, StoreGuard};

pub(super) const SCREEN: usize = 50;

pub(super) struct Harness {
    pub(super) app: App,
    pub(super) asker: Asker,
}

impl Harness {
    /// Opens the home in a folder, or makes it: what every command of the command line begins with.
    pub(super) fn open(path: &Path) -> Result<Self, CommandError> {
        let home = Home::open(path, HomeOptions::default()).map_err(|error| failed("open a home", error))?;
        let clock = Clock::system();
        let instance = InstanceId::generate(u64::try_from(clock.now()).unwrap_or_default())
            .map_err(|error| failed("name this run", error))?;
        let masker = Masker::new(&[]).map_err(|error| failed("prepare masking", error))?;
        let guard = StoreGuard::of(&home.database()).map_err(|error| failed("guard a store", error))?;
        let runtime = agent::Runtime::new(
            Arc::new(Store::open(&home.database())?),
            Arc::new(home),
            instance,
            clock,
            Arc::new(masker),
        );
        let app = App {
            runtime,
            sessions: agent::session::Sessions::default(),
            guard,
            models: Arc::new(NoModels),
            workspace: commands::app::Workspace::default(),
            settings: Settings::default(),
            servers: commands::Servers::default(),
            frontend: Arc::new(NoModels),
            cancel: Cancel::never(),
        };
        Ok(Self { app, asker: Asker::owner() })
    }

    pub(super) async fn new_tree(&self, title: &str) -> Result<TreeId, CommandError> {
        let now = self.app.now();
        let tree: TreeId = self.app.runtime.ids.with(|entropy| entropy.next(now))?;
        let new = NewTree { mode: Mode::Buffer, title: title.to_owned(), origin: None };
        self.change(tree, Op::Create(new)).await?;
        Ok(tree)
    }

    /// Makes a change in the view `main`.
    pub(super) async fn change(&self, tree: TreeId, op: Op) -> Result<Applied, CommandError> {
        self.app.change(&self.asker, tree, &ViewName::default(), op).await
    }

    /// Reads rows of a tree.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        tree: TreeId,
        f: impl FnOnce(&dyn TreeReader) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, CommandError> {
        self.app.read(&self.asker, tree, f).await
    }

    /// `tree show --limit 50`: the last screen of the path, with counts and drift marks.
    pub(super) async fn screen(&self, tree: TreeId) -> Result<TreeShown, CommandError> {
        let tree = TreeArg { tree: tree.to_string(), view: ViewArg::default() };
        let show =
            ShowArgs { tree, all: false, depth: None, around: None, node: None, from: None, limit: SCREEN };
        match self.app.run(&self.asker, Command::Tree(TreeCommand::Show(show))).await? {
            CommandOutcome::Shown(shown) => Ok(shown),
            _ => Err(failed("show a tree", "another answer than asked for")),
        }
    }

    /// `tree verify`, which has to find a valid tree.
    pub(super) async fn verify(&self, tree: TreeId) -> Result<Verified, CommandError> {
        let verify = Verify { tree: Some(tree.to_string()), file: None, node: None };
        match self.app.run(&self.asker, Command::Tree(TreeCommand::Verify(verify))).await? {
            CommandOutcome::Verified(found) if found.status == loom::verify::Status::Valid => Ok(found),
            CommandOutcome::Verified(found) => {
                let why = found.problems.first().map(|problem| problem.why.as_str()).unwrap_or_default();
                Err(failed("verify a generated tree", why))
            }
            _ => Err(failed("verify a tree", "another answer than asked for")),
        }
    }
}

/// An error of what the benchmark does around what it measures.
pub(super) fn failed(what: &str, why: impl std::fmt::Display) -> CommandError {
    let hint = "look at free space and at TMPDIR, which says where the trees are made";
    CommandError::new("bench", 6, format!("cannot {what}: {why}"), hint)
}

/// A surface without a person and without models.
struct NoModels;

impl Models for NoModels {
    fn find(&self, _: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        Err(CommandError::new("no_model", 5, "benchmarks ask no model", "this is a defect, please report it"))
    }
}

impl Frontend for NoModels {
    fn note(&self, _: &str) {}

    fn delta(&self, _: NodeId, _: &str) {}

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}
