//! Asking again what was said: for its answer, for one more, or for several to choose from.

use ::tools::TurnSkills;
use agent::OpenedSession;
use agent::session::{TreeChoice, TurnInput};
use loom::{Op, PositionId, Role, path, render};
use model::ModelPlace;

use super::{Conversation, TurnStep, position};
use crate::app::App;
use crate::error::CommandError;
use crate::generate;
use crate::results::chat::Chatted;
use crate::rights::Asker;
use crate::tree;

/// Answers that are asked for one after another.
pub(super) struct PendingRegenerations {
    /// What is answered.
    question: PositionId,
    /// How many are asked for.
    number: u32,
    /// How many were not asked for yet.
    left: u32,
    answers: Vec<Chatted>,
}

impl Conversation {
    /// Asks again what was said last: it gets its answer, or one more.
    ///
    /// # Errors
    /// As [`Self::say`]; also when nothing was said.
    pub(crate) async fn retry(&mut self, app: &App, asker: &Asker) -> Result<(), CommandError> {
        let entered = self.entered(app, asker).await?.ok_or_else(nothing_said)?;
        let view = entered.view.clone();
        let of = app.read(asker, entered.tree, move |rows| position::said_last(rows, &view)).await?;
        self.ask_again(app, asker, of.ok_or_else(nothing_said)?).await
    }

    /// Asks for so many more answers beside the one the conversation is at, one after another.
    ///
    /// # Errors
    /// As [`Self::say`]; also when the conversation is not at an answer.
    pub(crate) async fn regenerate(
        &mut self,
        app: &App,
        asker: &Asker,
        number: u32,
    ) -> Result<(), CommandError> {
        let hint = "/retry asks your last message";
        let missing = || CommandError::not_found("answer", "to ask for again here", hint);
        let entered = self.entered(app, asker).await?.ok_or_else(missing)?;
        let view = entered.view.clone();
        let question = app
            .read(asker, entered.tree, move |rows| {
                let tip = path::position(rows, render::tip(rows, &view)?)?;
                let is_answer = tip.role == Some(Role::Assistant);
                if is_answer { position::said_last(rows, &view) } else { Ok(None) }
            })
            .await?;
        let question = question.ok_or_else(missing)?;
        self.confirm_tokens(app, asker, (&entered, question), number).await?;
        self.ask_again(app, asker, question).await?;
        let (left, answers) = (number - 1, Vec::new());
        self.again = (number > 1).then_some(PendingRegenerations { question, number, left, answers });
        Ok(())
    }

    async fn ask_again(&mut self, app: &App, asker: &Asker, of: PositionId) -> Result<(), CommandError> {
        self.read_files(app).await;
        let entered = self.entered(app, asker).await?.ok_or_else(nothing_said)?;
        self.begin_turn(
            app,
            asker,
            entered,
            TreeChoice::Current,
            (TurnInput::Again { of }, TurnSkills::default()),
        )
        .await
    }

    /// Shows what many tokens of a model elsewhere would come to, and asks (spec: agent §1 *Budgets*).
    async fn confirm_tokens(
        &mut self,
        app: &App,
        asker: &Asker,
        (entered, question): (&OpenedSession, PositionId),
        number: u32,
    ) -> Result<(), CommandError> {
        let info = self.config(app).await?.model.info().clone();
        if info.place == ModelPlace::Local {
            return Ok(());
        }
        self.read_files(app).await;
        let mut ask = self.request(app, entered).await?;
        if let Some(path) = ask.source.path_mut() {
            path.from = Some(question);
        }
        let params = ask.params.clone();
        let manifest = ask.prepare(&app.runtime, &asker.principal).await?.manifest;
        let (tokens, reserved) = (manifest.tokens, manifest.budget.reserved_output);
        if !generate::needs_confirmation(&info, tokens, agent::expected_output(&params, reserved), number) {
            return Ok(());
        }
        let cost = info.prices.as_ref().map(|prices| prices.estimate(tokens, reserved).times(number.into()));
        let hint = "ask for fewer, or answer y at a terminal";
        generate::confirm_requests(app, (number, tokens), cost, &info.full_name(), hint)
    }

