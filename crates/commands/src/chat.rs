//! Conversations: what is said in a session, by whom it is answered, and the answer.

mod ahead;
mod asked;
mod attached;
mod beside;
mod fill;
mod move_on;
mod reload;
mod sessions;
pub(crate) mod stand;

use std::time::{Duration, Instant};

use agent::session::Name;
use agent::steering::{Answer, HandedOver, hand_over};
use agent::{AgentError, Chosen, Entered, Replied, Said, Turn, TurnConfig, Turned};
use context::Zone;
use loom::plan::NewText;
use loom::{Role, ViewName};
use model::{Cancel, Thinking};
use store::SessionKind;

use crate::app::App;
use crate::args::chat::Chat;
use crate::args::think::Think;
use crate::departure;
use crate::error::CommandError;
use crate::results::chat::{Chatted, MediaShown};
use crate::results::tree::UsageShown;
use crate::results::{Done, Outcome};
use crate::rights::{Asker, Right};
use crate::slash::{self, Input, SlashCommand, Slashed};

use attached::Attached;
pub use beside::{Beside, Steered};
pub(crate) use sessions::sessions;

/// How long a busy session is waited for whose process takes no messages.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// A conversation that is open.
pub struct Conversation {
    chosen: Chosen,
    /// The view of the session's tree it goes on in: a fork, unless it is the main one.
    view: ViewName,
    /// The preset by which a model is asked.
    preset: Option<String>,
    /// How a model is asked; none before one is needed.
    manner: Option<TurnConfig>,
    /// How much a model is to think, as whoever is there said.
    think: Option<Thinking>,
    /// The model of which was said that it cannot think as asked, with what was asked.
    told_thinking: Option<(String, Thinking)>,
    /// Whether the next thing said begins a new tree.
    anew: bool,
    /// Whether the next request reads everything above it anew.
    reload: bool,
    /// What goes along with the next thing said.
    attached: Vec<Attached>,
    /// The last request of which was said that it leaves this machine: session and provider.
    told: Option<(String, String)>,
    /// The turn under way, which has its session, and where.
    turn: Option<(Turn, Entered)>,
}

/// `chat -m`.
pub(crate) async fn chat(app: &App, asker: &Asker, args: Chat) -> Result<Outcome, CommandError> {
    let Some(message) = &args.message else {
        return Err(CommandError::usage(
            "there is nothing to say",
            "give -m TEXT, or run `drawloom chat` at a terminal",
        ));
    };
    // What comes from standard input is text, whatever it looks like (spec: security §5).
    let piped = if message == "-" { Some(app.text(message)?) } else { None };
    let mut conversation = Conversation::open(app, &args)?;
    let cancel = app.cancel.clone();
    let done = match piped {
        Some(text) => conversation.say(app, asker, text, cancel).await.map(Outcome::Chatted),
        None => conversation.once(app, asker, message, cancel).await,
    };
    let closed = conversation.close(app, asker).await;
    let done = done?;
    closed?;
    Ok(done)
}

impl Conversation {
    /// Opens a session; nothing is written, and no model is looked for, before something is said.
    ///
    /// # Errors
    /// When the name is none, or a file cannot be read.
    pub fn open(app: &App, args: &Chat) -> Result<Self, CommandError> {
        let (name, view, kind) = if args.temp {
            let id = app.runtime.new_id::<loom::TreeId>()?;
            (Name::temporary(app.runtime.instance, id), ViewName::default(), SessionKind::Temporary)
        } else {
            let (name, view) = args.session.session.as_deref().map(place).transpose()?.unwrap_or_default();
            (name, view, SessionKind::Main)
        };
        let chosen = Chosen { workspace: app.workspace.key.clone(), name, kind };
        let (preset, attached) = (args.preset.clone(), args.files.iter());
        let attached = attached.map(|path| Attached::read(app, path)).collect::<Result<_, _>>()?;
        let (anew, manner, told, turn) = (args.new, None, None, None);
        let think = args.think.map(Think::wish);
        let told_thinking = None;
        Ok(Self {
            chosen,
            view,
            preset,
            manner,
            think,
            told_thinking,
            anew,
            reload: false,
            attached,
            told,
            turn,
        })
    }

    /// What it is called: `SESSION`, `SESSION:FORK` in a fork.
    pub fn name(&self) -> String {
        if self.chosen.kind == SessionKind::Temporary {
            return "temporary".to_owned();
        }
        if self.view == ViewName::default() {
            self.chosen.name.to_string()
        } else {
            format!("{}:{}", self.chosen.name, self.view)
        }
    }

