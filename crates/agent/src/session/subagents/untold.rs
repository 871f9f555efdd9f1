//! Results of subagents that were not told: their process was killed, or their turn could not begin. The next turn of the
//! session says them before what begins it.

use loom::{TreeId, TreeReader};
use store::{LeaseOwner, Principal, SessionId};
use tools::TurnSkills;

use super::desk::said_last;
use super::work::told;
use super::{SubagentRecord, SubagentResult, SubagentState};
use crate::error::AgentError;
use crate::session::inbox::Pending;
use crate::session::turn::Turn;
use crate::session::{SessionSettings, TreeChoice, TurnInput};

/// What is to be done about a subagent whose result was not told.
enum Untold {
    /// A result that is told elsewhere, or later.
    Waits,
    /// There is nothing to tell.
    Nothing,
    Told(Box<Pending>),
}

impl Turn<'_> {
    /// What subagents of the session came to and nobody was told, to be said in a tree before what begins the turn. What
    /// cannot be read is left for the next one.
    pub(in crate::session) async fn untold(&self, tree: TreeId, first: &Pending) -> Vec<Pending> {
        let is_new = matches!(first.input, TurnInput::New { .. }) && first.reply_to.is_none();
        let awaited = match self.runtime.settings_of(self.session).await {
            Ok((_, settings)) if is_new => settings.awaited,
            _ => Vec::new(),
        };
        let mut told = Vec::new();
        for subagent in awaited {
            match self.untold_of(&subagent, tree, first).await {
                Ok(Untold::Told(result)) => told.push(*result),
                Ok(Untold::Waits) => {}
                Ok(Untold::Nothing) => self.is_told(&subagent).await,
                Err(error) => tracing::warn!(%error, "what a subagent came to could not be read"),
            }
        }
        told
    }

    async fn untold_of(
        &self,
        subagent: &SessionId,
        tree: TreeId,
        first: &Pending,
    ) -> Result<Untold, AgentError> {
        let is_said = first.result_of.as_ref() == Some(subagent) || self.inbox.has_result_of(subagent);
        if is_said || self.task.handle.subagents.has(subagent) {
            return Ok(Untold::Waits);
        }
        let (runtime, who) = (self.runtime, &Principal::Owner);
        let Some(session) = runtime.store.session(who, subagent).await? else { return Ok(Untold::Nothing) };
        let record = SessionSettings::read(&session.settings)?.subagent;
        let Some(SubagentRecord { label, owner, ended, .. }) = record else { return Ok(Untold::Nothing) };
        if owner != runtime.instance.to_string() && !runtime.is_gone(&LeaseOwner::new(owner))? {
            return Ok(Untold::Waits);
        }
        let ended = ended.filter(|end| end.state != SubagentState::Stopped);
        let (Some(end), Some(its)) = (ended, session.tree()) else { return Ok(Untold::Nothing) };
        let read = |rows: &dyn TreeReader| Ok((said_last(rows)?, rows.tree()?.origin));
        let ((said, trust), origin) = runtime.read(who, its, read).await?;
        if origin.is_none_or(|origin| origin.tree != tree) {
            return Ok(Untold::Waits);
        }
        let text = told((&label, &session.name), &end, said.as_deref(), trust);
        let result = SubagentResult {
            of: subagent.clone(),
            author: text.author.clone(),
            text,
            tree: TreeChoice::Current,
            view: first.view.clone(),
            trust,
            answer_within: first.answer_within,
            hands_back: first.hands_back,
            skills: TurnSkills::default(),
        };
        Ok(Untold::Told(Box::new(Pending::result(runtime.new_id()?, result))))
    }

    /// Keeps that what a subagent came to was told. Where that fails it is told again.
    pub(in crate::session) async fn is_told(&self, subagent: &SessionId) {
        let keep = |settings: &mut SessionSettings| settings.awaited.retain(|awaited| awaited != subagent);
        if let Err(error) = self.runtime.change_settings_of(self.session, keep).await {
            tracing::warn!(%error, "that a subagent's result was told is not kept");
        }
    }
}
