//! The conversation at a terminal: `drawloom chat` without `-m` (spec: cli §2, agent §7).
//!
//! One line is typed, one turn is done, and the next line is typed. While a turn runs, Ctrl-C stops it and keeps
//! what came; a text that is typed meanwhile joins it at its next model call, a command that only shows something answers
//! at once, and another one waits until it is done ([`meanwhile`]). Only what comes from the terminal's input line may be a command. However the conversation ends
//! (Ctrl-D, `/quit`, a signal), a temporary one is forgotten.

mod behind;
mod editor;
mod ending;
mod history;
mod keys;
mod lines;
mod meanwhile;
mod plain;
mod prompt;
mod typeahead;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use commands::chat::{Conversation, JoinedFrom, TurnStep, joined_line};
use commands::results::chat::Chatted;
use commands::slash::{Input, SlashCommand, SlashOutcome, as_text, parse};
use commands::{App, Asker, Command, CommandError, CommandOutcome};
use model::{ModelInfo, ModelPlace};
use reedline::History;
use text::terminal::one_line;
use tokio::signal::unix::{SignalKind, signal};

use crate::cells::cut_end;
use crate::config::Layers;
use crate::doctor;
use crate::interrupt;
use crate::open::OpenHome;
use crate::output::{Output, to_stderr};
use crate::paths::InvocationPaths;
use crate::render;
use crate::terminal::{Terminal, columns, mark_pastes};
use editor::{Editor, Typed};
use ending::{Endings, TerminalModes};
use meanwhile::TurnInputReader;
use prompt::{Standing, name_of};

/// Refuses a conversation where nobody can type, or nobody would read.
///
/// # Errors
/// `usage`, naming `-m`.
pub(crate) fn require_terminal(json: bool) -> Result<(), CommandError> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
    match (json, terminal) {
        (false, true) => Ok(()),
        (true, _) => {
            Err(CommandError::usage("a conversation has no JSON form", "say one thing with -m TEXT"))
        }
        (false, false) => Err(CommandError::usage(
            "a conversation needs a terminal to type at and to read from",
            "say one thing with -m TEXT, or -m - to read it from standard input",
        )),
    }
}

/// What a conversation is held with.
pub(crate) struct Repl<'a> {
    /// The home, open.
    pub(crate) app: Arc<App>,
    /// Whoever sits at the terminal.
    pub(crate) person: Arc<Terminal>,
    pub(crate) output: Output,
    /// Where things are, for `/doctor`.
    pub(crate) paths: &'a InvocationPaths,
    /// The configuration, for `/doctor`.
    pub(crate) layers: &'a Layers,
    /// What was typed of the next input line while something was shown.
    begun: RefCell<String>,
    /// Where lines are kept that no editor took.
    history: RefCell<Box<dyn History>>,
}

/// Whether the conversation goes on.
enum Flow {
    GoesOn,
    /// Ends with this exit code.
    Ends(u8),
}

/// Opens a conversation and holds it to its end. Returns the exit code.
///
/// # Errors
/// What keeps it from beginning, or a temporary one from being forgotten.
pub(crate) fn hold(
    opened: &OpenHome,
    person: Arc<Terminal>,
    output: Output,
    layers: &Layers,
    args: &commands::args::chat::ChatArgs,
) -> Result<u8, CommandError> {
    let runtime = interrupt::runtime()?;
    let held: Pin<Box<dyn Future<Output = Result<u8, CommandError>> + '_>> = Box::pin(async {
        opened.recover().await;
        // While a turn runs here, other processes say theirs through it.
        let listening = opened.listen().await;
        let app = Arc::clone(&opened.app);
        let mut conversation = Conversation::open(&app, &Asker::owner(), args).await?;
        // Here a model is needed sooner or later: better to say at once that there is none.
        let begins =
            begins(&name_of(&conversation), conversation.is_temporary(), conversation.model(&app).await?);
        begins.lines().for_each(|line| person.notice(line));
        conversation.without_tools(&app).await?.iter().for_each(|line| person.notice(line));
        let (begun, history) = (RefCell::default(), RefCell::new(history::of(&app, &conversation)?));
        let paths = &opened.paths;
        let repl = Repl { app, person, output, paths, layers, begun, history };
        repl.recall(&conversation).await;
        let code = repl.run(&mut conversation).await;
        let closed = conversation.close(&repl.app, &Asker::owner()).await;
        repl.app.sessions.close_all().await;
        if let Some(listener) = listening {
            listener.finish().await;
        }
        let code = code?;
        closed.map(|()| code)
    });
    let ended = runtime.block_on(held);
    // The thread that waits for a key cannot be ended, and nothing waits for it.
    runtime.shutdown_background();
    ended
}