    /// Whether it is forgotten when it is closed.
    pub fn is_temporary(&self) -> bool {
        self.chosen.kind == SessionKind::Temporary
    }

    /// Where the session stands; none before anything was said.
    ///
    /// # Errors
    /// As the store says.
    pub async fn entered(&self, app: &App, asker: &Asker) -> Result<Option<Entered>, CommandError> {
        if self.anew {
            return Ok(None);
        }
        let found = app.runtime.session(&asker.principal, &self.chosen).await?;
        Ok(found.and_then(|session| {
            let tree = session.tree()?;
            Some(Entered { session: session.id, name: session.name, tree, view: self.view.clone() })
        }))
    }

    /// How full the window was at the last request; none where no model was asked yet.
    ///
    /// # Errors
    /// As the store says.
    pub async fn zone(&self, app: &App, asker: &Asker) -> Result<Option<Zone>, CommandError> {
        let Some(entered) = self.entered(app, asker).await? else { return Ok(None) };
        let view = entered.view;
        let last = app.read(asker, entered.tree, move |rows| Ok(stand::stand(rows, &view)?.last));
        Ok(last.await?.map(|last| last.zone()))
    }

    /// Takes in an input line of a person: a text for the model, or a command. A turn that this began goes on until
    /// [`Self::next`] says that nothing joined it, and [`Self::end_turn`].
    ///
    /// # Errors
    /// Whatever keeps it from being done. A command that is not known is no text: nothing is sent.
    pub async fn take(
        &mut self,
        app: &App,
        asker: &Asker,
        line: &str,
        cancel: Cancel,
    ) -> Result<Slashed, CommandError> {
        match slash::parse(line) {
            Input::Say(text) => {
                App::require(asker, "chat", Right::Act)?;
                let text = app.masked(&text);
                self.say(app, asker, text, cancel)
                    .await
                    .map(|done| Slashed::Done(Box::new(Outcome::Chatted(done))))
            }
            Input::Command(command) => app.slash(asker, self, command, cancel).await,
            Input::Unknown { name, nearest } => Err(Input::refused(&name, nearest)),
            Input::Misused { name, arguments, why } => Err(Input::misused(name, arguments, why)),
        }
    }

    /// Takes in the one input line of a call that ends with it.
    async fn once(
        &mut self,
        app: &App,
        asker: &Asker,
        line: &str,
        cancel: Cancel,
    ) -> Result<Outcome, CommandError> {
        if let Input::Command(SlashCommand::Reload) = slash::parse(line) {
            return Err(CommandError::usage(
                "/reload holds for the next request of the conversation it is typed in, and this call ends here",
                "type it in `drawloom chat`; `/compact` has everything read anew, too",
            ));
        }
        match self.take(app, asker, line, cancel.clone()).await? {
            Slashed::Done(outcome) => Ok(*outcome),
            // Nothing is under way that it could wait for.
            Slashed::Queue(text) => self.say(app, asker, text, cancel).await.map(Outcome::Chatted),
            Slashed::Stop | Slashed::Quit => Ok(Done::outcome()),
            Slashed::Doctor => {
                Err(CommandError::usage("/doctor is not available here", "run `drawloom doctor`"))
            }
        }
    }

    /// Says something and waits for the answer: text, whatever it looks like. A session that another process holds
    /// is spoken to through it.
    ///
    /// # Errors
    /// What kept it from being said or answered. What was said or received until then is kept.
    pub async fn say(
        &mut self,
        app: &App,
        asker: &Asker,
        text: String,
        cancel: Cancel,
    ) -> Result<Chatted, CommandError> {
        if text.trim().is_empty() {
            return Err(CommandError::usage("there is nothing to say", "give a text that is not empty"));
        }
        self.read_files(app);
        let manner = self.manner(app)?.clone();
        self.admit_files(manner.model.info())?;
        // Memory, cards and files fail open: what could not be read is said, and the turn goes on.
        for (name, why) in &manner.bootstrap.left_out {
            app.talk.note(&format!("{name} is left out: {why}"));
        }
        if let Some(about) = app.models.about(manner.model.info())
            && self.entered(app, asker).await?.is_none()
        {
            app.talk.note(&about);
        }
        let entered = app.runtime.enter(&asker.principal, &self.chosen, self.anew, &text).await?;
        let entered = Entered { view: self.view.clone(), ..entered };
        self.anew = false;
        let files = self.attached.iter();
        let mut texts: Vec<NewText> = files.clone().map(|file| file.text.clone()).collect();
        texts.push(NewText::owner(text.clone(), Some(Role::User)));
        let media = files.filter_map(|file| Some(file.medium.as_ref()?.bytes.clone())).collect();
        // Only words are handed over; with files the session is waited for.
        let words = self.attached.is_empty().then_some(text.as_str());
        let done = self.turn(app, asker, &entered, Said::New { texts, media }, words, cancel).await?;
        self.attached.clear();
        self.ended(app, asker, &entered, done).await
    }

