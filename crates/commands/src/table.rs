//! The table: every command with its name and the right it needs.

use clap::Subcommand;
use serde::{Deserialize, Serialize};

use crate::args::approvals::{ApprovalsCommand, Approve, Deny};
use crate::args::cards::CardsCommand;
use crate::args::chat::{AskArgs, ChatArgs, LogArgs, SessionsCommand, TurnArgs};
use crate::args::context::ContextCommand;
use crate::args::cost::Cost;
use crate::args::files::{FilesCommand, ToolsCommand};
use crate::args::handoff::HandoffCommand;
use crate::args::maintenance::{
    BackupArgs, Bench, ConfigCommand, Doctor, ForgetArgs, ImportArgs, Restore, SandboxArgs, Search,
    StoreCommand,
};
use crate::args::mcp::McpCommand;
use crate::args::model::{Init, ModelCommand};
use crate::args::policy::PolicyCommand;
use crate::args::skills::SkillsCommand;
use crate::args::tree::{TreeCommand, ViewAction};
use crate::args::workspace::WorkspaceCommand;
use crate::error::CommandError;
use crate::rights::Right;

/// A command with its arguments.
#[allow(
    clippy::large_enum_variant,
    reason = "made once a command; a box would stand between clap and the arguments"
)]
#[derive(Debug, Clone, PartialEq, Subcommand, Serialize, Deserialize)]
#[serde(tag = "group", rename_all = "snake_case")]
pub enum Command {
    /// Talk with a model. Without -m, at a terminal: a conversation.
    #[command(after_help = "Example: drawloom chat -m \"What is a hand loom?\"")]
    Chat(ChatArgs),
    /// Ask one question, without what was said before, and print the answer.
    #[command(after_help = "Example: drawloom ask \"What is a heddle?\"")]
    Ask(AskArgs),
    /// Show the last exchanges: what you said, and what was answered.
    #[command(after_help = "Example: drawloom log -n 5")]
    Log(LogArgs),
    /// List, rename and archive conversations.
    #[command(subcommand, after_help = "Example: drawloom sessions rename main loom")]
    Sessions(SessionsCommand),
    /// List the questions that wait for your answer.
    #[command(subcommand, after_help = "Example: drawloom approvals list")]
    Approvals(ApprovalsCommand),
    /// Answer a question of running work with yes, or with one of its words.
    #[command(after_help = "Example: drawloom approve 71em")]
    Approve(Approve),
    /// Answer a question of running work with no.
    #[command(after_help = "Example: drawloom deny 71em --reason \"too dear\"")]
    Deny(Deny),
    /// List, change and try the rules on calls of tools.
    #[command(subcommand, after_help = "Example: drawloom policy deny \"write path=docs/**\"")]
    Policy(PolicyCommand),
    /// Show what tools changed in files, and give it back.
    #[command(subcommand, after_help = "Example: drawloom files diff")]
    Files(FilesCommand),
    /// List the tools that a model may call.
    #[command(subcommand, after_help = "Example: drawloom tools list")]
    Tools(ToolsCommand),
    /// Add servers of tools (MCP), and accept their tools.
    #[command(subcommand, after_help = "Example: drawloom mcp list")]
    Mcp(McpCommand),
    /// List, check and show skills.
    #[command(subcommand, after_help = "Example: drawloom skills list")]
    Skills(SkillsCommand),
    /// List, check and select cards: short texts that are sent where they are of use.
    #[command(subcommand, after_help = "Example: drawloom cards list")]
    Cards(CardsCommand),
    /// Check the text by which a session hands over to the next one, and list earlier ones.
    #[command(subcommand, after_help = "Example: drawloom handoff check HANDOFF.md")]
    Handoff(HandoffCommand),
    /// Work with trees: documents and conversations.
    #[command(subcommand, after_help = "Example: drawloom tree generate Rain -n 3")]
    Tree(TreeCommand),
    /// Show, compare and resend what was sent to a model.
    #[command(subcommand, after_help = "Example: drawloom context show --next --map")]
    Context(ContextCommand),
    /// Show what was spent, and the limits.
    #[command(after_help = "Example: drawloom cost month --by session")]
    Cost(Cost),
    /// Choose which workspaces are trusted.
    #[command(subcommand, after_help = "Example: drawloom workspace trust .")]
    Workspace(WorkspaceCommand),
    /// List, download, choose and test models.
    #[command(subcommand, after_help = "Example: drawloom model use smollm2")]
    Model(ModelCommand),
    /// Set up a home: keys, servers on this machine, a model, the workspace.
    Init(Init),
    /// Import trees from an exported file.
    #[command(after_help = "Example: drawloom import rain.jsonl --dry-run")]
    Import(ImportArgs),
    /// Search the text of all trees.
    #[command(after_help = "Example: drawloom search \"red fox\" --limit 5")]
    Search(Search),
    /// Remove text for good. It asks twice and cannot be undone.
    #[command(after_help = "Example: drawloom forget --text \"red fox\" --dry-run")]
    Forget(ForgetArgs),
    /// Write a copy of this home to a file.
    #[command(after_help = "Example: drawloom backup -o loom.backup")]
    Backup(BackupArgs),
    /// Make a home from a backup.
    #[command(after_help = "Example: drawloom restore loom.backup --to home2")]
    Restore(Restore),
    /// Check and repair the store.
    #[command(subcommand, after_help = "Example: drawloom store check")]
    Store(StoreCommand),
    /// Read and change the configuration.
    #[command(subcommand, after_help = "Example: drawloom config set budget.day 2")]
    Config(ConfigCommand),
    /// Check the installation and suggest fixes.
    Doctor(Doctor),
    /// Measure speed and size on this machine.
    Bench(Bench),
    /// Run a command in the walls of the workspace, as an agent's commands run.
    #[command(after_help = "Example: drawloom sandbox -- make test")]
    Sandbox(SandboxArgs),
}

