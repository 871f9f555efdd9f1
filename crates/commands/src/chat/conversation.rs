//! The state of a conversation: which session, and how a model is asked there.

use std::collections::HashMap;
use std::sync::Arc;

use agent::session::{ChosenModel, Name, SessionSampling};
use agent::{AgentError, OpenedSession, SessionChoice, TurnConfig};
use context::{SystemPrompt, Zone};
use futures_util::future::BoxFuture;
use loom::ViewName;
use model::Thinking;
use policy::Permission;
use store::{SessionId, SessionKind};
use tools::ToolRegistry;
use workspace::trust::WorkspaceOrigin;
use workspace::{Accept, FurtherRoot};

use super::attached::Attached;
use super::regenerate::PendingRegenerations;
use super::say::TurnShown;
use super::session_settings::{LeftSession, NewerChoices, SeenSession};
use super::sessions::{forks_of, masked_name, session_name};
use super::{position, sessions};
use crate::answer_schema::AnswerSchema;
use crate::app::App;
use crate::args::allow::AllowArgs;
use crate::args::chat::{ChatArgs, TurnArgs};
use crate::args::think::Think;
use crate::error::CommandError;
use crate::further_roots::{self, further_roots};
use crate::maintenance::leftovers;
use crate::rights::Asker;
use crate::shell::quoted;
use crate::skills::SkillsOfSession;

/// A conversation that is open.
pub struct Conversation {
    pub(super) chosen: SessionChoice,
    /// View of the session's tree it goes on in: a fork, unless it is the main one.
    pub(super) view: ViewName,
    /// How a model is asked; none before one is needed.
    pub(super) config: Option<TurnConfig>,
    /// Tools of an agent in this session: what runs in their background ends with them.
    pub(super) tools: Option<(String, Arc<ToolRegistry>)>,
    /// Skills of the session, once a model was looked for.
    pub(super) skills: Option<Arc<SkillsOfSession>>,
    /// How much a model is to think, as whoever is there said.
    pub(super) think: Option<Thinking>,
    /// The agent that was chosen in the session; the default one without it.
    pub(super) agent: Option<String>,
    /// System prompt of the agent's profile, once a model was looked for.
    pub(super) agent_system: Option<SystemPrompt>,
    /// System prompt that was given in the session.
    pub(super) system: Option<String>,
    /// Whether plan mode is on, as was said in the session or cannot be known.
    pub(super) plan: bool,
    /// Whether a flag of this call turns it on.
    pub(super) plan_flag: bool,
    /// What the flags of this call say of its turns.
    pub(super) turn_flags: TurnArgs,
    /// Folders that this call opens beside the workspace.
    pub(super) folders: Vec<FurtherRoot>,
    /// Further folders that tools of the session reached when something was said in it last.
    pub(super) kept_folders: Vec<FurtherRoot>,
    /// Calls of tools that a person allowed for the rest of the session.
    pub(super) allowed: Vec<Permission>,
    /// Sampling that was chosen in the session.
    pub(super) sampling: SessionSampling,
    /// Sampling as flags of this call say, which goes before that of the session.
    pub(super) sampling_flags: SessionSampling,
    /// The model of which was said that it cannot think as asked, with what was asked.
    pub(super) told_thinking: Option<(String, Thinking)>,
    /// Whether the next thing said begins a new tree.
    pub(super) anew: bool,
    /// Whether the next request reads everything above it anew.
    pub(super) reload: bool,
    /// What goes along with the next thing said.
    pub(super) attached: Vec<Attached>,
    /// The last request of which was said that it leaves this machine: session and provider.
    pub(super) told: Option<(String, String)>,
    /// Whether answers are shown while they come.
    pub(super) streams: bool,
    /// The turn that is shown.
    pub(super) turn: Option<TurnShown>,
    /// The model that was named in the session, whichever a flag of this call names.
    pub(super) kept_model: Option<ChosenModel>,
    /// How much a model is to think, as was said in the session.
    pub(super) kept_thinking: Option<Thinking>,
    /// Whether the settings of the session cannot be read: which model was chosen in it is not known.
    pub(super) is_damaged: bool,
    /// The session as it was last seen here; none before it has begun.
    pub(super) seen: Option<SeenSession>,
    /// Whether it stands beside the turn of another one, which tells what other processes set.
    pub(super) is_beside: bool,
    /// How much a model is to think, as a flag of this call says.
    pub(super) think_flag: Option<Thinking>,
    /// What was chosen in the session since this call began: newer than its flags.
    pub(super) newer: NewerChoices,
    /// Sessions that were left, as they were then.
    pub(super) left: HashMap<SessionId, LeftSession>,
    /// Answers that are asked for one after another; none where one is enough.
    pub(super) again: Option<PendingRegenerations>,
    /// What its answers must fit.
    pub(super) schema: Option<AnswerSchema>,
    /// Whether it is of a call that ends with its one answer.
    pub(super) is_single: bool,
}

