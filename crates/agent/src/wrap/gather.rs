//! What a wrap gathers of a session, in bounded reads: the end of its path, what it noted, what waits.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use context::plan::{StepState, standing};
use context::{Kind, Source};
use continuity::deterministic::{GatheredSession, Note, NoteKind, Request, RequestEnd, SourcedText};
use loom::path::ViewOverrides;
use loom::render::{Passage, tip, window};
use loom::{
    Answers, AuthorKind, Block, Digest, Finish, Millis, NodeId, PositionId, Role, RowError, ToolStatus,
    TreeId, TreeReader, Trust, ViewName,
};
use store::{
    CallId, FileChange, FileChangeId, LIST_PAGE, Outcome, OutcomeKind, Principal, Question, QuestionId,
    Session, all_pages,
};

use crate::error::AgentError;
use crate::questions::parts;
use crate::runtime::Runtime;
use crate::stored;

/// Passages of the path that are read, from its end.
const MOST_PASSAGES: usize = 1_000;
/// Answers of the path among which the last change of a file is looked for.
const MOST_ANSWERS: usize = 64;
/// Characters of the arguments by which a call is named.
const ARGUMENT_CHARS: usize = 80;

/// Where a text of trust `outside` comes from, as far as is known.
const OUTSIDE: &str = "outside";

/// Tools that leave everything as it is.
const ONLY_READING: [&str; 17] = [
    "context_status",
    "glob",
    "grep",
    "list",
    "list_skills",
    "loom_list",
    "loom_tree",
    "loom_view",
    "note_outcome",
    "plan",
    "read",
    "recall",
    "subagents",
    "tool_search",
    "web_fetch",
    "web_search",
    "process",
];

/// What is handed over, and where the session stands.
pub(super) struct Gathered {
    pub(super) session: GatheredSession,
    pub(super) tip: PositionId,
    pub(super) tip_node: NodeId,
    /// Digest of the handoff that the last request was sent with; none where there was none.
    pub(super) seen: Option<Digest>,
}

/// What the path of a session says.
struct GatheredPath {
    requests: Vec<Request>,
    plan: Vec<SourcedText>,
    unanswered: Vec<SourcedText>,
    unknown_calls: Vec<SourcedText>,
    tip: PositionId,
    tip_node: NodeId,
    seen: Option<Digest>,
    /// An answer behind which the last changes of files are.
    answer: Option<NodeId>,
    /// Short ids of nodes.
    names: HashMap<NodeId, String>,
}

impl Runtime {
    /// What a session hands over; none where nothing was said or noted in its tree.
    pub(super) async fn gather(
        &self,
        who: &Principal,
        (session, tree): (&Session, TreeId),
        view: &ViewName,
        root: PathBuf,
    ) -> Result<Option<Gathered>, AgentError> {
        let page = |after| self.store.outcomes(who, &session.id, after, LIST_PAGE);
        let noted = all_pages(|outcome: &Outcome| outcome.id, page).await?;
        let said_in: Vec<NodeId> =
            noted.iter().filter(|noted| noted.tree == tree).filter_map(|noted| noted.node).collect();
        let view = view.clone();
        let path = self.read(who, tree, move |rows| GatheredPath::read(rows, &view, &said_in)).await?;
        let is_new = noted.iter().any(|noted| noted.tree == tree);
        if path.requests.is_empty() && !is_new {
            return Ok(None);
        }
        let changed_file = self.changed_file(who, tree, path.answer, root).await?;
        let approvals = self.waiting_approvals(who, tree).await?;
        let mut requests = path.requests;
        if let Some(last) = requests.last_mut().filter(|_| !approvals.is_empty()) {
            last.end = RequestEnd::WaitsForApproval;
        }
        let session = GatheredSession {
            ledger: notes(noted, tree, &path.names),
            plan: path.plan,
            requests,
            changed_file,
            unanswered: path.unanswered,
            approvals,
            unknown_calls: path.unknown_calls,
        };
        Ok(Some(Gathered { session, tip: path.tip, tip_node: path.tip_node, seen: path.seen }))
    }

