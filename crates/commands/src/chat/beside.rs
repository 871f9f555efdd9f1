//! What is said while a turn runs (spec: agent §1 *Steering*).
//!
//! Whoever sits at a conversation runs its turn and types beside it. A text goes through the same door as what other
//! processes say, and joins the turn at its next model call; `/queue TEXT` and other commands wait until the turn is
//! done; `/stop` stops it.

use agent::{Chosen, Kept};
use loom::ViewName;

use super::{Conversation, Either};
use crate::app::App;
use crate::error::CommandError;
use crate::results::chat::Chatted;
use crate::rights::{Asker, Right};
use crate::slash::{self, Input, SlashCommand};

/// Takes in what is typed beside a turn.
#[derive(Debug, Clone)]
pub struct Beside {
    chosen: Chosen,
    view: ViewName,
    /// Whether a command waits: what is typed behind it is meant for afterwards.
    command_waits: bool,
}

/// What becomes of a line that was typed beside a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steered {
    /// It joins the turn.
    Joins,
    /// It is this input line of the time after the turn.
    Waits(String),
    /// The turn is to be stopped.
    Stop,
}

impl Beside {
    /// An input line waits for the end of the turn already.
    pub fn behind(&mut self, line: &str) {
        self.command_waits |= matches!(slash::parse(line), Input::Command(_));
    }

    /// Takes in an input line of a person. This is where its right is checked.
    ///
    /// # Errors
    /// `denied`; also what is neither text nor a command, which is not sent.
    pub async fn take(&mut self, app: &App, asker: &Asker, line: &str) -> Result<Steered, CommandError> {
        let command = match slash::parse(line) {
            Input::Say(text) => {
                App::require(asker, "chat", Right::Act)?;
                return Ok(self.say(app, asker, line, app.masked(&text)).await);
            }
            Input::Command(command) => command,
            Input::Unknown { name, nearest } => return Err(Input::refused(&name, nearest)),
            Input::Misused { name, arguments, why } => return Err(Input::misused(name, arguments, why)),
        };
        let row = command.row();
        App::require(asker, &format!("/{}", row.name), row.right)?;
        Ok(match command {
            SlashCommand::Stop => Steered::Stop,
            SlashCommand::Queue { text } => Steered::Waits(slash::as_text(&app.masked(&text))),
            _ => {
                self.behind(line);
                Steered::Waits(line.to_owned())
            }
        })
    }

    async fn say(&self, app: &App, asker: &Asker, line: &str, text: String) -> Steered {
        // Where the session cannot be read, what is said waits for a turn that says so.
        let session = app.desk().session(&asker.principal, &self.chosen).await.ok().flatten();
        let joined = session.filter(|_| !self.command_waits && !text.trim().is_empty());
        match joined.map(|session| app.doors.join(&session.id, &self.view, text)) {
            Some(Ok(())) => Steered::Joins,
            _ => Steered::Waits(line.to_owned()),
        }
    }
}

impl Conversation {
    /// What takes in lines while [`Self::take`] and what follows it are waited for.
    pub fn beside(&self) -> Beside {
        Beside { chosen: self.chosen.clone(), view: self.view.clone(), command_waits: false }
    }

    /// What joined the turn under way, and is answered next; none when the turn is at its end, or there is none.
    pub async fn next(&mut self) -> Option<Kept> {
        self.turn.as_mut()?.0.next().await
    }

    /// Answers what joined the turn.
    ///
    /// # Errors
    /// As [`Self::say`].
    pub async fn answer(&mut self, app: &App, kept: Kept) -> Result<Chatted, CommandError> {
        let Some((turn, entered)) = self.turn.as_mut() else {
            return Err(CommandError::new("internal", 6, "the turn has ended", "say it again"));
        };
        let turned = turn.answer(kept).await;
        let entered = entered.clone();
        self.result(app, &entered, Either::Here(Box::new(turned)))
    }

    /// Ends the turn under way: its session is free. Returns what joined and was not said, as it was stopped.
    pub async fn end_turn(&mut self) -> Vec<String> {
        match self.turn.take() {
            Some((turn, _)) => turn.end().await,
            None => Vec::new(),
        }
    }

    /// Ends the turn under way, with all that other processes said meanwhile answered.
    pub(super) async fn finish(&mut self, app: &App) {
        if let Some((turn, _)) = self.turn.as_mut() {
            turn.unheard();
        }
        while let Some(kept) = self.next().await {
            // Whoever said it has heard how it went.
            let _ = self.answer(app, kept).await;
        }
        self.end_turn().await;
    }
}
