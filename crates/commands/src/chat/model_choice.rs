//! Who is asked in a conversation, and how. A model is looked for once one is needed: most commands need none.

use std::path::Path;
use std::sync::Arc;

use ::tools::ToolRegistry;
use agent::session::{ChosenModel, SessionSampling};
use agent::wrap::handoff_path;
use agent::{OpenedSession, TurnConfig};
use context::{SystemPrompt, WorkspaceTrust};
use loom::{Digest, Trust};
use model::{Model, ModelInfo, ModelPlace, OutputSchema, Params, Purpose, Thinking};
use policy::SessionType;
use store::{Principal, SessionKind};
use text::terminal::one_line;
use workspace::Root;
use workspace::trust::Accepted;

use super::{Conversation, shown_addresses, tools};
use crate::app::App;
use crate::args::tree::Sampling;
use crate::command_changes::made_by_command;
use crate::egress_notice;
use crate::error::CommandError;
use crate::model_selection;
use crate::profile::{self, Profile};
use crate::results::slash::{ModelStatus, ThinkShown, ToolsShown};
use crate::skills::SkillsOfSession;
use crate::thinking;
use crate::workspaces;

impl Conversation {
    /// The model that is asked.
    ///
    /// # Errors
    /// When none can be had.
    pub async fn model(&mut self, app: &App) -> Result<&ModelInfo, CommandError> {
        Ok(self.config(app).await?.model.info())
    }

    /// Why the model has no tools, where it would have some elsewhere or in a larger window.
    ///
    /// # Errors
    /// As [`Self::model`].
    pub async fn without_tools(&mut self, app: &App) -> Result<Option<String>, CommandError> {
        let info = self.model(app).await?.clone();
        Ok(tools::without_tools(app, self.agent(), self.session_type(), &info))
    }

    /// The request that would be sent now.
    ///
    /// # Errors
    /// When there is no model to send it to.
    pub(crate) async fn request(
        &mut self,
        app: &App,
        entered: &OpenedSession,
    ) -> Result<agent::GenerationRequest, CommandError> {
        Ok(self.config(app).await?.request(entered.tree, &entered.view))
    }

    /// How a model is asked.
    pub(super) async fn config(&mut self, app: &App) -> Result<&TurnConfig, CommandError> {
        let config = match self.config.take() {
            Some(config) => config,
            None => {
                let model = self.find_model(app).await?;
                self.config_with(app, model).await?
            }
        };
        Ok(self.config.insert(config))
    }

    /// The model a flag names, else the one named in the session, else the default. One of the session that cannot
    /// be had any more is said so; where it was local, no remote one is asked unless a person chose that (spec:
    /// security §10), not even one that the same name means now.
    async fn find_model(&self, app: &App) -> Result<Arc<dyn Model>, CommandError> {
        let default = self.model_by_default(app)?;
        let default = default.as_deref();
        let Some(kept) = self.model_of_session(app) else {
            let model = app.model(default).await?;
            if self.is_damaged && !self.flag_names_model(app) && is_remote(&*model) {
                let other = one_line(&model.info().full_name()).into_owned();
                let why = format!(
                    "the settings of this session cannot be read, its model with them; {other} is not asked instead"
                );
                return Err(not_sent_away(&why, &other));
            }
            return Ok(model);
        };
        let (name, stays) = (one_line(&kept.name), kept.place != Some(ModelPlace::Remote));
        match app.model(Some(&kept.name)).await {
            Ok(model) if stays && is_remote(&*model) => {
                let full = model.info().full_name();
                let why = format!(
                    "{name}, the model of this session, is not on this machine any more: it means {} now, which is \
                     not asked",
                    one_line(&full)
                );
                Err(not_sent_away(&why, &name))
            }
            Ok(model) => Ok(model),
            Err(error) => {
                let model = app.model(default).await?;
                let full = model.info().full_name();
                let gone = format!("{name}, the model of this session, is not available: {}", error.message);
                let other = one_line(&full);
                if stays && is_remote(&*model) {
                    return Err(not_sent_away(&format!("{gone}; {other} is not asked instead"), &other));
                }
                app.frontend.note(&format!("{gone}; {other} is asked instead"));
                Ok(model)
            }
        }
    }

    /// The model that was named in the session, unless a flag of this call names one and nothing newer was chosen.
    fn model_of_session(&self, app: &App) -> Option<&ChosenModel> {
        self.kept_model.as_ref().filter(|_| !self.flag_names_model(app))
    }

