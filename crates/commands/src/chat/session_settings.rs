//! Settings of a session: they are the session's, whichever process goes on with it (spec: gateway §1).
//!
//! What is said in a conversation with `/model`, `/think`, `/system`, `/set` and `/file` is written with the session, and
//! so is `--system`; what else a call is given with flags holds for that call alone, and there in the sessions where
//! nothing newer was chosen. Settings are written
//! over those that were seen last: what another process changed meanwhile stays, unless it was changed here too.

use std::path::{Path, PathBuf};

use agent::session::{ChosenModel, Name, SessionSettings};
use agent::{AgentError, OpenedSession};
use loom::TreeId;
use model::Thinking;
use store::{Session, SessionId, StoreError};
use text::terminal::one_line;
use workspace::Accept;

use super::Conversation;
use super::attached::Attached;
use super::sampling::is_gone;
use crate::app::App;
use crate::error::CommandError;
use crate::rights::Asker;

/// What was chosen in a session since a call began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NewerChoices {
    pub(super) model: bool,
    pub(super) thinking: bool,
}

/// A session that a conversation left for another one.
#[derive(Debug)]
pub(super) struct LeftSession {
    newer: NewerChoices,
    model: Option<ChosenModel>,
    thinking: Option<Thinking>,
}

/// A session as a conversation last saw it.
#[derive(Debug, Clone)]
pub(super) struct SeenSession {
    pub(super) id: SessionId,
    pub(super) name: String,
    /// Settings of the session, as they are written.
    pub(super) settings: String,
    /// The tree it goes on in; none where a turn of this conversation may have begun another one.
    pub(super) tree: Option<TreeId>,
}

impl SeenSession {
    fn of(session: Session) -> Self {
        let tree = session.tree();
        Self { id: session.id, name: session.name, settings: session.settings, tree }
    }

    /// The session once files that waited were sent: their turn took them off the settings.
    pub(super) fn without_files(self, sent: &[PathBuf]) -> Self {
        self.changed(|settings| settings.files.retain(|path| !sent.contains(path)))
    }

    /// The session once plan mode was set beside the turn.
    pub(super) fn with_plan(self, plan: bool) -> Self {
        self.changed(|settings| settings.plan = plan)
    }

    fn changed(self, change: impl FnOnce(&mut SessionSettings)) -> Self {
        let Ok(mut settings) = SessionSettings::read(&self.settings) else { return self };
        change(&mut settings);
        match settings.text() {
            Ok(settings) => Self { settings, ..self },
            Err(_) => self,
        }
    }

    /// One that has no settings yet.
    pub(super) fn begun(entered: &OpenedSession) -> Self {
        Self {
            id: entered.session.clone(),
            name: entered.name.clone(),
            settings: String::new(),
            tree: Some(entered.tree),
        }
    }
}

impl Conversation {
    /// Reads the settings of the session. What cannot be had any more is named, and left out.
    pub(super) async fn restore(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        self.seen = app.runtime.session(&asker.principal, &self.chosen).await?.map(SeenSession::of);
        let text = self.seen.as_ref().map_or("", |seen| &seen.settings);
        let read = self.read_or_tell(app, text);
        self.is_damaged = read.is_none();
        let settings = read.unwrap_or_default();
        let left = self.seen.as_ref().and_then(|seen| self.left.remove(&seen.id));
        self.newer = left.map_or_else(NewerChoices::default, |left| NewerChoices {
            // Also where another process chose meanwhile.
            model: left.newer.model || left.model != settings.model,
            thinking: left.newer.thinking || left.thinking != settings.thinking,
        });
        let flag = self.think_flag.filter(|_| !self.newer.thinking);
        self.kept_thinking = settings.thinking;
        self.think = flag.or(settings.thinking);
        self.kept_model = settings.model;
        (self.agent, self.system, self.sampling) = (settings.agent, settings.system, settings.sampling);
        (self.allowed, self.kept_folders) = (settings.allowed, settings.folders);
        // Where it is not known nothing is changed.
        self.plan = settings.plan || self.is_damaged;
        if let Some(preset) = self.sampling.preset.as_deref().filter(|preset| is_gone(app, preset)) {
            app.frontend.note(&format!(
                "the preset {} of this session is not in the configuration any more and is left out",
                one_line(preset)
            ));
        }
        for path in &settings.files {
            self.attach_again(app, path);
        }
        Ok(())
    }

