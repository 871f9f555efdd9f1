//! The person's editor.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use commands::frontend::EditorError;

use super::owner_program::{BY_SIGNAL, prepared};

/// The editor of a terminal for which none is named (POSIX).
const DEFAULT: &str = "vi";
/// What a shell ends with when it finds no such program.
const NO_SUCH_PROGRAM: i32 = 127;

/// Whether an editor is open: Ctrl-C is its own then.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_open() -> bool {
    IS_OPEN.load(Ordering::SeqCst)
}

/// Opens a file in the editor that `VISUAL` or `EDITOR` names, and waits until it ends.
///
/// # Errors
/// When there is none, or it failed.
pub(super) fn edit(file: &Path) -> Result<(), EditorError> {
    let editor = named()?;
    let failed = |why: String| EditorError::Failed { editor: editor.to_string_lossy().into_owned(), why };
    // The name may hold flags and quotes, as the shell reads them.
    // Ctrl-C is the editor's: the shell waits for what comes of it.
    let mut line = OsString::from("trap : INT QUIT; ");
    line.push(&editor);
    line.push(" \"$@\"");
    let mut command = shell(&line);
    command.arg(file);
    if !io::stdout().is_terminal() {
        // What a command prints is for whoever reads its standard output.
        let error = io::stderr();
        command.stdout(rustix::io::dup(&error).map_or_else(|_| Stdio::null(), Stdio::from));
    }
    IS_OPEN.store(true, Ordering::SeqCst);
    let ended = command.status();
    IS_OPEN.store(false, Ordering::SeqCst);
    let status = ended.map_err(|error| failed(format!("could not be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(reason(status))) }
}

/// Looks whether a shell finds the program of the editor; one that is named in another way than by a first word is found
/// out when it starts.
///
/// # Errors
/// When there is none, or no program of that name.
pub(super) fn find() -> Result<(), EditorError> {
    let editor = named()?;
    let is_plain = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "-_./+".contains(c));
    let Some(program) = editor.to_str().and_then(|line| line.split_whitespace().next()).filter(is_plain)
    else {
        return Ok(());
    };
    let mut command = shell(OsStr::new("command -v -- \"$1\""));
    command.arg(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if !status.success() => {
            let why = "was not found".to_owned();
            Err(EditorError::Failed { editor: editor.to_string_lossy().into_owned(), why })
        }
        _ => Ok(()),
    }
}

/// The editor that `VISUAL` or `EDITOR` names, else that of the terminal.
fn named() -> Result<OsString, EditorError> {
    // Of a blank name a shell would make the file the program.
    let is_blank = |value: &OsString| value.to_string_lossy().trim().is_empty();
    let named = ["VISUAL", "EDITOR"].iter().filter_map(env::var_os).find(|value| !is_blank(value));
    let default = || (io::stdin().is_terminal() && io::stderr().is_terminal()).then(|| DEFAULT.into());
    named.or_else(default).ok_or(EditorError::Missing)
}

/// A shell that runs a line as the owner.
fn shell(line: &OsStr) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).arg("sh");
    prepared(command)
}

fn reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(NO_SUCH_PROGRAM), _) => "was not found".to_owned(),
        (Some(code), _) if code > BY_SIGNAL => format!("was ended by signal {}", code - BY_SIGNAL),
        (Some(code), _) => format!("ended with {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "did not end well".to_owned(),
    }
}
