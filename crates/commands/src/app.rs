//! What commands work on, and the one place where rights are checked.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::fallback::{Fallbacks, Found};
use agent::{Call, Runtime};
use loom::plan::{MAX_NODE_BYTES, Request};
use loom::{Author, Millis, NodeId, Op, PositionId, TreeId, Trust, ViewName};
use model::{Cancel, Model, ModelInfo};
use store::{Applied, With};
use workspace::discovery::DiscoveryContext;
use workspace::trust::{Accepted, WorkspaceOrigin};
use workspace::{Accept, FileArgument, FileProblem, StoreGuard, check_output};

use crate::args::care::StoreCommand;
use crate::args::context::ContextCommand;
use crate::args::model::ModelCommand;
use crate::args::tree::TreeCommand;
use crate::args::{NodeArg, TreeArg};
use crate::error::CommandError;
use crate::frontend::{Frontend, Shown};
use crate::results::Outcome;
use crate::rights::{Asker, Right};
use crate::settings::{Settings, size};
use crate::table::Command;
use crate::{care, chat, contexts, cost, generate, models, transfer, tree, verify, workspaces};

/// Finds models by name.
pub trait Models: Send + Sync {
    /// The model of this name (`PROVIDER/NAME`, `script:FILE`), or the default.
    ///
    /// # Errors
    /// When there is none, or it cannot be reached by configuration.
    fn find(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError>;

    /// What a person should know of a model before they talk with it; mostly nothing.
    fn about(&self, _model: &ModelInfo) -> Option<String> {
        None
    }

    /// Who is asked when a model does not answer, in order; why one cannot be, in its place.
    fn fallbacks(&self) -> Vec<Found> {
        Vec::new()
    }

    /// Whether a remote one of them may take over from a local model.
    fn fallback_remote(&self) -> bool {
        false
    }

    /// Names that are known without asking anybody: for completion.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The workspace of an invocation.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Names it among workspaces: its canonical path, or nothing.
    pub key: String,
    /// Its folder by canonical path, whether or not it is loaded or there.
    pub folder: Option<PathBuf>,
    /// How it was chosen.
    pub arrival: Option<WorkspaceOrigin>,
    /// Its folder, where what it brings may be loaded.
    pub root: Option<workspace::Root>,
    /// Which of its texts are loaded.
    pub accepted: Accepted,
    /// By which it is judged which folders may be workspaces.
    pub surroundings: Option<DiscoveryContext>,
}

/// What commands work on: the services of an open home, and what an invocation of the program chose.
pub struct App {
    /// Services of the home.
    pub runtime: Runtime,
    /// Files of the store, which nothing else here may open.
    pub guard: StoreGuard,
    /// Models.
    pub models: Arc<dyn Models>,
    /// The workspace.
    pub workspace: Workspace,
    /// Presets, limits.
    pub settings: Settings,
    /// The person, if there is one.
    pub frontend: Arc<dyn Frontend>,
    /// Stops what is asked of models.
    pub cancel: Cancel,
}

/// The models that are asked where another one does not answer, looked up when they are needed.
pub fn fallbacks(models: &Arc<dyn Models>) -> Fallbacks {
    let (list, remote) = (Arc::clone(models), models.fallback_remote());
    Fallbacks::new(move || list.fallbacks(), remote)
}

impl App {
    /// Makes interrupted nodes of what dead processes had received. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the home or the store fails; what was not recovered is found again next time.
    pub async fn recover(&self) -> Result<u64, CommandError> {
        Ok(self.runtime.recover(&self.shown()).await?)
    }

    /// Work of someone, which the frontend shows.
    pub(crate) fn call(&self, asker: &Asker) -> Call {
        Call {
            who: asker.principal.clone(),
            events: Arc::new(self.shown()),
            cancel: self.cancel.clone(),
            attended: self.frontend.is_attended(),
            ..Call::owner(Arc::new(()))
        }
    }

    fn shown(&self) -> Shown {
        Shown { frontend: self.frontend.clone(), questions: self.runtime.questions.clone() }
    }

