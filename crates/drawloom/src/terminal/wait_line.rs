//! The line that says what is waited for, where nothing was shown for a second: who is asked, whether its server tells
//! the window or counts, how many tokens went there, how far they are read, or which tool runs, and how long it takes.
//!
//! It stands above the line the cursor is on, so that what is typed meanwhile stays; it is gone before anything else
//! is shown. A terminal that cannot take lines away is told once, and the line stays.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use commands::frontend::RequestTokens;
use text::terminal::one_line;
use unicode_width::UnicodeWidthStr as _;

use super::status_area::StatusArea;
use crate::cells::cut_end;

/// How long nothing is said, and how often it is said anew.
const TICK: Duration = Duration::from_secs(1);

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct WaitLine(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// What stands below the line the cursor is on.
    below: Arc<Mutex<StatusArea>>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wait: Option<Wait>,
    /// Whether it stands on the screen, and can be taken away.
    drawn: bool,
    /// Whether a thread shows it.
    ticks: bool,
}

/// What of a request is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitStage {
    /// The weights of an embedded model, as they are read.
    Weights,
    /// The window that the server has given the model.
    Window,
    /// Tokens, as the server counts them.
    Counting,
    /// The answer to so many tokens.
    Sent { tokens: RequestTokens },
    /// The result of a tool.
    Call,
}

impl WaitStage {
    fn text(self) -> String {
        match self {
            Self::Weights => "its weights are read".to_owned(),
            Self::Window => "its server is asked for the window".to_owned(),
            Self::Counting => "its server counts the tokens".to_owned(),
            Self::Sent { tokens } => format!("{tokens} sent"),
            Self::Call => "it runs".to_owned(),
        }
    }

    fn short_text(self) -> String {
        match self {
            Self::Weights => "weights are read".to_owned(),
            Self::Window => "window asked for".to_owned(),
            Self::Counting => "tokens are counted".to_owned(),
            Self::Sent { tokens } => tokens.to_string(),
            Self::Call => "runs".to_owned(),
        }
    }
}

/// A request that is waited for, or a tool.
struct Wait {
    since: Instant,
    /// Name of the model; that of the tool.
    model: String,
    stage: WaitStage,
    /// Tokens that were read, and of how many.
    read: Option<(u64, u64)>,
    /// Whether it is told once.
    once: bool,
    /// Whether it was told, where it is told once.
    told: bool,
}

impl Wait {
    fn text(&self, waited: Duration) -> String {
        let Self { model, stage, .. } = self;
        if *stage == WaitStage::Call {
            return format!("{model} runs{}", self.time(waited));
        }
        format!("waiting for {model}: {}{}{}", stage.text(), self.progress(", "), self.time(waited))
    }

    /// [`Self::text`] in at most `cells` cells. What matters least goes first: provider, words, tokens, model.
    fn text_within(&self, waited: Duration, cells: usize) -> String {
        let Self { model, stage, .. } = self;
        let (what, short) = (stage.text(), stage.short_text());
        let name = model.rsplit_once('/').map_or(&**model, |(_, name)| name);
        let (progress, time) = (self.progress(", "), self.time(waited));
        let shorter = [
            self.text(waited),
            format!("waiting for {name}: {what}{progress}{time}"),
            format!("{name}: {short}{progress}{time}"),
            format!("waiting: {short}{progress}{time}"),
            format!("waiting{}{time}", self.progress(": ")),
        ];
        let least = || format!("{}{time}", self.progress(""));
        cut_end(&shorter.into_iter().find(|text| text.width() <= cells).unwrap_or_else(least), cells)
    }

    /// How much of it is read, behind `before`.
    fn progress(&self, before: &str) -> String {
        match self.read {
            Some((done, total)) if done < total => format!("{before}{} % read", done * 100 / total),
            Some(_) => format!("{before}read"),
            None => String::new(),
        }
    }

    fn time(&self, waited: Duration) -> String {
        if self.once { String::new() } else { format!(" · {} s", waited.as_secs()) }
    }
}

