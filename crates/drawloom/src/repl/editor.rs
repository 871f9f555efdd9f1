//! The input line. It is edited on a thread of its own, so that a signal is heard while nobody types.
//!
//! Editing needs a terminal that says where its cursor is. One that cannot be drawn on is not even asked, and one that
//! does not answer is asked once: from then on lines are read as the terminal itself gives them ([`plain`]).

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use commands::CommandError;
use commands::slash::{CompletionNames, complete};
use reedline::{
    ColumnarMenu, Completer, EditCommand, Emacs, Highlighter, History, KeyCode, KeyModifiers,
    MenuBuilder as _, Reedline, ReedlineEvent, ReedlineMenu, Signal, Span, StyledText, Suggestion,
    ValidationResult, Validator, default_emacs_keybindings,
};
use rustix::process::Signal as TerminalSignal;
use tokio::sync::oneshot;

use super::behind::{BEHIND, LineKeys, SharedBatch, edit_line, locked, typed_behind, unread};
use super::history::UNKEPT;
use super::lines::{is_open, joined};
use super::plain;
use super::prompt::Standing;
use super::typeahead::TypedAhead;
use crate::output::{Output, to_stderr};
use crate::terminal::{can_redraw, has_job_control, send_signal, stop_process};

/// What was done at the input line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    /// No line: it was thrown away, with Ctrl-C, or is the first of those that were typed behind it.
    Nothing,
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

    /// Asks for a line, which begins with what was typed already (`begun`); with what was typed behind it. Once it is
    /// asked for, it has to be waited for: both are lost otherwise.
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
            return plain::line(&standing, begun, self.output).await;
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
        let typed = read(&mut editor, &standing, &batch);
        // Whoever ends the process meanwhile loses no line.
        keep(&mut editor);
        if answer.send(typed).is_err() {
            return;
        }
    }
}

/// What is done at the line, with what was typed behind it.
fn read(editor: &mut Reedline, standing: &Standing, batch: &SharedBatch) -> (Typed, TypedAhead) {
    loop {
        let read = editor.read_line(standing);
        let kept = locked(batch).behind();
        let behind = |kept: Vec<_>, begun: &str, unread| {
            typed_behind(begun.to_owned(), kept.into_iter().chain(unread))
        };
        return match read {
            Ok(Signal::HostCommand(command)) => {
                if command != BEHIND {
                    suspend();
                }
                let kept = edit_line(editor, kept);
                if kept.is_empty() {
                    continue;
                }
                let typed = behind(kept, editor.current_buffer_contents(), unread());
                editor.run_edit_commands(&[EditCommand::Clear]);
                if typed.lines.is_empty() {
                    editor.run_edit_commands(&[EditCommand::InsertString(typed.begun)]);
                    continue;
                }
                to_stderr("");
                (Typed::Nothing, typed)
            }
            Ok(Signal::Success(line)) => (Typed::Line(joined(&line)), behind(kept, "", unread())),
            Ok(Signal::CtrlC) => (Typed::Nothing, behind(kept, "", unread())),
            // What nobody read is for whoever has the terminal next.
            Ok(_) => (Typed::End, behind(kept, "", Vec::new())),
            Err(error) => {
                tracing::debug!(%error, "no line can be edited");
                (Typed::Uneditable, behind(kept, editor.current_buffer_contents(), unread()))
            }
        };
    }
}

/// Writes the history down, with what others wrote there.
fn keep(editor: &mut Reedline) {
    if let Err(error) = editor.sync_history() {
        tracing::warn!(%error, "what was typed could not be kept");
    }
}

/// Stops the process, as Ctrl-Z does, until it goes on.
fn suspend() {
    if let Ok(terminal) = io::stdin().as_fd().try_clone_to_owned() {
        // Whoever started it in a line with others stops with it.
        send_signal(&File::from(terminal), TerminalSignal::TSTP);
        stop_process();
    }
}

const MENU: &str = "names";

fn line_editor(history: Box<dyn History>, completer: Names, color: bool) -> (Reedline, SharedBatch) {
    let batch = SharedBatch::default();
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
    );
    // Without job control it does nothing, as elsewhere; as in Emacs it would take typed text back.
    let suspends = if has_job_control() {
        ReedlineEvent::ExecuteHostCommand("suspend".to_owned())
    } else {
        ReedlineEvent::None
    };
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('z'), suspends);
    let editor = Reedline::create()
        .with_history(history)
        .with_history_exclusion_prefix(Some(UNKEPT.to_owned()))
        .with_validator(Box::new(Whole))
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
struct Whole;

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_open(line) { ValidationResult::Incomplete } else { ValidationResult::Complete }
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
    use super::*;

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