    /// The file of the workspace that was changed last.
    async fn changed_file(
        &self,
        who: &Principal,
        tree: TreeId,
        behind: Option<NodeId>,
        root: PathBuf,
    ) -> Result<Option<String>, AgentError> {
        let before = behind.map(|answer| FileChangeId { call: CallId { answer, number: 0 }, number: 0 });
        let page =
            |after: Option<FileChangeId>| self.store.file_changes(who, tree, after.or(before), LIST_PAGE);
        let changes = all_pages(|change: &FileChange| change.id, page).await?;
        let last = changes.into_iter().rev().find(|change| change.standing.stands() && change.root == root);
        Ok(last.map(|change| change.path.to_string_lossy().into_owned()))
    }

    async fn waiting_approvals(&self, who: &Principal, tree: TreeId) -> Result<Vec<SourcedText>, AgentError> {
        let place = |question: &Question| -> (Millis, QuestionId) { (question.created, question.id) };
        let open = all_pages(place, |after| self.store.open_questions(who, after, LIST_PAGE)).await?;
        let asked = open.into_iter().filter(|question| question.tree == tree);
        Ok(asked.map(|question| plain(parts(&question.payload).0.to_owned())).collect())
    }
}

/// A text of no node.
fn plain(text: String) -> SourcedText {
    SourcedText { text, ..SourcedText::default() }
}

fn outside(trust: Trust) -> Option<String> {
    (trust == Trust::Outside).then(|| OUTSIDE.to_owned())
}

/// Entries of a ledger. What a forgotten one struck stays out.
fn notes(noted: Vec<Outcome>, tree: TreeId, names: &HashMap<NodeId, String>) -> Vec<Note> {
    let striking: HashSet<_> = noted.iter().filter_map(|noted| noted.corrects).collect();
    let is_told = |noted: &Outcome| !noted.is_struck || striking.contains(&noted.id);
    let kind = |kind| match kind {
        OutcomeKind::Decision => NoteKind::Decision,
        OutcomeKind::Outcome => NoteKind::Outcome,
        OutcomeKind::Correction => NoteKind::Correction,
        OutcomeKind::Question => NoteKind::Question,
        OutcomeKind::Step => NoteKind::Step,
    };
    let note = |noted: Outcome| Note {
        id: noted.id.to_string(),
        kind: kind(noted.kind),
        text: SourcedText {
            source: noted.node.and_then(|node| names.get(&node).cloned()).unwrap_or_default(),
            outside: outside(noted.trust),
            text: noted.text,
        },
        corrects: noted.corrects.map(|corrected| corrected.to_string()),
        is_earlier: noted.tree != tree,
    };
    noted.into_iter().filter(is_told).map(note).collect()
}

impl GatheredPath {
    fn read(rows: &dyn TreeReader, view: &ViewName, named: &[NodeId]) -> Result<Self, RowError> {
        let tip = tip(rows, view)?;
        let path = ViewOverrides::read(rows, view, tip)?;
        let passages = window(rows, view, &path, None, MOST_PASSAGES)?;
        let tip_node = passages.last().map_or(tip.original(), |last| last.row.node.id);
        let answers: Vec<NodeId> = passages.iter().filter(|passage| is_answer(passage)).map(node).collect();
        let named = rows.nodes(named)?.into_iter().map(|row| (row.node.id, row.short_id));
        let depth = path.tip.depth;
        let from = depth.saturating_sub(u32::try_from(MOST_PASSAGES).unwrap_or(u32::MAX));
        let steps = standing(rows, view, &path, from..=depth)?;
        let steps = steps.map(|standing| (standing.trust(), standing.plan.steps)).into_iter();
        let plan = steps.flat_map(|(trust, steps)| {
            let open = steps.into_iter().filter(|step| step.state != StepState::Done);
            open.map(move |step| SourcedText { outside: outside(trust), ..plain(step.step) })
        });
        let mut gathered = Self {
            requests: Vec::new(),
            plan: plan.collect(),
            unanswered: Vec::new(),
            unknown_calls: Vec::new(),
            tip,
            tip_node,
            seen: seen(rows, tip)?,
            answer: answers.len().checked_sub(MOST_ANSWERS).and_then(|at| answers.get(at)).copied(),
            names: named.collect(),
        };
        gathered.follow(&passages);
        Ok(gathered)
    }