impl Repl<'_> {
    async fn run(&self, conversation: &mut Conversation) -> Result<u8, CommandError> {
        let terminal = TerminalModes::remember();
        let mut endings = Endings::listen()?;
        // From here on Ctrl-C is heard and does not end the process, also between two turns.
        let _heard = signal(SignalKind::interrupt()).map_err(|error| ending::no_signals(&error))?;
        let _stopped = signal(ending::terminal_stop()).map_err(|error| ending::no_signals(&error))?;
        let mut editor = Editor::start(history::of(&self.app, conversation)?, self.output)?;
        let mut waiting = VecDeque::<String>::new();
        let code = loop {
            let line = match waiting.pop_front() {
                Some(line) => {
                    self.person.notice(&format!("{}> {line}", name_of(conversation)));
                    line
                }
                None => {
                    let standing = Standing::of(&self.app, conversation).await;
                    let known = conversation.known(&self.app, &Asker::owner()).await;
                    let there = typeahead::lines_there(self.output, self.begun.take(), self.longest_paste());
                    there.lines.iter().for_each(|line| self.keep(line));
                    waiting.extend(there.lines);
                    self.begun.replace(there.begun);
                    if !waiting.is_empty() {
                        continue;
                    }
                    let typed = tokio::select! {
                        biased;
                        code = endings.next() => break code,
                        typed = editor.line(standing, known, self.begun.take()) => typed?,
                    };
                    let (typed, behind) = typed;
                    behind.lines.iter().for_each(|line| self.keep(line));
                    waiting.extend(behind.lines);
                    self.begun.replace(behind.begun);
                    match typed {
                        Typed::Line(line) => {
                            if editor.is_plain() {
                                self.keep(&line);
                            }
                            line
                        }
                        Typed::Nothing => continue,
                        Typed::End => break 0,
                        Typed::Uneditable => {
                            self.person
                                .notice("this terminal does not say where its cursor is: lines are plain");
                            continue;
                        }
                    }
                }
            };
            if line.trim().is_empty() {
                continue;
            }
            if let Flow::Ends(code) = self.turn(conversation, &line, &mut waiting, &mut endings).await? {
                break code;
            }
        };
        drop(terminal);
        self.name_unsent(waiting);
        Ok(code)
    }

    /// Names what was typed and finds no conversation any more, and keeps of it what is not in the input history yet.
    fn name_unsent(&self, waiting: VecDeque<String>) {
        let begun = self.begun.take();
        self.keep(&begun);
        let is_text =
            |line: &String| !line.trim().is_empty() && parse(line) != Input::Command(SlashCommand::Quit);
        for line in waiting.into_iter().chain([begun]).filter(is_text) {
            to_stderr(&unsent(&line));
        }
    }

    /// Most bytes of a paste.
    fn longest_paste(&self) -> usize {
        usize::try_from(self.app.settings.limits.paste).unwrap_or(usize::MAX)
    }

    /// Does what a line asks for, and shows what comes of it: of a turn also what joins it, until nothing of the
    /// session is under way.
    async fn turn(
        &self,
        conversation: &mut Conversation,
        line: &str,
        waiting: &mut VecDeque<String>,
        endings: &mut Endings,
    ) -> Result<Flow, CommandError> {
        let (app, owner) = (&self.app, Asker::owner());
        let mut meanwhile = TurnInputReader::listen(self, conversation.steering(true), endings, waiting)?;
        let (mut next, mut quits) = (None, false);
        match meanwhile.during(conversation.take(app, &owner, line)).await {
            Ok(SlashOutcome::Done(outcome)) => {
                self.show(&outcome)?;
                if let Input::Command(SlashCommand::Switch { .. }) = parse(line) {
                    self.recall(conversation).await;
                }
            }
            Ok(SlashOutcome::Turn) => meanwhile.follow(conversation).await,
            // Nothing is under way: it is its turn.
            Ok(SlashOutcome::Queue(text)) => next = Some(as_text(&text)),
            Ok(SlashOutcome::Run(command)) => match self.run_here(*command) {
                Ok(outcome) => self.show(&outcome)?,
                Err(error) => self.failed(&error).await,
            },
            Ok(SlashOutcome::Quit) => quits = true,
            Err(error) => self.failed(&error).await,
        }
        while let Some(step) = meanwhile.during(conversation.next(app, &owner)).await {
            match step {
                TurnStep::Joined { text, from } => {
                    if from == JoinedFrom::Here {
                        meanwhile.said(&text);
                    }
                    self.person.notice(&joined_line(&name_of(conversation), &text, from));
                }
                TurnStep::AskedAgain { number, of } => {
                    meanwhile.follow(conversation).await;
                    self.person.notice(&format!("new answer {number} of {of}:"));
                }
                // What a conversation that ends has not said is named at its end.
                TurnStep::Rejected(_) if meanwhile.is_ending() => {}
                TurnStep::Rejected(error) => self.failed(&error).await,
                TurnStep::Done(done) => {
                    match *done {
                        Ok(done) => self.show(&CommandOutcome::Chatted(done))?,
                        Err(error) => self.failed(&error).await,
                    }
                    conversation.tell_subagents(app);
                }
            }
        }
        let mut flow = meanwhile.end(conversation).await;
        let choices = conversation.choices();
        if let (Some(first), Flow::Ends(_)) = (choices.first(), &flow) {
            // Whoever would choose is gone.
            if let Err(error) = conversation.choose(app, &owner, first).await {
                self.failed(&error).await;
            }
        } else if !choices.is_empty() {
            let left = self.choose(conversation, choices, endings).await;
            match left {
                // What was typed before it goes first.
                Ok(line) => {
                    line.iter().for_each(|line| self.keep(line));
                    waiting.extend(line);
                }
                Err(code) => flow = Flow::Ends(code),
            }
        }
        next.into_iter().for_each(|line| waiting.push_front(line));
        Ok(if quits { Flow::Ends(0) } else { flow })
    }

    /// Asks which of several answers the conversation goes on from. Returns a line that was typed instead of a number,
    /// or the exit code of a signal that ends the conversation.
    async fn choose(
        &self,
        conversation: &Conversation,
        answers: Vec<Chatted>,
        endings: &mut Endings,
    ) -> Result<Option<String>, u8> {
        // As /siblings shows them; they are only to be told apart where they cannot be read.
        let numbered = conversation.numbers(&self.app, &Asker::owner(), &answers).await;
        let numbered = numbered.ok().filter(|(numbers, _)| numbers.len() == answers.len());
        let (numbers, of) = numbered.unwrap_or_else(|| ((1..=answers.len()).collect(), answers.len()));
        mark_pastes(false);
        let rows: Vec<_> = numbers.iter().copied().zip(answers.iter().map(render::first_words)).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let (person, over) = (Arc::clone(&self.person), Arc::clone(&is_over));
        // Heard from before it is asked: who answers by Ctrl-C may be quick.
        let mut interrupts = signal(SignalKind::interrupt());
        let asked =
            tokio::task::spawn_blocking(move || person.choose(&rows, &|| over.load(Ordering::SeqCst)));
        let interrupted = async {
            match &mut interrupts {
                Ok(interrupts) => interrupts.recv().await,
                Err(_) => std::future::pending().await,
            }
        };
        let (chosen, line, code) = tokio::select! {
            asked = asked => {
                let (chosen, line) = asked.unwrap_or_default();
                (chosen, line, None)
            }
            _ = interrupted => {
                // The question's line has no end yet.
                to_stderr("");
                (0, None, None)
            }
            code = endings.next() => (0, None, Some(code)),
        };
        is_over.store(true, Ordering::SeqCst);
        let answer = &answers[chosen];
        match conversation.choose(&self.app, &Asker::owner(), answer).await {
            Ok(()) => {
                let number = numbers[chosen];
                self.output.aside(&format!("goes on from answer {number} of {of} · {}", answer.short_id));
            }
            Err(error) => self.failed(&error).await,
        }
        code.map_or(Ok(line), Err)
    }

    /// Runs a command that is the surface's, which may wait for threads of its own.
    fn run_here(&self, command: Command) -> Result<CommandOutcome, CommandError> {
        match command {
            Command::Doctor(arguments) => {
                tokio::task::block_in_place(|| doctor::examine(arguments.quick, self.paths, self.layers))
            }
            other => Err(other.not_here()),
        }
    }

    /// Keeps a line that no editor took. That input has ended is no line.
    fn keep(&self, line: &str) {
        if line != keys::QUIT {
            history::keep(self.history.borrow_mut().as_mut(), line.trim_end_matches('\n'));
        }
    }

    async fn failed(&self, error: &CommandError) {
        let error = &self.app.told(&Asker::owner(), error.clone()).await;
        self.person.end_line();
        match error.code.as_ref() {
            "cancelled" => self.person.notice(&error.message),
            _ => self.output.failure(error),
        }
    }

    fn show(&self, outcome: &CommandOutcome) -> Result<(), CommandError> {
        self.person.end_line();
        match outcome {
            CommandOutcome::Chatted(done) if done.streamed => {
                done.media.iter().for_each(|medium| self.output.aside(&render::picture(medium)));
                render::footer(done, columns()).iter().for_each(|line| self.output.aside(line));
                render::limit(done).iter().for_each(|line| self.output.note(line));
            }
            other => self.output.outcome(other)?,
        }
        Ok(())
    }

    /// Shows how the conversation stood when it was left. What cannot be read is said by the next turn.
    async fn recall(&self, conversation: &Conversation) {
        let last = conversation.exchanges(&self.app, &Asker::owner(), 1).await;
        for last in last.unwrap_or_default() {
            render::recap(&last, columns()).iter().for_each(|line| self.output.aside(line));
        }
        if let Ok(Some(others)) = conversation.others(&self.app, &Asker::owner()).await {
            self.output.aside(&others);
        }
    }
}

/// Names a line that was typed and is not sent.
fn unsent(line: &str) -> String {
    cut_end(&format!("not sent: {}", one_line(line.trim())), columns())
}

/// What a conversation begins with: session, model, and where text goes; on one line where there is room.
fn begins(name: &str, is_temporary: bool, model: &ModelInfo) -> String {
    let place = match model.place {
        ModelPlace::Local => "local",
        ModelPlace::Remote => "remote: what you say leaves this machine",
    };
    let forgotten = if is_temporary { ", forgotten when you leave" } else { "" };
    let model = one_line(&model.full_name()).into_owned();
    let name = format!("{name}{forgotten}");
    render::filled([name.as_str(), &model, place, "/help shows the commands"], " · ", 0, columns())
}
