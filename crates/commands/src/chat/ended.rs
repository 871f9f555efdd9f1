//! What came of something said, as it is shown.

use agent::error::GO_ON;
use agent::{AgentError, CommittedNode, OpenedSession, TurnOutcome};
use context::Zone;
use loom::{Finish, NodeId, ToolStatus, TreeId};
use store::SessionKind;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::results::chat::{
    CallShown, ChangedFile, Chatted, DeniedCall, MediaShown, TurnFinish, UnfinishedTurn,
};
use crate::results::tree::UsageShown;
use crate::rights::Asker;
use crate::{file_changes, further_roots};

/// What was done in a turn besides its answers.
struct TurnWork {
    calls: Vec<CallShown>,
    changed: Vec<ChangedFile>,
    denied: Vec<DeniedCall>,
}

impl Conversation {
    /// What came of something said, as it is shown. The process that answered says how full the window is.
    pub(super) async fn ended(
        &self,
        app: &App,
        asker: &Asker,
        entered: &OpenedSession,
        (outcome, calls): (TurnOutcome, Vec<CallShown>),
    ) -> Result<Chatted, CommandError> {
        let place = OpenedSession { tree: outcome.tree, ..entered.clone() };
        let is_here = !outcome.elsewhere;
        let has_called = !calls.is_empty();
        let work = self.work(app, asker, (outcome.tree, calls)).await;
        let done = self.chatted(app, outcome, (work, has_called))?;
        if is_here {
            self.note_zone(app, asker, &place).await;
        }
        Ok(done)
    }

    async fn work(
        &self,
        app: &App,
        asker: &Asker,
        (tree, calls): (TreeId, Vec<CallShown>),
    ) -> Result<TurnWork, CommandError> {
        let denied = denied_calls(app, asker, (tree, &calls)).await?;
        // At a terminal each call has shown it.
        let changed = if self.is_single() {
            let ids = calls.iter().map(|call| call.id).collect();
            file_changes::changed_by(app, asker, tree, ids).await?
        } else {
            Vec::new()
        };
        Ok(TurnWork { calls, changed, denied })
    }

    fn chatted(
        &self,
        app: &App,
        outcome: TurnOutcome,
        (work, has_called): (Result<TurnWork, CommandError>, bool),
    ) -> Result<Chatted, CommandError> {
        let TurnOutcome {
            said,
            tree,
            answer,
            manifest,
            usage,
            estimated_usage,
            model,
            cost,
            reusable,
            share,
            measured,
            error,
            ..
        } = outcome;
        let (usage, cost) = (UsageShown::of(usage, estimated_usage), cost.map(model::Money::dollars));
        let error = error.map(|error| CommandError::from(error.0.as_ref()));
        // A turn that ended by a limit is one that ended: what was done is kept.
        let (limit, error) = match error {
            Some(error) if error.code == "limit" && answer.is_some() => (Some(error.message), None),
            error => (None, error),
        };
        if let Some(error) = error {
            let mut error = self.unfinished(app, error, (said, answer.as_ref()), has_called);
            // What cannot be read is not known: the error stands for itself.
            error.turn = work.ok().map(|TurnWork { calls, changed, denied }| {
                let session = self.name();
                let node = answer.as_ref().map(|answer| answer.id);
                let text = answer.map(|answer| answer.text.to_string());
                Box::new(UnfinishedTurn {
                    session,
                    tree,
                    node,
                    said,
                    text,
                    model,
                    usage,
                    cost,
                    calls,
                    changed,
                    denied,
                })
            });
            return Err(error);
        }
        let answer = answer.ok_or(AgentError::Empty)?;
        let TurnWork { calls, changed, denied } = work?;
        let media = answer.media.iter().filter_map(|blob| app.runtime.shown(*blob)).map(MediaShown::of);
        Ok(Chatted {
            media: media.collect(),
            session: self.name(),
            tree,
            node: answer.id,
            short_id: answer.short_id,
            said,
            text: answer.text.to_string(),
            code: None,
            misfit: None,
            model,
            usage,
            cost,
            reusable,
            share,
            measured,
            zone: Zone::of(share),
            manifest,
            finish: if limit.is_some() { TurnFinish::Limit } else { TurnFinish::Answer(answer.finish) },
            limit,
            calls,
            changed,
            denied,
            subagents: Vec::new(),
            wrapped: None,
            answers: Vec::new(),
            streamed: self.streams && app.frontend.shows_answers(),
        })
    }