    /// Takes in what was asked, and what came of it.
    fn follow(&mut self, passages: &[Passage]) {
        let mut calls: HashMap<&str, (String, &Passage)> = HashMap::new();
        let mut is_answered = false;
        for passage in passages.iter().filter(|passage| !passage.excluded && !passage.row.purged) {
            let of = &passage.row.node;
            match of.role {
                Some(Role::User) if of.author.kind == AuthorKind::Human => {
                    let text = sourced(passage, passage.text.clone());
                    // Files come before what is said of them, in one turn.
                    if self.requests.last().is_some_and(|_| !is_answered) {
                        self.requests.pop();
                    }
                    is_answered = false;
                    let end = RequestEnd::Interrupted;
                    self.requests.push(Request { text, had_effects: false, end });
                }
                Some(Role::Assistant) => {
                    is_answered = true;
                    let end = ended(of.finish.as_ref());
                    if let Some(request) = self.requests.last_mut()
                        && !matches!(request.end, RequestEnd::UnknownOutcomes(_))
                    {
                        request.end = end;
                    }
                    for block in of.content.iter() {
                        if let Block::ToolCall { id, name, arguments } = block {
                            let (name, arguments) = context::tools::unwrapped(name, arguments);
                            let arguments: String =
                                arguments.to_string().chars().take(ARGUMENT_CHARS).collect();
                            calls.insert(id, (format!("{name} {arguments}"), passage));
                        }
                    }
                }
                Some(Role::Tool) => self.result(passage, &calls),
                _ => {}
            }
        }
        let last = passages.iter().rfind(|passage| !passage.excluded && !passage.row.purged);
        let asks = |passage: &&Passage| is_answer(passage) || passage.row.node.role == Some(Role::User);
        if let Some(question) = last.filter(asks).and_then(|last| Some((last, question(&last.text)?))) {
            self.unanswered.push(sourced(question.0, question.1));
        }
    }

    fn result(&mut self, passage: &Passage, calls: &HashMap<&str, (String, &Passage)>) {
        for block in passage.row.node.content.iter() {
            let Block::ToolResult { call_id, status, .. } = block else { continue };
            let Some((call, answer)) = calls.get(call_id.as_str()) else { continue };
            let tool = call.split(' ').next().unwrap_or_default();
            let Some(request) = self.requests.last_mut() else { continue };
            let acts = matches!(status, ToolStatus::Ok | ToolStatus::Error) && !ONLY_READING.contains(&tool);
            request.had_effects |= acts;
            if *status == ToolStatus::Unknown {
                request.had_effects = true;
                let unknown = if let RequestEnd::UnknownOutcomes(calls) = request.end { calls } else { 0 };
                request.end = RequestEnd::UnknownOutcomes(unknown + 1);
                self.unknown_calls.push(sourced(answer, call.clone()));
            }
        }
    }
}

fn node(passage: &Passage) -> NodeId {
    passage.row.node.id
}

fn is_answer(passage: &Passage) -> bool {
    passage.row.node.role == Some(Role::Assistant)
}

fn sourced(passage: &Passage, text: String) -> SourcedText {
    let source = passage.row.short_id.clone();
    SourcedText { text, source, outside: outside(passage.row.node.trust) }
}

const fn ended(finish: Option<&Finish>) -> RequestEnd {
    match finish {
        Some(Finish::Interrupted(_) | Finish::Refused | Finish::ToolUse) => RequestEnd::Interrupted,
        Some(Finish::Stop | Finish::Length) | None => RequestEnd::Answered,
    }
}

/// The last sentence of a text, where it asks something.
fn question(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let ends = text::cut::sentence_ends(line);
    let from = ends.filter(|end| *end < line.trim_end().len()).last().unwrap_or(0);
    let sentence = line[from..].trim();
    sentence.ends_with(['?', '？']).then(|| sentence.to_owned())
}

/// Digest of the handoff in the last request of a path.
fn seen(rows: &dyn TreeReader, tip: PositionId) -> Result<Option<Digest>, RowError> {
    for answer in Answers::new(rows, tip) {
        let Some(generation) = rows.generation(answer?.generation)? else { continue };
        let Some(manifest) = stored::manifest(rows, generation.manifest)? else { continue };
        let handoff = manifest.segments.iter().find(|segment| segment.kind == Kind::Handoff);
        return Ok(handoff.and_then(|segment| match &segment.source {
            Source::File { digest, .. } if segment.bytes.is_some() => Some(*digest),
            _ => None,
        }));
    }
    Ok(None)
}