    /// Whether a flag of this call says which model is asked in the session.
    pub(super) fn flag_names_model(&self, app: &App) -> bool {
        !self.newer.model && (app.settings.named.is_some() || self.model_of_preset(app).is_some())
    }

    /// The model that is asked where the session names none: that of a flag, of the preset that a flag names, of the
    /// agent, else the default one.
    fn model_by_default(&self, app: &App) -> Result<Option<String>, CommandError> {
        let agent = profile::agent(&app.settings, self.agent())?;
        let preset = profile::preset_with(app, agent, self.sampling_flags.preset.as_deref())?;
        Ok(model_selection::model_name(app, &preset).map(str::to_owned))
    }

    fn model_of_preset<'a>(&self, app: &'a App) -> Option<&'a str> {
        app.settings.presets.get(self.sampling_flags.preset.as_deref()?)?.model.as_deref()
    }

    async fn config_with(&mut self, app: &App, model: Arc<dyn Model>) -> Result<TurnConfig, CommandError> {
        let SessionSampling { temperature, max_tokens, seed, .. } = self.sampling_in_force(app);
        let profile = Profile::of(app, self.agent())?;
        let preset = profile::preset_with(app, &profile.agent, self.preset_named(app))?;
        let sampling = Sampling { temperature, max_tokens, seed, ..Sampling::default() };
        let schema = self.schema.as_ref().map(|schema| {
            let (name, schema) = ("answer".to_owned(), schema.value().clone());
            OutputSchema { name, schema }
        });
        let digest = profile.digest(&app.settings);
        let is_own = self.model_of_session(app).is_none() && !self.flag_names_model(app);
        let provider = profile.provider(is_own)?;
        self.agent_system = profile.system;
        let agent = profile.name;
        let is_shown = shown_addresses::of_session(app, self.chosen.clone(), self.view.clone());
        let skills = match self.skills.take() {
            Some(skills) => skills,
            None if self.chosen.kind == SessionKind::Isolated => Arc::default(),
            None => Arc::new(SkillsOfSession::read(app).await),
        };
        let tools = match self.tools.take() {
            Some((of, tools)) if of == agent => Some(tools),
            _ => {
                let folders = (self.folders.as_slice(), skills.as_ref());
                tools::of_agent(app, &agent, self.session_type(), model.info(), is_shown, folders)?
            }
        };
        self.tools = tools.clone().map(|tools| (agent.clone(), tools));
        self.skills = Some(skills);
        Ok(TurnConfig {
            purpose: Purpose::Turn,
            model,
            agent,
            profile: Some(digest),
            params: self.thinking(
                app,
                Params { n: 1, schema, provider, ..model_selection::params(&preset, &sampling) },
            ),
            bootstrap: self.bootstrap(app, tools.as_deref()).await,
            strategy: app.settings.strategy,
            plan: self.is_planning(),
            tools,
        })
    }

    pub(super) fn session_type(&self) -> SessionType {
        match self.chosen.kind {
            SessionKind::Main => SessionType::Main,
            SessionKind::Temporary => SessionType::Private,
            SessionKind::Isolated => SessionType::Isolated,
        }
    }

    /// The tools that the model may call (`/tools`).
    ///
    /// # Errors
    /// The configuration of the agent or of a tool cannot be used.
    pub(crate) async fn tools_shown(&self, app: &App) -> Result<ToolsShown, CommandError> {
        let model = match &self.config {
            Some(config) => Some(Arc::clone(&config.model)),
            None => self.find_model(app).await.ok(),
        };
        let model = model.as_deref().map(Model::info);
        tools::shown(app, self.agent(), self.session_type(), model, self.is_unrestricted())
    }

    /// With how much is thought: as was said here, else as the preset says, else the configuration.
    fn thinking(&self, app: &App, params: Params) -> Params {
        Params { thinking: self.think.or(params.thinking).or(app.settings.think), ..params }
    }

    /// Has the model think as much as this from now on, or shows how much it does.
    pub(crate) fn ask_to_think(
        &mut self,
        app: &App,
        think: Option<Thinking>,
    ) -> Result<ThinkShown, CommandError> {
        if let Some(think) = think {
            (self.think, self.kept_thinking, self.newer.thinking) = (Some(think), Some(think), true);
            if let Some(config) = &mut self.config {
                config.params.thinking = Some(think);
            }
        }
        let thinking = self.thinks(app)?;
        let info = self.config.as_ref().map(|config| config.model.info());
        let notice = thinking.zip(info).and_then(|(thinking, info)| thinking::notice(info, thinking));
        self.told_thinking = thinking.zip(info).map(|(thinking, info)| (info.full_name(), thinking));
        Ok(ThinkShown { thinking, set: think.is_some(), notice })
    }

    /// How much is asked to be thought; none where it is left to the model.
    ///
    /// # Errors
    /// When there is no preset of the name that was given.
    pub(crate) fn thinks(&self, app: &App) -> Result<Option<Thinking>, CommandError> {
        if let Some(config) = &self.config {
            return Ok(config.params.thinking);
        }
        let agent = profile::agent(&app.settings, self.agent())?;
        let preset = profile::preset_with(app, agent, self.preset_named(app))?;
        Ok(self.thinking(app, model_selection::params(&preset, &Sampling::default())).thinking)
    }

    /// Says once of each model that it cannot think as was asked. A default is for the models that can.
    pub(super) fn tell_thinking(&mut self, app: &App, info: &ModelInfo) {
        let Some(think) = self.think else { return };
        let told = Some((info.full_name(), think));
        if self.told_thinking == told {
            return;
        }
        if let Some(notice) = thinking::notice(info, think) {
            app.frontend.note(&notice);
        }
        self.told_thinking = told;
    }

    /// What stands above the cache boundary, as the owner's files say it now.
    pub(super) async fn bootstrap(&self, app: &App, tools: Option<&ToolRegistry>) -> Arc<context::Bootstrap> {
        let (root, kind) = (app.workspace.root.as_ref(), self.chosen.kind);
        let accepted = workspaces::accepted(app).await;
        let handoff = handoff_path(self.chosen.name.as_str());
        let of_kind = (kind, Some(&*handoff));
        let read = agent::bootstrap::bootstrap(root, &accepted, of_kind, &app.runtime.masker);
        let read = with_trust_of_handoff(app, &handoff, read).await;
        // What the owner saw counts whatever it is from.
        let read = if accepted == Accepted::All { without_outside_files(app, read).await } else { read };
        let read = match root {
            Some(root) => {
                without_files_of_commands(&agent::command_records(app.runtime.home.root()), root, read)
            }
            None => read,
        };
        // Only a tool that reads can make use of them.
        let has_reader = tools.is_some_and(|tools| tools.specs().iter().any(|tool| tool.name == "read"));
        let skills = self.skills.as_ref().filter(|_| has_reader);
        Arc::new(context::Bootstrap {
            skills: skills.and_then(|skills| skills.index.clone()),
            refused_skills: skills.map(|skills| skills.refused.clone()).unwrap_or_default(),
            changed_files: app.settings.changed_files,
            reload: self.reload,
            workspace: match accepted {
                Accepted::All => WorkspaceTrust::Granted,
                nothing if nothing == Accepted::default() => WorkspaceTrust::Withdrawn,
                Accepted::Seen(_) => WorkspaceTrust::ByRecord,
            },
            system: self.system.clone().map(SystemPrompt::of_session).or_else(|| self.agent_system.clone()),
            tools: tools.map(ToolRegistry::specs).unwrap_or_default(),
            tools_asked: tools::are_asked(app, self.agent()),
            ..read
        })
    }

    /// Asks another model from now on, or shows which one is asked.
    pub(crate) async fn ask_model(
        &mut self,
        app: &App,
        name: Option<&str>,
    ) -> Result<ModelStatus, CommandError> {
        let place = |config: &TurnConfig| (config.model.info().place, config.model.info().provider.clone());
        let before = self.config.as_ref().map(place);
        if let Some(name) = name {
            let model = app.served_model(name).await?;
            let chosen = ChosenModel { name: name.to_owned(), place: Some(model.info().place) };
            (self.kept_model, self.newer.model, self.is_damaged) = (Some(chosen), true, false);
            self.config = Some(self.config_with(app, model).await?);
        }
        let config = self.config(app).await?;
        let (now, info) = (place(config), config.model.info());
        let mut model = shown(info);
        if name.is_some() && info.place == ModelPlace::Remote && before != Some(now) {
            model.notice = Some(egress_notice::notice("session", info));
        }
        Ok(model)
    }

    /// The model that is asked, as it is shown; none before one was needed.
    pub(crate) fn model_shown(&self) -> Option<ModelStatus> {
        self.config.as_ref().map(|config| shown(config.model.info()))
    }

    /// The model that is named for it, as it was named.
    pub(crate) fn model_named(&self, app: &App) -> Option<String> {
        let kept = self.model_of_session(app).map(|model| model.name.clone());
        kept.or_else(|| self.model_by_default(app).unwrap_or_default())
    }
}

