//! What is typed while a turn runs (spec: agent §1 *Steering*).
//!
//! A text joins the turn at its next model call, `/queue TEXT` is said once the turn is done, `/stop` stops it,
//! `/approve` and `/deny` answer what it asks, `/plan on` holds from its next call on, and a command that only shows something
//! answers beside it; other commands, and a text that names a skill, wait until the turn is done. A text is not said before
//! what waits and was not queued.

use std::collections::HashMap;

use agent::SayId;
use agent::session::{FollowUp, Handle, SessionOperation};

use super::Conversation;
use crate::app::App;
use crate::custom_commands::CustomCommands;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::rights::{Asker, Right};
use crate::skills;
use crate::slash::{self, Input, SlashCommand};

/// Takes in what is typed while a turn is shown.
pub struct Steering {
    /// The task of the turn; none before there is one.
    session: Option<Handle>,
    /// The conversation without its turn, for what does not wait for it.
    beside: Box<Conversation>,
    /// Plan mode as it was set meanwhile.
    plan: Option<bool>,
    /// Whether plan mode was on when the turn began, which it keeps to its end.
    began_in_plan_mode: bool,
    /// Whether a line waits: what is typed behind it comes after it.
    behind: bool,
}

/// What becomes of a line that was typed while a turn runs.
#[derive(Debug, Clone, PartialEq)]
pub enum SteeringOutcome {
    /// This text joins the turn.
    Joins(String),
    /// This text is said once the turn is done.
    Queued(String),
    /// Input line for the time after the turn; what is typed later comes behind it.
    Waits(String),
    /// The turn is to be stopped.
    Stop,
    /// A question of running work is answered.
    Answered,
    /// This command only shows something: it answers [beside](Steering::beside) the turn.
    Shows(SlashCommand),
    /// What was asked is done, with this outcome.
    Done(Box<CommandOutcome>),
}

impl Steering {
    /// Takes in an input line of a person. This is where its right is checked.
    ///
    /// # Errors
    /// `denied`; also what is neither text nor a command, which is not sent.
    pub async fn take(
        &mut self,
        app: &App,
        asker: &Asker,
        line: &str,
    ) -> Result<SteeringOutcome, CommandError> {
        let command = match slash::parse(line) {
            Input::Say(text) => {
                App::require(asker, "chat", Right::Act)?;
                // A skill is followed from a turn's beginning.
                if skills::are_named_in(app, &text).await {
                    return Ok(self.waits(line));
                }
                let text = app.masked(&text);
                let sent = self.send((app, asker), text.clone(), SessionOperation::Steer).await?;
                return Ok(if sent { SteeringOutcome::Joins(text) } else { self.waits(line) });
            }
            Input::Command(command) => command,
            Input::Unknown { name, .. } => {
                CustomCommands::read(app).await.require(&name)?;
                return Ok(self.waits(line));
            }
            Input::Misused { name, arguments, why } => return Err(Input::misused(name, arguments, why)),
        };
        let row = command.row();
        App::require(asker, &format!("/{}", row.name), row.right)?;
        Ok(match command {
            SlashCommand::Stop => {
                self.stop().await;
                SteeringOutcome::Stop
            }
            // Before the turn goes on, which waits for it.
            command @ (SlashCommand::Approve { .. } | SlashCommand::Deny { .. }) => {
                app.answer(asker, self.session.as_ref().map(Handle::id), command).await?;
                SteeringOutcome::Answered
            }
            SlashCommand::Queue { text } if skills::are_named_in(app, &text).await => {
                self.waits(&slash::as_text(&text))
            }
            SlashCommand::Queue { text } => {
                let text = app.masked(&text);
                if self.send((app, asker), text.clone(), SessionOperation::Queue).await? {
                    SteeringOutcome::Queued(text)
                } else {
                    self.waits(&slash::as_text(&text))
                }
            }
            SlashCommand::Plan { plan: Some(plan) } if self.session.is_some() => {
                SteeringOutcome::Done(Box::new(self.set_plan(app, asker, plan).await?))
            }
            command if command.only_shows() && self.session.is_some() => {
                self.beside.catch_up(app, asker).await?;
                SteeringOutcome::Shows(command)
            }
            _ => self.waits(line),
        })
    }

