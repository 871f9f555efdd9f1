//! Saying something, and what is shown of its turn.

use std::path::PathBuf;
use std::sync::Arc;

use ::tools::{SessionSkill, TurnSkills};
use agent::session::{
    EventStream, Handle, Numbered, Say, SessionOperation, SessionSettings, TreeChoice, TurnInput,
    WaitingFile, spawn,
};
use agent::{AgentError, OpenedSession, SayId, SessionEvent};
use loom::content::plain_text;
use loom::plan::NewText;
use loom::{NodeId, Role, ViewName};
use model::ModelPlace;
use store::CallId;

use super::session_settings::SeenSession;
use super::subagents::{JoinedFrom, joined_line};
use super::{Conversation, position, server_tools, tools};
use crate::app::App;
use crate::custom_commands::{CustomCommands, Expansion};
use crate::egress_notice;
use crate::error::CommandError;
use crate::frontend::Shown;
use crate::results::chat::{CallShown, Chatted};
use crate::rights::{Asker, Right};
use crate::skills::{NamedSkill, named_in};
use crate::slash::{self, Input, SlashOutcome};

/// A turn whose events are shown.
pub(super) struct TurnShown {
    pub(super) session: Handle,
    events: EventStream,
    key: SayId,
    entered: OpenedSession,
    /// What was shown of its answers until now.
    shown: Shown,
    /// The node of what was said here, once it is one.
    said: Option<NodeId>,
    /// Whether the files that were attached go along with it.
    takes_files: bool,
    /// Whether what was said here is answered, or was rejected.
    is_over: bool,
    /// Whether it was told to stop.
    is_stopped: bool,
    pub(super) began_in_plan_mode: bool,
    /// What is said once its request is about to be sent.
    egress: Option<EgressNotice>,
    /// Calls since something said was answered.
    calls: Vec<CallShown>,
}

/// That text leaves this machine, before the first request that takes it there.
struct EgressNotice {
    text: String,
    /// Session and provider of which it is said then.
    told: (String, String),
}

/// What happened in a turn that is shown.
#[derive(Debug)]
pub enum TurnStep {
    /// Something else was said in it, here or by another process.
    Joined { text: String, from: JoinedFrom },
    /// What was said here, or joined it, is answered, or what was said here will not be.
    Done(Box<Result<Chatted, CommandError>>),
    /// Something else that was to be said in it will not be.
    Rejected(CommandError),
    /// One more answer is asked for: this one of so many.
    AskedAgain { number: u32, of: u32 },
}

impl Conversation {
    /// Takes in an input line of a person: a text for the model, or a command. A text begins a turn, which is shown
    /// by [`Self::next`].
    ///
    /// # Errors
    /// Whatever keeps it from being done. A command that is not known is no text: nothing is sent.
    pub async fn take(&mut self, app: &App, asker: &Asker, line: &str) -> Result<SlashOutcome, CommandError> {
        self.catch_up(app, asker).await?;
        self.take_at_once(app, asker, line).await
    }

    /// [`Self::take`] in a session that was read just now.
    pub(super) async fn take_at_once(
        &mut self,
        app: &App,
        asker: &Asker,
        line: &str,
    ) -> Result<SlashOutcome, CommandError> {
        match slash::parse(line) {
            Input::Say(text) => {
                App::require(asker, "chat", Right::Act)?;
                let text = app.typed(&text)?;
                self.say(app, asker, text).await?;
                Ok(SlashOutcome::Turn)
            }
            Input::Command(command) => app.slash(asker, self, command).await,
            Input::Unknown { name, arguments } => {
                let custom = CustomCommands::read(app).await;
                let command = custom.require(&name)?;
                App::require(asker, "chat", Right::Act)?;
                custom.stands_in(command).iter().for_each(|told| app.frontend.note(told));
                let expansion = command.expand(&app.typed(&arguments)?)?;
                self.say_expansion(app, asker, expansion).await
            }
            Input::Misused { name, arguments, why } => Err(Input::misused(name, arguments, why)),
        }
    }

    /// Says what comes of a command.
    pub(crate) async fn say_expansion(
        &mut self,
        app: &App,
        asker: &Asker,
        Expansion { text, trust }: Expansion,
    ) -> Result<SlashOutcome, CommandError> {
        self.say_with(app, &asker.clone().trusted_at_most(trust), text, Vec::new()).await?;
        Ok(SlashOutcome::Turn)
    }

