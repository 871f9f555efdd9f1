//! Input lines as the terminal itself gives them: where no line can be edited. Nothing is written but the prompt, and
//! that a line was cut.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use commands::CommandError;
use reedline::{Prompt as _, PromptEditMode};
use tokio::signal::unix::{SignalKind, signal};

use super::editor::Typed;
use super::ending;
use super::lines::{is_open, joined};
use super::prompt::Standing;
use super::typeahead::{ReadLine, TypedAhead, cut, read_line};
use crate::output::Output;
use crate::terminal::{has_job_control, mark_pastes, stop_process};

/// Asks for a line, which begins with what was typed already; Ctrl-C throws it away. At the end of input with what was
/// typed of it.
///
/// # Errors
/// When the system lets nobody listen to Ctrl-C.
pub(super) async fn line(
    standing: &Standing,
    mut typed: String,
    output: Output,
) -> Result<(Typed, TypedAhead), CommandError> {
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
                read = &mut reading => break read.unwrap_or(ReadLine::Gone),
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
        match read {
            ReadLine::Line(line) => typed += &line,
            ReadLine::Cut => {
                output.failure(&cut());
                show(&format!("{prompt}{typed}"));
                continue;
            }
            ReadLine::End | ReadLine::Gone => {
                return Ok((Typed::End, TypedAhead { lines: Vec::new(), begun: typed }));
            }
        }
        let Some(line) = typed.strip_suffix('\n') else { continue };
        if !is_open(line) {
            return Ok((Typed::Line(joined(line)), TypedAhead::default()));
        }
        show(&standing.render_prompt_multiline_indicator());
    }
}

/// A terminal that went away is found by whoever reads from it.
fn show(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn read() -> ReadLine {
    io::stdin().as_fd().try_clone_to_owned().map_or(ReadLine::Gone, |own| read_line(&File::from(own)))
}
