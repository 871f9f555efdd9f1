//! What happens at the terminal while a turn runs: lines are typed, Ctrl-C or Ctrl-Z is pressed, the terminal goes away.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;

use commands::chat::{Conversation, Steering, SteeringOutcome};
use commands::slash::{Input, SlashOutcome, parse};
use commands::{Asker, CommandError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::ending::{self, Endings};
use super::typeahead::{ASKED, TypeAheadReader, TypedAhead};
use super::{Flow, Repl, unsent};
use crate::output::to_stderr;
use crate::terminal::{QuestionCommand, has_job_control};

/// What a command that was typed shows.
struct Shown {
    line: String,
    /// Whether the line stands at the terminal already.
    is_echoed: bool,
    outcome: Result<SlashOutcome, CommandError>,
    /// The question it was typed at, which waits for it.
    question: Option<oneshot::Sender<()>>,
}

/// The terminal while a turn runs.
pub(super) struct TurnInputReader<'a> {
    repl: &'a Repl<'a>,
    steering: Steering,
    ahead: TypeAheadReader,
    /// Commands that are typed at a question.
    commands: mpsc::Receiver<QuestionCommand>,
    interrupts: Signal,
    suspensions: Signal,
    endings: &'a mut Endings,
    /// Input lines of the time after the turn.
    waiting: &'a mut VecDeque<String>,
    /// Lines that the turn takes, as they were typed, with their texts.
    sent: Vec<(String, String)>,
    /// Whether the turn took as many lines as it may: further ones wait until it is done.
    is_full: bool,
    /// Commands that show something beside the turn, one after another.
    shows: VecDeque<Pin<Box<dyn Future<Output = Shown> + 'a>>>,
    /// Errors of lines that were typed: they stand below the answer, not in it.
    failures: Vec<CommandError>,
    /// Whether the turn was to be stopped before there was one.
    is_stopped: bool,
    flow: Flow,
}

impl<'a> TurnInputReader<'a> {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the system lets nobody listen to Ctrl-C or Ctrl-Z.
    pub(super) fn listen(
        repl: &'a Repl<'a>,
        steering: Steering,
        endings: &'a mut Endings,
        waiting: &'a mut VecDeque<String>,
    ) -> Result<Self, CommandError> {
        let heard = |kind| signal(kind).map_err(|error| ending::no_signals(&error));
        let interrupts = heard(SignalKind::interrupt())?;
        let suspensions = heard(ending::terminal_stop())?;
        let (person, begun) = (Arc::clone(&repl.person), repl.begun.take());
        let ahead = TypeAheadReader::of_terminal(person, repl.output, begun, repl.longest_paste());
        let commands = repl.person.question_commands();
        let (is_full, is_stopped, flow) = (false, false, Flow::GoesOn);
        let (sent, failures, shows) = (Vec::new(), Vec::new(), VecDeque::new());
        Ok(Self {
            repl,
            steering,
            ahead,
            commands,
            interrupts,
            suspensions,
            endings,
            waiting,
            sent,
            is_full,
            shows,
            failures,
            is_stopped,
            flow,
        })
    }

    /// A turn runs: what is typed from now on is for it.
    pub(super) async fn follow(&mut self, conversation: &mut Conversation) {
        conversation.follow(&self.steering);
        self.steering = conversation.steering(!self.waiting.is_empty());
        if self.is_stopped {
            self.steering.stop().await;
        }
    }

    /// Waits for a step of the turn, and does meanwhile what is asked for at the terminal.
    pub(super) async fn during<T>(&mut self, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        loop {
            tokio::select! {
                biased;
                // Before the step: a model that never pauses keeps nobody from stopping it.
                _ = self.interrupts.recv() => self.stop().await,
                _ = self.suspensions.recv() => {
                    if has_job_control() {
                        // Behind it the cursor is where the shell left it.
                        self.repl.person.apart(|| self.ahead.suspend());
                    }
                }
                code = self.endings.next() => {
                    self.flow = Flow::Ends(code);
                    self.steering.end().await;
                }
                done = &mut step => return done,
                shown = next_shown(&mut self.shows) => self.show(shown),
                typed = self.ahead.line() => self.typed(typed, None).await,
                Some(typed) = self.commands.recv() => self.typed(typed.line, Some(typed.done)).await,
            }
        }
    }

