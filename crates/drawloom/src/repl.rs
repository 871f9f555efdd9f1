//! The conversation at a terminal: `drawloom chat` without `-m` (spec: cli §2, agent §7).
//!
//! One line is typed, one turn is done, and the next line is typed. While a turn runs, Ctrl-C stops it and keeps
//! what came; lines that are typed meanwhile wait their turn ([`ahead`]). Only what comes from the terminal's input
//! line may be a command. However the conversation ends (Ctrl-D, `/quit`, a signal), a temporary one is forgotten.

mod ahead;
mod editor;
mod ending;
mod history;
mod lines;
mod prompt;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::pin::pin;
use std::sync::Arc;

use commands::chat::Conversation;
use commands::results::chat::Chatted;
use commands::slash::Slashed;
use commands::{App, Asker, CommandError, Outcome};
use model::{Cancel, Place};
use text::terminal::one_line;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Layers;
use crate::doctor;
use crate::interrupt;
use crate::open::Opened;
use crate::output::Output;
use crate::places::Places;
use crate::render;
use crate::talk::Person;
use ahead::Ahead;
use editor::{Editor, Typed};
use ending::{Endings, Terminal};
use prompt::Standing;

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
    pub(crate) person: Arc<Person>,
    /// How things are printed.
    pub(crate) output: Output,
    /// Where things are, for `/doctor`.
    pub(crate) places: &'a Places,
    /// The configuration, for `/doctor`.
    pub(crate) layers: &'a Layers,
}

/// Whether the conversation goes on.
enum Flow {
    GoesOn,
    /// It ends with this exit code.
    Ends(u8),
}

/// Opens a conversation and holds it to its end. Returns the exit code.
///
/// # Errors
/// What keeps it from beginning, or a temporary one from being forgotten.
pub(crate) fn hold(
    opened: &Opened,
    person: Arc<Person>,
    output: Output,
    (places, layers): (&Places, &Layers),
    args: &commands::args::chat::Chat,
) -> Result<u8, CommandError> {
    let runtime = interrupt::runtime()?;
    let ended = runtime.block_on(async {
        opened.recover().await;
        // While a turn runs here, other processes say theirs through it.
        let _listening = opened.listen().await;
        let app = Arc::clone(&opened.app);
        let mut conversation = Conversation::open(&app, args)?;
        let repl = Repl { app, person, output, places, layers };
        let code = repl.run(&mut conversation).await;
        let closed = conversation.close(&repl.app, &Asker::owner()).await;
        let code = code?;
        closed.map(|()| code)
    });
    // The thread that waits for a key cannot be ended, and nothing waits for it.
    runtime.shutdown_background();
    ended
}

impl Repl<'_> {
    async fn run(&self, conversation: &mut Conversation) -> Result<u8, CommandError> {
        let terminal = Terminal::remember();
        let mut endings = Endings::listen()?;
        // From here on Ctrl-C is heard and does not end the process, also between two turns.
        let _heard = signal(SignalKind::interrupt()).map_err(|error| ending::no_signals(&error))?;
        let mut editor = Editor::start(history::of(&self.app, conversation)?, self.output.color())?;
        self.person.notice(&begins(conversation));
        let mut waiting = VecDeque::new();
        let code = loop {
            let line = match waiting.pop_front() {
                Some(line) => {
                    self.person.notice(&format!("{}> {line}", conversation.name()));
                    line
                }
                None => {
                    let standing = Standing::of(&self.app, conversation).await;
                    let known = conversation.known(&self.app, &Asker::owner()).await;
                    waiting.extend(ahead::lines_there());
                    if !waiting.is_empty() {
                        continue;
                    }
                    let typed = tokio::select! {
                        biased;
                        code = endings.next() => break code,
                        typed = editor.line(standing, known) => typed?,
                    };
                    match typed {
                        Typed::Line(line) => line,
                        Typed::Cleared => continue,
                        Typed::End => break 0,
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
        terminal.restore();
        Ok(code)
    }

    /// Does what a line asks for, and shows what comes of it.
    async fn turn(
        &self,
        conversation: &mut Conversation,
        line: &str,
        waiting: &mut VecDeque<String>,
        endings: &mut Endings,
    ) -> Result<Flow, CommandError> {
        let (done, mut flow) = {
            let (stop, cancel) = Cancel::new();
            let owner = Asker::owner();
            let mut work = pin!(conversation.take(&self.app, &owner, line, cancel));
            let mut ahead = Ahead::of_terminal();
            let mut interrupts =
                signal(SignalKind::interrupt()).map_err(|error| ending::no_signals(&error))?;
            let mut flow = Flow::GoesOn;
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => {
                        waiting.extend(ahead.finish());
                        break (done, flow);
                    }
                    _ = interrupts.recv() => stop.cancel(),
                    code = endings.next() => {
                        stop.cancel();
                        flow = Flow::Ends(code);
                    }
                    typed = ahead.line() => match typed.trim() {
                        "/stop" => stop.cancel(),
                        _ => waiting.push_back(typed),
                    },
                }
            }
        };
        self.person.end_line();
        match done {
            Ok(Slashed::Done(outcome)) => self.show(&outcome)?,
            // Nothing is under way: it is its turn.
            Ok(Slashed::Queue(text)) => waiting.push_front(lines::as_text(&text)),
            Ok(Slashed::Stop) => self.person.notice("nothing is under way"),
            Ok(Slashed::Doctor) => match self.examine() {
                Ok(outcome) => self.show(&outcome)?,
                Err(error) => self.output.failure(&error),
            },
            Ok(Slashed::Quit) => flow = Flow::Ends(0),
            Err(error) if error.code == "cancelled" => self.person.notice(&error.message),
            Err(error) => self.output.failure(&error),
        }
        Ok(flow)
    }

    /// It may wait for threads of its own.
    fn examine(&self) -> Result<Outcome, CommandError> {
        tokio::task::block_in_place(|| doctor::examine(true, self.places, self.layers))
    }

    fn show(&self, outcome: &Outcome) -> Result<(), CommandError> {
        match outcome {
            Outcome::Chatted(done) if done.streamed => self.cost(done),
            other => self.output.outcome(other)?,
        }
        Ok(())
    }

    /// What a turn cost, less loud than what was said.
    fn cost(&self, done: &Chatted) {
        self.output.aside(&render::cost(done));
    }
}

/// The line a conversation begins with: session, model, and where text goes.
fn begins(conversation: &Conversation) -> String {
    let info = conversation.model();
    let place = match info.place {
        Place::Local => "local",
        Place::Remote => "remote: what you say leaves this machine",
    };
    let forgotten = if conversation.is_temporary() { ", forgotten when you leave" } else { "" };
    let model = one_line(&format!("{}/{}", info.provider, info.name)).into_owned();
    format!("{}{forgotten} · {model} · {place} · /help shows the commands", conversation.name())
}
