//! Where a tool of the loom works, and what it may see there.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use ::tools::CallPlace;
use loom::path::is_ancestor;
use loom::{Mode, NodeId, TreeId, Trust, ViewName};
use model::{Cancel, Model};
use store::StoreError;
use tokio::runtime::Handle;
use workspace::{FileError, StoreGuard};

use crate::app::{App, Models, Workspace};
use crate::args::tree::{PassageArg, TreeCommand, View, ViewAction};
use crate::args::{TreeArg, ViewArg};
use crate::error::CommandError;
use crate::frontend::Frontend;
use crate::results::CommandOutcome;
use crate::results::tree::{ListedNodes, NodeShown};
use crate::rights::{Asker, ToolTurn};
use crate::settings::Agent;
use crate::table::Command;

/// An agent at work in trees. Cheap to clone.
#[derive(Clone)]
pub(super) struct LoomAgent {
    app: Arc<App>,
    name: String,
    asker: Asker,
    permissions: Agent,
}

/// A tree that a call is about.
pub(super) struct TreePlace {
    pub(super) tree: TreeId,
    pub(super) view: ViewName,
    /// Trust of titles, bookmarks and tags in it: they have none of their own.
    pub(super) labels: Trust,
    /// Whether it is that of the conversation.
    is_own: bool,
}

/// A node that a call changes something about.
pub(super) struct Target {
    pub(super) at: TreePlace,
    pub(super) node: NodeShown,
    /// Whether it came into the tree since the turn under way began.
    is_of_turn: bool,
}

impl Target {
    /// Refuses what belongs to the turn under way: its path is not changed under it.
    pub(super) fn require_earlier(&self) -> Result<(), String> {
        match self.is_of_turn {
            true => Err(format!("{} belongs to the turn under way", self.node.short_id)),
            false => Ok(()),
        }
    }
}

impl TreePlace {
    pub(super) fn arg(&self) -> TreeArg {
        TreeArg { tree: self.tree.to_string(), view: ViewArg { view: Some(self.view.to_string()) } }
    }
}

impl LoomAgent {
    pub(super) fn new(app: &App, name: &str) -> Self {
        let permissions = app.settings.agents.get(name).cloned().unwrap_or_default();
        let app = for_nobody(app, Arc::clone(&app.models), app.cancel.clone());
        Self { app: Arc::new(app), name: name.to_owned(), asker: Asker::agent(name), permissions }
    }

    /// A program that only looks, at documents too.
    pub(super) fn reader(app: &App) -> Self {
        let permissions = Agent { loom_aware: true, doc_read: true, ..Agent::default() };
        let app = for_nobody(app, Arc::clone(&app.models), app.cancel.clone());
        Self { app: Arc::new(app), name: "mcp".to_owned(), asker: Asker::reader(), permissions }
    }

    pub(super) fn may_read_documents(&self) -> bool {
        self.permissions.doc_read
    }

    /// Why no other tree is open.
    pub(super) fn no_documents(&self) -> String {
        format!("only the tree of this conversation is open: documents need agents.{}.doc_read", self.name)
    }

    /// Runs a command as the agent. It blocks.
    pub(super) fn run(&self, command: TreeCommand) -> Result<CommandOutcome, String> {
        let ran = Handle::current().block_on(self.app.run(&self.asker, Command::Tree(command)));
        ran.map_err(told)
    }

    /// Reads something for a command. It blocks.
    pub(super) fn wait<T>(
        &self,
        of: impl AsyncFnOnce(&App, &Asker) -> Result<T, CommandError>,
    ) -> Result<T, String> {
        Handle::current().block_on(of(&self.app, &self.asker)).map_err(told)
    }

    /// The tree that a call names: that of its conversation, unless it names a document. It blocks.
    ///
    /// # Errors
    /// It names another tree, and the agent may not read documents, or it is none.
    pub(super) fn tree(&self, place: &CallPlace, named: Option<&str>) -> Result<TreePlace, String> {
        let found = match named {
            None => place.tree,
            Some(_) if !self.may_read_documents() => {
                return Err(self.no_documents());
            }
            Some(named) => self.wait(async |app, asker| app.tree_named(asker, named).await)?,
        };
        let is_own = found == place.tree;
        let read = self.wait(async |app, asker| {
            let mode = app.read(asker, found, |rows| Ok(rows.tree()?.mode)).await?;
            Ok((mode, !app.imports(asker, found).await?.is_empty()))
        });
        let (mode, is_imported) = read?;
        if !is_own && mode != Mode::Buffer {
            return Err(
                "it is the tree of another conversation: of other trees only documents are open".to_owned()
            );
        }
        Ok(TreePlace {
            tree: found,
            view: if is_own { place.view.clone() } else { ViewName::default() },
            labels: if is_imported { Trust::Outside } else { Trust::Workspace },
            is_own,
        })
    }

