//! What was typed behind a line: the line editor takes all that is there at once, and keeps nothing behind the key that
//! ends one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, PromptEditMode, Reedline, ReedlineEvent,
    ReedlineRawEvent,
};

use super::keys::{CLEAR, Keys};
use super::lines::without_reports;
use super::typeahead::TypedAhead;
use crate::terminal::SignalKeys;

const ESCAPE: char = '\x1b';

/// Keys that the editor took at once. It goes on with none behind the one that ends its reading, and does not say which
/// one did: those behind a key that may are kept from it.
#[derive(Debug, Default)]
pub(super) struct Batch {
    behind: Vec<Event>,
    /// Whether one came that may end it.
    may_end: bool,
    /// Whether all of it was taken: the next event begins another one.
    is_whole: bool,
}

pub(super) type SharedBatch = Arc<Mutex<Batch>>;

pub(super) fn locked(batch: &SharedBatch) -> MutexGuard<'_, Batch> {
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batch {
    /// Takes an event, where it stands behind such a key.
    fn takes(&mut self, event: &Event) -> bool {
        if std::mem::take(&mut self.is_whole) {
            *self = Self::default();
        }
        let is_typed = matches!(event, Event::Key(_) | Event::Paste(_));
        if self.may_end && is_typed {
            self.behind.push(event.clone());
            return true;
        }
        // Enter is always the last.
        self.may_end |= ['j', 'c', 'd', 'z'].iter().any(|key| is_control(event, *key));
        false
    }

    /// What was typed behind the key that may have ended the reading.
    pub(super) fn behind(&mut self) -> Vec<Event> {
        std::mem::take(self).behind
    }
}

/// What the editor gives when something was typed behind a key that did not end its reading.
pub(super) const BEHIND: &str = "behind";

/// Keys as in Emacs, with what was typed behind a line.
pub(super) struct LineKeys {
    pub(super) keys: Emacs,
    pub(super) batch: SharedBatch,
}

impl EditMode for LineKeys {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        if locked(&self.batch).takes(&event) {
            return ReedlineEvent::ExecuteHostCommand(BEHIND.to_owned());
        }
        ReedlineRawEvent::try_from(event).map_or(ReedlineEvent::None, |event| self.keys.parse_event(event))
    }

    fn edit_mode(&self) -> PromptEditMode {
        // It is asked once a batch was taken.
        locked(&self.batch).is_whole = true;
        self.keys.edit_mode()
    }
}

/// How long the rest of a key or of a paste may take, of which a part was read.
const KEY_REST: Duration = Duration::from_millis(5);

/// What was typed and nobody read. It is given by the key meanwhile: the line mode of the terminal would take Ctrl-D for
/// the end of its input.
pub(super) fn unread() -> Vec<Event> {
    let is_raw = enable_raw_mode().is_ok();
    let next = || if event::poll(KEY_REST).unwrap_or(false) { event::read().ok() } else { None };
    let events = std::iter::from_fn(next).collect();
    if is_raw && let Err(error) = disable_raw_mode() {
        tracing::warn!(%error, "the terminal's mode could not be set again");
    }
    events
}

fn is_control(event: &Event, key: char) -> bool {
    matches!(event, Event::Key(event) if event.modifiers == KeyModifiers::CONTROL && event.code == KeyCode::Char(key))
}

/// Edits the line where its cursor stands with keys that were kept from the editor, as it does itself. Returns the first
/// that ends a line or clears it, with what stands behind it.
pub(super) fn edit_line(editor: &mut Reedline, typed: Vec<Event>) -> Vec<Event> {
    let mut keys = Emacs::default();
    let mut typed = typed.into_iter();
    while let Some(event) = typed.next() {
        let deletes = is_control(&event, 'd') && !editor.current_buffer_contents().is_empty();
        let parsed = ReedlineRawEvent::try_from(event.clone()).map(|event| keys.parse_event(event));
        let parsed = match parsed.unwrap_or(ReedlineEvent::None) {
            // No list is open.
            ReedlineEvent::UntilFound(mut ways) => ways.pop().unwrap_or(ReedlineEvent::None),
            parsed => parsed,
        };
        let edits = match parsed {
            _ if deletes => vec![EditCommand::Delete],
            // It would take typed text back.
            _ if is_control(&event, 'z') => Vec::new(),
            ReedlineEvent::Enter | ReedlineEvent::CtrlC | ReedlineEvent::CtrlD => {
                return std::iter::once(event).chain(typed).collect();
            }
            ReedlineEvent::Edit(edits) => edits,
            ReedlineEvent::Left => vec![EditCommand::MoveLeft { select: false }],
            ReedlineEvent::Right => vec![EditCommand::MoveRight { select: false }],
            // The history is looked at by people.
            _ => Vec::new(),
        };
        editor.run_edit_commands(&edits);
    }
    Vec::new()
}

