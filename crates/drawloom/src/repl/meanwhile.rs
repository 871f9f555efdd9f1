//! What happens at the terminal while a turn runs: lines are typed, Ctrl-C is pressed, the terminal goes away.

use std::collections::VecDeque;
use std::pin::pin;

use commands::chat::{Beside, Steered};
use commands::{Asker, CommandError};
use model::CancelHandle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::ahead::Ahead;
use super::ending::{self, Endings};
use super::{Flow, Repl};

/// An input line of the time after the turn that runs.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) line: String,
    /// Whether it was queued on purpose: what is typed later may overtake it.
    pub(super) queued: bool,
}

impl Waiting {
    /// One that keeps its place.
    pub(super) const fn in_order(line: String) -> Self {
        Self { line, queued: false }
    }
}

/// The terminal while a turn runs.
pub(super) struct Meanwhile<'a> {
    repl: &'a Repl<'a>,
    beside: Beside,
    stop: CancelHandle,
    ahead: Ahead,
    interrupts: Signal,
    endings: &'a mut Endings,
    waiting: &'a mut VecDeque<Waiting>,
    flow: Flow,
}

impl<'a> Meanwhile<'a> {
    /// Listens from now on; `stop` stops the turn.
    ///
    /// # Errors
    /// When the system lets nobody listen to Ctrl-C.
    pub(super) fn listen(
        repl: &'a Repl<'a>,
        beside: Beside,
        stop: CancelHandle,
        endings: &'a mut Endings,
        waiting: &'a mut VecDeque<Waiting>,
    ) -> Result<Self, CommandError> {
        let interrupts = signal(SignalKind::interrupt()).map_err(|error| ending::no_signals(&error))?;
        let ahead = Ahead::of_terminal();
        Ok(Self { repl, beside, stop, ahead, interrupts, endings, waiting, flow: Flow::GoesOn })
    }

    /// Waits for a step of the turn, and does meanwhile what is asked for at the terminal.
    pub(super) async fn during<T>(&mut self, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        loop {
            tokio::select! {
                biased;
                // Before the step: a model that never pauses keeps nobody from stopping it.
                _ = self.interrupts.recv() => self.stop.cancel(),
                code = self.endings.next() => {
                    self.stop.cancel();
                    self.flow = Flow::Ends(code);
                }
                done = &mut step => return done,
                typed = self.ahead.line() => self.typed(typed).await,
            }
        }
    }

    /// The turn is done: lines that nobody looked at wait behind the others.
    pub(super) fn end(self) -> Flow {
        self.waiting.extend(self.ahead.finish().into_iter().map(Waiting::in_order));
        self.flow
    }

    async fn typed(&mut self, line: String) {
        let (person, output) = (&self.repl.person, self.repl.output);
        person.typed();
        if line.trim().is_empty() {
            return;
        }
        match self.beside.take(&self.repl.app, &Asker::owner(), &line).await {
            Ok(Steered::Joins) => person.notice("this joins the turn, and is answered next"),
            Ok(Steered::Waits(line)) => self.waits(Waiting::in_order(line)),
            Ok(Steered::Queued(line)) => self.waits(Waiting { line, queued: true }),
            Ok(Steered::Stop) => self.stop.cancel(),
            Err(error) => {
                person.end_line();
                output.failure(&error);
            }
        }
    }

    fn waits(&mut self, waiting: Waiting) {
        self.repl.person.notice("this waits until the turn is done");
        self.waiting.push_back(waiting);
    }
}