    /// Whether the conversation ends with the turn.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.flow, Flow::Ends(_))
    }

    /// The turn is done: what is still to be shown beside it is, unless the conversation ends with it; lines that nobody looked at wait behind the others. Where the conversation ends, so do those
    /// that the turn took and did not say; else they are named.
    pub(super) async fn end(mut self, conversation: &mut Conversation) -> Flow {
        while !self.shows.is_empty() && !self.is_ending() {
            let shown = next_shown(&mut self.shows).await;
            self.show(shown);
        }
        conversation.follow(&self.steering);
        let mut unsaid: Vec<String> = self.sent.drain(..).map(|(line, _)| line).collect();
        if self.is_ending() {
            unsaid.drain(..).rev().for_each(|line| self.waiting.push_front(line));
        }
        while self.repl.person.is_leaving_question() && !self.is_ending() {
            tokio::time::sleep(ASKED).await;
        }
        let TypedAhead { lines, begun } = self.ahead.finish();
        lines.iter().for_each(|line| self.repl.keep(line));
        self.waiting.extend(lines);
        self.repl.begun.replace(begun);
        self.repl.person.nothing_below();
        unsaid.iter().for_each(|line| to_stderr(&unsent(line)));
        self.failures.iter().for_each(|error| self.repl.output.failure(error));
        self.flow
    }

    /// A text that was typed here is said in the turn.
    pub(super) fn said(&mut self, text: &str) {
        if let Some(place) = self.sent.iter().position(|(_, sent)| sent == text) {
            self.repl.person.said(&self.sent.remove(place).0);
        }
    }

    /// Says what becomes of a line.
    fn told(&self, line: &str, what: &str) {
        if self.ahead.is_echoed() {
            self.repl.person.notice(what);
        } else {
            self.repl.person.took(line, what);
        }
    }

    /// Whether a line finds no place in the turn any more, or stands behind one that found none.
    fn is_one_too_many(&mut self, line: &str) -> bool {
        self.is_full |= self.sent.len() >= self.repl.app.runtime.waiting.messages;
        let waits = match parse(line) {
            Input::Say(_) => true,
            Input::Command(command) => !command.is_at_once(),
            Input::Unknown { .. } | Input::Misused { .. } => false,
        };
        self.is_full && waits
    }

    async fn stop(&mut self) {
        self.is_stopped = true;
        self.steering.stop().await;
    }

    /// Does what a line asks for; what was typed at a `question` is shown before that is asked again.
    async fn typed(&mut self, line: String, question: Option<oneshot::Sender<()>>) {
        let (person, output) = (Arc::clone(&self.repl.person), self.repl.output);
        let is_echoed = self.ahead.is_echoed() || question.is_some();
        if is_echoed {
            person.typed();
        }
        if line.trim().is_empty() {
            return;
        }
        self.repl.keep(&line);
        if self.is_one_too_many(&line) {
            self.told(&line, "this waits until the turn is done");
            self.waiting.push_back(line);
            return;
        }
        match self.steering.take(&self.repl.app, &Asker::owner(), &line).await {
            Ok(SteeringOutcome::Joins(text)) => {
                self.told(&line, "this joins the turn and is answered next");
                self.sent.push((line, text));
            }
            Ok(SteeringOutcome::Queued(text)) => {
                self.told(&line, "this waits until the turn is done");
                self.sent.push((line, text));
            }
            Ok(SteeringOutcome::Waits(line)) => {
                self.told(&line, "this waits until the turn is done");
                self.waiting.push_back(line);
            }
            Ok(SteeringOutcome::Stop) => self.is_stopped = true,
            // What came of it is an event.
            Ok(SteeringOutcome::Answered) => {}
            Ok(SteeringOutcome::Shows(command)) => {
                let (app, mut beside) = (&self.repl.app, self.steering.beside());
                self.shows.push_back(Box::pin(async move {
                    let outcome = app.slash(&Asker::owner(), &mut beside, command).await;
                    Shown { line, is_echoed, outcome, question }
                }));
            }
            Ok(SteeringOutcome::Done(outcome)) => {
                self.show(Shown { line, is_echoed, outcome: Ok(SlashOutcome::Done(outcome)), question });
            }
            Err(error) if is_echoed => person.apart(|| output.failure(&error)),
            Err(error) => {
                person.took(&line, &format!("error: {}", error.message));
                self.failures.push(error);
            }
        }
    }

    /// Shows what came of a command beside the turn, between two parts of what is written of it.
    fn show(&self, shown: Shown) {
        let (person, output) = (&self.repl.person, self.repl.output);
        let Shown { line, is_echoed, outcome, question } = shown;
        let outcome = match outcome {
            Ok(SlashOutcome::Done(outcome)) => Ok(*outcome),
            Ok(SlashOutcome::Run(command)) => self.repl.run_here(*command),
            // None of them only shows something.
            Ok(SlashOutcome::Turn | SlashOutcome::Queue(_) | SlashOutcome::Quit) => return,
            Err(error) => Err(error),
        };
        person.apart(|| {
            if !is_echoed {
                output.aside(&format!("> {line}"));
            }
            if let Err(error) = outcome.and_then(|outcome| output.outcome(&outcome)) {
                output.failure(&error);
            }
        });
        drop(question);
    }
}

/// What the first of these shows; waits for ever where there is none. Cancel-safe.
async fn next_shown(shows: &mut VecDeque<Pin<Box<dyn Future<Output = Shown> + '_>>>) -> Shown {
    let Some(first) = shows.front_mut() else { return std::future::pending().await };
    let shown = first.await;
    shows.pop_front();
    shown
}