/// A line that had begun, with what was typed behind it, as lines.
pub(super) fn typed_behind(begun: String, typed: impl Iterator<Item = Event>) -> TypedAhead {
    let mut keys = Keys::of(begun, usize::MAX, SignalKeys::default());
    let (mut lines, mut bytes) = (Vec::new(), Vec::new());
    // An answer that was parted behind its ESC came as keys.
    let plain = |bytes: &[u8]| without_reports(&String::from_utf8_lossy(bytes)).replace(ESCAPE, "");
    for event in typed {
        if let Event::Paste(text) = event {
            lines.extend(keys.take(plain(&std::mem::take(&mut bytes)).as_bytes()));
            keys.paste(&text);
        } else {
            bytes.extend(bytes_of(&event));
        }
    }
    lines.extend(keys.take(plain(&bytes).as_bytes()));
    TypedAhead { lines, begun: keys.end() }
}

/// What a terminal sends for a key; Ctrl-C clears the line, as Ctrl-U does.
fn bytes_of(event: &Event) -> Vec<u8> {
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
        // It edits the line.
        KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::ALT) => Vec::new(),
        KeyCode::Char(c) => c.to_string().into_bytes(),
        // With Alt it is a line end within the text.
        KeyCode::Enter if key.modifiers.contains(KeyModifiers::ALT) => b"\\\n".to_vec(),
        KeyCode::Enter => b"\n".to_vec(),
        KeyCode::Tab => b"\t".to_vec(),
        KeyCode::Backspace => b"\x7f".to_vec(),
        KeyCode::Esc => ESCAPE.to_string().into_bytes(),
        _ => Vec::new(),
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
        let alt = |code| Event::Key(KeyEvent::new(code, KeyModifiers::ALT));
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
            (vec![alt(KeyCode::Char('b'))], "my secrethello"),
            (vec![alt(KeyCode::Enter)], "my secret\nhello"),
            (vec![key(KeyCode::Enter), control('d')], "my secret\n/quit\nhello"),
        ] {
            let typed = text("secret").into_iter().chain(edits).chain(text("hello"));
            let typed = typed.chain([key(KeyCode::Enter)]);
            let typed = typed_behind("my ".to_owned(), typed);
            assert_eq!((typed.lines.join("\n").as_str(), typed.begun.as_str()), (line, ""));
        }
    }

    #[test]
    fn what_stands_behind_a_key_that_may_end_the_reading_is_kept_from_the_editor() {
        let key = |code, modifiers| Event::Key(KeyEvent::new(code, modifiers));
        for (typed, taken, behind) in
            [("ab", 2, ""), ("one\r", 4, ""), ("a\n", 2, ""), ("one\nt\nth", 4, "t|th"), ("a^b\n", 2, "b|")]
        {
            let mut keys = LineKeys { keys: Emacs::default(), batch: SharedBatch::default() };
            // Of the batch before.
            keys.parse_event(
                ReedlineRawEvent::try_from(key(KeyCode::Char('d'), KeyModifiers::CONTROL)).unwrap(),
            );
            keys.edit_mode();
            let given = typed.chars().map(|c| match c {
                '\n' => key(KeyCode::Char('j'), KeyModifiers::CONTROL),
                '\r' => key(KeyCode::Enter, KeyModifiers::NONE),
                '^' => key(KeyCode::Char('c'), KeyModifiers::CONTROL),
                c => key(KeyCode::Char(c), KeyModifiers::NONE),
            });
            let given: Vec<_> =
                given.map(|event| keys.parse_event(ReedlineRawEvent::try_from(event).unwrap())).collect();
            let kept = ReedlineEvent::ExecuteHostCommand(BEHIND.to_owned());
            assert_eq!(given.iter().take_while(|event| **event != kept).count(), taken, "{typed:?}");
            let kept = typed_behind(String::new(), locked(&keys.batch).behind().into_iter());
            let lines = kept.lines.into_iter().chain([kept.begun]).collect::<Vec<_>>();
            assert_eq!(lines.join("|"), behind, "{typed:?}");
        }
    }
}