    /// Says something that was said before in other words, and has it answered anew.
    ///
    /// # Errors
    /// As [`Self::say`]; also when nothing was said there.
    pub(crate) async fn edit(
        &mut self,
        app: &App,
        asker: &Asker,
        node: Option<&str>,
        text: String,
        cancel: Cancel,
    ) -> Result<Chatted, CommandError> {
        self.read_files(app);
        let missing = || {
            CommandError::not_found(
                "text of yours",
                "to edit",
                "say something first, or name a node: /edit @NODE TEXT",
            )
        };
        let entered = self.entered(app, asker).await?.ok_or_else(missing)?;
        let of = match node {
            Some(node) => {
                let at = app.node_anywhere(asker, Some(entered.tree), node).await?.position;
                let position = app.read(asker, entered.tree, move |rows| rows.position(at)).await?;
                position.filter(stand::is_said).map(|position| position.id)
            }
            None => {
                let view = entered.view.clone();
                app.read(asker, entered.tree, move |rows| stand::said_last(rows, &view)).await?
            }
        };
        let said = Said::Instead { of: of.ok_or_else(missing)?, text };
        let done = self.turn(app, asker, &entered, said, None, cancel).await?;
        self.ended(app, asker, &entered, done).await
    }

    /// Reads the files that stand above the conversation: what of them is sent, and when, is decided with the request.
    fn read_files(&mut self, app: &App) {
        let read = self.bootstrap(app);
        if let Some(manner) = &mut self.manner {
            manner.bootstrap = read;
        }
    }