/// What the table says of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Name of the command, as typed.
    pub name: &'static str,
    /// The right it needs.
    pub right: Right,
    /// Whether tools of an agent may run it, too (spec: security §5).
    pub for_agents: bool,
}

const fn spec(name: &'static str, right: Right) -> Spec {
    Spec { name, right, for_agents: false }
}

impl Spec {
    /// This row, open to tools of an agent.
    const fn for_agents(self) -> Self {
        Self { for_agents: true, ..self }
    }
}

impl Command {
    /// Row of this command in the table.
    pub const fn spec(&self) -> Spec {
        use Right::{Act, Admin, Read, Write};
        match self {
            Self::Chat(_) => spec("chat", Act),
            Self::Ask(_) => spec("ask", Act),
            Self::Log(_) => spec("log", Read),
            Self::Sessions(command) => command.spec(),
            Self::Approvals(ApprovalsCommand::List) => spec("approvals list", Right::Approve),
            Self::Approve(_) => spec("approve", Right::Approve),
            Self::Deny(_) => spec("deny", Right::Approve),
            Self::Policy(command) => command.spec(),
            Self::Files(FilesCommand::Diff(_)) => spec("files diff", Read),
            Self::Files(FilesCommand::History(_)) => spec("files history", Read),
            Self::Files(FilesCommand::Restore(_)) => spec("files restore", Write),
            Self::Tools(ToolsCommand::List(_)) => spec("tools list", Read),
            Self::Mcp(command) => command.spec(),
            Self::Skills(SkillsCommand::List) => spec("skills list", Read),
            Self::Skills(SkillsCommand::Check(_)) => spec("skills check", Read),
            Self::Skills(SkillsCommand::Show(_)) => spec("skills show", Read),
            Self::Skills(SkillsCommand::Run(_)) => spec("skills run", Act),
            Self::Skills(SkillsCommand::New(_)) => spec("skills new", Admin),
            Self::Skills(SkillsCommand::Add(_)) => spec("skills add", Admin),
            Self::Skills(SkillsCommand::Remove(_)) => spec("skills remove", Admin),
            Self::Skills(SkillsCommand::Export(_)) => spec("skills export", Admin),
            Self::Skills(SkillsCommand::Enable(_)) => spec("skills enable", Admin),
            Self::Skills(SkillsCommand::Disable(_)) => spec("skills disable", Admin),
            Self::Cards(CardsCommand::List) => spec("cards list", Read),
            Self::Cards(CardsCommand::Check(_)) => spec("cards check", Read),
            Self::Cards(CardsCommand::New(_)) => spec("cards new", Admin),
            Self::Cards(CardsCommand::Select(_)) => spec("cards select", Read),
            Self::Handoff(HandoffCommand::Check(_)) => spec("handoff check", Read),
            Self::Handoff(HandoffCommand::History) => spec("handoff history", Read),
            Self::Tree(command) => command.spec(),
            Self::Context(command) => command.spec(),
            Self::Cost(_) => spec("cost", Read),
            Self::Workspace(WorkspaceCommand::List) => spec("workspace list", Read),
            Self::Workspace(WorkspaceCommand::Trust(_)) => spec("workspace trust", Admin),
            Self::Workspace(WorkspaceCommand::Untrust(_)) => spec("workspace untrust", Admin),
            Self::Workspace(WorkspaceCommand::Accept(_)) => spec("workspace accept", Admin),
            Self::Model(ModelCommand::List { .. }) => spec("model list", Read),
            Self::Model(ModelCommand::Pull { .. }) => spec("model pull", Admin),
            Self::Model(ModelCommand::Use { .. }) => spec("model use", Admin),
            Self::Model(ModelCommand::Test { .. }) => spec("model test", Act),
            Self::Init(_) => spec("init", Admin),
            Self::Import(_) => spec("import", Admin),
            Self::Search(_) => spec("search", Read),
            Self::Forget(_) => spec("forget", Admin),
            Self::Backup(_) => spec("backup", Admin),
            Self::Restore(_) => spec("restore", Admin),
            Self::Store(StoreCommand::Check { repair: true }) => spec("store check --repair", Admin),
            Self::Store(StoreCommand::Check { repair: false }) => spec("store check", Read),
            Self::Config(ConfigCommand::Set { .. }) => spec("config set", Admin),
            Self::Config(ConfigCommand::Unset { .. }) => spec("config unset", Admin),
            Self::Config(ConfigCommand::Get { .. }) => spec("config get", Admin),
            Self::Config(ConfigCommand::Check) => spec("config check", Admin),
            Self::Config(ConfigCommand::Show { .. }) => spec("config show", Admin),
            Self::Config(ConfigCommand::Path) => spec("config path", Admin),
            Self::Doctor(_) => spec("doctor", Read),
            Self::Bench(_) => spec("bench", Write),
            Self::Sandbox(_) => spec("sandbox", Admin),
        }
    }
}

