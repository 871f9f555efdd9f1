//! Dispatch of commands, and the one place where rights are checked.

use futures_util::future::BoxFuture;

use crate::app::App;
use crate::args::approvals::ApprovalsCommand;
use crate::args::context::ContextCommand;
use crate::args::files::ToolsCommand;
use crate::args::maintenance::StoreCommand;
use crate::args::model::ModelCommand;
use crate::args::policy::PolicyCommand;
use crate::args::tree::TreeCommand;
use crate::error::CommandError;
use crate::maintenance::leftovers;
use crate::results::CommandOutcome;
use crate::rights::{Asker, Right};
use crate::table::Command;
use crate::{
    approvals, cards, chat, contexts, cost, file_changes, generate, handoffs, maintenance, mcp_servers,
    models, policies, skills, transfer, tree, verify, workspaces,
};

impl App {
    /// Makes interrupted nodes of what dead processes had received. Cheap when there is nothing to do.
    ///
    /// # Errors
    /// When the home or the store fails; what was not recovered is found again next time.
    pub fn recover<'a>(&'a self) -> BoxFuture<'a, Result<u64, CommandError>> {
        Box::pin(async move {
            if let Err(error) = leftovers::sweep(&self.runtime.home) {
                tracing::warn!(%error, "what a backup or restore left behind could not be removed");
            }
            if let Err(error) = Box::pin(self.runtime.end_forgetting()).await {
                self.frontend
                    .note(&format!("what was forgotten is not taken out of every file yet: {error}"));
            }
            Ok(self.runtime.recover(&self.shown()).await?)
        })
    }

    /// Runs a command for someone. This is where rights are checked.
    ///
    /// # Errors
    /// [`CommandError`] with code, message, hint and exit code.
    pub fn run<'a>(
        &'a self,
        asker: &'a Asker,
        command: Command,
    ) -> BoxFuture<'a, Result<CommandOutcome, CommandError>> {
        Box::pin(async move {
            let spec = command.spec();
            Self::admit(asker, spec.name, (spec.right, spec.for_agents))?;
            match self.run_admitted(asker, command).await {
                Err(error) => Err(self.told(asker, error).await),
                done => done,
            }
        })
    }

    async fn run_admitted(&self, asker: &Asker, command: Command) -> Result<CommandOutcome, CommandError> {
        match command {
            Command::Chat(args) => chat::chat(self, asker, args).await,
            Command::Ask(args) => Box::pin(chat::ask(self, asker, args)).await,
            Command::Log(args) => chat::log(self, asker, args).await,
            Command::Sessions(command) => chat::sessions(self, asker, command).await,
            Command::Approvals(ApprovalsCommand::List) => approvals::list(self, asker).await,
            Command::Approve(args) => approvals::approve(self, asker, args).await,
            Command::Deny(args) => approvals::deny(self, asker, args).await,
            Command::Policy(PolicyCommand::List(args)) => policies::list(self, &args),
            Command::Policy(PolicyCommand::Test(args)) => policies::test(self, &args),
            Command::Files(command) => file_changes::command(self, asker, command).await,
            Command::Tools(ToolsCommand::List(session)) => chat::list_tools(self, asker, session).await,
            Command::Mcp(command) => mcp_servers::command(self, asker, command).await,
            Command::Skills(command) => skills::command(self, asker, command).await,
            Command::Cards(command) => cards::command(self, asker, &command).await,
            Command::Handoff(command) => handoffs::command(self, &command),
            Command::Tree(command) => self.run_tree(asker, command).await,
            Command::Context(ContextCommand::Show(args)) => contexts::show(self, asker, args).await,
            Command::Context(ContextCommand::Diff(args)) => contexts::diff(self, asker, args).await,
            Command::Context(ContextCommand::Replay(args)) => contexts::replay(self, asker, args).await,
            Command::Cost(args) => cost::cost(self, asker, args).await,
            Command::Model(ModelCommand::Test { name }) => models::test(self, name.as_deref()).await,
            Command::Workspace(command) => workspaces::workspaces(self, asker, command).await,
            Command::Import(args) => Box::pin(transfer::import(self, asker, args)).await,
            Command::Search(args) => tree::search(self, asker, args).await,
            Command::Forget(args) => maintenance::forget(self, asker, args).await,
            Command::Backup(args) => maintenance::backup(self, asker, args).await,
            Command::Restore(args) => {
                let options = store::home::HomeOptions::default();
                let home = self.runtime.home.root().to_owned();
                let guard = self.guard.clone();
                let into = maintenance::RestoreTo { home, options, guard, now: self.now().0 };
                maintenance::restore(&args, into, self.frontend.as_ref()).await
            }
            Command::Store(StoreCommand::Check { repair }) => maintenance::check(self, asker, repair).await,
            command @ (Command::Policy(_)
            | Command::Config(_)
            | Command::Model(_)
            | Command::Init(_)
            | Command::Doctor(_)
            | Command::Bench(_)
            | Command::Sandbox(_)) => Err(command.not_here()),
        }
    }

    fn run_tree<'a>(
        &'a self,
        asker: &'a Asker,
        command: TreeCommand,
    ) -> BoxFuture<'a, Result<CommandOutcome, CommandError>> {
        Box::pin(async move {
            match command {
                TreeCommand::Generate(args) => generate::generate(self, asker, args).await,
                TreeCommand::Regenerate(args) => generate::regenerate(self, asker, args).await,
                TreeCommand::Verify(args) => verify::verify(self, asker, args).await,
                TreeCommand::Seal(args) => verify::seal(self, asker, args).await,
                TreeCommand::Trust(args) if !args.nodes.is_empty() => {
                    tree::trust_nodes(self, asker, args).await
                }
                TreeCommand::Trust(args) => transfer::trust(self, asker, args).await,
                TreeCommand::Purge(args) => maintenance::purge(self, asker, args).await,
                TreeCommand::Export(args) => transfer::export(self, asker, args).await,
                TreeCommand::Import(args) => Box::pin(transfer::import(self, asker, args)).await,
                TreeCommand::Search(args) => tree::search(self, asker, args).await,
                other => Box::pin(tree::run(self, asker, other)).await,
            }
        })
    }

    /// The check of rights, of what no tool of an agent may do.
    ///
    /// # Errors
    /// `denied`.
    pub(crate) fn require(asker: &Asker, name: &str, right: Right) -> Result<(), CommandError> {
        Self::admit(asker, name, (right, false))
    }

    fn admit(asker: &Asker, name: &str, (right, for_agents): (Right, bool)) -> Result<(), CommandError> {
        if asker.has(right) && (for_agents || !asker.is_agent()) {
            return Ok(());
        }
        if asker.has(right) {
            let message = format!("`{name}` is not open to tools of an agent");
            return Err(CommandError::refused("denied", message, "the owner may run it"));
        }
        let message = format!("`{name}` needs the right {right:?}, which this caller does not have");
        Err(CommandError::refused("denied", message.to_lowercase(), "ask the owner to run it"))
    }
}
