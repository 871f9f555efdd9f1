//! The lines of `chat --events`: each event of the turn as it comes, one object a line, and last what came of it (spec: cli
//! §2).
//!
//! They are numbered from 1 without a gap, but for events that a reader who stays behind loses.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent::SessionEvent;
use commands::CommandError;
use serde::Serialize;

use crate::{json, output};

/// Standard output has one row of numbers.
static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { last: 0, held_back: 0 });

struct Numbers {
    last: u64,
    /// Ends of turns that have no line of their own.
    held_back: u64,
}

#[derive(Serialize)]
struct EventLine<'a> {
    n: u64,
    #[serde(flatten)]
    event: &'a SessionEvent,
    /// `ANSWER-NUMBER`, as the result names the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
}

#[derive(Serialize)]
struct LastLine<'a, T> {
    n: u64,
    event: &'static str,
    #[serde(flatten)]
    done: &'a T,
}

/// Prints an event. The end of a turn waits for what is shown of it: [`finished`].
pub(crate) fn print(number: u64, event: &SessionEvent) {
    let mut numbers = numbers();
    if matches!(event, SessionEvent::Finished { .. }) {
        numbers.held_back += 1;
        return;
    }
    numbers.last = number.saturating_sub(numbers.held_back);
    let call = event.call().map(|call| call.to_string());
    if let Ok(line) = json::line(&EventLine { n: numbers.last, event, call }) {
        // A reader that went away does not end the work.
        let _ = output::bytes(&line);
    }
}

/// The last line: what came of the turn, or why it was not done.
///
/// # Errors
/// When it has no form in JSON.
pub(crate) fn finished(done: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    json::line(&LastLine { n: numbers().last + 1, event: "finished", done })
}

fn numbers() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}