impl Command {
    /// Whether it changes nothing that is kept, so that it works where nothing can be written.
    pub fn only_reads(&self) -> bool {
        matches!(self.spec().right, Right::Read)
            || matches!(self, Self::Chat(chat) if chat.only_reads())
            || matches!(
                self,
                Self::Approvals(ApprovalsCommand::List)
                    | Self::Mcp(McpCommand::Serve(_))
                    | Self::Policy(PolicyCommand::List(_) | PolicyCommand::Test(_))
                    | Self::Tree(TreeCommand::Export(_))
                    | Self::Backup(_)
            )
            || self.is_dry_run()
    }

    /// What tools may do in the turns that it makes; none of one that makes none.
    pub const fn turn(&self) -> Option<&TurnArgs> {
        match self {
            Self::Chat(chat) => Some(&chat.turn),
            Self::Ask(ask) => Some(&ask.turn),
            _ => None,
        }
    }

    /// Whether it only shows what it would do.
    const fn is_dry_run(&self) -> bool {
        match self {
            Self::Forget(forget) => forget.dry_run,
            Self::Tree(TreeCommand::Generate(generate)) => generate.sampling.dry_run,
            Self::Tree(TreeCommand::Regenerate(generate)) => generate.sampling.dry_run,
            Self::Tree(TreeCommand::Compact(compact)) => compact.dry_run,
            Self::Tree(TreeCommand::Purge(purge)) => purge.dry_run,
            _ => false,
        }
    }

    /// Whether it vouches that no known secret is in what it writes, for which all of them must be known.
    pub const fn vouches_for_secrets(&self) -> bool {
        matches!(self, Self::Tree(TreeCommand::Export(export)) if export.share)
    }

    /// Whether the surface runs it, which holds the files: configuration, diagnosis, benchmarks, the sandbox.
    pub(crate) const fn is_of_the_surface(&self) -> bool {
        matches!(self, Self::Config(_) | Self::Init(_) | Self::Doctor(_) | Self::Bench(_) | Self::Sandbox(_))
    }

    /// The error where no such surface is.
    pub fn not_here(&self) -> CommandError {
        let message = format!("`{}` is not available here", self.spec().name);
        CommandError::usage(message, "run it from the command line")
    }
}

impl PolicyCommand {
    /// Whether it changes the rules, which stand in the surface's files.
    pub const fn changes_rules(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Test(_))
    }

    const fn spec(&self) -> Spec {
        let name = match self {
            Self::List(_) => "policy list",
            Self::Allow(_) => "policy allow",
            Self::Ask(_) => "policy ask",
            Self::Deny(_) => "policy deny",
            Self::Remove(_) => "policy remove",
            Self::Test(_) => "policy test",
        };
        spec(name, Right::Admin)
    }
}