    /// Whether answers were asked for that are not there yet.
    pub(super) fn asks_more(&self) -> bool {
        self.again.as_ref().is_some_and(|again| again.left > 0)
    }

    /// Keeps an answer to choose from. After one that failed or was stopped no more are asked for.
    pub(super) fn note_choice(&mut self, done: &Result<Chatted, CommandError>) {
        let Some(again) = &mut self.again else { return };
        match done {
            Ok(done) => again.answers.push(done.clone()),
            Err(_) => again.left = 0,
        }
    }

    /// Asks for the next answer, if there is one to ask for.
    pub(super) async fn ask_once_more(&mut self, app: &App, asker: &Asker) -> Option<TurnStep> {
        let again = self.again.as_mut().filter(|again| again.left > 0)?;
        again.left -= 1;
        let (question, of) = (again.question, again.number);
        let number = of - again.left;
        match self.ask_again(app, asker, question).await {
            Ok(()) => Some(TurnStep::AskedAgain { number, of }),
            Err(error) => {
                self.note_choice(&Err(error.clone()));
                Some(TurnStep::Done(Box::new(Err(error))))
            }
        }
    }

    /// The answers there are to choose from, once all are there; none where there is no choice.
    pub fn choices(&mut self) -> Vec<Chatted> {
        let answers = self.again.take().map(|again| again.answers).unwrap_or_default();
        if answers.len() > 1 { answers } else { Vec::new() }
    }

    /// Numbers of answers among their siblings, as `/siblings` shows them, and how many siblings there are.
    ///
    /// # Errors
    /// As the store says.
    pub async fn numbers(
        &self,
        app: &App,
        asker: &Asker,
        answers: &[Chatted],
    ) -> Result<(Vec<usize>, usize), CommandError> {
        let Some(first) = answers.first() else { return Ok((Vec::new(), 0)) };
        let positions: Vec<PositionId> = answers.iter().map(|answer| answer.node.as_position()).collect();
        tree::sibling_numbers(app, asker, (first.tree, &self.view), positions).await
    }

    /// The one answer that came of several that were asked for; none where there were more.
    fn only_answer(&mut self) -> Option<Chatted> {
        let again = self.again.take_if(|again| again.answers.len() == 1)?;
        again.answers.into_iter().next()
    }

    /// Goes to the answer that was chosen.
    ///
    /// # Errors
    /// As the store says.
    pub async fn choose(&self, app: &App, asker: &Asker, answer: &Chatted) -> Result<(), CommandError> {
        let (view, to) = (self.view.clone(), answer.node.as_position());
        let is_there = {
            let view = view.clone();
            app.read(asker, answer.tree, move |rows| Ok(render::tip(rows, &view)? == to)).await?
        };
        if !is_there {
            app.change(asker, answer.tree, &view, Op::Switch(to)).await?;
        }
        Ok(())
    }

    /// Of several answers that were asked for where nobody chooses: the first.
    pub(super) async fn take_first(
        &mut self,
        app: &App,
        asker: &Asker,
        done: Result<Chatted, CommandError>,
    ) -> Result<Chatted, CommandError> {
        let only = done.is_err().then(|| self.only_answer()).flatten();
        let choices = only.map_or_else(|| self.choices(), |only| vec![only]);
        let Some(first) = choices.first().cloned() else { return done };
        if let Err(error) = done {
            let error = app.told(asker, error).await;
            app.frontend.note(&format!("one of the answers failed: {error}"));
        }
        self.choose(app, asker, &first).await?;
        if choices.len() > 1 {
            let (numbers, of) = self.numbers(app, asker, &choices).await?;
            if let [here, other, ..] = numbers.as_slice() {
                app.frontend.note(&format!(
                    "this is answer {here} of {of}: `{}` lists them, `{}` goes to {other}, the next of the new ones",
                    self.command(app, "-m /siblings"),
                    self.command(app, &format!("-m \"/next {other}\"")),
                ));
            }
        }
        let answers = if choices.len() > 1 { choices } else { Vec::new() };
        Ok(Chatted { answers, ..first })
    }
}

fn nothing_said() -> CommandError {
    CommandError::not_found("message of yours", "to ask again", "say something first")
}
