//! Subagents of a conversation, as they are shown.

use agent::session::{SubagentEnd, SubagentStatus};

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::results::subagents::{SubagentShown, SubagentsShown};
use crate::rights::Asker;

impl Conversation {
    /// How the subagents of the session stand (`/subagents`).
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn subagents_shown(
        &self,
        app: &App,
        asker: &Asker,
    ) -> Result<SubagentsShown, CommandError> {
        let Some(entered) = self.entered_before(app, asker).await? else {
            return Ok(SubagentsShown { subagents: Vec::new() });
        };
        let all = app.runtime.subagents(&app.sessions, &entered.session).await?;
        Ok(SubagentsShown { subagents: all.into_iter().map(shown).collect() })
    }

    /// Says that subagents are waited for, which the turn left at work.
    pub fn tell_subagents(&self, app: &App) {
        let running = self.turn.as_ref().map_or(0, |turn| turn.session.running_subagents());
        if running > 0 {
            let them = if running == 1 { "a subagent".to_owned() } else { format!("{running} subagents") };
            app.frontend.note(&format!("waiting for {them}, and for the answer to what comes of that"));
        }
    }
}

fn shown(status: SubagentStatus) -> SubagentShown {
    let SubagentStatus { name, label, tree, progress, cost, unpriced_tokens } = status;
    let SubagentEnd { state, why, model_calls, tool_calls, tokens } = progress;
    let (session, cost) = (name, cost.dollars());
    SubagentShown { session, label, tree, state, why, model_calls, tool_calls, tokens, cost, unpriced_tokens }
}
