//! Results of slash commands.

use context::plan::PlanStep;
use context::{WrapDecision, Zone};
use loom::{NodeId, TreeId};
use model::{ModelPlace, Thinking};
use policy::{Decision, Effect};
use serde::Serialize;
use workspace::FurtherRoot;

use super::context::ContextShown;
use super::cost::SessionCost;
use super::tree::Stepped;
use crate::rights::Right;
use crate::slash::Section;

/// `/help`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Help {
    /// The commands.
    pub commands: Vec<HelpLine>,
    /// Whether all were asked for.
    #[serde(skip)]
    pub is_all: bool,
}

/// A command, as help shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HelpLine {
    /// Name of the command, without the slash.
    pub name: String,
    pub arguments: String,
    pub section: Section,
    /// The right it needs.
    pub right: Right,
    /// What it does.
    pub help: String,
}

/// `/model`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelStatus {
    /// `PROVIDER/NAME`.
    pub model: String,
    /// Where text goes.
    pub place: ModelPlace,
    /// Context window of the model, in tokens.
    pub window: u32,
    /// Where text goes from now on, when that changed from this machine to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// `/think`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThinkShown {
    /// How much the model is asked to think; none where it is left to the model.
    pub thinking: Option<Thinking>,
    /// Whether that was said just now: it holds for the session.
    #[serde(skip)]
    pub set: bool,
    /// What the model that is asked does instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// `/plan`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanShown {
    /// Whether tools change nothing.
    pub plan: bool,
    /// The steps that the model set; none where it set none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
    /// Whether that was said just now: it holds for the session.
    #[serde(skip)]
    pub set: bool,
}

/// `tools list`, `/tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolsShown {
    /// The agent that may call them.
    pub agent: String,
    /// Tools the agent may call, by name.
    pub tools: Vec<ToolShown>,
    /// The names of those it may not.
    pub others: Vec<String>,
    /// The model that is asked, where it takes no tools.
    pub untaken: Option<String>,
    /// Context window of the model in tokens, where it is too small for tools that nobody named.
    pub small_window: Option<u32>,
    /// Whether there is a folder in which they could work.
    pub has_folder: bool,
    /// What makes one, where there is none and it was not told yet.
    #[serde(skip)]
    pub advice: Option<String>,
}

/// A tool that an agent may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolShown {
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    pub source: ToolSource,
    /// What it does, which policy decides on.
    pub effects: Vec<Effect>,
    /// What is decided on a call where somebody is there to be asked and nothing taints, unless its arguments say more.
    pub policy: Decision,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSource {
    BuiltIn,
    /// `[tools.NAME]`.
    Configuration,
    /// `[mcp.NAME]`.
    Server,
}

/// `/system`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SystemShown {
    /// The system prompt of the session; none where it is the built-in one.
    pub system: Option<String>,
    /// Whether that was said just now.
    #[serde(skip)]
    pub set: bool,
}

/// `/set`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplingShown {
    pub temperature: Option<f64>,
    /// In tokens.
    pub max_tokens: Option<u32>,
    pub seed: Option<i64>,
    /// A preset of the configuration.
    pub preset: Option<String>,
    /// Whether one of them was set just now: it holds for the session.
    #[serde(skip)]
    pub set: bool,
}

/// `/zone`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZoneShown {
    /// The zone.
    pub zone: Zone,
    /// The used share of the window, 0 to 1.
    pub share: f64,
    /// Tokens of the last request and its answer.
    pub used: u64,
    /// The window, tokens.
    pub window: u64,
    /// Whether the tokens are what the model reported, and not an estimate.
    pub measured: bool,
    /// Tokens that stand above the conversation: what a new session begins with.
    pub fresh: u64,
    /// What takes most of the window, the largest first.
    pub sources: Vec<SourceShown>,
    /// Whether a new session would help.
    pub wrap: WrapDecision,
}

/// Something that takes room in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceShown {
    /// What it is.
    pub name: String,
    /// Tokens of the source, estimated.
    pub tokens: u64,
}

/// `/status`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStatus {
    /// The session, `SESSION:FORK` in a fork.
    pub session: String,
    /// Whether it is forgotten when it is closed.
    pub temporary: bool,
    /// Tree of the session; none before anything was said.
    pub tree: Option<TreeId>,
    /// That tree by its short id.
    #[serde(skip)]
    pub tree_short: Option<String>,
    /// The tree's title.
    pub title: String,
    /// The node it stands at, by its short id.
    pub tip: Option<String>,
    /// Who is asked; none before a model was needed.
    pub model: Option<ModelStatus>,
    /// The model as flags, configuration or preset name it; none where they name none.
    pub named: Option<String>,
    /// How much the model is asked to think; none where it is left to the model.
    pub thinking: Option<Thinking>,
    /// Whether plan mode is on.
    pub plan: bool,
    /// Tokens of the last request and its answer; none where no model was asked yet.
    pub used: Option<u64>,
    /// The used share of the window, 0 to 1.
    pub share: Option<f64>,
    /// Whether that share is what the model reported, and not an estimate.
    pub measured: Option<bool>,
    /// The zone of that share.
    pub zone: Option<Zone>,
    /// What the session came to; none before anything was said.
    pub cost: Option<SessionCost>,
    /// The first node of trust `outside` that the last request held.
    pub tainted_by: Option<NodeId>,
    /// All of them, by their short ids.
    pub tainting: Vec<String>,
    /// The workspace; empty for none.
    pub workspace: String,
    /// Folders that tools reach beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FurtherRoot>,
    /// Whether what it brings is loaded.
    pub loaded: bool,
    /// Whether its folder is there.
    pub exists: bool,
}

/// How `/context` is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContextForm {
    /// A line for each kind of segment.
    #[default]
    Summary,
    /// Every segment.
    Detail,
    /// Bars.
    Map,
    /// As JSON.
    Json,
}

/// `/context`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextStatus {
    /// The last request on the path; none where no model was asked yet.
    pub last: Option<Box<ContextShown>>,
    /// What would be sent now; none before anything was said.
    pub next: Option<Box<ContextShown>>,
    /// How it is shown to a person.
    #[serde(skip)]
    pub form: ContextForm,
}

/// `/undo`, `/redo`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TipMoved {
    /// What was done.
    #[serde(flatten)]
    pub stepped: Stepped,
    /// The node the conversation stands at now, by its short id.
    pub tip: String,
    /// Text of the node at the tip; empty before the first.
    pub text: String,
}

/// `/new`, `/switch`, `/rename`, `/fork`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionMoved {
    /// The session the conversation is in, `SESSION:FORK` in a fork.
    pub session: String,
    /// Tree of the session; none when it begins with what is said next.
    pub tree: Option<TreeId>,
}

/// `/reload`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reloaded {
    /// Files that are not as they stand above the conversation.
    pub changed: Vec<String>,
    /// Tokens of the next request as it would be, estimated; none before anything was sent.
    pub tokens: Option<u64>,
    /// Tokens of the next request that a cache could reuse if nothing were read anew, estimated.
    pub reusable: Option<u64>,
    /// Tokens of the next request that a cache can reuse when all is read anew, estimated.
    pub reusable_anew: Option<u64>,
}
