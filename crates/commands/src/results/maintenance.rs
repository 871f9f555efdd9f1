//! Results of everything about the home as a whole.

use loom::{NodeId, TreeId};
use serde::{Serialize, Serializer};

use super::chat::ChangedFile;

/// `tree export`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exported {
    /// The file; none for standard output.
    pub file: Option<String>,
    /// What it contains.
    pub contains: Vec<String>,
    /// What it does not.
    pub left_out: Vec<String>,
    /// The export itself, when it goes to standard output.
    #[serde(rename = "text", skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub body: Option<Vec<u8>>,
}

/// Bytes as text: every format of an export is UTF-8.
fn text<S: Serializer>(body: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    body.as_deref().map(String::from_utf8_lossy).serialize(serializer)
}

/// `import`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imported {
    /// The tree, if there was one.
    pub tree: Option<TreeId>,
    /// That tree by short id and title, for people.
    #[serde(skip)]
    pub named_tree: Option<String>,
    /// Trees.
    pub trees: u64,
    /// Sessions.
    pub sessions: u64,
    /// Nodes that are new here.
    pub nodes: u64,
    /// Records that were not taken in.
    pub skipped: Vec<Skipped>,
    /// Lines of a damaged file that its copy lacks; none where it was copied whole. 0: it is not known how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// A record that was not taken in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Skipped {
    /// Line or path of the record.
    pub at: String,
    /// Why not.
    pub why: String,
}

/// `search`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HitsShown {
    /// The hits, best first.
    pub hits: Vec<HitShown>,
    /// Of how many matches these are the best: of all there are, at least as many as are shown; or of the
    /// newest 20,000, when there were more.
    pub ranked: u64,
    /// Whether there were more matches than were ranked.
    pub partial: bool,
}

/// A hit in what a node says, or in its labels.
pub const NODE: &str = "node";
/// A hit in a draft.
pub const DRAFT: &str = "draft";

/// A hit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HitShown {
    pub tree: TreeId,
    /// The tree's title.
    pub title: String,
    /// The node.
    pub node: NodeId,
    /// Short id of the node.
    pub short_id: String,
    /// Short id of the tree, for people.
    #[serde(skip)]
    pub tree_short: String,
    /// What kind of thing was found: [`NODE`], or a [`DRAFT`] that stands behind or over the node.
    pub source: &'static str,
    /// The text around the first match.
    pub snippet: String,
    /// What of the snippet the query met, in bytes.
    #[serde(skip)]
    pub matches: Vec<std::ops::Range<usize>>,
    /// What the node's position is for.
    pub kind: loom::PositionKind,
    /// Whether `main` shows another version at its place.
    pub old: bool,
    /// Tags of its position.
    pub tags: Vec<String>,
    /// Title of the bookmark on the position, empty where it has none; none without a bookmark.
    pub bookmark: Option<String>,
    /// Remarks on its position.
    pub annotations: Vec<super::tree::AnnotationShown>,
    /// Of a remark: the passage it hangs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<PassageNamed>,
    /// The score; greater is better.
    pub score: f64,
}

/// A passage in a result that is about something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassageNamed {
    pub node: NodeId,
    pub short_id: String,
    /// First words of the passage.
    pub text: String,
}

/// `forget`, `tree purge`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Removed {
    /// Where something was removed, and how much.
    pub removed: Vec<PlaceShown>,
    /// What cannot be reached.
    pub unreachable: Vec<String>,
    /// Whether nothing was removed yet.
    pub dry_run: bool,
}

/// A kind of place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceShown {
    /// Which.
    #[serde(rename = "where")]
    pub place: String,
    /// How many.
    pub count: u64,
    /// The nodes among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Lines about the first of them, for people.
    #[serde(skip)]
    pub listed: Vec<String>,
}

/// `backup`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackedUp {
    /// The file.
    pub file: String,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The newest event it holds.
    pub seq: u64,
    /// Lines about what the home should hold and the backup does not.
    pub problems: Vec<String>,
}

/// `restore`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Restored {
    /// The new home.
    pub home: String,
    /// Whether every tree verified.
    pub verified: bool,
    /// Trees.
    pub trees: u64,
    /// Findings.
    pub problems: Vec<String>,
}

/// `store check`, `config check`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// Whether nothing was found.
    pub ok: bool,
    /// Findings.
    pub problems: Vec<String>,
    /// Trees that were counted anew, with `--repair`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired: Option<u64>,
}

/// `config get`, `set`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The key.
    pub key: String,
    pub value: serde_json::Value,
    /// `flag`, `environment`, `file` or `default`.
    pub source: String,
    /// What is now so and where, for people; only of what was changed.
    #[serde(skip)]
    pub said: Option<String>,
}

/// `config show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingsShown {
    /// The keys.
    pub settings: Vec<SettingShown>,
    /// A JSON schema of the file, where the defaults were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
}

/// A key as shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingShown {
    /// The key.
    pub key: String,
    /// Value of the key; of a secret only whether it is there.
    pub value: serde_json::Value,
    /// Where it comes from.
    pub source: String,
    /// What it is for.
    pub doc: String,
}

/// `config path`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paths {
    /// The home.
    pub home: String,
    /// The configuration file.
    pub config: String,
    /// The workspace.
    pub workspace: String,
    /// Why that one.
    pub why: String,
}

/// `doctor`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Health {
    /// Whether nothing failed.
    pub ok: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// What holds programs that are run.
    pub sandbox: Sandbox,
}

/// What holds programs that are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sandbox {
    /// How much it holds: `full`, `partial` or `none`.
    pub level: &'static str,
    /// The version of the kernel's Landlock; none where it has none.
    pub abi: Option<u32>,
    /// What it should have and does not.
    pub missing: Vec<String>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub name: String,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub why: String,
    /// How to mend it; empty when nothing is wrong.
    pub fix: String,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warn,
    /// Not working.
    Fail,
}

/// `bench`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchRows {
    /// What was measured.
    pub rows: Vec<BenchRow>,
}

/// `sandbox`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sandboxed {
    /// Level of the walls: `full` or `partial`.
    pub level: String,
    /// Exit code; 128 and the signal's number if one ended the command, 124 if its time was over.
    pub exit: u8,
    /// Duration in milliseconds.
    pub ms: u64,
    /// What the command printed, head and tail of what is long.
    pub output: String,
    pub errors: String,
    /// What it changed in files of the roots that it may write; none where nobody reads JSON.
    pub changed: Vec<ChangedFile>,
    /// Protected paths that were given back or moved away, each with where it is now.
    pub protected: Vec<ProtectedChange>,
    /// What else is to be known of it.
    pub notices: Vec<String>,
}

/// Protected path that a command changed or made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProtectedChange {
    pub path: String,
    /// Where it was moved; none where the path was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchRow {
    /// What.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: String,
    /// The budget, in the same unit; none where there is none. Of a rate it is the least, of all else the most.
    pub budget: Option<f64>,
}

impl BenchRow {
    /// Whether more is better.
    pub fn is_rate(&self) -> bool {
        ["/s", " speed", " shared", " found"].iter().any(|end| self.unit.ends_with(end))
    }
}