impl Conversation {
    /// Opens a session; nothing is written, and no model is looked for, before something is said.
    ///
    /// # Errors
    /// When the name is none, a file cannot be read, or as the store says.
    pub fn open<'a>(
        app: &'a App,
        asker: &'a Asker,
        args: &'a ChatArgs,
    ) -> BoxFuture<'a, Result<Self, CommandError>> {
        Box::pin(async move {
            let place = if args.private {
                let id = app.runtime.new_id::<loom::TreeId>()?;
                (Name::temporary(app.runtime.instance, id), ViewName::default(), SessionKind::Temporary)
            } else {
                let named = args.session.session.as_deref();
                let (name, view) = named.map(|named| place(app, named)).transpose()?.unwrap_or_default();
                (name, view, SessionKind::Main)
            };
            let conversation = Self::open_at(app, asker, place, args).await?;
            if args.session.session.is_some() && conversation.seen.is_none() {
                sessions::tell_near(app, asker, &conversation.chosen.name).await?;
            }
            Ok(conversation)
        })
    }

    /// Opens the session of this name and kind, in this view of it, as [`Self::open`] does.
    pub(super) async fn open_at(
        app: &App,
        asker: &Asker,
        (name, view, kind): (Name, ViewName, SessionKind),
        args: &ChatArgs,
    ) -> Result<Self, CommandError> {
        let attached = args
            .request
            .files
            .iter()
            .map(|path| Attached::read(app, path, Accept::RegularOrPipe))
            .collect::<Result<_, _>>()?;
        let mut conversation = Self {
            chosen: SessionChoice { workspace: app.workspace.key.clone(), name, kind },
            view,
            config: None,
            tools: None,
            skills: None,
            think: None,
            agent: None,
            agent_system: None,
            system: None,
            plan: false,
            plan_flag: args.turn.plan,
            turn_flags: args.turn.clone(),
            folders: folders_of(app, args)?,
            kept_folders: Vec::new(),
            allowed: Vec::new(),
            sampling: SessionSampling::default(),
            sampling_flags: SessionSampling {
                temperature: args.request.temperature,
                max_tokens: args.request.max_tokens,
                seed: args.request.seed,
                preset: args.request.preset.clone(),
            },
            told_thinking: None,
            anew: args.new,
            reload: false,
            attached,
            told: None,
            streams: true,
            turn: None,
            kept_model: None,
            kept_thinking: None,
            is_damaged: false,
            seen: None,
            is_beside: false,
            think_flag: args.request.think.map(Think::wish),
            newer: NewerChoices::default(),
            left: HashMap::new(),
            again: None,
            schema: None,
            is_single: args.message.is_some(),
        };
        conversation.restore(app, asker).await?;
        conversation.finish_wrap(app, asker).await;
        conversation.require_fork(app, asker).await?;
        if let Some(agent) = &args.request.agent {
            conversation.answer_as(app, asker, agent).await?;
        }
        if let Some(system) = &args.request.system {
            conversation.speak_as(app, asker, system).await?;
        }
        Ok(conversation)
    }

    /// Folders that tools reach beside the workspace.
    pub fn folders(&self) -> &[FurtherRoot] {
        &self.folders
    }

    /// Says which folders tools of the session reached before that they do not now: only the call that names them opens
    /// them.
    pub(super) fn tell_closed_folders(&self, app: &App) {
        let closed = self.kept_folders.iter().filter(|kept| !self.folders.contains(kept));
        let (everything, closed): (Vec<&FurtherRoot>, Vec<&FurtherRoot>) =
            closed.partition(|closed| closed.is_everything());
        if !everything.is_empty() {
            app.frontend.note(
                "tools of this session reached every file, and do so now only where a call says --no-restrict",
            );
        }
        let closed: Vec<String> = closed.into_iter().map(further_roots::shown).collect();
        if !closed.is_empty() {
            app.frontend.note(&format!(
                "tools of this session reached {}, and do so now only where a call names it with --allow",
                closed.join(", ")
            ));
        }
    }

    /// Whether tools reach everything, and commands have no walls.
    pub fn is_unrestricted(&self) -> bool {
        further_roots::hold_everything(&self.folders)
    }

    /// Whether it is of a call that ends with its one answer.
    pub(super) const fn is_single(&self) -> bool {
        self.is_single
    }

    /// Refuses a fork that the session does not have, before anything is written for it.
    pub(super) async fn require_fork(&self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        if self.view == ViewName::default() {
            return Ok(());
        }
        let missing = |hint: &str| CommandError::not_found("fork", &self.name(), hint);
        if self.anew {
            return Err(missing("a new conversation has no forks: leave out what is behind the colon"));
        }
        let hint = "`drawloom sessions list` shows the forks of each session";
        let entered = self.entered_before(app, asker).await?.ok_or_else(|| missing(hint))?;
        let forks = app.read(asker, entered.tree, forks_of).await?;
        if forks.iter().any(|fork| fork == self.view.as_str()) { Ok(()) } else { Err(missing(hint)) }
    }

    /// What it is called: `SESSION`, `SESSION:FORK` in a fork.
    pub fn name(&self) -> String {
        if self.is_temporary() {
            return "temporary".to_owned();
        }
        if self.view == ViewName::default() {
            self.chosen.name.to_string()
        } else {
            format!("{}:{}", self.chosen.name, self.view)
        }
    }

    /// The command that goes on here with these arguments, whichever session and workspace are the default ones.
    pub(super) fn command(&self, app: &App, arguments: &str) -> String {
        command_in(app, &self.chosen.name, &self.view, arguments)
    }

    /// The command that begins anew in this session, which then has no forks.
    pub(super) fn command_anew(&self, app: &App) -> String {
        // One that is forgotten with the call has no name to go on by.
        let name = if self.is_temporary() { &Name::default() } else { &self.chosen.name };
        command_in(app, name, &ViewName::default(), "--new -m TEXT")
    }

    /// Whether it is forgotten when it is closed.
    pub fn is_temporary(&self) -> bool {
        self.chosen.kind == SessionKind::Temporary
    }

    /// Where the session stands; none before anything was said.
    ///
    /// # Errors
    /// As the store says.
    pub async fn entered(&self, app: &App, asker: &Asker) -> Result<Option<OpenedSession>, CommandError> {
        if self.anew {
            return Ok(None);
        }
        self.entered_before(app, asker).await
    }

    /// Where the session stood before anything was begun anew: as it was last seen here, else as the store says.
    pub(crate) fn entered_before<'a>(
        &'a self,
        app: &'a App,
        asker: &'a Asker,
    ) -> BoxFuture<'a, Result<Option<OpenedSession>, CommandError>> {
        Box::pin(async move {
            if let Some((seen, tree)) = self.seen.as_ref().and_then(|seen| Some((seen, seen.tree?))) {
                let (session, name) = (seen.id.clone(), seen.name.clone());
                return Ok(Some(OpenedSession {
                    session,
                    name,
                    tree,
                    view: self.view.clone(),
                    is_begun: false,
                }));
            }
            let found = app.runtime.session(&asker.principal, &self.chosen).await?;
            Ok(found.and_then(|session| {
                let tree = session.tree()?;
                let (id, name, view) = (session.id, session.name, self.view.clone());
                Some(OpenedSession { session: id, name, tree, view, is_begun: false })
            }))
        })
    }

    /// How full the window was at the last request; none where no model was asked yet.
    ///
    /// # Errors
    /// As the store says.
    pub async fn zone(&self, app: &App, asker: &Asker) -> Result<Option<Zone>, CommandError> {
        let Some(entered) = self.entered(app, asker).await? else { return Ok(None) };
        let view = entered.view;
        let last = app.read(asker, entered.tree, move |rows| Ok(position::view_position(rows, &view)?.last));
        Ok(last.await?.map(|last| last.zone()))
    }

    /// Reads the files that stand above the conversation: what of them is sent, and when, is decided with the request.
    pub(super) async fn read_files(&mut self, app: &App) {
        // One that is made later reads them itself.
        if let Some(config) = self.config.take() {
            let bootstrap = self.bootstrap(app, config.tools.as_deref()).await;
            self.config = Some(TurnConfig { bootstrap, ..config });
        }
    }

    /// Closes it: what is under way is finished. A temporary one is forgotten with everything said in it.
    ///
    /// # Errors
    /// As the store says.
    pub async fn close(mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        if let Some(turn) = self.turn.take() {
            turn.session.close().await;
        }
        if self.is_temporary() {
            if let Some(session) = app.runtime.session(&asker.principal, &self.chosen).await?
                && let Some(task) = app.sessions.get(&session.id)
            {
                task.close().await;
            }
            // The record of what they changed goes with it.
            let record = app.runtime.private_records(app.runtime.instance, None);
            let has_run_commands = record.is_ok_and(|record| record.exists());
            app.runtime.forget_session(&asker.principal, &self.chosen).await?;
            let left = has_run_commands.then(|| leftovers::of_commands(&app.runtime.home));
            for left in left.iter().flatten() {
                app.frontend.note(&format!("not forgotten with it: {left}"));
            }
        }
        Ok(())
    }
}