    /// Runs a command for someone. This is where rights are checked.
    ///
    /// # Errors
    /// [`CommandError`] with code, message, hint and exit code.
    pub async fn run(&self, asker: &Asker, command: Command) -> Result<Outcome, CommandError> {
        let spec = command.spec();
        Self::require(asker, spec.name, spec.right)?;
        match command {
            Command::Chat(args) => chat::chat(self, asker, args).await,
            Command::Sessions(command) => chat::sessions(self, asker, command).await,
            Command::Tree(command) => self.run_tree(asker, command).await,
            Command::Context(ContextCommand::Show(args)) => contexts::show(self, asker, args).await,
            Command::Context(ContextCommand::Diff(args)) => contexts::diff(self, asker, args).await,
            Command::Context(ContextCommand::Replay(args)) => contexts::replay(self, asker, args).await,
            Command::Cost(args) => cost::cost(self, asker, args).await,
            Command::Model(ModelCommand::Test { name }) => models::test(self, name.as_deref()).await,
            Command::Workspace(command) => workspaces::workspaces(self, asker, command).await,
            Command::Import(args) => Box::pin(transfer::import(self, asker, args)).await,
            Command::Search(args) => tree::search(self, asker, args).await,
            Command::Forget(args) => care::forget(self, asker, args).await,
            Command::Backup(args) => care::backup(self, asker, args).await,
            Command::Restore(args) => {
                let options = store::home::HomeOptions::default();
                let home = self.runtime.home.root().to_owned();
                let guard = self.guard.clone();
                let into = care::RestoreTo { home, options, guard, now: self.now().0 };
                care::restore(&args, into, self.frontend.as_ref()).await
            }
            Command::Store(StoreCommand::Check { repair }) => care::check(self, asker, repair).await,
            // Configuration, diagnosis and benchmarks belong to the surface that holds the files.
            Command::Config(_)
            | Command::Model(_)
            | Command::Init(_)
            | Command::Doctor(_)
            | Command::Bench(_) => Err(CommandError::usage(
                format!("`{}` is not available here", spec.name),
                "run it from the command line",
            )),
        }
    }

    /// The check of rights.
    ///
    /// # Errors
    /// `denied`.
    pub(crate) fn require(asker: &Asker, name: &str, right: Right) -> Result<(), CommandError> {
        if asker.has(right) {
            return Ok(());
        }
        let message = format!("`{name}` needs the right {right:?}, which this caller does not have");
        Err(CommandError::refused("denied", message.to_lowercase(), "ask the owner to run it"))
    }

    async fn run_tree(&self, asker: &Asker, command: TreeCommand) -> Result<Outcome, CommandError> {
        match command {
            TreeCommand::Generate(args) => generate::generate(self, asker, args).await,
            TreeCommand::Regenerate(args) => generate::regenerate(self, asker, args).await,
            TreeCommand::Verify(args) => verify::verify(self, asker, args).await,
            TreeCommand::Seal(args) => verify::seal(self, asker, args).await,
            TreeCommand::Trust(args) => transfer::trust(self, asker, args).await,
            TreeCommand::Purge(args) => care::purge(self, asker, args).await,
            TreeCommand::Export(args) => transfer::export(self, asker, args).await,
            TreeCommand::Import(args) => Box::pin(transfer::import(self, asker, args)).await,
            TreeCommand::Search(args) => tree::search(self, asker, args).await,
            other => Box::pin(tree::run(self, asker, other)).await,
        }
    }

    /// Now, in ms since 1970.
    pub fn now(&self) -> Millis {
        self.runtime.now()
    }

