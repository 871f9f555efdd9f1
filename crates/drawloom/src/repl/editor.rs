//! The input line. It is edited on a thread of its own, so that a signal is heard while nobody types.
//!
//! Editing needs a terminal that says where its cursor is. One that cannot be drawn on is not even asked, and one that
//! does not answer is asked once: from then on lines are read as the terminal itself gives them ([`plain`]).

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use commands::CommandError;
use commands::slash::{CompletionNames, complete};
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use reedline::{
    ColumnarMenu, Completer, EditCommand, EditMode, Emacs, Highlighter, History, KeyCode, KeyModifiers,
    MenuBuilder as _, PromptEditMode, Reedline, ReedlineEvent, ReedlineMenu, ReedlineRawEvent, Signal, Span,
    StyledText, Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};
use rustix::process::Signal as TerminalSignal;
use tokio::sync::oneshot;

use super::history::UNKEPT;
use super::keys::{CLEAR, Keys};
use super::lines::{is_open, joined, without_reports};
use super::plain;
use super::prompt::Standing;
use super::typeahead::TypedAhead;
use crate::output::Output;
use crate::terminal::{SignalKeys, can_redraw, has_job_control, send_signal, stop_process};

/// What was done at the input line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    /// What was typed was thrown away, with Ctrl-C.
    Cleared,
    /// The conversation is to end: Ctrl-D, or a terminal that is gone.
    End,
    /// No line can be edited here. Lines are plain from now on.
    Uneditable,
}

/// Where the conversation stands, what was typed of the line already, and who waits for it and what was typed behind it.
type Question = (Standing, String, oneshot::Sender<(Typed, TypedAhead)>);

/// What reads input lines.
pub(super) struct Editor {
    known: Arc<Mutex<CompletionNames>>,
    /// The thread that edits lines; none where lines are plain.
    asked: Option<mpsc::Sender<Question>>,
    output: Output,
}

impl Editor {
    /// Starts it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(history: Box<dyn History>, output: Output) -> Result<Self, CommandError> {
        let known = Arc::<Mutex<CompletionNames>>::default();
        if !can_redraw() {
            return Ok(Self { known, asked: None, output });
        }
        let (asked, questions) = mpsc::channel();
        let completer = Names(Arc::clone(&known));
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || edit(line_editor(history, completer, output.color()), &questions))
            .map_err(|error| {
                CommandError::new("internal", 6, format!("no thread: {error}"), "free some memory")
            })?;
        Ok(Self { known, asked: Some(asked), output })
    }

    /// Whether lines are read as the terminal gives them: none of them is kept here.
    pub(super) const fn is_plain(&self) -> bool {
        self.asked.is_none()
    }

    /// Asks for a line, which begins with what was typed already; with what was typed behind it. Once it is asked for, it has to be waited for: what is typed is lost otherwise.
    ///
    /// # Errors
    /// When the thread is gone.
    pub(super) async fn line(
        &mut self,
        standing: Standing,
        known: CompletionNames,
        begun: String,
    ) -> Result<(Typed, TypedAhead), CommandError> {
        let Some(asked) = &self.asked else {
            let typed = plain::line(&standing, begun, self.output).await?;
            return Ok((typed, TypedAhead::default()));
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        let (answer, typed) = oneshot::channel();
        let gone = || CommandError::new("internal", 6, "the input line is gone", "begin again");
        asked.send((standing, begun, answer)).map_err(|_| gone())?;
        let typed = typed.await.map_err(|_| gone())?;
        if let (Typed::Uneditable, _) = typed {
            self.asked = None;
        }
        Ok(typed)
    }
}