fn is_remote(model: &dyn Model) -> bool {
    model.info().place == ModelPlace::Remote
}

/// A session that stays on this machine until a person chooses `model` for it, and why.
fn not_sent_away(why: &str, model: &str) -> CommandError {
    CommandError::new(
        "no_local_model",
        5,
        format!("{why}: text would leave this machine"),
        format!("choose a model: `/model {model}` for this session, or `--model` for one call"),
    )
}

fn shown(info: &ModelInfo) -> ModelStatus {
    let model = info.full_name();
    ModelStatus { model, place: info.place, window: info.window, notice: None }
}

/// Leaves out files that a running command made or changed: they are looked at when it ends (spec: security §1).
fn without_files_of_commands(
    records: &Path,
    root: &Root,
    mut read: context::Bootstrap,
) -> context::Bootstrap {
    let why = |file: &context::BootFile| made_by_command(records, root, Path::new(&file.name), file.digest);
    let left_out: Vec<_> =
        read.files.iter().filter_map(|file| Some((file.name.clone(), why(file)?))).collect();
    read.files.retain(|file| left_out.iter().all(|(name, _)| *name != file.name));
    read.left_out.extend(left_out);
    read
}

/// Has a handoff that quotes what is from outside be of that trust, by the digest of its bytes (spec: security §3). Where that
/// cannot be looked up, it is.
async fn with_trust_of_handoff(app: &App, handoff: &str, mut read: context::Bootstrap) -> context::Bootstrap {
    let Some(file) = read.files.iter_mut().find(|file| file.name == handoff) else { return read };
    let outside = app.runtime.store.outside_files(&Principal::Owner, vec![file.digest]).await;
    if outside.map_or(true, |outside| !outside.is_empty()) {
        file.trust = Trust::Outside;
    }
    read
}