impl WaitLine {
    pub(super) fn new(below: Arc<Mutex<StatusArea>>) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), below, changed: Condvar::new() }))
    }

    /// Begins to wait, unless an answer is waited for already: of several requests the first is told of. What it takes
    /// until a request is sent counts as waited for its answer. Where lines cannot be taken away, it is told `once`.
    pub(super) fn begin(&self, model: &str, stage: WaitStage, once: bool) {
        let mut state = self.state();
        let since = match &state.wait {
            Some(Wait { stage: WaitStage::Sent { .. }, .. }) => return,
            Some(earlier) => earlier.since,
            None => Instant::now(),
        };
        let model = one_line(model).into_owned();
        state.wait = Some(Wait { since, model, stage, read: None, once, told: false });
        self.0.changed.notify_all();
        if std::mem::replace(&mut state.ticks, true) {
            return;
        }
        drop(state);
        let line = self.clone();
        let ticking = thread::Builder::new().name("wait line".to_owned()).spawn(move || line.tick());
        // Without a thread nothing is said, and the work goes on.
        if ticking.is_err() {
            self.state().ticks = false;
        }
    }

    pub(super) fn reading(&self, done: u64, total: u64) {
        if let Some(wait) = &mut self.state().wait
            && total > 0
        {
            wait.read = Some((done.min(total), total));
        }
    }

    /// Nothing is waited for any more.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.erase();
        if state.wait.take().is_some() {
            self.0.changed.notify_all();
        }
    }

    /// A stage is not waited for any more.
    pub(super) fn end_stage(&self, stage: WaitStage) {
        let is_of_stage = self.state().wait.as_ref().is_some_and(|wait| wait.stage == stage);
        if is_of_stage {
            self.end();
        }
    }

    /// Shows something on lines of their own while it is waited.
    pub(super) fn beside(&self, show: impl FnOnce()) {
        let mut state = self.state();
        state.erase();
        show();
    }

    /// What was typed has moved the cursor.
    pub(super) fn moved(&self) {
        self.state().drawn = false;
    }

    fn tick(&self) {
        let mut state = self.state();
        while state.wait.is_some() {
            let woken = self.0.changed.wait_timeout(state, TICK);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.draw(&self.0.below);
        }
        state.ticks = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn draw(&mut self, below: &Mutex<StatusArea>) {
        let Some(wait) = &mut self.wait else { return };
        let waited = wait.since.elapsed();
        if waited < TICK {
            return;
        }
        if wait.once {
            if !std::mem::replace(&mut wait.told, true) {
                let _ = writeln!(io::stderr().lock(), "{}", wait.text(waited));
            }
            return;
        }
        let columns = super::columns();
        // A line that wraps could not be taken away.
        let text = wait.text_within(waited, columns.saturating_sub(1).max(1));
        let mut stderr = io::stderr().lock();
        // A terminal that went away does not end the work.
        let _ = if self.drawn {
            write!(stderr, "\x1b7\x1b[A\r\x1b[K{text}\x1b8")
        } else {
            // The cursor goes down a line, and what stands below it with it.
            let mut below = below.lock().unwrap_or_else(PoisonError::into_inner);
            let erased = below.erase();
            write!(stderr, "{erased}\r\x1b[K{text}\n{}", below.draw(&mut 0))
        };
        self.drawn = true;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(io::stderr().lock(), "\x1b[A\r\x1b[M");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_is_asked_and_how_far_it_is() {
        let mut wait = Wait {
            since: Instant::now(),
            model: "embedded/smollm2".to_owned(),
            stage: WaitStage::Sent { tokens: RequestTokens { tokens: 3012, is_counted: true } },
            read: None,
            once: false,
            told: false,
        };
        let text = |wait: &Wait| wait.text(Duration::from_millis(7900));
        assert_eq!(text(&wait), "waiting for embedded/smollm2: 3012 tokens sent · 7 s");
        wait.stage = WaitStage::Weights;
        assert_eq!(text(&wait), "waiting for embedded/smollm2: its weights are read · 7 s");
        wait.stage = WaitStage::Sent { tokens: RequestTokens { tokens: 3012, is_counted: false } };
        assert_eq!(text(&wait), "waiting for embedded/smollm2: ≈ 3012 tokens sent · 7 s");
        wait.stage = WaitStage::Sent { tokens: RequestTokens { tokens: 3012, is_counted: true } };
        wait.read = Some((1024, 3000));
        assert_eq!(text(&wait), "waiting for embedded/smollm2: 3012 tokens sent, 34 % read · 7 s");
        wait.read = Some((3000, 3000));
        assert_eq!(text(&wait), "waiting for embedded/smollm2: 3012 tokens sent, read · 7 s");
        wait.once = true;
        assert_eq!(text(&wait), "waiting for embedded/smollm2: 3012 tokens sent, read");
        (wait.stage, wait.model, wait.once) = (WaitStage::Call, "exec".to_owned(), false);
        assert_eq!(text(&wait), "exec runs · 7 s");
    }

    #[test]
    fn it_says_what_of_a_request_is_waited_for_before_it_is_sent() {
        let shown = |stage, cells| {
            let model = "box/m".to_owned();
            let wait = Wait { since: Instant::now(), model, stage, read: None, once: false, told: false };
            wait.text_within(Duration::from_secs(3), cells)
        };
        let all = [WaitStage::Window, WaitStage::Counting]
            .map(|stage| [80, 30, 13].map(|cells| shown(stage, cells)).join("\n"));
        insta::assert_snapshot!(all.join("\n\n"), @r"
        waiting for box/m: its server is asked for the window · 3 s
        m: window asked for · 3 s
        waiting · 3 s

        waiting for box/m: its server counts the tokens · 3 s
        m: tokens are counted · 3 s
        waiting · 3 s
        ");
    }

    #[test]
    fn progress_and_time_stay_where_there_is_little_room() {
        let shown = |model: &str, cells: usize| {
            let model = model.to_owned();
            let read = Some((1024, 3000));
            let stage = WaitStage::Sent { tokens: RequestTokens { tokens: 2418, is_counted: true } };
            let wait = Wait { since: Instant::now(), model, stage, read, once: false, told: false };
            wait.text_within(Duration::from_secs(12), cells - 1)
        };
        let models =
            ["embedded/smollm2", "box/a-model-with-a-very-long-name-indeed", "漢/漢字漢字漢字漢字漢字"];
        let all = [80, 40, 25].map(|cells| models.map(|model| shown(model, cells)).join("\n"));
        insta::assert_snapshot!(all.join("\n\n"), @r"
        waiting for embedded/smollm2: 2418 tokens sent, 34 % read · 12 s
        a-model-with-a-very-long-name-indeed: 2418 tokens, 34 % read · 12 s
        waiting for 漢/漢字漢字漢字漢字漢字: 2418 tokens sent, 34 % read · 12 s

        smollm2: 2418 tokens, 34 % read · 12 s
        waiting: 2418 tokens, 34 % read · 12 s
        waiting: 2418 tokens, 34 % read · 12 s

        34 % read · 12 s
        34 % read · 12 s
        34 % read · 12 s
        ");
    }
}