impl McpCommand {
    const fn spec(&self) -> Spec {
        match self {
            Self::List => spec("mcp list", Right::Read),
            Self::Get(_) => spec("mcp get", Right::Read),
            Self::Add(_) => spec("mcp add", Right::Admin),
            Self::Remove(_) => spec("mcp remove", Right::Admin),
            Self::Test(_) => spec("mcp test", Right::Admin),
            Self::Accept(_) => spec("mcp accept", Right::Admin),
            Self::Login(_) => spec("mcp login", Right::Admin),
            Self::Logout(_) => spec("mcp logout", Right::Admin),
            // What it gives out goes to another program.
            Self::Serve(_) => spec("mcp serve", Right::Admin),
        }
    }
}

impl SessionsCommand {
    const fn spec(&self) -> Spec {
        match self {
            Self::List { .. } => spec("sessions list", Right::Read),
            Self::Show { .. } => spec("sessions show", Right::Read),
            Self::Rename { .. } => spec("sessions rename", Right::Write),
            Self::Archive { .. } => spec("sessions archive", Right::Write),
            Self::Restore { .. } => spec("sessions restore", Right::Write),
        }
    }
}

/// The right of a command that sets a text, and reads it where none is given.
const fn writing(text: &Option<String>) -> Right {
    if text.is_some() { Right::Write } else { Right::Read }
}

impl TreeCommand {
    const fn spec(&self) -> Spec {
        use Right::{Act, Admin, Read, Write};
        match self {
            Self::New(_) => spec("tree new", Write),
            Self::List(_) => spec("tree list", Read).for_agents(),
            Self::Show(_) => spec("tree show", Read).for_agents(),
            Self::Text(_) => spec("tree text", Read),
            Self::Append(_) => spec("tree append", Write),
            Self::Draft(args) => spec("tree draft", writing(&args.text)),
            Self::Edit(_) => spec("tree edit", Write).for_agents(),
            Self::Merge(_) => spec("tree merge", Write),
            Self::Split(_) => spec("tree split", Write),
            Self::Branch(_) => spec("tree branch", Write),
            Self::Generate(_) => spec("tree generate", Act).for_agents(),
            Self::Regenerate(_) => spec("tree regenerate", Act).for_agents(),
            Self::Siblings(_) => spec("tree siblings", Read).for_agents(),
            Self::Versions(_) => spec("tree versions", Read).for_agents(),
            Self::Bookmarks(_) => spec("tree bookmarks", Read).for_agents(),
            Self::Tokens(_) => spec("tree tokens", Read),
            Self::Switch(_) => spec("tree switch", Write),
            Self::Go(_) => spec("tree go", Write),
            Self::Select(_) => spec("tree select", Write),
            Self::Keep(_) => spec("tree keep", Write),
            Self::Prune(_) => spec("tree prune", Write).for_agents(),
            Self::Restore(_) => spec("tree restore", Write),
            Self::Exclude(_) => spec("tree exclude", Write),
            Self::Include(_) => spec("tree include", Write),
            Self::Bookmark(_) => spec("tree bookmark", Write).for_agents(),
            Self::Tag(args) => spec("tree tag", writing(&args.text)).for_agents(),
            Self::Annotate(args) => spec("tree annotate", writing(&args.text)).for_agents(),
            Self::Head(args) => spec("tree head", writing(&args.text)),
            Self::Note(args) => spec("tree note", writing(&args.text)).for_agents(),
            Self::Compact(_) => spec("tree compact", Write),
            Self::Undo(_) => spec("tree undo", Write),
            Self::Redo(_) => spec("tree redo", Write),
            Self::Log(_) => spec("tree log", Read),
            Self::View(view) => match view.action {
                ViewAction::List { .. } => spec("tree view list", Read).for_agents(),
                ViewAction::New { .. } => spec("tree view new", Write),
                ViewAction::Delete { .. } => spec("tree view delete", Write),
            },
            Self::Compare(_) => spec("tree compare", Read),
            Self::Verify(_) => spec("tree verify", Read),
            Self::Seal(_) => spec("tree seal", Admin),
            Self::Trust(_) => spec("tree trust", Admin),
            Self::Rename(_) => spec("tree rename", Write),
            Self::Delete(_) => spec("tree delete", Write),
            Self::Undelete(_) => spec("tree undelete", Write),
            Self::Purge(_) => spec("tree purge", Admin),
            Self::Export(_) => spec("tree export", Admin),
            Self::Import(_) => spec("tree import", Admin),
            Self::Search(_) => spec("tree search", Read),
        }
    }
}

impl ContextCommand {
    const fn spec(&self) -> Spec {
        match self {
            Self::Show(_) => spec("context show", Right::Read),
            Self::Diff(_) => spec("context diff", Right::Read),
            Self::Replay(replay) if replay.dry_run => spec("context replay --dry-run", Right::Read),
            Self::Replay(_) => spec("context replay", Right::Act),
        }
    }
}
