//! What came of something said, as it is shown.

use agent::{AgentError, OpenedSession, TurnOutcome};
use context::Zone;
use loom::{Finish, NodeId, ToolStatus, TreeId};

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::results::chat::{CallShown, Chatted, DeniedCall, MediaShown, TurnFinish};
use crate::results::tree::UsageShown;
use crate::rights::Asker;
use crate::{file_changes, further_roots};

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
        let mut done = self.chatted(app, outcome)?;
        done.denied = denied_calls(app, asker, (done.tree, &calls)).await?;
        // At a terminal each call has shown it.
        if self.is_single() {
            let ids = calls.iter().map(|call| call.id).collect();
            done.changed = file_changes::changed_by(app, asker, done.tree, ids).await?;
        }
        done.calls = calls;
        if is_here {
            self.note_zone(app, asker, &place).await;
        }
        Ok(done)
    }

    fn chatted(&self, app: &App, outcome: TurnOutcome) -> Result<Chatted, CommandError> {
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
        let error = error.map(|error| CommandError::from(error.0.as_ref()));
        // A turn that ended by a limit is one that ended: what was done is kept.
        let (limit, error) = match error {
            Some(error) if error.code == "limit" && answer.is_some() => (Some(error.message), None),
            error => (None, error),
        };
        match (answer, error) {
            (Some(answer), None) => Ok(Chatted {
                media: answer
                    .media
                    .iter()
                    .filter_map(|blob| app.runtime.shown(*blob))
                    .map(MediaShown::of)
                    .collect(),
                session: self.name(),
                tree,
                node: answer.id,
                short_id: answer.short_id,
                said,
                text: answer.text.to_string(),
                code: None,
                misfit: None,
                model,
                usage: UsageShown::of(usage, estimated_usage),
                cost: cost.map(model::Money::dollars),
                reusable,
                share,
                measured,
                zone: Zone::of(share),
                manifest,
                finish: if limit.is_some() { TurnFinish::Limit } else { TurnFinish::Answer(answer.finish) },
                limit,
                calls: Vec::new(),
                changed: Vec::new(),
                denied: Vec::new(),
                answers: Vec::new(),
                streamed: self.streams && app.frontend.shows_answers(),
            }),
            (Some(answer), Some(mut error)) => {
                // A turn may end behind an answer that is whole.
                let kept = match answer.finish {
                    Finish::ToolUse | Finish::Stop => "the last answer is",
                    _ => "the part received is kept as",
                };
                error.message = format!("{}: {kept} {}", error.message, answer.short_id);
                if self.chosen.kind != store::SessionKind::Isolated
                    && !(self.is_temporary() && self.is_single())
                {
                    let again = format!("{} asks your message again", self.again_command(app));
                    let hint = std::mem::take(&mut error.hint);
                    error.hint = if hint.is_empty() { again } else { format!("{hint}; {again}") };
                }
                Err(error)
            }
            // Stopped before anything came of it.
            (None, Some(mut error)) if error.code == "cancelled" => {
                error.message = format!("{}: your message is kept as {said}", error.message);
                error.hint = match self.chosen.kind {
                    store::SessionKind::Isolated => self.how_to_go_on(app),
                    _ => format!("{}, or take it back with /undo", self.how_to_go_on(app)),
                };
                Err(error)
            }
            (None, Some(mut error)) => {
                error.hint = format!("{}; {}", error.hint, self.how_to_go_on(app));
                Err(error)
            }
            (None, None) => Err(AgentError::Empty.into()),
        }
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
        if self.chosen.kind == store::SessionKind::Isolated {
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

/// Calls that were refused, with what the model was told.
async fn denied_calls(
    app: &App,
    asker: &Asker,
    (tree, calls): (TreeId, &[CallShown]),
) -> Result<Vec<DeniedCall>, CommandError> {
    let denied = calls.iter().filter(|call| call.status == Some(ToolStatus::Denied));
    let denied: Vec<(&CallShown, NodeId)> = denied.filter_map(|call| Some((call, call.node?))).collect();
    let results: Vec<NodeId> = denied.iter().map(|(_, node)| *node).collect();
    let results = app.read(asker, tree, move |rows| rows.nodes(&results)).await?;
    let denied = denied.into_iter().zip(results);
    Ok(denied
        .map(|((call, node), row)| DeniedCall {
            id: call.id,
            tool: call.tool.clone(),
            node,
            why: row.node.said().into_owned(),
        })
        .collect())
}