    /// The tree and view an argument names.
    ///
    /// # Errors
    /// Not found, or ambiguous with the candidates.
    pub async fn tree(&self, asker: &Asker, arg: &TreeArg) -> Result<(TreeId, ViewName), CommandError> {
        Ok((self.tree_named(asker, &arg.tree).await?, arg.view.name()?))
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// Not found, or ambiguous with the candidates.
    pub async fn tree_named(&self, asker: &Asker, name: &str) -> Result<TreeId, CommandError> {
        self.runtime.store.resolve(&asker.principal, name).await.map_err(|error| match error {
            store::StoreError::NotFound(_) => {
                CommandError::not_found("tree", name, "`drawloom tree list` shows the trees")
            }
            other => other.into(),
        })
    }

    /// The node an argument names.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub async fn node(&self, asker: &Asker, arg: &NodeArg) -> Result<Named, CommandError> {
        let (tree, view) = self.tree(asker, &arg.tree).await?;
        let found = self.node_anywhere(asker, Some(tree), &arg.node).await?;
        Ok(Named { view, ..found })
    }

    /// The node of this name, in `tree` or anywhere.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub async fn node_named(
        &self,
        asker: &Asker,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<(NodeId, PositionId), CommandError> {
        let found = self.node_anywhere(asker, tree, name).await?;
        Ok((found.node, found.position))
    }

    /// The node of this name with its tree, shown in `main`. `TREE:SHORT` must agree with `tree`, if that is given.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub async fn node_anywhere(
        &self,
        asker: &Asker,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<Named, CommandError> {
        let missing = || {
            let hint = "`drawloom tree show TREE` shows the nodes with their short ids";
            CommandError::not_found("node", name, hint)
        };
        let found = self.runtime.store.resolve_node(&asker.principal, tree, name).await;
        let found = found.map_err(|error| match error {
            store::StoreError::NotFound(_) => missing(),
            other => other.into(),
        })?;
        if tree.is_some_and(|tree| tree != found.tree) {
            return Err(missing());
        }
        let view = ViewName::default();
        Ok(Named {
            tree: found.tree,
            view,
            node: found.node,
            position: found.position,
            short_id: found.short_id,
        })
    }

    /// Makes a change of a tree.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub async fn change(
        &self,
        asker: &Asker,
        tree: TreeId,
        view: &ViewName,
        op: Op,
    ) -> Result<Applied, CommandError> {
        self.change_with(asker, tree, view, op, With::nothing()).await
    }

