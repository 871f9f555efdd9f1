//! Conversations: what is said in a session, by whom it is answered, and the answer.

mod sessions;

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::handover::{Answer, HandedOver, hand_over};
use agent::session::Name;
use agent::{AgentError, Chosen, Entered, Manner, Replied, Turned};
use context::Zone;
use loom::plan::NewText;
use loom::{Author, Block, Role, Trust};
use model::{Cancel, Params};
use store::SessionKind;

use crate::app::App;
use crate::args::chat::Chat;
use crate::error::CommandError;
use crate::generate;
use crate::results::Outcome;
use crate::results::chat::Chatted;
use crate::results::tree::UsageShown;
use crate::rights::Asker;

pub(crate) use sessions::sessions;

/// How long a busy session is waited for whose process takes no messages.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// A conversation that is open.
pub struct Conversation {
    chosen: Chosen,
    manner: Manner,
    /// Whether the next thing said begins a new tree.
    anew: bool,
}

/// `chat -m`.
pub(crate) async fn chat(app: &App, asker: &Asker, args: Chat) -> Result<Outcome, CommandError> {
    let Some(message) = &args.message else {
        return Err(CommandError::usage(
            "there is nothing to say",
            "give -m TEXT, or run `drawloom chat` at a terminal",
        ));
    };
    let text = app.text(message)?;
    let mut conversation = Conversation::open(app, &args)?;
    let files = conversation.attachments(app, &args)?;
    let done = conversation.say(app, asker, text, files, app.cancel.clone()).await;
    let closed = conversation.close(app, asker).await;
    let done = done?;
    closed?;
    Ok(Outcome::Chatted(done))
}

impl Conversation {
    /// Opens a session; nothing is written before something is said.
    ///
    /// # Errors
    /// When the name is none, or no model can be had.
    pub fn open(app: &App, args: &Chat) -> Result<Self, CommandError> {
        let (name, kind) = if args.temp {
            let id = app.desk().new_id::<loom::TreeId>()?;
            (Name::new(&format!("temp-{id}"))?, SessionKind::Temporary)
        } else {
            let name = args.session.session.as_deref().map(Name::new).transpose()?.unwrap_or_default();
            (name, SessionKind::Main)
        };
        let chosen = Chosen { workspace: app.workspace.key.clone(), name, kind };
        Ok(Self { chosen, manner: manner(app, args.preset.as_deref(), kind)?, anew: args.new })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        self.chosen.name.as_str()
    }

    /// Which session it is.
    pub const fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// The model that is asked.
    pub fn model(&self) -> &model::ModelInfo {
        self.manner.model.info()
    }

    /// Has the next thing said begin a new tree.
    pub const fn begin_anew(&mut self) {
        self.anew = true;
    }

    /// Goes on in another session of the workspace.
    ///
    /// # Errors
    /// When that is no name.
    pub fn switch(&mut self, name: &str) -> Result<(), CommandError> {
        self.chosen = Chosen { name: Name::new(name)?, ..self.chosen.clone() };
        self.anew = false;
        Ok(())
    }

    /// Asks another model from now on.
    ///
    /// # Errors
    /// When it cannot be had.
    pub fn ask_model(&mut self, app: &App, name: &str) -> Result<(), CommandError> {
        self.manner.model = app.models.find(Some(name))?;
        Ok(())
    }

    /// Where the session stands; none before anything was said.
    ///
    /// # Errors
    /// As the store says.
    pub async fn entered(&self, app: &App, asker: &Asker) -> Result<Option<Entered>, CommandError> {
        if self.anew {
            return Ok(None);
        }
        let found = app.desk().session(&asker.principal, &self.chosen).await?;
        Ok(found.and_then(|session| {
            let tree = session.tree()?;
            Some(Entered { session: session.id, name: session.name, tree, view: loom::ViewName::default() })
        }))
    }

    /// The files of a command as texts to send along.
    fn attachments(&self, app: &App, args: &Chat) -> Result<Vec<NewText>, CommandError> {
        let attached = args.files.iter().map(|path| {
            let text = app.file_text(path)?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            let fence = text::frame::fence(&text);
            let text = format!("File {}:\n{fence}\n{text}\n{fence}", text::frame::plain_name(&name));
            Ok(NewText {
                content: vec![Block::text(text)],
                author: Author::owner(),
                role: Some(Role::User),
                // What stands in a file is not the owner's word (spec: security §3).
                trust: Trust::Outside,
            })
        });
        attached.collect()
    }