fn edit((mut editor, batch): (Reedline, SharedBatch), questions: &mpsc::Receiver<Question>) {
    while let Ok((standing, begun, answer)) = questions.recv() {
        if !begun.is_empty() {
            editor.run_edit_commands(&[EditCommand::InsertString(begun)]);
        }
        // Lines that were typed while something was shown stand in it too.
        keep(&mut editor);
        let read = loop {
            match editor.read_line(&standing) {
                Ok(Signal::HostCommand(_)) => suspend(),
                read => break read,
            }
        };
        let behind = |begun| typed_behind(begun, locked(&batch).behind().into_iter().chain(unread()));
        let typed = match read {
            Ok(Signal::Success(line)) => (Typed::Line(joined(&line)), behind(String::new())),
            Ok(Signal::CtrlC) => (Typed::Cleared, behind(String::new())),
            Ok(_) => (Typed::End, TypedAhead::default()),
            Err(error) => {
                tracing::debug!(%error, "no line can be edited");
                (Typed::Uneditable, behind(editor.current_buffer_contents().to_owned()))
            }
        };
        // Whoever ends the process meanwhile loses no line.
        keep(&mut editor);
        if answer.send(typed).is_err() {
            return;
        }
    }
}

/// Writes the history down, with what others wrote there.
fn keep(editor: &mut Reedline) {
    if let Err(error) = editor.sync_history() {
        tracing::warn!(%error, "what was typed could not be kept");
    }
}

/// How long the rest of a key or of a paste may take, of which a part was read.
const REST: Duration = Duration::from_millis(5);

/// What was typed and nobody read. It is given by the key meanwhile: the line mode of the terminal would take Ctrl-D for
/// the end of its input.
fn unread() -> Vec<Event> {
    let is_raw = enable_raw_mode().is_ok();
    let next = || if event::poll(REST).unwrap_or(false) { event::read().ok() } else { None };
    let events = std::iter::from_fn(next).collect();
    if is_raw && let Err(error) = disable_raw_mode() {
        tracing::warn!(%error, "the terminal's mode could not be set again");
    }
    events
}

/// Stops the process, as Ctrl-Z does, until it goes on.
fn suspend() {
    if has_job_control()
        && let Ok(terminal) = io::stdin().as_fd().try_clone_to_owned()
    {
        // Whoever started it in a line with others stops with it.
        send_signal(&File::from(terminal), TerminalSignal::TSTP);
        stop_process();
    }
}

/// A line that had begun, with what was typed behind it, as lines.
fn typed_behind(begun: String, typed: impl Iterator<Item = Event>) -> TypedAhead {
    let mut keys = Keys::of(begun, usize::MAX, SignalKeys::default());
    let (mut lines, mut bytes) = (Vec::new(), Vec::new());
    // An answer that was parted behind its ESC came as keys.
    let plain = |bytes: &[u8]| without_reports(&String::from_utf8_lossy(bytes)).replace(ESCAPE, "");
    for event in typed {
        if let Event::Paste(text) = event {
            lines.extend(keys.take(plain(&std::mem::take(&mut bytes)).as_bytes()));
            keys.paste(&text);
        } else {
            bytes.extend(bytes_of(event));
        }
    }
    lines.extend(keys.take(plain(&bytes).as_bytes()));
    TypedAhead { lines, begun: keys.end() }
}

/// What a terminal sends for a key; Ctrl-C clears the line, as Ctrl-U does.
fn bytes_of(event: Event) -> Vec<u8> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return Vec::new(),
    };
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'C') if is_control => vec![CLEAR],
        KeyCode::Char(c) if is_control => {
            u8::try_from(c).ok().filter(u8::is_ascii_alphabetic).map(|byte| byte & 0x1f).into_iter().collect()
        }
        KeyCode::Char(c) => c.to_string().into_bytes(),
        KeyCode::Enter => b"\n".to_vec(),
        KeyCode::Tab => b"\t".to_vec(),
        KeyCode::Backspace => b"\x7f".to_vec(),
        KeyCode::Esc => ESCAPE.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

const ESCAPE: char = '\x1b';
const MENU: &str = "names";