    /// The node of a tree that a call names. It blocks.
    ///
    /// # Errors
    /// There is none. Nothing in it tells whether there is one in another tree.
    pub(super) fn node_id(&self, at: &TreePlace, named: &str) -> Result<NodeId, String> {
        self.wait(async |app, asker| {
            match app.runtime.store.resolve_node(&asker.principal, Some(at.tree), named).await {
                Ok(found) if found.tree == at.tree => Ok(found.node),
                Ok(_) | Err(StoreError::NotFound(_) | StoreError::Ambiguous(_)) => {
                    Err(CommandError::not_found("node", named, ""))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// A node that a call names, as its position shows it. It blocks.
    ///
    /// # Errors
    /// There is none, or it is no passage.
    pub(super) fn node(&self, at: &TreePlace, named: &str) -> Result<NodeShown, String> {
        let wanted = self.node_id(at, named)?;
        let passage = PassageArg { tree: at.arg(), node: Some(wanted.to_string()) };
        let ListedNodes { nodes, .. } = listed(self.run(TreeCommand::Versions(passage))?)?;
        let found = nodes.into_iter().find(|node| node.id == wanted);
        found.ok_or_else(|| "the beginning of the tree holds nothing".to_owned())
    }

    /// The node that a call changes something about; its tree is open for that. It blocks.
    ///
    /// # Errors
    /// As [`Self::tree`] and [`Self::node`]; its owner took it away; the tree may only be read.
    pub(super) fn target(
        &self,
        place: &CallPlace,
        named: &str,
        tree: Option<&str>,
    ) -> Result<Target, String> {
        let at = self.tree(place, tree)?;
        if !at.is_own && !self.permissions.doc_write {
            return Err(format!(
                "documents are only read here: to change one needs agents.{}.doc_write",
                self.name
            ));
        }
        let node = self.node(&at, named)?;
        open_text(&node).map_err(|why| format!("node {} {why}", node.short_id))?;
        let (tree, id) = (at.tree, node.id);
        let rows =
            self.wait(async |app, asker| app.read(asker, tree, move |rows| rows.nodes(&[id])).await)?;
        let is_of_turn = at.is_own && rows.iter().any(|row| place.turn.is_none_or(|first| row.seq >= first));
        Ok(Target { at, node, is_of_turn })
    }

    /// Runs a command that changes a tree, as the agent in its turn. It blocks.
    pub(super) fn change(
        &self,
        place: &CallPlace,
        at: &TreePlace,
        command: TreeCommand,
    ) -> Result<CommandOutcome, String> {
        let first = place.turn.filter(|_| at.is_own);
        let turn = ToolTurn { first, spending: place.spending.clone(), waited: place.waited.clone() };
        let asker = self.asker.clone().in_turn(place.trust, turn);
        Handle::current().block_on(self.app.run(&asker, Command::Tree(command))).map_err(told)
    }

    /// A view that stands at a node or below it. It blocks.
    pub(super) fn view_below(&self, target: &Target) -> Result<Option<String>, String> {
        let CommandOutcome::Views(found) = self
            .run(TreeCommand::View(View { action: ViewAction::List { tree: target.at.tree.to_string() } }))?
        else {
            return Err(DEFECT.to_owned());
        };
        let (tree, above) = (target.at.tree, target.node.position);
        self.wait(async |app, asker| {
            let read = app.read(asker, tree, move |rows| {
                for view in found.views {
                    if is_ancestor(rows, above, view.tip)? {
                        return Ok(Some(view.name));
                    }
                }
                Ok(None)
            });
            read.await
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// This agent with the model of the turn as its only one: what a turn asks goes where the turn goes.
    pub(super) fn asking(&self, place: &CallPlace) -> Result<Self, String> {
        let model = place.model.clone().ok_or_else(|| "no model asks here".to_owned())?;
        let app = for_nobody(&self.app, Arc::new(TurnModel(model)), place.cancel.clone());
        Ok(Self { app: Arc::new(app), ..self.clone() })
    }
}

/// Services of the home for commands that nobody looks at.
fn for_nobody(app: &App, models: Arc<dyn Models>, cancel: Cancel) -> App {
    App {
        runtime: app.runtime.clone(),
        sessions: app.sessions.clone(),
        guard: app.guard.clone(),
        models,
        workspace: Workspace::default(),
        settings: app.settings.clone(),
        servers: crate::Servers::default(),
        frontend: Arc::new(Nobody),
        cancel,
    }
}

/// The model of a turn, by whichever name it is asked for.
struct TurnModel(Arc<dyn Model>);

impl Models for TurnModel {
    fn find(&self, _: Option<&str>) -> Result<Arc<dyn Model>, CommandError> {
        Ok(Arc::clone(&self.0))
    }
}

/// The nodes of a list.
///
/// # Errors
/// It is another result: a defect.
pub(super) fn listed(outcome: CommandOutcome) -> Result<ListedNodes, String> {
    match outcome {
        CommandOutcome::Listed(listed) => Ok(listed),
        _ => Err(DEFECT.to_owned()),
    }
}

/// What a call says where a command has another result than its own.
pub(super) const DEFECT: &str = "this is an error of the program";

/// What a node says.
///
/// # Errors
/// Its owner took it away, in this way.
pub(super) fn open_text(node: &NodeShown) -> Result<&str, &'static str> {
    match node {
        NodeShown { purged: true, .. } => Err("was forgotten: nothing is left of it"),
        NodeShown { pruned: true, .. } => Err("is hidden: its owner pruned it"),
        NodeShown { excluded: true, .. } => Err("is left out of what is sent: its owner took it out"),
        NodeShown { text, .. } => Ok(text),
    }
}

/// An error as a model is told it: what to do instead are commands of its owner.
fn told(error: CommandError) -> String {
    error.message
}

/// Nobody is shown what a command of a tool does: its result is.
struct Nobody;

impl Frontend for Nobody {
    fn note(&self, line: &str) {
        tracing::debug!(line, "a tool of the loom");
    }

    fn delta(&self, _: NodeId, _: &str) {}

    fn input(&self, _: &StoreGuard, _: Duration) -> Result<Box<dyn Read + Send>, FileError> {
        Ok(Box::new(std::io::empty()))
    }
}