/// Leaves out files that are from outside, by the digests of their bytes: nobody would know that they are not the
/// owner's words (spec: security §3). Where that cannot be looked up, none is believed.
async fn without_outside_files(app: &App, mut read: context::Bootstrap) -> context::Bootstrap {
    let digests: Vec<Digest> = read.files.iter().map(|file| file.digest).collect();
    let outside = app.runtime.store.outside_files(&Principal::Owner, digests.clone()).await;
    let outside = outside.unwrap_or_else(|error| {
        tracing::warn!(%error, "where files come from is not known");
        digests
    });
    let is_left =
        |file: &mut context::BootFile| file.trust != Trust::Outside && outside.contains(&file.digest);
    for file in read.files.extract_if(.., is_left) {
        let why = format!(
            "it was written in sight of text from outside; read it, and `workspace accept {}` counts it as yours",
            file.name
        );
        read.left_out.push((file.name, why));
    }
    read
}

#[cfg(test)]
mod tests {
    use std::fs;

    use workspace::StoreGuard;

    use super::*;

    #[test]
    fn what_a_command_that_has_ended_meanwhile_had_made_is_left_out_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| context::BootFile {
            name: name.to_owned(),
            text: text.to_owned(),
            digest: Digest::of(text.as_bytes()),
            trust: Trust::Workspace,
        };
        fs::write(folder.path().join("AGENTS.md"), "ours").unwrap();
        let root = Root::open(folder.path(), &StoreGuard::default()).unwrap();
        // No command runs: what one had made was moved away, or given back, after it was read.
        let kept = |name: &str, text: &str| {
            let read = context::Bootstrap { files: vec![file(name, text)], ..context::Bootstrap::default() };
            let read = without_files_of_commands(&folder.path().join("records"), &root, read);
            assert_eq!(read.files.len() + read.left_out.len(), 1);
            read.left_out.into_iter().map(|(_, why)| why).next()
        };
        assert_eq!(kept("AGENTS.md", "ours"), None, "the control");
        for (name, text) in [("AGENTS.md", "evil"), ("CLAUDE.md", "evil")] {
            assert_eq!(kept(name, text).as_deref(), Some("it was changed while it was read"), "{name}");
        }
    }
}
