//! What is typed while a turn runs (spec: agent §1 *Steering*).
//!
//! A text joins the turn at its next model call, `/queue TEXT` is said once the turn is done, `/stop` stops it,
//! `/approve` and `/deny` answer what it asks; other commands wait until the turn is done. What waits and was not queued is not overtaken by what is typed behind it.

use agent::SayId;
use agent::session::{FollowUp, Handle, SessionOperation};
use loom::ViewName;

use super::Conversation;
use crate::app::App;
use crate::error::CommandError;
use crate::rights::{Asker, Right};
use crate::slash::{self, Input, SlashCommand};

/// Takes in what is typed while a turn is shown.
#[derive(Debug, Clone)]
pub struct Steering {
    /// The task of the turn; none before there is one.
    session: Option<Handle>,
    view: ViewName,
    /// Whether a line waits: what is typed behind it comes after it.
    behind: bool,
}

/// What becomes of a line that was typed while a turn runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteeringOutcome {
    /// This text joins the turn.
    Joins(String),
    /// This text is said once the turn is done.
    Queued(String),
    /// It is this input line of the time after the turn, and what is typed later comes behind it.
    Waits(String),
    /// The turn is to be stopped.
    Stop,
    /// A question of running work is answered.
    Answered,
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
                let text = app.masked(&text);
                let sent = self.send((app, asker), text.clone(), SessionOperation::Steer).await?;
                return Ok(if sent { SteeringOutcome::Joins(text) } else { self.waits(line) });
            }
            Input::Command(command) => command,
            Input::Unknown { name, nearest } => return Err(Input::refused(&name, nearest)),
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
            SlashCommand::Queue { text } => {
                let text = app.masked(&text);
                if self.send((app, asker), text.clone(), SessionOperation::Queue).await? {
                    SteeringOutcome::Queued(text)
                } else {
                    self.waits(&slash::as_text(&text))
                }
            }
            _ => self.waits(line),
        })
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
        let text = FollowUp { key, text, view: self.view.clone(), author, trust };
        Ok(session.send(operation(text)).await.is_ok())
    }
}

impl Conversation {
    /// What takes in lines while a turn is shown. `behind` says that a line waits already.
    pub fn steering(&self, behind: bool) -> Steering {
        let session = self.turn.as_ref().map(|turn| turn.session.clone());
        // What is typed while several answers come is about none of them.
        Steering { session, view: self.view.clone(), behind: behind || self.again.is_some() }
    }
}
