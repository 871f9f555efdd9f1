//! The last exchanges of conversations: what was said, and what was answered.

use agent::SessionChoice;
use agent::session::{answered_calls, tools_not_run};
use loom::operation::TimelineEffect;
use loom::{
    Ascent, Block, CellKey, CellValue, Finish, NodeId, NodeRow, OpTarget, Role, RowError, ToolStatus, TreeId,
    TreeReader, ViewName, render, resolve,
};
use store::{SessionId, SessionKind, TreeEntry};

use super::Conversation;
use super::conversation::place;
use super::position::asked_model;
use super::sessions::{elsewhere, listed, no_session};
use crate::app::App;
use crate::args::chat::LogArgs;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::results::chat::{ExchangeShown, Exchanges};
use crate::results::tree::ToolCallShown;
use crate::rights::Asker;

/// `log`: the last exchanges of a session, or of all of the workspace.
pub(crate) async fn log(app: &App, asker: &Asker, args: LogArgs) -> Result<CommandOutcome, CommandError> {
    let mut exchanges = Vec::new();
    if let Some(named) = &args.session {
        let (name, view) = place(app, named)?;
        let chosen = SessionChoice { workspace: app.workspace.key.clone(), name, kind: SessionKind::Main };
        let found = app.runtime.session(&asker.principal, &chosen).await?;
        let Some(session) = found.filter(|session| session.tree().is_some()) else {
            return Err(no_session(app, asker, chosen.name.as_str(), false).await?);
        };
        // A fork is one of the tree the session goes on in.
        let (is_fork, current) = (view != ViewName::default(), session.tree());
        for entry in session.trees.iter().rev().filter(|entry| !is_fork || Some(entry.id) == current) {
            if is_older(entry, &exchanges, args.number) {
                continue;
            }
            let line = (named.clone(), entry.id, view.clone());
            exchanges.splice(0..0, last_of(app, asker, (&session.id, line), args.number).await?);
        }
    } else {
        let sessions = listed(app, asker, Some(app.workspace.key.clone()), false).await?;
        let trees = sessions.into_iter().flat_map(|session| {
            let named = (session.id, session.name);
            session.trees.into_iter().map(move |entry| (named.clone(), entry))
        });
        let mut trees: Vec<_> = trees.collect();
        trees.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.updated_at));
        for ((id, name), entry) in trees {
            if is_older(&entry, &exchanges, args.number) {
                break;
            }
            let line = (name, entry.id, ViewName::default());
            exchanges.extend(last_of(app, asker, (&id, line), args.number).await?);
        }
        exchanges.sort_by_key(|exchange| exchange.at);
    }
    exchanges.drain(..exchanges.len().saturating_sub(args.number));
    let is_alone = exchanges.is_empty() && args.session.is_none();
    let elsewhere = if is_alone { elsewhere(app, asker, false).await? } else { Vec::new() };
    Ok(CommandOutcome::Exchanges(Exchanges { exchanges, elsewhere, of_conversation: false }))
}

/// Whether nothing of a tree can be among the last exchanges: it was changed last before so many were said.
fn is_older(entry: &TreeEntry, found: &[ExchangeShown], most: usize) -> bool {
    let mut times: Vec<i64> = found.iter().map(|exchange| exchange.at).collect();
    times.sort_unstable_by_key(|at| std::cmp::Reverse(*at));
    most.checked_sub(1).and_then(|last| times.get(last)).is_some_and(|at| *at > entry.updated_at.0)
}

impl Conversation {
    /// The last exchanges of the conversation, the oldest first; none before anything was said.
    ///
    /// # Errors
    /// As the store says.
    pub async fn exchanges(
        &self,
        app: &App,
        asker: &Asker,
        most: usize,
    ) -> Result<Vec<ExchangeShown>, CommandError> {
        match self.entered(app, asker).await? {
            Some(entered) => {
                let line = (self.name(), entered.tree, entered.view);
                last_of(app, asker, (&entered.session, line), most).await
            }
            None => Ok(Vec::new()),
        }
    }
}

/// The last exchanges of a view of a session's tree, the oldest first.
async fn last_of(
    app: &App,
    asker: &Asker,
    (id, (session, tree, view)): (&SessionId, (String, TreeId, ViewName)),
    most: usize,
) -> Result<Vec<ExchangeShown>, CommandError> {
    let mut found = app.read(asker, tree, move |rows| exchanges(rows, &view, most)).await?;
    // Of a turn that goes on they have yet to begin.
    if let Some(newest) = found.first_mut().filter(|newest| !newest.not_run.is_empty())
        && app.runtime.is_answering(&asker.principal, id).await?
    {
        newest.not_run.clear();
    }
    let shown = |exchange: Exchange| {
        let (node, short_id) = exchange.said?;
        Some(ExchangeShown {
            session: session.clone(),
            tree,
            node,
            short_id,
            at: exchange.at,
            question: exchange.question,
            calls: exchange.calls,
            answer: (!exchange.answer.is_empty()).then_some(exchange.answer),
            model: exchange.model,
            cut: exchange.cut || !exchange.not_run.is_empty(),
            not_run: exchange.not_run,
        })
    };
    Ok(found.into_iter().rev().filter_map(shown).collect())
}

