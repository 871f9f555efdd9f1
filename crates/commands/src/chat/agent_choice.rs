//! The agent that answers in a session: whose model, system prompt, sampling, tools and rules hold there.

use loom::source::DEFAULT_AGENT;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::profile;
use crate::rights::Asker;

impl Conversation {
    /// The name of the agent that answers.
    pub(crate) fn agent(&self) -> &str {
        self.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// Has an agent answer in the session from its next request on. Its own model goes before one that was chosen in the
    /// session earlier.
    ///
    /// # Errors
    /// `not_found` where there is no such agent; else when the settings of the session are damaged, or as the store says.
    pub(super) async fn answer_as(
        &mut self,
        app: &App,
        asker: &Asker,
        name: &str,
    ) -> Result<(), CommandError> {
        let agent = profile::agent(&app.settings, name)?;
        self.require_settings()?;
        if self.agent() == name {
            return Ok(());
        }
        if profile::preset(app, agent)?.model.is_some() {
            self.kept_model = None;
        }
        // It was allowed to the agent before.
        self.allowed.clear();
        (self.agent, self.config) = ((name != DEFAULT_AGENT).then(|| name.to_owned()), None);
        self.keep_settings(app, asker).await
    }
}
