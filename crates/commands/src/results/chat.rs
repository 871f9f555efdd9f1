//! Results of conversations.

use std::path::PathBuf;

use context::Zone;
use loom::{Digest, Finish, Millis, NodeId, ToolStatus, TreeId};
use model::Money;
use policy::Effect;
use serde::{Serialize, Serializer};
use store::CallId;

use super::handoff::WrapShown;
use super::subagents::SubagentWork;
use super::tree::{ToolCallShown, UsageShown};

/// A call of a tool in a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallShown {
    /// As `ANSWER-NUMBER`.
    #[serde(rename = "call", serialize_with = "call_name")]
    pub id: CallId,
    pub tool: String,
    pub effects: Vec<Effect>,
    /// How it ended; none where the turn ended first.
    pub status: Option<ToolStatus>,
    /// The node of its result.
    pub node: Option<NodeId>,
    /// Whether its server asked a person something that nobody answered.
    #[serde(skip)]
    pub unanswered: bool,
}

impl CallShown {
    /// A call without a result.
    pub(crate) const fn new(id: CallId, tool: String, effects: Vec<Effect>) -> Self {
        Self { id, tool, effects, status: None, node: None, unanswered: false }
    }
}

fn call_name<S: Serializer>(id: &CallId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// A file that calls of a turn changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangedFile {
    /// Below the workspace, or absolute.
    pub path: PathBuf,
    /// Lines that came; none of what is no text.
    pub added: Option<usize>,
    /// Lines that went.
    pub removed: Option<usize>,
}

/// A call of a tool that policy or a person refused, or whose server asked something that nobody answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeniedCall {
    #[serde(rename = "call", serialize_with = "call_name")]
    pub id: CallId,
    pub tool: String,
    /// The node of its result.
    pub node: NodeId,
    /// What the model was told.
    pub why: String,
}

/// How a turn ended: as its last answer did, or by a limit behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnFinish {
    Answer(Finish),
    Limit,
}

impl Serialize for TurnFinish {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Answer(finish) => finish.serialize(serializer),
            Self::Limit => serializer.serialize_str("limit"),
        }
    }
}

/// `chat -m`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chatted {
    /// The session's name.
    pub session: String,
    /// The tree it is in.
    pub tree: TreeId,
    /// The node of the answer.
    pub node: NodeId,
    /// Short id of the node of the answer.
    pub short_id: String,
    /// The node of what was said.
    pub said: NodeId,
    /// The answer.
    pub text: String,
    /// First code block of the answer alone, where that was asked for; `Some(None)` where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Option<String>>,
    /// Where the answer does not fit the schema that was given, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
    /// Pictures and sounds in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaShown>,
    /// The model that answered, `PROVIDER/NAME`.
    pub model: String,
    /// Tokens.
    pub usage: UsageShown,
    /// What it cost, in dollars; none where it runs on this machine for nothing, or price or tokens are not known.
    pub cost: Option<f64>,
    /// Tokens of the request that a cache could reuse, estimated; none for the first, or when another process asked.
    pub reusable: Option<u64>,
    /// The used share of the window, 0 to 1.
    pub share: f64,
    /// Whether that share is what the model reported, and not an estimate.
    pub measured: bool,
    /// The zone of that share.
    pub zone: Zone,
    /// Digest of the manifest of the request; none when another process asked.
    pub manifest: Option<Digest>,
    /// How the turn ended.
    pub finish: TurnFinish,
    /// The limit by which it ended, and what met it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Calls of tools on the way, in the order they were made.
    pub calls: Vec<CallShown>,
    /// Files that these calls changed.
    pub changed: Vec<ChangedFile>,
    /// Calls of tools that were refused on the way.
    pub denied: Vec<DeniedCall>,
    /// Subagents that these calls began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<SubagentWork>,
    /// How its session was handed over behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrapped: Option<Box<WrapShown>>,
    /// All answers, this one first, where several were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Chatted>,
    /// Whether the answer was shown while it came.
    #[serde(skip)]
    pub streamed: bool,
}

impl Chatted {
    /// What came of a turn behind another one of the same call, with what was done in both.
    pub(crate) fn behind(before: Self, done: Self) -> Self {
        Self {
            cost: total([before.cost, done.cost]),
            calls: [before.calls, done.calls].concat(),
            changed: [before.changed, done.changed].concat(),
            denied: [before.denied, done.denied].concat(),
            ..done
        }
    }
}

