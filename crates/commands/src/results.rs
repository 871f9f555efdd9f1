//! The result of every command: what `--json` prints, field by field (spec: cli §2).

pub mod approvals;
pub mod cards;
pub mod chat;
pub mod checks;
pub mod context;
pub mod cost;
pub mod file_changes;
pub mod handoff;
pub mod maintenance;
pub mod mcp;
pub mod model;
pub mod outcomes;
pub mod policy;
pub mod skills;
pub mod slash;
pub mod subagents;
pub mod tree;
pub mod workspace;

use serde::Serialize;

/// What a command gives back.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CommandOutcome {
    /// `tree new`.
    TreeMade(Told<tree::TreeMade>),
    /// `tree list`.
    Trees(tree::Trees),
    /// `tree show`.
    Shown(tree::TreeShown),
    /// `tree siblings`, `versions`, `bookmarks`; `tag` and `annotate` without a text.
    Listed(tree::ListedNodes),
    /// `tree head`, `note`, `draft` without a text.
    StoredText(tree::StoredText),
    /// `tree text`.
    Text(tree::TextShown),
    /// `tree append`, `keep`, flags and marks.
    Node(Told<tree::NodeNamed>),
    /// `tree draft`.
    Draft(Told<tree::DraftDone>),
    /// `tree edit` of a node, `tree merge`, `tree split`.
    Edited(Told<tree::Edited>),
    /// `tree edit` of a path.
    PathEdited(tree::PathEdited),
    /// `tree branch`.
    Branched(Told<tree::Branched>),
    /// `tree tokens`.
    Tokens(tree::TokensShown),
    /// `tree generate`, `regenerate`.
    Generated(tree::Generated),
    /// `tree generate --dry-run`.
    Estimate(tree::Estimate),
    /// `tree switch`, `select`.
    Moved(Told<tree::Moved>),
    /// `tree compact`.
    Compacted(tree::Compacted),
    /// `tree undo`, `redo`.
    Stepped(tree::Stepped),
    /// `tree log`.
    Operations(tree::Operations),
    /// `tree view list`.
    Views(tree::Views),
    /// `tree compare`.
    Compared(tree::Compared),
    /// `tree verify`.
    Verified(tree::Verified),
    /// `tree seal`.
    Sealed(tree::Sealed),
    /// `tree rename`, `trust`, `delete`, `undelete`.
    TreeNamed(Told<tree::TreeNamed>),
    /// `tree trust TREE NODE`, `/trust`.
    Trusted(tree::Trusted),
    /// `chat -m`, `ask`.
    Chatted(chat::Chatted),
    /// `log`, `/history`.
    Exchanges(chat::Exchanges),
    /// `/copy`.
    Copied(chat::Copied),
    /// `sessions list`.
    Sessions(chat::SessionsShown),
    /// `sessions rename`, `archive`, `restore`.
    SessionNamed(Told<chat::SessionNamed>),
    /// `approvals list`.
    Approvals(approvals::Approvals),
    /// `approve`, `deny`.
    Decided(approvals::Decided),
    /// `policy list`, `allow`, `ask`, `deny`, `remove`.
    PolicyRules(policy::PolicyRules),
    /// `policy test`.
    PolicyTested(policy::PolicyTested),
    /// `sessions show`.
    Session(chat::SessionShown),
    /// `model list`, `pull`, `use`.
    Models(model::ModelsShown),
    /// `model test`.
    Tested(model::Tested),
    /// `init`.
    Setup(model::SetupReport),
    /// `workspace list`, `trust`, `untrust`.
    Workspaces(workspace::Workspaces),
    /// `workspace accept`.
    FilesAccepted(workspace::FilesAccepted),
    /// `/help`.
    Help(slash::Help),
    /// `/status`.
    Status(Box<slash::SessionStatus>),
    /// `/context`.
    Standing(slash::ContextStatus),
    /// `/model`.
    Model(slash::ModelStatus),
    /// `/reload`.
    Reloaded(slash::Reloaded),
    /// `/think`.
    Think(slash::ThinkShown),
    Plan(slash::PlanShown),
    /// `tools list`, `/tools`.
    Tools(slash::ToolsShown),
    /// `/subagents`.
    Subagents(subagents::SubagentsShown),
    /// `mcp list`, `/mcp`.
    Servers(mcp::ServersShown),
    /// `mcp test`, `accept`, `add`.
    ServerTested(mcp::ServerTested),
    ServerDetail(Box<mcp::ServerDetail>),
    /// `skills list`.
    Skills(skills::SkillsShown),
    /// `skills show`.
    Skill(skills::SkillTextShown),
    /// `skills export`.
    SkillsExported(skills::SkillsExported),
    /// `skills remove`.
    SkillRemoved(skills::SkillRemoved),
    /// `skills check`.
    SkillsChecked(skills::SkillsChecked),
    /// `cards list`.
    Cards(cards::CardsShown),
    /// `cards check`.
    CardsChecked(cards::CardsChecked),
    /// `cards new`.
    CardWritten(Told<cards::CardWritten>),
    /// `cards select`.
    CardsSelected(Box<cards::CardsSelected>),
    /// `handoff check`.
    HandoffChecked(handoff::HandoffChecked),
    /// `handoff history`.
    HandoffHistory(handoff::HandoffHistory),
    /// `/wrap`.
    Wrapped(Told<handoff::WrapShown>),
    /// `/wrap undo`.
    WrapUndone(Told<handoff::WrapUndone>),
    /// `/note TEXT`.
    OutcomeNoted(Told<outcomes::OutcomeNoted>),
    /// `/note`.
    Outcomes(outcomes::OutcomesShown),
    System(slash::SystemShown),
    Sampling(slash::SamplingShown),
    /// `/zone`.
    Zone(slash::ZoneShown),
    /// `/undo`, `/redo`.
    Stood(slash::TipMoved),
    /// `files diff`, `/diff`.
    FilesChanged(file_changes::FilesChanged),
    /// `files history`.
    FileHistory(file_changes::FileHistory),
    /// `files restore`, undo and redo with `--files`, `/restore`.
    FilesGivenBack(file_changes::FilesGivenBack),
    /// `/next`, `/prev`.
    Reached(tree::Moved),
    /// `/new`, `/switch`, `/rename`, `/fork`.
    Went(slash::SessionMoved),
    /// `tree export`.
    Exported(maintenance::Exported),
    /// `import`.
    Imported(maintenance::Imported),
    /// `search`.
    Hits(maintenance::HitsShown),
    /// `forget`, `tree purge`.
    Removed(maintenance::Removed),
    /// `backup`.
    BackedUp(maintenance::BackedUp),
    /// `restore`.
    Restored(maintenance::Restored),
    /// `store check`, `config check`.
    Checked(maintenance::Checked),
    /// `config get`, `set`.
    Setting(maintenance::Setting),
    /// `config show`.
    Settings(maintenance::SettingsShown),
    /// `config path`.
    Paths(maintenance::Paths),
    /// `doctor`.
    Health(maintenance::Health),
    /// `bench`.
    Rows(maintenance::BenchRows),
    /// `sandbox`.
    Sandboxed(maintenance::Sandboxed),
    /// `context show`.
    Context(context::ContextShown),
    /// `context diff`.
    ContextDiff(context::ContextDiff),
    /// `context replay`.
    Replayed(context::Replayed),
    /// `cost`.
    Cost(cost::Costs),
    /// Nothing but that it was done.
    Done(Done),
}