    /// Leaves the session for another one: what was chosen in it holds when the conversation comes back, and what waits
    /// in it is sent then.
    pub(super) fn leave(&mut self, app: &App) {
        let Some(seen) = self.seen.take() else { return };
        let count = self.attached.len();
        self.attached.retain(|file| file.waits_as.is_none());
        if self.attached.len() < count {
            app.frontend.note(&format!(
                "files that wait in {}: {}; they are sent with your next message there",
                seen.name,
                count - self.attached.len()
            ));
        }
        let (model, thinking) = (self.kept_model.clone(), self.kept_thinking);
        self.left.insert(seen.id, LeftSession { newer: self.newer, model, thinking });
        self.is_damaged = false;
    }

    /// Follows what other processes did to the session since it was last seen here, and tells of it: its name, its
    /// settings, the tree it goes on in.
    pub(super) async fn catch_up(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        if self.is_temporary() {
            return Ok(());
        }
        let mut found = match &self.seen {
            Some(seen) => app.runtime.store.session(&asker.principal, &seen.id).await?,
            None => app.runtime.session(&asker.principal, &self.chosen).await?,
        };
        let before = self.seen.take();
        if let (Some(before), Some(session)) = (&before, &found) {
            if session.name != self.chosen.name.as_str() {
                self.tell(app, &format!("this session was renamed to {}", one_line(&session.name)));
                self.chosen.name = Name::new(&session.name)?;
            }
            if session.archived {
                let next = app.runtime.session(&asker.principal, &self.chosen).await?;
                let then = if next.is_some() {
                    "your next message goes to the new session of that name"
                } else {
                    "your next message starts a new session of that name"
                };
                self.tell(app, &format!("{} was archived by another process: {then}", session.name));
                found = next;
            } else if before.tree.is_some() && before.tree != session.tree() && !self.anew {
                self.tell(
                    app,
                    "another process started a new conversation in this session: it continues there",
                );
            }
        }
        let Some(session) = found else { return Ok(()) };
        // A session that another process began meanwhile had no settings when it was looked for.
        let was = before.as_ref().map_or("", |before| &before.settings);
        let mut waits = false;
        if before.is_none() || session.settings != was {
            if let Some(theirs) = self.read_or_tell(app, &session.settings) {
                self.is_damaged = false;
                let merged =
                    self.settings().merged(&SessionSettings::read(was).unwrap_or_default(), theirs.clone());
                waits = merged != theirs;
                self.take_settings(app, merged);
            } else {
                self.lose_settings();
            }
        }
        self.seen = Some(SeenSession::of(session));
        // What was set here before the session began has waited for it.
        if waits && !self.is_beside { self.keep_settings(app, asker).await } else { Ok(()) }
    }

    /// Takes over settings that another process wrote.
    fn take_settings(&mut self, app: &App, settings: SessionSettings) {
        if settings.model != self.kept_model {
            self.kept_model = settings.model;
            (self.config, self.newer.model) = (None, true);
            let name =
                self.kept_model.as_ref().map_or("its default model".into(), |model| one_line(&model.name));
            self.tell(app, &format!("this session now uses {name}, as another process set it"));
        }
        if settings.thinking != self.kept_thinking {
            (self.think, self.kept_thinking, self.config) = (settings.thinking, settings.thinking, None);
            self.newer.thinking = true;
            self.tell(app, "how much the model thinks was set by another process");
        }
        if (&settings.system, &settings.sampling) != (&self.system, &self.sampling) {
            (self.system, self.sampling, self.config) = (settings.system, settings.sampling, None);
            self.tell(app, "system prompt or sampling of this session was set by another process");
        }
        if settings.agent != self.agent {
            (self.agent, self.config) = (settings.agent, None);
            let name = one_line(self.agent()).into_owned();
            self.tell(
                app,
                &format!("this session is answered by agent {name} now, as another process set it"),
            );
        }
        if settings.plan != self.plan {
            (self.plan, self.config) = (settings.plan, None);
            let word = if self.plan { "on" } else { "off" };
            self.tell(app, &format!("plan mode is {word} now, as another process set it"));
        }
        (self.allowed, self.kept_folders) = (settings.allowed, settings.folders);
        self.attached.retain(|file| file.waits_as.as_ref().is_none_or(|path| settings.files.contains(path)));
        let here: Vec<_> = self.attached.iter().filter_map(|file| file.waits_as.clone()).collect();
        for path in settings.files.iter().filter(|path| !here.contains(path)) {
            self.attach_again(app, path);
        }
    }