/// What a turn that ended with an error came to until then.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnfinishedTurn {
    /// The session's name.
    pub session: String,
    /// The tree it is in.
    pub tree: TreeId,
    /// The node of the last answer, whole or in part; none where none came.
    pub node: Option<NodeId>,
    /// The node of what was said.
    pub said: NodeId,
    /// That answer.
    pub text: Option<String>,
    /// The model that gave it, `PROVIDER/NAME`; empty where none did.
    pub model: String,
    /// Tokens.
    pub usage: UsageShown,
    /// As in [`Chatted`].
    pub cost: Option<f64>,
    /// Calls of tools until then, in the order they were made.
    pub calls: Vec<CallShown>,
    /// Files that these calls changed.
    pub changed: Vec<ChangedFile>,
    /// Calls of tools that were refused.
    pub denied: Vec<DeniedCall>,
}

/// A picture or a sound that a model made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MediaShown {
    /// `PNG`, `WAV`; none where its bytes do not tell.
    pub kind: Option<&'static str>,
    /// Whether it is a sound.
    pub sound: bool,
    /// Width of a picture, in pixels.
    pub width: Option<u32>,
    /// Height of a picture, in pixels.
    pub height: Option<u32>,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The file it is kept in.
    pub file: PathBuf,
}

impl MediaShown {
    pub(crate) fn of(shown: agent::MediaFacts) -> Self {
        Self {
            kind: shown.kind.map(media::MediaKind::name),
            sound: shown.kind.is_some_and(media::MediaKind::is_sound),
            width: shown.measure.map(|measure| measure.width),
            height: shown.measure.map(|measure| measure.height),
            bytes: shown.bytes,
            file: shown.path,
        }
    }
}

/// `sessions list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionsShown {
    /// The sessions, the one something was last done in first.
    pub sessions: Vec<SessionShown>,
    /// Whether those of every workspace were asked for.
    #[serde(skip)]
    pub everywhere: bool,
    /// Sessions of other workspaces with these, where this one has none; the one something was last done in first.
    #[serde(skip)]
    pub elsewhere: Vec<(String, String)>,
}

/// `sessions rename`, `archive`, `restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionNamed {
    pub ok: bool,
    /// Name of the session from now on.
    pub name: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionShown {
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: store::SessionKind,
    /// Workspace of the session; empty for none.
    pub workspace: String,
    /// The tree it goes on in.
    pub tree: Option<TreeId>,
    /// That tree's title.
    pub title: String,
    /// The node it stands at.
    pub tip: Option<NodeId>,
    /// How full it is; none where no model was asked yet.
    pub zone: Option<Zone>,
    /// Forks of the session, besides the main line.
    pub forks: Vec<String>,
    /// When something was last done in it, ms since 1970.
    pub updated: Millis,
    /// Whether it is archived.
    pub archived: bool,
    /// All its trees, the oldest first.
    pub trees: Vec<TreeId>,
    /// `trees` by short id and title, for people.
    #[serde(skip)]
    pub named_trees: Vec<String>,
}

impl Chatted {
    /// The result with the first code block of the answer.
    #[must_use]
    pub fn extracted(self) -> Self {
        Self { code: Some(text::code::first_block(&self.text)), ..self }
    }
}

/// `log`, `/history`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exchanges {
    /// The oldest first.
    pub exchanges: Vec<ExchangeShown>,
    /// Sessions of other workspaces with these, where this one has none.
    #[serde(skip)]
    pub elsewhere: Vec<(String, String)>,
    /// Whether they are those of one conversation, which was asked for them.
    #[serde(skip)]
    pub of_conversation: bool,
}

/// What was said, and what was answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExchangeShown {
    pub session: String,
    pub tree: TreeId,
    /// The node of what was said last.
    pub node: NodeId,
    #[serde(skip)]
    pub short_id: String,
    /// When it was said, milliseconds since 1970.
    pub at: i64,
    /// All that was answered together, each text on a line of its own.
    pub question: String,
    /// Tools that were called for the answer, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCallShown>,
    /// None while there is none.
    pub answer: Option<String>,
    /// The model that answered, `PROVIDER/NAME`.
    pub model: Option<String>,
    /// Whether the end of the answer never came: it was stopped, reached its limit, or its process ended in a call or
    /// before one.
    pub cut: bool,
    /// The tools of its last calls that were not run, as the turn ended before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
}

/// `/copy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub text: String,
}

/// What known costs come to, in dollars; none where none is known.
fn total(costs: [Option<f64>; 2]) -> Option<f64> {
    let sum = costs.into_iter().flatten().map(Money::from_dollars).reduce(|one, other| one + other);
    sum.map(Money::dollars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_added_as_money() {
        assert_eq!(total([Some(0.0068), Some(0.0034)]), Some(0.0102));
        assert_eq!((total([None, Some(0.1)]), total([None, None])), (Some(0.1), None));
    }
}
