//! System prompt and sampling of a session: `/system`, `/set`, and the flags of `chat` for the same.

use agent::session::SessionSampling;

use super::Conversation;
use crate::app::App;
use crate::args::chat::Setting;
use crate::error::CommandError;
use crate::model_selection;
use crate::results::slash::{SamplingShown, SystemShown};
use crate::rights::Asker;
use crate::shell::quoted;

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

    /// Changes settings of the session's sampling. They are newer than a flag of this call. A model that a preset names
    /// is that of the session from then on.
    ///
    /// # Errors
    /// `not_found` where there is no such preset; else as [`Self::speak_as`].
    pub(crate) async fn set(
        &mut self,
        app: &App,
        asker: &Asker,
        settings: Vec<Setting>,
    ) -> Result<SamplingShown, CommandError> {
        self.require_settings()?;
        let mut model = None;
        for setting in &settings {
            if let Setting::Preset(Some(name)) = setting {
                model = model_selection::preset(app, Some(name))?.model;
            }
        }
        if let Some(model) = &model {
            self.ask_model(app, Some(model)).await?;
        }
        for setting in settings {
            setting.clone().unset().put(&mut self.sampling_flags);
            setting.put(&mut self.sampling);
        }
        self.config = None;
        self.keep_settings(app, asker).await?;
        Ok(SamplingShown { set: true, ..self.sampling_shown(app) })
    }

    /// The flags of this call that say which model is asked, and how, as far as nothing newer was chosen in the session.
    pub(super) fn model_and_sampling_flags(&self, app: &App) -> Vec<String> {
        let SessionSampling { temperature, max_tokens, seed, preset } = &self.sampling_flags;
        let model = app.settings.named.as_ref().filter(|_| !self.newer.model);
        let thinking = self.think_flag.filter(|_| !self.newer.thinking);
        let flags = [
            model.map(|model| format!("--model {}", quoted(model))),
            preset.as_ref().map(|preset| format!("--preset {}", quoted(preset))),
            temperature.map(|temperature| format!("--temperature {temperature}")),
            max_tokens.map(|tokens| format!("--max-tokens {tokens}")),
            seed.map(|seed| format!("--seed {seed}")),
            thinking.map(|thinking| format!("--think {}", thinking.as_str())),
        ];
        flags.into_iter().flatten().collect()
    }

    /// The sampling that was chosen for the next request.
    pub(crate) fn sampling_shown(&self, app: &App) -> SamplingShown {
        let SessionSampling { temperature, max_tokens, seed, preset } = self.sampling_in_force(app);
        SamplingShown { temperature, max_tokens, seed, preset, set: false }
    }

    /// The preset that a flag of this call names, else the session. One of the session that is gone is left out.
    pub(super) fn preset_named(&self, app: &App) -> Option<&str> {
        let of_session = self.sampling.preset.as_deref().filter(|preset| !is_gone(app, preset));
        self.sampling_flags.preset.as_deref().or(of_session)
    }

    /// What flags of this call say, else the session. A preset of the session that is gone is left out.
    pub(super) fn sampling_in_force(&self, app: &App) -> SessionSampling {
        let mut session = self.sampling.clone();
        session.preset.take_if(|preset| is_gone(app, preset));
        let agent = app.settings.agents.get(self.agent());
        let agent = SessionSampling {
            preset: agent.and_then(|agent| agent.preset.clone()),
            ..SessionSampling::default()
        };
        self.sampling_flags.clone().or(session).or(agent)
    }
}

/// Whether the configuration has no such preset.
pub(super) fn is_gone(app: &App, preset: &str) -> bool {
    !app.settings.presets.contains_key(preset)
}