/// The folders that a conversation opens beside the workspace, everything last among them where its owner says so.
fn folders_of(app: &App, args: &ChatArgs) -> Result<Vec<FurtherRoot>, CommandError> {
    let mut folders = named_folders(app, &args.turn.allow)?;
    if args.turn.no_restrict {
        if !app.workspace.folder.as_ref().is_some_and(|folder| folder.is_dir()) {
            let hint = "name one with --workspace DIR";
            return Err(CommandError::usage("--no-restrict needs a workspace", hint));
        }
        app.frontend.note(
            "--no-restrict: tools reach every file that you can, but Drawloom's own; commands run without a sandbox, and \
             each is asked",
        );
        folders.push(FurtherRoot::everything());
    }
    Ok(folders)
}

/// The folders that a call opens beside the workspace.
pub(crate) fn named_folders(app: &App, allow: &AllowArgs) -> Result<Vec<FurtherRoot>, CommandError> {
    let named = &allow.folders;
    let folder = app.workspace.folder.as_deref().filter(|folder| folder.is_dir());
    match &app.workspace.surroundings {
        _ if named.is_empty() => Ok(Vec::new()),
        Some(surroundings) if folder.is_some() => further_roots(named, folder, surroundings),
        _ => Err(CommandError::usage("--allow needs a workspace", "name one with --workspace DIR")),
    }
}