    /// Says something: text, whatever it looks like, with the skills that it names. A session that another process holds is
    /// spoken to through it.
    ///
    /// # Errors
    /// What kept it from being said.
    pub async fn say(&mut self, app: &App, asker: &Asker, text: String) -> Result<(), CommandError> {
        let skills = named_in(app, asker, &text).await;
        self.say_with(app, asker, text, skills).await
    }

    /// Says a text behind those of skills, with which it may be empty.
    ///
    /// # Errors
    /// What kept it from being said.
    pub(crate) async fn say_with(
        &mut self,
        app: &App,
        asker: &Asker,
        text: String,
        skills: Vec<NamedSkill>,
    ) -> Result<(), CommandError> {
        let (mut said, skills): (Vec<NewText>, Vec<SessionSkill>) =
            skills.into_iter().map(|named| (named.text, named.skill)).unzip();
        if !text.trim().is_empty() {
            said.push(asker.text(text, Some(Role::User)));
        }
        let Some(last) = said.last().map(|text| plain_text(&text.content).into_owned()) else {
            return Err(CommandError::usage("there is nothing to say", "give a text that is not empty"));
        };
        for text in &said {
            app.fits_node("the text", &plain_text(&text.content), false)?;
        }
        // A new session, or a new tree, has none: what is refused writes neither.
        if self.view != ViewName::default() && (self.anew || self.seen.is_none()) {
            self.require_fork(app, asker).await?;
        }
        self.finish_wrap(app, asker).await;
        self.read_files(app).await;
        let config = self.config(app).await?;
        let (info, left_out) = (config.model.info().clone(), config.bootstrap.left_out.clone());
        let has_tools = config.tools.is_some() && info.tools;
        self.admit_files(&info)?;
        let begins = self.anew;
        if begins && self.wrap_before_new(app, asker).await? {
            self.read_files(app).await;
        }
        // Memory, cards and files fail open: what could not be read is said, and the turn goes on.
        for (name, why) in &left_out {
            app.frontend.note(&format!("{name} is left out: {why}"));
        }
        if self.is_single()
            && let Some(why) = tools::without_tools(app, self.agent(), self.session_type(), &info)
        {
            app.frontend.note(&why);
        }
        let place = (self.agent(), self.session_type());
        if self.is_single()
            && !has_tools
            && let Some(idle) = tools::flags_without_tools(&self.turn_flags, place, &info)
        {
            app.frontend.note(&idle);
        }
        let before = if self.seen.is_some() { self.entered_before(app, asker).await? } else { None };
        if before.is_none() || begins {
            app.models.about(&info).iter().for_each(|about| app.frontend.note(about));
            if has_tools {
                server_tools::tell_others(app, self.agent());
            }
        }
        let (entered, tree) = match before {
            Some(entered) if self.anew => (entered, new_tree(&last)),
            Some(entered) => (entered, TreeChoice::Current),
            None => {
                let entered = app.runtime.enter(&asker.principal, &self.chosen, &last).await?;
                if entered.is_begun {
                    if self.seen.as_ref().is_none_or(|seen| seen.id != entered.session) {
                        self.seen = Some(SeenSession::begun(&entered));
                    }
                    self.keep_settings(app, asker).await?;
                } else {
                    // Another process was first: what it set there holds here, for its model and files too.
                    self.catch_up(app, asker).await?;
                    let info = self.config(app).await?.model.info().clone();
                    self.admit_files(&info)?;
                }
                let tree = match (self.anew, entered.is_begun) {
                    (false, _) => TreeChoice::Current,
                    (true, true) => TreeChoice::Named(entered.tree),
                    // Another process was first: what it says there is not gone on with.
                    (true, false) => new_tree(&last),
                };
                (OpenedSession { view: self.view.clone(), ..entered }, tree)
            }
        };
        let kept = self.seen.as_ref().and_then(|seen| SessionSettings::read(&seen.settings).ok());
        let kept = kept.unwrap_or_default().files;
        let files = self.attached.iter();
        let paths = files.clone().map(|file| file.waits_as.clone()).enumerate();
        let waiting = paths.filter_map(|(text, path)| {
            Some(WaitingFile { text, path: path.filter(|path| kept.contains(path))? })
        });
        let waiting = waiting.collect();
        let mut texts: Vec<NewText> = files.clone().map(|file| file.text.clone()).collect();
        texts.extend(said);
        let media = files.filter_map(|file| Some(file.medium.as_ref()?.bytes.clone())).collect();
        let input = (TurnInput::New { texts, media, waiting }, TurnSkills::named(skills));
        self.begin_turn(app, asker, entered, tree, input).await
    }