    /// Notes that what another process wrote is not known: without a model of its own the conversation would go on with
    /// the default one.
    fn lose_settings(&mut self) {
        // Whether plan mode is on is not known either: nothing is changed.
        (self.plan, self.config) = (true, None);
        self.is_damaged |= self.kept_model.is_none();
    }

    /// Refuses to change one of the settings while they are damaged: it could not be kept.
    ///
    /// # Errors
    /// [`AgentError::Settings`].
    pub(crate) fn require_settings(&self) -> Result<(), CommandError> {
        if self.is_damaged
            && let Some(seen) = &self.seen
        {
            SessionSettings::read(&seen.settings).map_err(AgentError::Settings)?;
        }
        Ok(())
    }

    fn attach_again(&mut self, app: &App, path: &Path) {
        let name = path.to_string_lossy();
        let name = one_line(&name);
        match Attached::read(app, path, Accept::Regular) {
            Ok(file) => {
                self.tell(
                    app,
                    &format!("{name} was attached before and will be sent with your next message"),
                );
                self.attached.push(file.waiting(path, Some(path.to_owned())));
            }
            Err(error) => {
                self.tell(app, &format!("{name} waited from before and is left out: {}", error.message));
            }
        }
    }

    /// Says something of what other processes did, unless the conversation whose turn is shown says it.
    fn tell(&self, app: &App, note: &str) {
        if !self.is_beside {
            app.frontend.note(note);
        }
    }

    /// Settings as they are written; none where they are damaged, which is told.
    fn read_or_tell(&self, app: &App, text: &str) -> Option<SessionSettings> {
        let read = SessionSettings::read(text).map_err(AgentError::Settings);
        read.inspect_err(|error| self.tell(app, &format!("{error}: {}", error.failure().hint))).ok()
    }

    fn settings(&self) -> SessionSettings {
        let seen = self.seen.as_ref().and_then(|seen| SessionSettings::read(&seen.settings).ok());
        // Written where they run, and by nobody else.
        let SessionSettings { subagent, awaited, .. } = seen.unwrap_or_default();
        SessionSettings {
            agent: self.agent.clone(),
            model: self.kept_model.clone(),
            thinking: self.kept_thinking,
            system: self.system.clone(),
            sampling: self.sampling.clone(),
            plan: self.plan,
            allowed: self.allowed.clone(),
            folders: self.kept_folders.clone(),
            files: self.attached.iter().filter_map(|file| file.waits_as.clone()).collect(),
            subagent,
            awaited,
        }
    }

    /// Writes the settings with the session; before it has begun they wait until it does. What another process changed
    /// meanwhile is taken over, and told of. Damaged settings stay until a model is chosen: without them the session
    /// would go on with the default one.
    pub(crate) async fn keep_settings(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        if self.is_damaged {
            return Ok(());
        }
        loop {
            let (settings, Some(seen)) = (self.settings(), &mut self.seen) else { return Ok(()) };
            let text = settings
                .text()
                .map_err(|error| CommandError::new("json", 6, error.to_string(), "please report this"))?;
            if seen.settings == text {
                return Ok(());
            }
            let store = &app.runtime.store;
            match store.set_session_settings(&asker.principal, &seen.id, &seen.settings, &text).await {
                // Written, or the session was removed meanwhile: nothing is left to be written with it.
                Ok(None) | Err(StoreError::NotFound(_)) => {
                    seen.settings = text;
                    return Ok(());
                }
                Ok(Some(theirs)) => {
                    let before = SessionSettings::read(&seen.settings).unwrap_or_default();
                    seen.settings.clone_from(&theirs);
                    let read = self.read_or_tell(app, &theirs);
                    match read {
                        Some(read) => self.take_settings(app, settings.merged(&before, read)),
                        None => self.lose_settings(),
                    }
                    // Those that cannot be read are written over where the model is known.
                    self.require_settings()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