    /// Why a turn did not end well, with what is kept of it and what to do.
    fn unfinished(
        &self,
        app: &App,
        mut error: CommandError,
        (said, answer): (NodeId, Option<&CommittedNode>),
        has_called: bool,
    ) -> CommandError {
        let is_forgotten = self.is_temporary() && self.is_single();
        let hint = std::mem::take(&mut error.hint);
        let is_cancelled = error.code == "cancelled";
        if let Some(answer) = answer {
            // A turn may end behind an answer that is whole.
            let kept = match answer.finish {
                Finish::ToolUse | Finish::Stop => "the last answer is",
                _ => "the part received is kept as",
            };
            error.message = format!("{}: {kept} {}", error.message, answer.short_id);
        } else if is_cancelled {
            // Stopped before anything came of it.
            error.message = format!("{}: your message is kept as {said}", error.message);
        }
        let more = if has_called {
            // Asked again, the message would have all of it done once more.
            if is_forgotten { "what was done to files stays" } else { GO_ON }.to_owned()
        } else if answer.is_none() {
            let again = self.how_to_go_on(app);
            let is_undone = is_cancelled && self.chosen.kind != SessionKind::Isolated;
            if is_undone { format!("{again}, or take it back with /undo") } else { again }
        } else if self.chosen.kind == SessionKind::Isolated || is_forgotten {
            String::new()
        } else {
            format!("{} asks your message again", self.again_command(app))
        };
        // That an answer was cut, or a turn stopped, leaves nothing else to do.
        let is_all = (is_cancelled && answer.is_none()) || (has_called && is_cut(&error.code));
        error.hint = match (hint.as_str(), more.as_str()) {
            (hint, more) if !hint.is_empty() && hint != more && !is_all => {
                if more.is_empty() {
                    hint.to_owned()
                } else {
                    format!("{hint}; {more}")
                }
            }
            _ => more,
        };
        error
    }

    /// What becomes of a message that was not answered.
    fn how_to_go_on(&self, app: &App) -> String {
        if self.is_temporary() && self.is_single() {
            return "it is forgotten with this call; ask it again".to_owned();
        }
        if self.schema.is_some() {
            return "your question is kept; ask it as before, since a retry does not know the schema"
                .to_owned();
        }
        if self.chosen.kind == SessionKind::Isolated {
            return format!("your question is kept: {} asks it again", self.again_command(app));
        }
        format!("{} asks your message again, and the next one is sent without it", self.again_command(app))
    }

    /// What asks again, as it is typed here: the same model, asked the same way.
    fn again_command(&self, app: &App) -> String {
        if !self.is_single() {
            return "/retry".to_owned();
        }
        let mut arguments = self.model_and_sampling_flags(app);
        arguments.extend(self.plan_flag.then(|| "--plan".to_owned()));
        arguments.extend(self.folders.iter().map(further_roots::flag));
        arguments.push("-m /retry".to_owned());
        format!("`{}`", self.command(app, &arguments.join(" ")))
    }
}

/// Whether an error says that an answer was cut or a turn stopped.
fn is_cut(code: &str) -> bool {
    matches!(code, "cancelled" | "stream_cut")
}

/// Why a call is named that was run.
const UNANSWERED: &str = "its server asked something, and nobody answered";

/// Calls that were refused, with what the model was told, and those whose server asked something that nobody answered.
async fn denied_calls(
    app: &App,
    asker: &Asker,
    (tree, calls): (TreeId, &[CallShown]),
) -> Result<Vec<DeniedCall>, CommandError> {
    let denied = calls.iter().filter(|call| call.status == Some(ToolStatus::Denied) || call.unanswered);
    let denied: Vec<(&CallShown, NodeId)> = denied.filter_map(|call| Some((call, call.node?))).collect();
    let results: Vec<NodeId> = denied.iter().map(|(_, node)| *node).collect();
    let results = app.read(asker, tree, move |rows| rows.nodes(&results)).await?;
    let denied = denied.into_iter().zip(results);
    Ok(denied
        .map(|((call, node), row)| DeniedCall {
            id: call.id,
            tool: call.tool.clone(),
            node,
            why: if call.unanswered { UNANSWERED.to_owned() } else { row.node.said().into_owned() },
        })
        .collect())
}
