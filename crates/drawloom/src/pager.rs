//! Long answers go through a pager, where somebody sits at a terminal to turn its pages.
//!
//! It is the program that `DRAWLOOM_PAGER` names, else `PAGER`, else `less`; an empty name and `cat` are none. One that is
//! missing or fails is no loss: the answer is printed as it is. One that is left early has shown enough.

use std::env;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use commands::CommandOutcome;
use signal_hook::consts::SIGINT;

use crate::terminal::owner_program::{BY_SIGNAL, prepared};

/// The pager where none is named.
const DEFAULT: &str = "less";
/// What a named pager has to hold to be read by a shell, as git has it.
const SHELL: &str = "|&;<>()$`\\\"'*?[#~=%";

/// Whether an answer only shows what is there; what was changed or made is said at once.
pub(crate) const fn may_show(outcome: &CommandOutcome) -> bool {
    matches!(
        outcome,
        CommandOutcome::Trees(_)
            | CommandOutcome::Shown(_)
            | CommandOutcome::Text(_)
            | CommandOutcome::StoredText(_)
            | CommandOutcome::Listed(_)
            | CommandOutcome::Exchanges(_)
            | CommandOutcome::Operations(_)
            | CommandOutcome::Views(_)
            | CommandOutcome::Compared(_)
            | CommandOutcome::Tokens(_)
            | CommandOutcome::Sessions(_)
            | CommandOutcome::Approvals(_)
            | CommandOutcome::Models(_)
            | CommandOutcome::Workspaces(_)
            | CommandOutcome::Hits(_)
            | CommandOutcome::Settings(_)
            | CommandOutcome::Health(_)
            | CommandOutcome::Context(_)
            | CommandOutcome::ContextDiff(_)
            | CommandOutcome::Cost(_)
    )
}

/// Shows a text in the pager and waits until it is left. Whether it was shown.
pub(crate) fn show(body: &[u8]) -> bool {
    let Some(mut pager) = command() else { return false };
    // Ctrl-C is the pager's own while it is there.
    let ctrl_c = signal_hook::flag::register(SIGINT, Arc::<AtomicBool>::default());
    let shown = pager.stdin(Stdio::piped()).spawn().and_then(|child| feed(child, body));
    if let Ok(ctrl_c) = ctrl_c {
        signal_hook::low_level::unregister(ctrl_c);
    }
    shown.unwrap_or(false)
}

/// Gives a pager its text and waits for its end. Whether it was there to show it.
fn feed(mut child: Child, body: &[u8]) -> io::Result<bool> {
    let fed = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(body));
    let status = child.wait()?;
    match fed {
        // It was left before it had read all.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    // What a signal ended was left as well.
    Ok(status.code().is_none_or(|code| code == 0 || code > BY_SIGNAL))
}

/// The pager, with what it needs to show colours and to go away where all fits the screen.
fn command() -> Option<Command> {
    let named = ["DRAWLOOM_PAGER", "PAGER"].iter().find_map(env::var_os);
    let named = named.unwrap_or_else(|| OsString::from(DEFAULT));
    let line = named.to_str().map(str::trim);
    if line.is_some_and(|line| line.is_empty() || line == "cat") {
        return None;
    }
    let words: Option<Vec<&str>> = line
        .filter(|line| !line.contains(|c| SHELL.contains(c)))
        .map(|line| line.split_whitespace().collect());
    let pager = match words.as_deref() {
        Some([program, arguments @ ..]) => {
            let mut pager = Command::new(program);
            pager.args(arguments);
            pager
        }
        _ => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(named);
            shell
        }
    };
    let mut pager = prepared(pager);
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            pager.env(name, value);
        }
    }
    Some(pager)
}
