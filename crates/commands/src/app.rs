//! State of an invocation: the services of an open home, and what was chosen for it.

pub(crate) mod input;
pub(crate) mod naming;

pub(crate) use input::within_new_workspace;
pub use naming::{NamedNode, nearest};

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent::fallback::{FoundModel, ListedModels};
use agent::session::Sessions;
use agent::{AgentError, Call, GenerationRequest, PreparedRequest, Runtime, on_disk};
use loom::{Millis, NodeId, Op, TreeId, ViewName};
use model::{Cancel, Model, ModelInfo};
use store::{Applied, AttachedWrites};
use workspace::StoreGuard;
use workspace::discovery::DiscoveryContext;
use workspace::trust::{Accepted, WorkspaceOrigin};

use crate::error::CommandError;
use crate::frontend::{Frontend, Shown};
use crate::rights::Asker;
use crate::servers::Servers;
use crate::settings::Settings;

pub trait Models: Send + Sync {
    /// The model of this name (`PROVIDER/NAME`, `script:FILE`), or the default. It may wait for files, a server, a
    /// download or the start of a model, so that no thread that serves calls it: [`App::model`] does for it.
    ///
    /// # Errors
    /// When there is none, or it cannot be reached by configuration.
    fn find(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError>;

    /// Refuses a model of this name whose server can be asked and does not list it. It waits as [`Self::find`] does.
    ///
    /// # Errors
    /// `not_found`, naming what the server lists.
    fn check_served(&self, _name: &str) -> Result<(), CommandError> {
        Ok(())
    }

    /// What a person should know of a model before they talk with it; mostly nothing.
    fn about(&self, _model: &ModelInfo) -> Option<String> {
        None
    }

    /// Who is asked when a model does not answer, in order; why one cannot be, in its place. It waits as
    /// [`Self::find`] does.
    fn fallbacks(&self) -> Vec<FoundModel> {
        Vec::new()
    }

    /// Whether a remote one of them may take over from a local model.
    fn fallback_remote(&self) -> bool {
        false
    }

    /// Models that an agent may give its subagents besides its own; as of [`Self::fallbacks`].
    fn of_subagents(&self) -> Vec<FoundModel> {
        Vec::new()
    }

    /// Whether a remote one of [`Self::of_subagents`] may work for a local model.
    fn subagent_remote(&self) -> bool {
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
    /// Name in the store: its canonical path, [`store::OWN_WORKSPACE`], or nothing.
    pub key: String,
    /// Folder of the workspace by canonical path, whether or not it is loaded or there.
    pub folder: Option<PathBuf>,
    pub arrival: Option<WorkspaceOrigin>,
    /// Root of the workspace, where what it brings may be loaded.
    pub root: Option<workspace::Root>,
    /// Which of its texts are loaded.
    pub accepted: Accepted,
    /// By which it is judged which folders may be workspaces.
    pub surroundings: Option<DiscoveryContext>,
    /// How to work where one is; none where a notice of this call said it.
    pub advice: Option<String>,
}

/// What commands work on: the services of an open home, and what an invocation of the program chose.
pub struct App {
    pub runtime: Runtime,
    /// Sessions whose tasks run in this process.
    pub sessions: Sessions,
    /// Files of the store, which nothing else here may open.
    pub guard: StoreGuard,
    pub models: Arc<dyn Models>,
    pub workspace: Workspace,
    /// Presets, limits.
    pub settings: Settings,
    /// Servers of tools, started when they are needed.
    pub servers: Servers,
    /// The person, if there is one.
    pub frontend: Arc<dyn Frontend>,
    /// Stops what is asked of models.
    pub cancel: Cancel,
}

/// The models that are asked where another one does not answer, looked up when they are needed.
pub fn fallbacks(models: &Arc<dyn Models>) -> ListedModels {
    let (list, remote) = (Arc::clone(models), models.fallback_remote());
    ListedModels::new(move || list.fallbacks(), remote)
}

/// The models that an agent may give its subagents, looked up when they are needed.
pub fn subagent_models(models: &Arc<dyn Models>) -> ListedModels {
    let (list, remote) = (Arc::clone(models), models.subagent_remote());
    ListedModels::new(move || list.of_subagents(), remote)
}

impl App {
    /// Work of someone, which the frontend shows.
    pub(crate) fn call(&self, asker: &Asker) -> Call {
        Call {
            who: asker.principal.clone(),
            author: asker.author.clone(),
            trust: asker.trust,
            cancel: self.cancel.clone(),
            answer_within: self.frontend.answer_within(),
            waited: asker.turn.as_ref().map(|turn| turn.waited.clone()).unwrap_or_default(),
            ..Call::owner(Arc::new(self.shown()))
        }
    }

    /// A request that is not sent, with its tokens as its server counts them.
    ///
    /// # Errors
    /// As [`GenerationRequest::prepare_counted`].
    pub(crate) async fn prepare_counted(
        &self,
        runtime: &Runtime,
        asker: &Asker,
        ask: &GenerationRequest,
    ) -> Result<PreparedRequest, AgentError> {
        let prepared = ask.prepare_counted(runtime, &self.call(asker)).await;
        self.frontend.arrived();
        prepared
    }

    /// The model of a name, or the default: looked up on a thread that may wait.
    ///
    /// # Errors
    /// As [`Models::find`].
    pub async fn model(&self, name: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        let (models, name) = (Arc::clone(&self.models), name.map(str::to_owned));
        on_disk(move || models.find(name.as_deref())).await
    }

    /// The model of this name, unless its server says that it has none such.
    ///
    /// # Errors
    /// As [`Self::model`]; `not_found` where the server does not list it.
    pub(crate) async fn served_model(&self, name: &str) -> Result<Arc<dyn Model>, CommandError> {
        let model = self.model(Some(name)).await?;
        let (models, name) = (Arc::clone(&self.models), name.to_owned());
        on_disk(move || models.check_served(&name)).await.map(|()| model)
    }

    pub(crate) fn shown(&self) -> Shown {
        Shown {
            frontend: self.frontend.clone(),
            runtime: self.runtime.clone(),
            progress: Mutex::default(),
            streams: true,
        }
    }

    /// Now, in ms since 1970.
    pub fn now(&self) -> Millis {
        self.runtime.now()
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
        self.change_with(asker, tree, view, op, AttachedWrites::nothing()).await
    }

    /// Says what became of drafts that were committed before something else.
    pub(crate) fn note_committed(&self, nodes: &[(NodeId, String)]) {
        let made: Vec<&str> = nodes.iter().map(|(_, short_id)| short_id.as_str()).collect();
        if !made.is_empty() {
            self.frontend.note(&format!("what was typed stands in the tree now: {}", made.join(" ")));
        }
    }

    /// Makes a change of a tree, with rows that go with it.
    ///
    /// # Errors
    /// As the store and the plan say.
    pub(crate) async fn change_with(
        &self,
        asker: &Asker,
        tree: TreeId,
        view: &ViewName,
        op: Op,
        with: AttachedWrites,
    ) -> Result<Applied, CommandError> {
        let writer = (&asker.principal, &asker.author, asker.trust);
        let op = match &asker.turn {
            Some(turn) => Op::ByTool { part_of: turn.first, op: Box::new(op) },
            None => op,
        };
        // On the heap: futures hold futures.
        Ok(Box::pin(self.runtime.change_as(writer, tree, view, op, with)).await?)
    }

    /// Reads rows of a tree in one snapshot.
    ///
    /// # Errors
    /// As the store says.
    pub async fn read<T: Send + 'static>(
        &self,
        asker: &Asker,
        tree: TreeId,
        f: impl FnOnce(&dyn loom::TreeReader) -> Result<T, loom::RowError> + Send + 'static,
    ) -> Result<T, CommandError> {
        Ok(store::read(self.runtime.store.as_ref(), &asker.principal, tree, f).await?)
    }
}