/// Events that the editor took at once. It goes on with none behind the one that ends a line.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<Event>,
    /// Places of keys that may end the line; Enter does so only as the last.
    ends: Vec<usize>,
    /// How many of these found that the line goes on.
    open: usize,
    /// Whether all of it was taken: the next event begins another one.
    is_whole: bool,
}

type SharedBatch = Arc<Mutex<Batch>>;

fn locked(batch: &SharedBatch) -> MutexGuard<'_, Batch> {
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    fn take(&mut self, event: Event) {
        if std::mem::take(&mut self.is_whole) {
            *self = Self::default();
        }
        if let Event::Key(key) = &event
            && key.modifiers == KeyModifiers::CONTROL
            && matches!(key.code, KeyCode::Char('j' | 'c'))
        {
            self.ends.push(self.events.len());
        }
        self.events.push(event);
    }

    /// What was typed behind the key that ended the line.
    fn behind(&mut self) -> Vec<Event> {
        let mut batch = std::mem::take(self);
        batch.ends.get(batch.open).map(|end| batch.events.split_off(end + 1)).unwrap_or_default()
    }
}

/// Keys as in Emacs, with what was typed behind a line.
struct LineKeys {
    keys: Emacs,
    batch: SharedBatch,
}

impl EditMode for LineKeys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        locked(&self.batch).take(event.clone());
        ReedlineRawEvent::try_from(event).map_or(ReedlineEvent::None, |event| self.keys.parse_event(event))
    }

    fn edit_mode(&self) -> PromptEditMode {
        // It is asked once a batch was taken.
        locked(&self.batch).is_whole = true;
        self.keys.edit_mode()
    }
}

fn line_editor(history: Box<dyn History>, completer: Names, color: bool) -> (Reedline, SharedBatch) {
    let batch = SharedBatch::default();
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
    );
    keys.add_binding(
        KeyModifiers::CONTROL,
        KeyCode::Char('z'),
        ReedlineEvent::ExecuteHostCommand(String::new()),
    );
    let editor = Reedline::create()
        .with_history(history)
        .with_history_exclusion_prefix(Some(UNKEPT.to_owned()))
        .with_validator(Box::new(Whole(Arc::clone(&batch))))
        .with_completer(Box::new(completer))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU))))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_highlighter(Box::new(Plain))
        .with_edit_mode(Box::new(LineKeys { keys: Emacs::new(keys), batch: Arc::clone(&batch) }))
        .with_ansi_colors(color)
        .use_bracketed_paste(true);
    (editor, batch)
}

/// Asks for more lines until what is typed is whole.
struct Whole(SharedBatch);

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_open(line) {
            locked(&self.0).open += 1;
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Text as it is typed.
struct Plain;

impl Highlighter for Plain {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        let mut styled = StyledText::new();
        styled.push((Default::default(), line.to_owned()));
        styled
    }
}

/// Completes slash commands and their arguments.
struct Names(Arc<Mutex<CompletionNames>>);

impl Completer for Names {
    fn complete(&mut self, line: &str, cursor: usize) -> Vec<Suggestion> {
        let typed = line.get(..cursor).unwrap_or_default();
        if let Some(path) = typed.strip_prefix("/file ") {
            return paths(path).into_iter().map(|value| path_suggestion(value, typed, path)).collect();
        }
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (replaced, found) = complete(typed, &known);
        let suggestion = |value| Suggestion {
            value,
            span: Span::new(replaced.start, replaced.end),
            append_whitespace: true,
            ..Suggestion::default()
        };
        found.into_iter().map(suggestion).collect()
    }
}

/// Paths that are offered at most.
const PATHS: usize = 200;