    /// One turn, once the session is free. `words` may be handed to the process that has it instead.
    async fn turn(
        &mut self,
        app: &App,
        asker: &Asker,
        entered: &Entered,
        said: Said,
        words: Option<&str>,
        cancel: Cancel,
    ) -> Result<Either, CommandError> {
        self.finish(app).await;
        let (runtime, who, manner) = (&app.runtime, &asker.principal, self.manner(app)?.clone());
        self.tell_place(app, asker, entered, manner.model.info()).await?;
        self.tell_thinking(app, manner.model.info());
        let mut waits_since = Instant::now();
        loop {
            let (said, cancel) = (said.clone(), cancel.clone());
            let begun =
                Turn::begin(runtime, who, entered, &manner, said, &app.runtime.inputs, cancel.clone()).await;
            let (instance, by) = match begun {
                Ok((mut turn, kept)) => {
                    let turned = turn.answer(kept).await;
                    self.reload &= turned.reply.is_err();
                    self.turn = Some((turn, entered.clone()));
                    return Ok(Either::Here(Box::new(turned)));
                }
                Err(AgentError::Busy { instance, by }) => (instance, by),
                Err(error) => return Err(error.into()),
            };
            let elsewhere = instance.is_some_and(|instance| instance != app.runtime.instance);
            if let (true, Some(text)) = (elsewhere, words) {
                let mut stopped = cancel.clone();
                let handed = tokio::select! {
                    handed = hand_over(runtime, who, entered, text) => handed?,
                    () = stopped.cancelled() => return Err(left(&by)),
                };
                match handed {
                    HandedOver::Answered(answer) => return Ok(Either::Elsewhere(answer)),
                    HandedOver::Cut { said } => {
                        return Err(CommandError::new(
                            "interrupted",
                            5,
                            format!("the process that answered ended; what you said is kept as node {said}"),
                            "say it again, or go on: an answer that had begun is kept as well",
                        ));
                    }
                    // That turn has ended: it is another one that is waited for from now on.
                    HandedOver::NotTaken => waits_since = Instant::now(),
                    HandedOver::NotHeard => {}
                }
            }
            if waits_since.elapsed() > PATIENCE || cancel.is_cancelled() {
                return Err(AgentError::Busy { instance, by }.into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Says, before the first request of a session that leaves this machine, that it does (spec: agent §2 *Place*).
    async fn tell_place(
        &mut self,
        app: &App,
        asker: &Asker,
        entered: &Entered,
        info: &model::ModelInfo,
    ) -> Result<(), CommandError> {
        let told = Some((entered.name.clone(), info.provider.clone()));
        if info.place == model::Place::Local || self.told == told {
            return Ok(());
        }
        let (view, provider) = (entered.view.clone(), info.provider.clone());
        let before = app.read(asker, entered.tree, move |rows| {
            let last = stand::stand(rows, &view)?.last.map(|last| last.manifest.model);
            Ok(last.is_some_and(|model| model.place == model::Place::Remote && model.provider == provider))
        });
        if !before.await? {
            app.talk.note(&departure::notice("session", info));
        }
        self.told = told;
        Ok(())
    }

    fn result(&self, app: &App, entered: &Entered, done: Either) -> Result<Chatted, CommandError> {
        match done {
            Either::Here(turned) => self.answered(app, entered, *turned),
            Either::Elsewhere(answer) => self.heard(entered, *answer),
        }
    }

    fn answered(&self, app: &App, entered: &Entered, turned: Turned) -> Result<Chatted, CommandError> {
        let said = turned.said;
        let Replied { answer, manifest, usage, reusable, share, measured, zone, error } = turned.reply?;
        match (answer, error) {
            (Some(answer), None) => Ok(Chatted {
                media: answer
                    .media
                    .iter()
                    .filter_map(|blob| app.runtime.shown(*blob))
                    .map(MediaShown::of)
                    .collect(),
                session: self.name(),
                tree: entered.tree,
                node: answer.id,
                short_id: answer.short_id,
                said,
                text: answer.text,
                usage: UsageShown::of(usage),
                reusable,
                share,
                measured,
                zone,
                manifest: Some(manifest),
                finish: answer.finish,
                streamed: app.talk.shows_answers(),
            }),
            (Some(answer), Some(error)) => {
                let mut error = CommandError::from(error);
                error.message =
                    format!("{}: what was received is kept as node {}", error.message, answer.short_id);
                Err(error)
            }
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(AgentError::Empty.into()),
        }
    }

    /// An answer that another process gave.
    fn heard(&self, entered: &Entered, answer: Answer) -> Result<Chatted, CommandError> {
        let failed = |why: Option<String>| {
            let why = why.unwrap_or_else(|| "there was no answer".to_owned());
            CommandError::new("model", 5, why, "what you said is kept; ask again")
        };
        let Some((node, short_id, text, finish)) = answer.node else { return Err(failed(answer.error)) };
        if answer.error.is_some() {
            return Err(failed(answer.error));
        }
        Ok(Chatted {
            session: self.name(),
            tree: entered.tree,
            node,
            short_id,
            said: answer.said,
            text,
            media: Vec::new(),
            usage: UsageShown::of(answer.usage),
            reusable: None,
            share: answer.share,
            measured: answer.usage.is_some(),
            zone: Zone::of(answer.share),
            manifest: answer.manifest,
            finish,
            streamed: false,
        })
    }

    /// Closes it. A temporary one is forgotten with everything said in it.
    ///
    /// # Errors
    /// As the store says.
    pub async fn close(mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        self.finish(app).await;
        if self.chosen.kind == SessionKind::Temporary {
            app.runtime.forget_session(&asker.principal, &self.chosen).await?;
        }
        Ok(())
    }
}

/// Nobody waits any longer for an answer of the process that has the session.
fn left(by: &str) -> CommandError {
    CommandError::new(
        "cancelled",
        130,
        format!("{by} has the session and was not waited for"),
        "what you said may still be answered there; `drawloom tree show` has it then",
    )
}

/// A turn that was done here, or by the process that has the session.
enum Either {
    Here(Box<Turned>),
    Elsewhere(Box<Answer>),
}

/// A session and a view of its tree, from `SESSION` or `SESSION:FORK`.
fn place(named: &str) -> Result<(Name, ViewName), CommandError> {
    let Some((session, fork)) = named.split_once(':') else {
        return Ok((Name::new(named)?, ViewName::default()));
    };
    Ok((Name::new(session)?, fork_name(fork)?))
}

/// A name of a fork: one a session could have, too.
fn fork_name(name: &str) -> Result<ViewName, CommandError> {
    let name = Name::new(name)?;
    name.as_str().parse().map_err(|_| AgentError::Name(name.to_string()).into())
}