    /// Makes a change of a tree, with rows that go with it.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub async fn change_with(
        &self,
        asker: &Asker,
        tree: TreeId,
        view: &ViewName,
        op: Op,
        with: With,
    ) -> Result<Applied, CommandError> {
        let request = Request {
            tree,
            view: view.clone(),
            author: Author::owner(),
            trust: Trust::Owner,
            now: self.now(),
            op,
        };
        let done = Box::pin(store::change(
            self.runtime.store.as_ref(),
            &asker.principal,
            request,
            with,
            &self.runtime.ids,
        ))
        .await;
        Ok(done?)
    }

    /// Reads rows of a tree in one snapshot.
    ///
    /// # Errors
    /// As the store says.
    pub async fn read<T: Send + 'static>(
        &self,
        asker: &Asker,
        tree: TreeId,
        f: impl FnOnce(&dyn loom::Rows) -> Result<T, loom::RowError> + Send + 'static,
    ) -> Result<T, CommandError> {
        Ok(store::read(self.runtime.store.as_ref(), &asker.principal, tree, f).await?)
    }

    /// A text argument: itself, or standard input for `-`; known secrets masked.
    ///
    /// # Errors
    /// When standard input is no UTF-8 or too long.
    pub fn text(&self, argument: &str) -> Result<String, CommandError> {
        if argument == "-" {
            return self.file_text(Path::new(argument));
        }
        self.fits_paste("the text", argument.len() as u64)?;
        Ok(self.masked(argument))
    }

    /// The text of a file, or of standard input for `-`; known secrets masked.
    ///
    /// # Errors
    /// When it cannot be read, is no UTF-8 or too long.
    pub fn file_text(&self, path: &Path) -> Result<String, CommandError> {
        let name = if path == Path::new("-") { "standard input".into() } else { path.to_string_lossy() };
        self.text_of(&name, self.file_bytes(path, Accept::RegularOrPipe)?)
    }

    /// The bytes of a file, or of standard input for `-`.
    ///
    /// # Errors
    /// When it cannot be read or is too long.
    pub(crate) fn file_bytes(&self, path: &Path, accept: Accept) -> Result<Vec<u8>, CommandError> {
        let source = self.open_file(path, accept)?;
        let mut bytes = Vec::new();
        let limit = self.settings.limits.paste;
        let read = source.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| CommandError::file("cannot read", path, &error))?;
        self.fits_paste(&text::terminal::one_line(&path.to_string_lossy()), bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Opens a file argument; where pipes are accepted, `-` is standard input.
    ///
    /// # Errors
    /// What is of another kind or the store's is refused before it is opened.
    pub(crate) fn open_file(
        &self,
        path: &Path,
        accept: Accept,
    ) -> Result<Box<dyn Read + Send>, CommandError> {
        let timeout = self.settings.limits.input_wait;
        let opened = if path == Path::new("-") && accept == Accept::RegularOrPipe {
            self.frontend.input(&self.guard, timeout)
        } else {
            let opened = FileArgument::open(path, &self.guard, accept, timeout);
            opened.map(|file| Box::new(file) as Box<dyn Read + Send>)
        };
        opened.map_err(|error| CommandError::file_argument(&error))
    }

    /// Refuses a file that would be written into the home.
    ///
    /// # Errors
    /// `in_home`, or what keeps its folder from being entered.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), CommandError> {
        check_output(path, self.runtime.home.root()).map_err(|error| match error.problem {
            FileProblem::InHome => CommandError::refused(
                "in_home",
                format!("{} would lie in the home", text::terminal::one_line(&path.to_string_lossy())),
                "name a file outside the home, or in its folder workspace",
            ),
            problem => CommandError::file("cannot write", path, &problem.into()),
        })
    }

    /// What is called `name` as text; known secrets masked.
    pub(crate) fn text_of(&self, name: &str, bytes: Vec<u8>) -> Result<String, CommandError> {
        let name = text::terminal::one_line(name);
        let text = String::from_utf8(bytes).map_err(|error| {
            CommandError::new(
                "invalid_utf8",
                2,
                format!(
                    "{name} is not UTF-8 text: the first wrong byte is number {}",
                    error.utf8_error().valid_up_to()
                ),
                "convert it to UTF-8, for example with iconv",
            )
        })?;
        Ok(self.masked(&text))
    }

    /// Refuses a text that is longer than one paste (spec: scale §4 *draft paste*).
    fn fits_paste(&self, name: &str, bytes: u64) -> Result<(), CommandError> {
        let limit = self.settings.limits.paste;
        if bytes <= limit {
            return Ok(());
        }
        Err(CommandError::new(
            "too_large",
            2,
            format!("{name} is longer than {}", size(limit)),
            "split it and take it in piece by piece, or raise limits.paste",
        ))
    }

    /// Refuses a text that is too long for one node (spec: scale §4 `node`). One that `divides` becomes several
    /// nodes, as long as the limit is that of every home: where the owner lowered it, they are asked to divide it.
    pub(crate) fn fits_node(&self, text: &str, divides: bool) -> Result<(), CommandError> {
        let limit = self.settings.limits.node;
        if text.len() as u64 <= limit || (divides && limit == MAX_NODE_BYTES) {
            return Ok(());
        }
        Err(CommandError::new(
            "too_large",
            2,
            format!("the text is longer than one node holds ({})", size(limit)),
            "commit it as several nodes: append it piece by piece",
        ))
    }

    /// A text with known secrets masked, whatever it says: `-` is a dash here.
    pub(crate) fn masked(&self, text: &str) -> String {
        let masked = self.runtime.masker.mask(text);
        if !masked.spans.is_empty() {
            self.frontend.note("a known secret was masked in the text");
        }
        masked.text.into_owned()
    }
}

/// A node that was named, with its tree and view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its tree.
    pub tree: TreeId,
    /// The view.
    pub view: ViewName,
    /// The node.
    pub node: NodeId,
    /// Where it stands.
    pub position: PositionId,
    /// Its short id.
    pub short_id: String,
}