    /// Says something and waits for the answer. A session that another process holds is spoken to through it.
    ///
    /// # Errors
    /// What kept it from being said or answered. What was said or received until then is kept.
    pub async fn say(
        &mut self,
        app: &App,
        asker: &Asker,
        text: String,
        attached: Vec<NewText>,
        cancel: Cancel,
    ) -> Result<Chatted, CommandError> {
        if text.trim().is_empty() {
            return Err(CommandError::usage("there is nothing to say", "give a text that is not empty"));
        }
        let (desk, who) = (app.desk(), &asker.principal);
        // Memory, cards and files fail open: what could not be read is said, and the turn goes on.
        for (name, why) in &self.manner.bootstrap.left_out {
            app.talk.note(&format!("{name} is left out: {why}"));
        }
        if let Some(about) = app.models.about(self.model())
            && self.entered(app, asker).await?.is_none()
        {
            app.talk.note(&about);
        }
        let entered = desk.enter(who, &self.chosen, self.anew, &text).await?;
        self.anew = false;
        let mut waits_since = Instant::now();
        loop {
            let mut said = attached.clone();
            said.push(NewText::owner(text.clone(), Some(Role::User)));
            let turned =
                agent::turn(&desk, who, &entered, &self.manner, said, &app.doors, cancel.clone()).await;
            let (instance, by) = match turned {
                Ok(turned) => return self.answered(app, &entered, turned),
                Err(AgentError::Busy { instance, by }) => (instance, by),
                Err(error) => return Err(error.into()),
            };
            // Only words are handed over; with files the session is waited for.
            if instance.is_some_and(|instance| instance != app.instance) && attached.is_empty() {
                let mut stopped = cancel.clone();
                let handed = tokio::select! {
                    handed = hand_over(&desk, who, &entered, &text) => handed?,
                    () = stopped.cancelled() => return Err(left(&by)),
                };
                match handed {
                    HandedOver::Answered(answer) => return self.heard(&entered, *answer),
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
            if waits_since.elapsed() > PATIENCE {
                return Err(AgentError::Busy { instance, by }.into());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn answered(&self, app: &App, entered: &Entered, turned: Turned) -> Result<Chatted, CommandError> {
        let said = turned.said;
        let Replied { answer, manifest, usage, share, zone, error } = turned.reply?;
        match (answer, error) {
            (Some(answer), None) => Ok(Chatted {
                session: entered.name.clone(),
                tree: entered.tree,
                node: answer.id,
                short_id: answer.short_id,
                said,
                text: answer.text,
                usage: UsageShown::of(usage),
                share,
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
            session: entered.name.clone(),
            tree: entered.tree,
            node,
            short_id,
            said: answer.said,
            text,
            usage: UsageShown::of(answer.usage),
            share: answer.share,
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
    pub async fn close(self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        if self.chosen.kind == SessionKind::Temporary {
            app.desk().forget_session(&asker.principal, &self.chosen).await?;
        }
        Ok(())
    }
}

/// Nobody waits any longer for an answer of the process that has the session.
fn left(by: &str) -> CommandError {
    CommandError::new(
        "interrupted",
        130,
        format!("{by} has the session and was not waited for"),
        "what you said may still be answered there; `drawloom tree show` has it then",
    )
}

fn manner(app: &App, preset: Option<&str>, kind: SessionKind) -> Result<Manner, CommandError> {
    let preset = generate::preset(app, preset)?;
    let name = app.settings.model.as_deref().or(preset.model.as_deref());
    let workspace = &app.workspace;
    let bootstrap = agent::boot::bootstrap(workspace.root.as_ref(), &workspace.accepted, kind, &app.masker);
    Ok(Manner {
        model: app.models.find(name)?,
        agent: "main".to_owned(),
        params: Params { n: 1, ..generate::params(&preset, &crate::args::tree::Sampling::default()) },
        bootstrap: Arc::new(bootstrap),
    })
}