/// What was said, with what answered it.
#[derive(Default)]
struct Exchange {
    /// The last node of what was said; none while only the answer was read.
    said: Option<(NodeId, String)>,
    /// Milliseconds since 1970.
    at: i64,
    question: String,
    calls: Vec<ToolCallShown>,
    answer: String,
    model: Option<String>,
    /// Whether the end of the answer never came.
    cut: bool,
    /// The tools of the calls of its last answer that were never run.
    not_run: Vec<String>,
    /// Whether what was said first joined its turn: the turn began above it.
    joined: bool,
}

/// The last exchanges on the path of a view, the newest first. One holds all that was answered together, in one turn; what
/// was left out as it got no answer is one by itself. A file goes unseen with the message it was attached to.
fn exchanges(rows: &dyn TreeReader, view: &ViewName, most: usize) -> Result<Vec<Exchange>, RowError> {
    let (mut found, mut open, mut below) = (Vec::<Exchange>::new(), Exchange::default(), None);
    // Whether a call of the answer above was cut off with its process.
    let (mut has_lost_call, mut results) = (false, Vec::new());
    for position in Ascent::new(rows, render::tip(rows, view)?) {
        let position = position?;
        let is_said = position.role == Some(Role::User);
        if position.role == Some(Role::Tool)
            && let Some(row) = rows.node(position.id.original())?
        {
            has_lost_call |= is_lost(&row);
            results.extend(answered_calls(&row));
        }
        if !is_said && position.role != Some(Role::Assistant) {
            continue;
        }
        let original = position.id.original();
        let seq = rows.node(original)?.ok_or_else(|| RowError::missing("node", original))?.seq;
        let was_said = below.replace((is_said, seq));
        if is_said && was_said == Some((true, seq)) {
            continue;
        }
        let target = OpTarget::Position(position.id);
        let ends = match was_said {
            Some((true, _)) if is_said => {
                !open.joined && rows.cell(&CellKey::Excluded { target })?.value == CellValue::Set
            }
            Some((true, _)) => !open.joined,
            _ => false,
        };
        if ends {
            found.push(std::mem::take(&mut open));
            if found.len() == most {
                return Ok(found);
            }
        }
        let shown = resolve::shown(rows, view, position.id)?;
        let row = rows.node(shown)?.ok_or_else(|| RowError::missing("node", shown))?;
        let text = row.node.text();
        if is_said {
            let joins = rows.operation(seq)?.map(|record| record.op.timeline);
            open.joined = matches!(joins, Some(TimelineEffect::Join(_)));
            if open.said.is_none() {
                (open.said, open.at) = (Some((shown, row.short_id.clone())), row.node.created_at.0);
            }
            prepend(&mut open.question, &text, "\n");
        } else {
            if open.answer.is_empty() && open.model.is_none() {
                open.cut = is_cut(row.node.finish.as_ref()) || has_lost_call;
                open.not_run = tools_not_run(rows, (&row, original), std::mem::take(&mut results))?;
            }
            (has_lost_call, results) = (false, Vec::new());
            if open.model.is_none() {
                open.model = asked_model(rows, position.id)?;
            }
            prepend(&mut open.answer, &text, "\n\n");
            open.calls.splice(0..0, ToolCallShown::of(&row.node.content));
        }
    }
    found.push(open);
    found.retain(|exchange| exchange.said.is_some());
    found.truncate(most);
    Ok(found)
}

/// Puts a text before another, with a gap between two.
fn prepend(to: &mut String, text: &str, gap: &str) {
    let gap = if to.is_empty() || text.is_empty() { "" } else { gap };
    to.insert_str(0, &format!("{text}{gap}"));
}

/// Whether a result says that its call was cut off.
fn is_lost(result: &NodeRow) -> bool {
    let is_unknown = |block: &Block| matches!(block, Block::ToolResult { status: ToolStatus::Unknown, .. });
    result.node.content.iter().any(is_unknown)
}

/// Whether an answer ends before its end came.
fn is_cut(finish: Option<&Finish>) -> bool {
    matches!(finish, Some(Finish::Length | Finish::Interrupted(_)))
}