/// Files and folders whose path begins so; a folder ends with a slash. Hidden ones are offered where a dot was typed.
fn paths(typed: &str) -> Vec<String> {
    let (folder, begun) = typed.rsplit_once('/').map_or(("", typed), |(folder, begun)| (folder, begun));
    let shown = if typed.contains('/') { format!("{folder}/") } else { String::new() };
    let home = std::env::var("HOME").ok();
    let place = match (shown.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => format!("{home}/{below}"),
        _ if shown.is_empty() => "./".to_owned(),
        _ => shown.clone(),
    };
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_meant = name.starts_with(begun) && (begun.starts_with('.') || !name.starts_with('.'));
        let end = if entry.path().is_dir() { "/" } else { "" };
        (is_meant && !name.contains(char::is_control)).then(|| format!("{shown}{name}{end}"))
    });
    let mut found: Vec<String> = named.take(PATHS).collect();
    found.sort();
    found
}

fn path_suggestion(value: String, typed: &str, path: &str) -> Suggestion {
    Suggestion {
        append_whitespace: false,
        span: Span::new(typed.len() - path.len(), typed.len()),
        value,
        ..Suggestion::default()
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn what_is_typed_while_the_terminal_is_asked_is_edited_as_ever() {
        let control = |c| Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
        let key = |code| Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        let text = |text: &str| text.chars().map(|c| key(KeyCode::Char(c))).collect::<Vec<_>>();
        for (edits, line) in [
            (vec![control('u')], "hello"),
            (vec![control('c')], "hello"),
            (vec![control('w')], "my hello"),
            (vec![key(KeyCode::Backspace), control('h')], "my secrhello"),
            (vec![control('a'), key(KeyCode::Left)], "my secrethello"),
            (vec![Event::Paste("\u{15}é\r\n".to_owned())], "my secreté\nhello"),
            (text("\\"), "my secret\\hello"),
            ([vec![key(KeyCode::Esc)], text("[2;1R")].concat(), "my secrethello"),
            (vec![key(KeyCode::Esc)], "my secrethello"),
            (vec![key(KeyCode::Enter), control('d')], "my secret\n/quit\nhello"),
        ] {
            let typed = text("secret").into_iter().chain(edits).chain(text("hello"));
            let typed = typed.chain([key(KeyCode::Enter)]);
            let typed = typed_behind("my ".to_owned(), typed);
            assert_eq!((typed.lines.join("\n").as_str(), typed.begun.as_str()), (line, ""));
        }
    }

    #[test]
    fn what_stands_behind_the_key_that_ended_a_line_is_found() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        let behind = |typed: &str, open: usize| {
            let mut batch = Batch { is_whole: true, events: vec![Event::FocusGained], ..Batch::default() };
            for c in typed.chars() {
                batch.take(match c {
                    '\n' => key(KeyCode::Char('j'), KeyModifiers::CONTROL),
                    '\r' => key(KeyCode::Enter, KeyModifiers::NONE),
                    '^' => key(KeyCode::Char('c'), KeyModifiers::CONTROL),
                    c => key(KeyCode::Char(c), KeyModifiers::NONE),
                });
            }
            batch.open = open;
            let typed = typed_behind(String::new(), batch.behind().into_iter());
            (typed.lines, typed.begun)
        };
        let lines =
            |lines: &[&str], begun: &str| (lines.iter().map(ToString::to_string).collect(), begun.to_owned());
        assert_eq!(behind("one\ntwo\nthr", 0), lines(&["two"], "thr"));
        assert_eq!(behind("a\\\nb\nc\n", 1), lines(&["c"], ""));
        assert_eq!(behind("a^b\n", 0), lines(&["b"], ""));
        assert_eq!(behind("one\r", 0), lines(&[], ""));
    }

    #[test]
    fn paths_are_completed_by_what_is_in_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let typed = |name: &str| format!("{}/{name}", folder.path().display());
        std::fs::write(typed("notes.txt"), "x").unwrap();
        std::fs::write(typed(".notes"), "x").unwrap();
        std::fs::create_dir(typed("novel")).unwrap();
        assert_eq!(paths(&typed("no")), [typed("notes.txt"), typed("novel/")]);
        assert_eq!(paths(&typed(".")), [typed(".notes")]);
        assert!(paths(&typed("x")).is_empty());
    }
}
