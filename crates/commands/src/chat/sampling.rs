//! System prompt and sampling of a session: `/system`, `/set`, and the flags of `chat` for the same.

use agent::session::SessionSampling;

use super::Conversation;
use crate::app::App;
use crate::args::chat::Setting;
use crate::error::CommandError;
use crate::results::slash::{SamplingShown, SystemShown};
use crate::rights::Asker;

impl Conversation {
    /// Gives the session a system prompt from its next request on. An empty one brings the built-in one back.
    ///
    /// # Errors
    /// When the settings of the session are damaged, or as the store says.
    pub(crate) async fn speak_as(
        &mut self,
        app: &App,
        asker: &Asker,
        system: &str,
    ) -> Result<SystemShown, CommandError> {
        self.require_settings()?;
        app.fits_node("the system prompt", system, false)?;
        let system = app.masked(system);
        self.system = (!system.trim().is_empty()).then_some(system);
        self.config = None;
        self.keep_settings(app, asker).await?;
        Ok(SystemShown { set: true, ..self.system_shown() })
    }

    /// The system prompt of the session.
    pub(crate) fn system_shown(&self) -> SystemShown {
        SystemShown { system: self.system.clone(), set: false }
    }

    /// Changes one setting of the session's sampling. It is newer than a flag of this call.
    ///
    /// # Errors
    /// As [`Self::speak_as`].
    pub(crate) async fn set(
        &mut self,
        app: &App,
        asker: &Asker,
        setting: Setting,
    ) -> Result<SamplingShown, CommandError> {
        self.require_settings()?;
        setting.unset().put(&mut self.sampling_flags);
        setting.put(&mut self.sampling);
        self.config = None;
        self.keep_settings(app, asker).await?;
        Ok(SamplingShown { set: true, ..self.sampling_shown() })
    }

    /// The sampling that was chosen for the next request.
    pub(crate) fn sampling_shown(&self) -> SamplingShown {
        let SessionSampling { temperature, max_tokens, seed } = self.sampling_flags.or(self.sampling);
        SamplingShown { temperature, max_tokens, seed, set: false }
    }
}