impl CommandOutcome {
    /// The exit code of a program that ends with it: 1 where a check found errors, a turn ended by a limit, a part of a
    /// file or edit was left out, or what was to be taken out of an answer is not in it; 5 where an answer does not fit its
    /// schema; that of the command for a command in the sandbox.
    pub fn exit(&self) -> u8 {
        if matches!(self, Self::Chatted(done) if done.misfit.is_some()) {
            return 5;
        }
        if let Self::Sandboxed(done) = self {
            return done.exit;
        }
        let failed = match self {
            Self::Verified(found) => found.status == loom::verify::Status::Invalid,
            Self::Checked(found) => !found.ok,
            Self::SkillsChecked(found) => !found.ok,
            Self::CardsChecked(found) => !found.ok,
            Self::HandoffChecked(found) => !found.ok,
            Self::Health(found) => !found.ok,
            Self::Restored(found) => !found.verified,
            Self::BackedUp(made) => !made.problems.is_empty(),
            Self::Chatted(done) => done.code == Some(None) || done.limit.is_some(),
            Self::Imported(done) => done.left_out.is_some(),
            Self::PathEdited(done) => !done.collided.is_empty(),
            _ => false,
        };
        u8::from(failed)
    }
}

/// Result of a change, with what was done: a sentence for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told<T> {
    #[serde(flatten)]
    pub result: T,
    #[serde(skip)]
    pub sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Done {
    pub ok: bool,
}

impl Done {
    pub const fn outcome() -> CommandOutcome {
        CommandOutcome::Done(Self { ok: true })
    }
}
