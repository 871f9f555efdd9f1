//! Going on elsewhere: in another session, anew, beside what is here, with another model.

use std::borrow::Cow;

use agent::SessionChoice;
use agent::session::SessionSampling;
use loom::{Op, ViewName};
use store::SessionKind;

use super::Conversation;
use super::conversation::{fork_name, place};
use super::sessions::{forks_of, no_session, session_name, taken};
use crate::app::App;
use crate::custom_commands::CustomCommands;
use crate::error::CommandError;
use crate::results::slash::SessionMoved;
use crate::rights::Asker;
use crate::skills::names_within_reach;
use crate::slash::{CompletionNames, SlashCommand};

const SAY_FIRST: &str =
    "send a message first, or give --model, --think, --system, --temperature or --file with it";

impl Conversation {
    /// What to do instead of a command that only changes where the conversation goes on; none for the others.
    pub(super) async fn lasts_longer(
        &self,
        app: &App,
        asker: &Asker,
        command: &SlashCommand,
    ) -> Result<Option<Cow<'static, str>>, CommandError> {
        Ok(Some(match command {
            SlashCommand::New { .. } => {
                format!("`{}` starts a new conversation", self.command_anew(app)).into()
            }
            SlashCommand::Switch { .. } => {
                "`drawloom chat --session NAME -m TEXT` continues another session".into()
            }
            SlashCommand::Rename { .. } if self.entered_before(app, asker).await?.is_none() => {
                "send a message first: a session has its name from then on".into()
            }
            SlashCommand::Model { name: Some(_) }
            | SlashCommand::Think { think: Some(_) }
            | SlashCommand::Plan { plan: Some(_) }
            | SlashCommand::File { path: Some(_) }
            | SlashCommand::System { text: Some(_) }
                if self.seen.is_none() =>
            {
                SAY_FIRST.into()
            }
            SlashCommand::Set { settings } if self.seen.is_none() && !settings.is_empty() => SAY_FIRST.into(),
            _ => return Ok(None),
        }))
    }

    /// Has the next thing said begin a new tree: of this session, which hands over first, or of another one that is not
    /// there yet. That one
    /// begins with the model and the thinking that were chosen here; a flag is not stored with it. Files that wait stay
    /// with the session they were attached in.
    pub(crate) async fn begin(
        &mut self,
        app: &App,
        asker: &Asker,
        name: Option<&str>,
    ) -> Result<SessionMoved, CommandError> {
        if let Some(name) = name {
            self.keeps_a_name()?;
            let chosen = SessionChoice { name: session_name(app, name)?, ..self.chosen.clone() };
            self.is_free(app, asker, &chosen).await?;
            self.leave(app);
            self.chosen = chosen;
            if self.flag_names_model(app) {
                self.kept_model = None;
            }
            if self.think_flag.is_some() && !self.newer.thinking {
                self.kept_thinking = None;
            }
            (self.system, self.sampling) = (None, SessionSampling::default());
            (self.config, self.tools) = (None, None);
        }
        if name.is_some() || !self.wrap_before_new(app, asker).await? {
            self.view = ViewName::default();
            self.anew = true;
        }
        self.went(app, asker).await
    }

    /// Goes on in another session of the workspace, or in a fork.
    pub(crate) async fn switch(
        &mut self,
        app: &App,
        asker: &Asker,
        to: &str,
    ) -> Result<SessionMoved, CommandError> {
        self.keeps_a_name()?;
        let (name, view) = place(app, to)?;
        let chosen = SessionChoice { name, ..self.chosen.clone() };
        let session = app.runtime.session(&asker.principal, &chosen).await?;
        let Some(tree) = session.and_then(|session| session.tree()) else {
            return Err(no_session(app, asker, chosen.name.as_str(), false).await?);
        };
        let forks = app.read(asker, tree, forks_of).await?;
        if view != ViewName::default() && !forks.iter().any(|fork| fork == view.as_str()) {
            let hint = "/sessions lists them; /fork NAME starts one";
            return Err(CommandError::not_found("fork", to, hint));
        }
        let is_another = self.chosen != chosen;
        if is_another {
            self.leave(app);
        }
        (self.chosen, self.view, self.anew) = (chosen, view, false);
        if is_another {
            // What was set there holds there.
            (self.config, self.tools, self.seen) = (None, None, None);
            self.attached.clear();
            self.restore(app, asker).await?;
        }
        self.went(app, asker).await
    }

    /// Gives the session another name; one in which nothing was said yet only gets to be called so.
    pub(crate) async fn rename(
        &mut self,
        app: &App,
        asker: &Asker,
        to: &str,
    ) -> Result<SessionMoved, CommandError> {
        self.keeps_a_name()?;
        let chosen = SessionChoice { name: session_name(app, to)?, ..self.chosen.clone() };
        match app.runtime.session(&asker.principal, &self.chosen).await? {
            Some(session) => {
                let renamed = app
                    .runtime
                    .store
                    .rename_session(&asker.principal, &session.id, chosen.name.as_str())
                    .await;
                renamed.map_err(|error| taken(error, chosen.name.as_str()))?;
                if let Some(seen) = &mut self.seen {
                    seen.name = chosen.name.to_string();
                }
            }
            None => self.is_free(app, asker, &chosen).await?,
        }
        self.chosen = chosen;
        self.went(app, asker).await
    }

    /// Goes on beside this point. A fork is a view of the session's tree: both lines share what was said until
    /// here, bytes and provenance, and each has its own timeline.
    pub(crate) async fn fork(
        &mut self,
        app: &App,
        asker: &Asker,
        name: Option<&str>,
    ) -> Result<SessionMoved, CommandError> {
        let entered = self.entered(app, asker).await?.ok_or_else(|| {
            CommandError::usage("there is nothing to fork yet", "send a message first, or use /new")
        })?;
        let forks = app.read(asker, entered.tree, forks_of).await?;
        let name = match name {
            Some(name) => fork_name(app, name)?,
            None => {
                let free = (1..).map(|n| format!("fork-{n}")).find(|name| !forks.contains(name));
                fork_name(app, &free.unwrap_or_default())?
            }
        };
        if name == ViewName::default() || forks.iter().any(|fork| fork == name.as_str()) {
            return Err(CommandError::new(
                "exists",
                2,
                format!("this session has a fork {name} already"),
                format!("choose another name, or /switch {}:{name}", self.chosen.name),
            ));
        }
        let op = Op::NewView { name: name.clone(), agent: asker.author.id.clone() };
        app.change(asker, entered.tree, &entered.view, op).await?;
        self.view = name;
        self.went(app, asker).await
    }

    /// Names for the completion of the next input line. What cannot be read is not offered.
    pub async fn known(&self, app: &App, asker: &Asker) -> CompletionNames {
        let models = app.models.names();
        let filter = store::SessionFilter {
            workspace: Some(self.chosen.workspace.clone()),
            name: None,
            archived: false,
        };
        let store = &app.runtime.store;
        let page = |after| store.sessions(&asker.principal, filter.clone(), after, store::LIST_PAGE);
        let found = store::all_pages(store::Session::place, page).await.unwrap_or_default();
        let named = found.into_iter().filter(|session| session.kind == SessionKind::Main);
        let mut sessions: Vec<String> = named.map(|session| session.name).collect();
        if let Ok(Some(entered)) = self.entered(app, asker).await {
            let forks = app.read(asker, entered.tree, forks_of).await.unwrap_or_default();
            sessions.extend(forks.into_iter().map(|fork| format!("{}:{fork}", entered.name)));
        }
        let own = CustomCommands::read(app).await.commands;
        let commands = own.into_iter().map(|command| command.name).collect();
        let skills = match &self.skills {
            Some(skills) => skills.names.clone(),
            None => names_within_reach(app).await,
        };
        CompletionNames { sessions, models, commands, skills }
    }

    async fn went(&self, app: &App, asker: &Asker) -> Result<SessionMoved, CommandError> {
        let tree = self.entered(app, asker).await?.map(|entered| entered.tree);
        Ok(SessionMoved { session: self.name(), tree })
    }

    /// A temporary conversation is one session, and nothing of it outlives it.
    fn keeps_a_name(&self) -> Result<(), CommandError> {
        if self.is_temporary() {
            let hint = "end it with /quit, and start another one";
            return Err(CommandError::usage("a temporary conversation has no other session", hint));
        }
        Ok(())
    }

    async fn is_free(&self, app: &App, asker: &Asker, chosen: &SessionChoice) -> Result<(), CommandError> {
        match app.runtime.session(&asker.principal, chosen).await? {
            Some(_) => Err(taken(store::StoreError::Exists("session"), chosen.name.as_str())),
            None => Ok(()),
        }
    }
}