    pub(super) async fn begin_turn(
        &mut self,
        app: &App,
        asker: &Asker,
        entered: OpenedSession,
        tree: TreeChoice,
        (input, skills): (TurnInput, TurnSkills),
    ) -> Result<(), CommandError> {
        if self.kept_folders != self.folders {
            self.tell_closed_folders(app);
            self.kept_folders = self.folders.clone();
            self.keep_settings(app, asker).await?;
        }
        let config = self.config(app).await?.clone();
        let egress = self.egress_notice(app, asker, &entered, config.model.info()).await?;
        self.tell_thinking(app, config.model.info());
        let began_in_plan_mode = config.plan;
        let takes_files = matches!(input, TurnInput::New { .. });
        let key: SayId = app.runtime.new_id()?;
        let session = spawn(&app.runtime, &app.sessions, &entered.session);
        let events = session.events_of(key.clone());
        let say = Say {
            key: key.clone(),
            input,
            tree,
            view: self.view.clone(),
            config: Arc::new(config),
            reply_to: None,
            author: asker.author.clone(),
            trust: asker.trust,
            answer_within: app.frontend.answer_within(),
            hands_back: self.is_single(),
            skills,
        };
        session.send(SessionOperation::Say(Box::new(say))).await?;
        let seen = self.seen.take().unwrap_or_else(|| SeenSession::begun(&entered));
        self.seen = Some(SeenSession { tree: None, ..seen });
        let shown = Shown { streams: self.streams, ..app.shown() };
        let (said, is_over, is_stopped) = (None, false, false);
        self.turn = Some(TurnShown {
            session,
            events,
            key,
            entered,
            shown,
            said,
            takes_files,
            is_over,
            is_stopped,
            began_in_plan_mode,
            egress,
            calls: Vec::new(),
        });
        Ok(())
    }

    /// What is said before the first request of a session that leaves this machine (spec: agent §2 *Place*). It is said
    /// once the request is admitted: one that a budget refuses stays here.
    async fn egress_notice(
        &mut self,
        app: &App,
        asker: &Asker,
        entered: &OpenedSession,
        info: &model::ModelInfo,
    ) -> Result<Option<EgressNotice>, CommandError> {
        let told = (entered.name.clone(), info.provider.clone());
        if info.place == ModelPlace::Local || self.told.as_ref() == Some(&told) {
            return Ok(None);
        }
        let (view, provider) = (entered.view.clone(), info.provider.clone());
        let before = app.read(asker, entered.tree, move |rows| {
            let last = position::view_position(rows, &view)?.last.map(|last| last.manifest.model);
            Ok(last.is_some_and(|model| model.place == ModelPlace::Remote && model.provider == provider))
        });
        if before.await? {
            self.told = Some(told);
            return Ok(None);
        }
        Ok(Some(EgressNotice { text: egress_notice::notice("session", info), told }))
    }

    /// Says that the text of the turn that is shown leaves this machine, if that has not been said.
    fn tell_egress(&mut self, app: &App) {
        if let Some(EgressNotice { text, told }) = self.turn.as_mut().and_then(|turn| turn.egress.take()) {
            app.frontend.note(&text);
            self.told = Some(told);
        }
    }