    /// Writes plan mode with the session: the turn reads it before each call.
    async fn set_plan(
        &mut self,
        app: &App,
        asker: &Asker,
        plan: bool,
    ) -> Result<CommandOutcome, CommandError> {
        // What another process set meanwhile is not what stands here.
        self.beside.catch_up(app, asker).await?;
        let shown = self.beside.set_plan(app, asker, Some(plan)).await?;
        if self.began_in_plan_mode && !plan {
            app.frontend.note("the turn that runs began in plan mode and keeps it to its end");
        }
        self.plan = Some(plan);
        Ok(CommandOutcome::Plan(shown))
    }

    /// The conversation without its turn.
    pub fn beside(&self) -> Conversation {
        self.beside.beside()
    }

    pub async fn stop(&self) {
        if let Some(session) = &self.session {
            // One that has ended needs no stop.
            let _ = session.send(SessionOperation::Stop).await;
        }
    }

    /// Stops the turn, and all that waits for its end.
    pub async fn end(&self) {
        self.stop().await;
        if let Some(session) = &self.session {
            let _ = session.send(SessionOperation::Close).await;
        }
    }

    fn waits(&mut self, line: &str) -> SteeringOutcome {
        self.behind = true;
        SteeringOutcome::Waits(line.to_owned())
    }

    /// Sends a text to the task, unless it has to wait behind a line.
    async fn send(
        &self,
        (app, asker): (&App, &Asker),
        text: String,
        operation: fn(FollowUp) -> SessionOperation,
    ) -> Result<bool, CommandError> {
        let Some(session) = self.session.as_ref().filter(|_| !self.behind && !text.trim().is_empty()) else {
            return Ok(false);
        };
        app.fits_node("the text", &text, false)?;
        let key: SayId = app.runtime.new_id()?;
        let (author, trust) = (asker.author.clone(), asker.trust);
        let text = FollowUp { key, text, view: self.beside.view.clone(), author, trust };
        Ok(session.send(operation(text)).await.is_ok())
    }
}

impl Conversation {
    /// What takes in lines while a turn is shown. `behind` says that a line waits already.
    pub fn steering(&self, behind: bool) -> Steering {
        let session = self.turn.as_ref().map(|turn| turn.session.clone());
        // What is typed while several answers come is about none of them.
        let behind = behind || self.again.is_some();
        let began_in_plan_mode = self.turn.as_ref().is_some_and(|turn| turn.began_in_plan_mode);
        Steering { session, beside: Box::new(self.beside()), plan: None, began_in_plan_mode, behind }
    }

    /// Takes over what was set while a turn was shown.
    pub fn follow(&mut self, steering: &Steering) {
        if let Some(plan) = steering.plan {
            self.hold_plan(plan);
            self.seen = self.seen.take().map(|seen| seen.with_plan(plan));
        }
    }

    /// Copy of this conversation without the turn that is shown, and without a new tree: that begins with the turn.
    /// What other processes set is told once, by the conversation itself.
    fn beside(&self) -> Self {
        Self {
            chosen: self.chosen.clone(),
            view: self.view.clone(),
            config: self.config.clone(),
            tools: self.tools.clone(),
            skills: self.skills.clone(),
            think: self.think,
            agent: self.agent.clone(),
            agent_system: self.agent_system.clone(),
            system: self.system.clone(),
            plan: self.plan,
            plan_flag: self.plan_flag,
            turn_flags: self.turn_flags.clone(),
            folders: self.folders.clone(),
            kept_folders: self.kept_folders.clone(),
            allowed: self.allowed.clone(),
            sampling: self.sampling.clone(),
            sampling_flags: self.sampling_flags.clone(),
            told_thinking: self.told_thinking.clone(),
            anew: false,
            reload: self.reload,
            attached: self.attached.clone(),
            told: self.told.clone(),
            streams: self.streams,
            turn: None,
            kept_model: self.kept_model.clone(),
            kept_thinking: self.kept_thinking,
            is_damaged: self.is_damaged,
            seen: self.seen.clone(),
            is_beside: true,
            think_flag: self.think_flag,
            newer: self.newer,
            left: HashMap::new(),
            again: None,
            // It is of a call that says one thing.
            schema: None,
            is_single: self.is_single(),
        }
    }
}
