//! Input lines as the terminal itself gives them: where no line can be edited. Nothing is written but the prompt, and
//! that a line was cut.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;

use commands::CommandError;
use reedline::{Prompt as _, PromptEditMode};
use tokio::signal::unix::{SignalKind, signal};

use super::editor::Typed;
use super::ending;
use super::lines::{is_open, joined, without_reports};
use super::prompt::Standing;
use super::typeahead::{LINE, cut, is_cut};
use crate::output::Output;
use crate::terminal::{has_job_control, mark_pastes, stop_process};

/// Asks for a line, which begins with what was typed already; Ctrl-C throws it away.
///
/// # Errors
/// When the system lets nobody listen to Ctrl-C.
pub(super) async fn line(
    standing: &Standing,
    mut typed: String,
    output: Output,
) -> Result<Typed, CommandError> {
    let prompt = format!(
        "{}{}",
        standing.render_prompt_left(),
        standing.render_prompt_indicator(PromptEditMode::Default)
    );
    // It gives the marks as if they were typed.
    mark_pastes(false);
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| ending::no_signals(&error))?;
    let mut stops = signal(ending::terminal_stop()).map_err(|error| ending::no_signals(&error))?;
    // Whoever sees the prompt is heard.
    show(&format!("{prompt}{typed}"));
    loop {
        let mut reading = tokio::task::spawn_blocking(read);
        let read = loop {
            tokio::select! {
                read = &mut reading => break read.ok().flatten(),
                _ = interrupts.recv() => {
                    typed.clear();
                    show(&format!("\n{prompt}"));
                }
                // The terminal has thrown away what was typed of the line.
                _ = stops.recv() => if has_job_control() {
                    stop_process();
                    show(&format!("{prompt}{typed}"));
                },
            }
        };
        let Some(line) = read else { return Ok(Typed::End) };
        if is_cut(&line) {
            output.failure(&cut());
            show(&format!("{prompt}{typed}"));
            continue;
        }
        let line = String::from_utf8_lossy(&line);
        typed += &without_reports(line.trim_end_matches('\n'));
        if !is_open(&typed) {
            return Ok(Typed::Line(joined(&typed)));
        }
        typed.push('\n');
        show(&standing.render_prompt_multiline_indicator());
    }
}

/// A terminal that went away is found by whoever reads from it.
fn show(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The next line, with its end. None at the end of input, or where the terminal is gone.
fn read() -> Option<Vec<u8>> {
    let mut terminal = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let (mut line, mut bytes) = (Vec::new(), [0; LINE]);
    while line.last() != Some(&b'\n') {
        match terminal.read(&mut bytes) {
            Ok(0) => return None,
            Ok(read) => line.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(line)
}