    /// Shows the turn until something else than text has come of it; none once nothing is under way in the session.
    /// Cancel-safe but for the one step that has been taken from the events.
    pub async fn next(&mut self, app: &App, asker: &Asker) -> Option<TurnStep> {
        loop {
            let turn = self.turn.as_mut()?;
            let mut cancel = app.cancel.clone();
            let event = tokio::select! {
                event = turn.events.next() => event,
                () = cancel.cancelled(), if !turn.is_stopped => {
                    turn.is_stopped = true;
                    // A session that has ended needs no stop.
                    let _ = turn.session.send(SessionOperation::Stop).await;
                    continue;
                }
            };
            let Some(Numbered { n, event }) = event else {
                let failed = !std::mem::replace(&mut turn.is_over, true);
                self.turn = None;
                return failed.then(|| TurnStep::Done(Box::new(Err(AgentError::Closed.into()))));
            };
            app.frontend.event(n, &event);
            turn.shown.show(&event);
            match event {
                SessionEvent::Started { place: ModelPlace::Remote, .. } if turn.said.is_some() => {
                    self.tell_egress(app);
                }
                SessionEvent::Call { answer, number, tool, effects, .. } => {
                    let id = CallId { answer, number };
                    turn.calls.push(CallShown::new(id, tool, effects));
                }
                SessionEvent::Result { answer, number, status, node, unanswered, .. } => {
                    let id = CallId { answer, number };
                    if let Some(call) = turn.calls.iter_mut().rfind(|call| call.id == id) {
                        (call.status, call.node, call.unanswered) = (Some(status), Some(node), unanswered);
                    }
                }
                SessionEvent::Accepted { say, node, text, remote, subagent } => {
                    if say != turn.key {
                        return Some(TurnStep::Joined { text, from: JoinedFrom::of(remote, subagent) });
                    }
                    self.accepted(app, asker, node).await;
                }
                SessionEvent::Finished { says, mut outcome } => {
                    let (own, entered) = (says.contains(&turn.key), turn.entered.clone());
                    let calls = std::mem::take(&mut turn.calls);
                    turn.is_over |= own;
                    // What another client said in it came after that.
                    outcome.said = turn.said.filter(|_| own).unwrap_or(outcome.said);
                    self.reload &= !own || outcome.manifest.is_none();
                    if own && outcome.manifest.is_some() {
                        // Whoever reads events too slowly has not heard of its beginning.
                        self.tell_egress(app);
                    }
                    if own {
                        self.accepted(app, asker, outcome.said).await;
                    }
                    if let Some(seen) = &mut self.seen {
                        seen.tree = Some(outcome.tree);
                    }
                    let done = self.ended(app, asker, &entered, (*outcome, calls)).await;
                    if own {
                        self.note_choice(&done);
                    }
                    return Some(TurnStep::Done(Box::new(done)));
                }
                SessionEvent::Rejected { say, error } if say != turn.key => {
                    return Some(TurnStep::Rejected(error.0.as_ref().into()));
                }
                SessionEvent::Rejected { error, .. } => {
                    turn.is_over = true;
                    self.again = None;
                    return Some(TurnStep::Done(Box::new(Err(error.0.as_ref().into()))));
                }
                SessionEvent::Idle if turn.is_over => {
                    self.turn = None;
                    return Box::pin(self.ask_once_more(app, asker)).await;
                }
                _ => {}
            }
        }
    }

    /// What was said here is a node: what waited for it went along, and its turn took that off the settings. What waits
    /// there now was attached again since.
    async fn accepted(&mut self, app: &App, asker: &Asker, node: NodeId) {
        let Some(turn) = &mut self.turn else { return };
        if turn.said.replace(node).is_some() {
            return;
        }
        self.anew = false;
        if !turn.takes_files {
            return;
        }
        let sent = std::mem::take(&mut self.attached).into_iter().filter_map(|file| file.waits_as);
        let sent: Vec<PathBuf> = sent.collect();
        if sent.is_empty() {
            return;
        }
        self.seen = self.seen.take().map(|seen| seen.without_files(&sent));
        if let Err(error) = self.catch_up(app, asker).await {
            app.frontend
                .note(&format!("the settings of this session were not read again: {}", error.message));
        }
    }

    /// The answer to what was said here. The session's task may go on for others.
    ///
    /// # Errors
    /// What kept it from being said or answered. What was said or received until then is kept.
    pub async fn answer(&mut self, app: &App, asker: &Asker) -> Result<Chatted, CommandError> {
        let mut waits_with = None;
        while let Some(step) = self.next(app, asker).await {
            let done = match step {
                TurnStep::Done(done) => done,
                TurnStep::Joined { text, from } => {
                    app.frontend.note(&joined_line(&self.name(), &text, from));
                    continue;
                }
                TurnStep::Rejected(error) => {
                    if self.turn.as_ref().is_some_and(|turn| turn.session.has_had_subagents()) {
                        app.frontend.note(&format!(
                            "what a subagent came to is told with the next message: {}",
                            error.message
                        ));
                    }
                    continue;
                }
                TurnStep::AskedAgain { .. } => continue,
            };
            let is_over = self.turn.as_ref().is_none_or(|turn| turn.is_over);
            if is_over && !self.asks_more() {
                if !self.turn.as_ref().is_some_and(|turn| turn.session.has_had_subagents()) {
                    return self.take_first(app, asker, *done).await;
                }
                self.tell_subagents(app);
                waits_with = Some(match (waits_with, *done) {
                    (Some(Ok(before)), Ok(done)) => Ok(Chatted::behind(before, done)),
                    (_, done) => done,
                });
            }
        }
        match waits_with {
            Some(Ok(done)) => {
                let done = self.with_subagents(app, asker, done).await;
                self.take_first(app, asker, Ok(done)).await
            }
            Some(failed) => self.take_first(app, asker, failed).await,
            None => Err(AgentError::Closed.into()),
        }
    }
}

fn new_tree(said: &str) -> TreeChoice {
    TreeChoice::New { title: text::title::title(said) }
}