/// The command that goes on in a session and a view of its tree.
fn command_in(app: &App, name: &Name, view: &ViewName, arguments: &str) -> String {
    let mut command = "drawloom".to_owned();
    let is_named = app.workspace.arrival == Some(WorkspaceOrigin::Named);
    if let Some(folder) = app.workspace.folder.as_ref().filter(|_| is_named) {
        command += &format!(" --workspace {}", quoted(&folder.to_string_lossy()));
    }
    command += " chat";
    if *view != ViewName::default() {
        command += &session_flag(&format!("{name}:{view}"));
    } else if *name != Name::default() {
        command += &session_flag(name.as_str());
    }
    format!("{command} {arguments}")
}

fn session_flag(name: &str) -> String {
    // What begins with a dash would be taken for another flag.
    let between = if name.starts_with('-') { "=" } else { " " };
    format!(" --session{between}{}", quoted(name))
}

/// A session and a view of its tree, from `SESSION` or `SESSION:FORK`.
pub(super) fn place(app: &App, named: &str) -> Result<(Name, ViewName), CommandError> {
    let named = masked_name(app, named);
    let Some((session, fork)) = named.split_once(':') else {
        return Ok((Name::new(&named)?, ViewName::default()));
    };
    Ok((Name::new(session)?, fork_name(app, fork)?))
}

/// A name of a fork: one a session could have, too.
pub(super) fn fork_name(app: &App, name: &str) -> Result<ViewName, CommandError> {
    let name = session_name(app, name)?;
    name.as_str().parse().map_err(|_| AgentError::Name(name.to_string()).into())
}
