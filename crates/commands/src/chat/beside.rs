//! What is said while a turn runs (spec: agent §1 *Steering*).
//!
//! Whoever sits at a conversation runs its turn and types beside it. A text goes through the same door as what other
//! processes say, and joins the turn at its next model call; `/queue TEXT` and other commands wait until the turn is
//! done; `/stop` stops it. What waits and was not queued is not overtaken by what is typed behind it.

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
    /// Whether a line waits that was not queued on purpose: what is typed behind it comes after it.
    behind: bool,
}

/// What becomes of a line that was typed beside a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steered {
    /// It joins the turn.
    Joins,
    /// It is this input line of the time after the turn, and what is typed later comes behind it.
    Waits(String),
    /// The same, but it was queued: what is typed later may join the turn before.
    Queued(String),
    /// The turn is to be stopped.
    Stop,
}

impl Beside {
    /// Takes in an input line of a person. This is where its right is checked.
    ///
    /// # Errors
    /// `denied`; also what is neither text nor a command, which is not sent.
    pub async fn take(&mut self, app: &App, asker: &Asker, line: &str) -> Result<Steered, CommandError> {
        let command = match slash::parse(line) {
            Input::Say(text) => {
                App::require(asker, "chat", Right::Act)?;
                return Ok(match self.joins(app, asker, app.masked(&text)).await {
                    true => Steered::Joins,
                    false => self.waits(line),
                });
            }
            Input::Command(command) => command,
            Input::Unknown { name, nearest } => return Err(Input::refused(&name, nearest)),
            Input::Misused { name, arguments, why } => return Err(Input::misused(name, arguments, why)),
        };
        let row = command.row();
        App::require(asker, &format!("/{}", row.name), row.right)?;
        Ok(match command {
            SlashCommand::Stop => Steered::Stop,
            SlashCommand::Queue { text } => Steered::Queued(slash::as_text(&app.masked(&text))),
            _ => self.waits(line),
        })
    }

    fn waits(&mut self, line: &str) -> Steered {
        self.behind = true;
        Steered::Waits(line.to_owned())
    }

    async fn joins(&self, app: &App, asker: &Asker, text: String) -> bool {
        if self.behind || text.trim().is_empty() {
            return false;
        }
        // Where the session cannot be read, what is said waits for a turn that says so.
        let session = app.runtime.session(&asker.principal, &self.chosen).await.ok().flatten();
        session.is_some_and(|session| app.runtime.inputs.join(&session.id, &self.view, text).is_ok())
    }
}

impl Conversation {
    /// What takes in lines while [`Self::take`] and what follows it are waited for. `behind` says that a line waits
    /// already, which was not queued on purpose.
    pub fn beside(&self, behind: bool) -> Beside {
        Beside { chosen: self.chosen.clone(), view: self.view.clone(), behind }
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
        self.ended(app, &Asker::owner(), &entered, Either::Here(Box::new(turned))).await
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
